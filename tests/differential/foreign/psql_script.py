"""The statements of a script of psql: what the server would receive, and the rows that follow COPY … FROM stdin."""

import re
from dataclasses import dataclass
from pathlib import Path

VARIABLE = re.compile(r""":(?:'(\w+)'|"(\w+)"|([A-Za-z_]\w*))""")
TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*)
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
    | (?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*')
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    | (?P<command>\\(?:[^\n]*))
    | (?P<open>[([])
    | (?P<close>[)\]])
    | (?P<body>\bBEGIN\s+ATOMIC\b)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
COPY_FROM_INPUT = re.compile(r"\s*copy\b.*\bfrom\s+stdin\b", re.IGNORECASE | re.DOTALL)


@dataclass
class ScriptStatement:
    # The line on which it begins.
    line: int
    sql: str
    # What follows a COPY, as the server receives it.
    rows: bytes | None = None


def end_of_comment(text: str, start: int) -> int:
    """Comments of SQL may be nested."""
    depth, position = 0, start
    while position < len(text):
        if text.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif text.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    return position


class Script:
    """Reads a script. Of the commands of psql, `\\set` and `\\getenv` have an effect; a statement that another one sends is sent as it is."""

    def __init__(self, path: Path, environment: dict[str, str]):
        self.text = path.read_text(errors="replace")
        self.environment = environment
        self.variables: dict[str, str] = {}

    def statements(self):
        text, start, position, depth, bodies = self.text, 0, 0, 0, 0
        while found := TOKEN.search(text, position):
            position = found.end()
            kind = found.lastgroup
            if kind == "comment" and found[0] == "/*":
                position = end_of_comment(text, found.start())
            elif kind == "dollar":
                end = text.find(found[0], position)
                position = len(text) if end < 0 else end + len(found[0])
            elif kind == "open":
                depth += 1
            elif kind == "close":
                depth = max(0, depth - 1)
            elif kind == "body":
                bodies = 1
            elif kind == "command":
                if found[0].startswith("\\;"):
                    position = found.start() + 2
                    continue
                yield from self.statement(start, found.start())
                self.run_command(found[0])
                start, depth, bodies = position, 0, 0
            elif kind == "end" and depth == 0:
                if bodies and not re.search(r"\bEND\s*;$", text[start:position], re.IGNORECASE):
                    continue
                for one in self.statement(start, position - 1):
                    if COPY_FROM_INPUT.match(one.sql):
                        position, one.rows = self.rows_from(position)
                    yield one
                start, bodies = position, 0
        yield from self.statement(start, len(text))

    def statement(self, start: int, end: int):
        text = self.text[start:end]
        bare = without_leading_comments(text)
        if bare.strip():
            line = self.text.count("\n", 0, end - len(bare.lstrip())) + 1
            yield ScriptStatement(line, self.substituted(bare.strip()))

    def rows_from(self, position: int) -> tuple[int, bytes]:
        """The rows from the next line to the line `\\.`."""
        start = self.text.index("\n", position) + 1
        end = start
        while end < len(self.text) and not self.text.startswith("\\.\n", end):
            end = self.text.find("\n", end) + 1 or len(self.text)
        return min(len(self.text), end + 3), self.text[start:end].encode()

    def run_command(self, command: str):
        words = command.split()
        if words[0] == "\\getenv" and len(words) == 3:
            self.variables[words[1]] = self.environment.get(words[2], "")
        elif words[0] == "\\set" and len(words) >= 2:
            self.variables[words[1]] = "".join(self.substituted(word).strip("'") for word in words[2:])

    def substituted(self, sql: str) -> str:
        """With the values of psql's variables, outside of quotes."""

        def value(found: re.Match) -> str:
            quoted, name, plain = found.groups()
            text = self.variables.get(quoted or name or plain)
            if text is None or sql[found.start() - 1 : found.start()] == ":":
                return found[0]
            return f"'{text}'" if quoted else f'"{text}"' if name else text

        pieces, position = [], 0
        while found := TOKEN.search(sql, position):
            end = found.end()
            if found.lastgroup == "dollar":
                close = sql.find(found[0], end)
                end = len(sql) if close < 0 else close + len(found[0])
            pieces += [VARIABLE.sub(value, sql[position : found.start()]), sql[found.start() : end]]
            position = end
        # Of `:'name'`, the token is a text.
        joined = "".join([*pieces, VARIABLE.sub(value, sql[position:])])
        for name, text in self.variables.items():
            joined = joined.replace(f":'{name}'", f"'{text}'").replace(f':"{name}"', f'"{text}"')
        return joined


def without_leading_comments(text: str) -> str:
    while True:
        text = text.lstrip()
        if text.startswith("--"):
            text = text.partition("\n")[2]
        elif text.startswith("/*"):
            text = text[end_of_comment(text, 0) :]
        else:
            return text


def bare_of(sql: str) -> str:
    """The statement without comments and without the content of its texts: for looking up words."""
    pieces, position = [], 0
    while found := TOKEN.search(sql, position):
        pieces.append(sql[position : found.start()])
        position = found.end()
        if found.lastgroup == "comment":
            position = end_of_comment(sql, found.start()) if found[0] == "/*" else position
            pieces.append(" ")
        elif found.lastgroup == "dollar":
            close = sql.find(found[0], position)
            position = len(sql) if close < 0 else close + len(found[0])
            pieces.append("''")
        elif found.lastgroup in ("escaped", "text") and found[0][-1] == "'":
            pieces.append("''")
        else:
            pieces.append(found[0])
    return "".join([*pieces, sql[position:]])
