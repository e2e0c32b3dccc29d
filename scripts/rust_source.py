"""Rust sources, read without a compiler: which lines are code, comments, imports or tests. For scripts/lines and scripts/call-path."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
# Only tests depend on it.
TEST_CRATES = ("testkit",)

COMMENT_OR_LITERAL = re.compile(
    r"""
    (?P<line_comment>//[^\n]*)
    |(?P<block_comment>/\*)
    |(?<!\w)[bc]?r(?P<hashes>\#*)"(?P<raw_text>.*?)"(?P=hashes)
    |"(?P<text>(?:\\.|[^"\\])*)"
    |'(?P<character>\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])'
    """,
    re.VERBOSE | re.DOTALL,
)
BLOCK_COMMENT_EDGE = re.compile(r"/\*|\*/")
ATTRIBUTES = r"(?:#\[[^\n]*\]\s*)*"
VISIBILITY = r"(?:pub(?:\s*\([^)]*\))?\s+)?"
IMPORT = re.compile(rf"^[ \t]*{ATTRIBUTES}{VISIBILITY}(?:use\s[^;]*|mod\s+\w+\s*|extern\s+crate\s[^;]*);", re.MULTILINE)
CONDITION = re.compile(r"#!?\[cfg\((.*?)\)\]")
# What ends with a semicolon, even after a block.
STATEMENT = re.compile(rf"\s*{VISIBILITY}(?:use|static|const\s+\w+\s*:|type|extern\s+crate)\b")
ITEM = re.compile(rf"\s*{VISIBILITY}(?:(?:async|const|unsafe|extern)\s+)*(?:mod|fn|impl|struct|enum|union|trait|macro_rules!)\b")
TEST_MODULE = re.compile(r"mod\s+(\w+)\s*;")
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Lines:
    """The number of lines of each kind, without tests."""

    code: int = 0
    comments: int = 0
    imports: int = 0
    blank: int = 0

    @property
    def total(self) -> int:
        return self.code + self.comments + self.imports + self.blank

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.code + other.code, self.comments + other.comments, self.imports + other.imports, self.blank + other.blank)

    def __sub__(self, other: Lines) -> Lines:
        return Lines(self.code - other.code, self.comments - other.comments, self.imports - other.imports, self.blank - other.blank)


class Source:
    """One file. `code` is its text without comments, `skeleton` also without the content of literals; both have the length of the text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.code, self.skeleton = without_comments(text)
        self.tests = list(self._tests())

    def _tests(self) -> Iterator[tuple[int, int]]:
        """The items that only tests compile, with their attributes and documentation."""
        end = 0
        for attribute in CONDITION.finditer(self.skeleton):
            if attribute.start() < end or not requires_test(attribute[1]):
                continue
            if attribute[0].startswith("#!"):
                yield 0, len(self.text)
                return
            end = self._item_end(attribute.end())
            yield self._documentation_start(attribute.start()), end

    def _item_end(self, position: int) -> int:
        attributes = re.compile(rf"\s*{ATTRIBUTES}").match(self.skeleton, position)
        start = attributes.end() if attributes else position
        is_statement = STATEMENT.match(self.skeleton, start)
        if not is_statement and not ITEM.match(self.skeleton, start):
            line = self.text.count("\n", 0, start) + 1
            raise ValueError(f"{self.name}:{line}: cfg(test) is before something that is not an item; move it into a module for tests")
        return self._next(";", start) + 1 if is_statement else self._block_end(start) or self._next(";", start) + 1

    def blocks(self, declaration: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
        """The start, the end and the head of each production item that begins so and has a block."""
        for found in declaration.finditer(self.production()):
            if end := self._block_end(found.end()):
                yield found.start(), end, self.skeleton[found.start() : self._next("{", found.end())]

    def _block_end(self, position: int) -> int | None:
        """The end of the block that follows, unless a semicolon comes first."""
        start = self._next(";{", position)
        return self.closing(start) + 1 if self.skeleton[start] == "{" else None

    def _next(self, characters: str, position: int) -> int:
        """The position of the first of the characters outside of brackets."""
        while self.skeleton[position] not in characters:
            if self.skeleton[position] in CLOSING:
                position = self.closing(position)
            position += 1
        return position

    def closing(self, position: int) -> int:
        """The position of the bracket that closes the one at `position`."""
        closing = [CLOSING[self.skeleton[position]]]
        while closing:
            position += 1
            if position == len(self.skeleton):
                raise ValueError(f"{self.name}: a {closing[-1]} is missing")
            character = self.skeleton[position]
            if character == closing[-1]:
                closing.pop()
            elif character in CLOSING:
                closing.append(CLOSING[character])
        return position

    def _documentation_start(self, position: int) -> int:
        """The start of the attributes and of the documentation above."""
        start = self.text.rfind("\n", 0, position) + 1
        while start:
            above = self.text.rfind("\n", 0, start - 1) + 1
            if not self.text[above:start].lstrip().startswith(("///", "#[")):
                break
            start = above
        return start

    def production(self) -> str:
        """The skeleton without tests, with the same length."""
        return without(self.skeleton, self.tests)

    def lines(self) -> Lines:
        skeleton = self.production()
        imports = self._line_numbers((found.start(), found.end()) for found in IMPORT.finditer(skeleton))
        tests = self._line_numbers(self.tests)
        code = self.code.split("\n")
        counts = dict.fromkeys(("code", "comments", "imports", "blank"), 0)
        for number, line in enumerate(re.findall(r"[^\n]*\n|[^\n]+", self.text)):
            if number not in tests:
                kind = "code" if code[number].strip() else "comments" if line.strip() else "blank"
                counts["imports" if kind == "code" and number in imports else kind] += 1
        return Lines(**counts)

    def _line_numbers(self, spans: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> set[int]:
        count = self.text.count
        return {line for start, end in spans for line in range(count("\n", 0, start), count("\n", 0, end) + 1)}

    def test_modules(self) -> Iterator[PurePosixPath]:
        """The paths, without an ending, of modules in other files that only tests compile."""
        path = PurePosixPath(self.name)
        folder = path.parent if path.stem in {"lib", "main", "mod"} else path.with_suffix("")
        for start, end in self.tests:
            if (module := TEST_MODULE.search(self.skeleton, start, end)) and module.end() == end:
                yield folder / module[1]


def without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with blanks in place of the spans."""
    for start, end in spans:
        text = text[:start] + blank(text[start:end]) + text[end:]
    return text


def without_comments(text: str) -> tuple[str, str]:
    """The text without comments, and also without the content of literals."""
    code: list[str] = []
    skeleton: list[str] = []
    position = 0
    while found := COMMENT_OR_LITERAL.search(text, position):
        between = text[position : found.start()]
        kind = next(name for name, part in found.groupdict().items() if part is not None and name != "hashes")
        end = comment_end(text, found.start()) if kind == "block_comment" else found.end()
        token = text[found.start() : end]
        if kind.endswith("comment"):
            code += between, blank(token)
            skeleton += between, blank(token)
        else:
            start, stop = found.start(kind) - found.start(), found.end(kind) - found.start()
            code += between, token
            skeleton += between, token[:start] + blank(token[start:stop]) + token[stop:]
        position = end
    rest = text[position:]
    return "".join([*code, rest]), "".join([*skeleton, rest])


def comment_end(text: str, start: int) -> int:
    """The end of a block comment, which may contain others."""
    depth = 0
    for edge in BLOCK_COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def requires_test(condition: str) -> bool:
    """Whether the condition of a `cfg` holds in tests only."""
    # What is within `any` and `not` does not count.
    while (shorter := re.sub(r"(?:any|not)\([^()]*\)", "", condition)) != condition:
        condition = shorter
    return re.search(r"\btest\b", condition) is not None


def read_sources(revision: str | None = None) -> dict[str, list[Source]]:
    """The production files below `src` of each crate, of the working copy or of a revision. Ends the program if there is none."""
    texts = files_of_revision(revision) if revision else files_here()
    crates: dict[str, list[Source]] = {}
    for name, text in sorted(texts.items()):
        _, crate, *inner = PurePosixPath(name).parts
        if inner[0] == "src" and crate not in TEST_CRATES:
            crates.setdefault(crate, []).append(Source(name, text))
    return {crate: [source for source in sources if not is_test_file(source.name, sources)] for crate, sources in crates.items()}


def is_test_file(name: str, sources: list[Source]) -> bool:
    path = PurePosixPath(name)
    modules = {module for source in sources for module in source.test_modules()}
    return path.with_suffix("") in modules or not modules.isdisjoint(path.parents)


def files_here() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs")}


def files_of_revision(revision: str) -> dict[str, str]:
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision, "--", "crates"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"there is no crate in revision {revision!r}: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        members = [member for member in tar if member.isfile() and re.fullmatch(r"crates/[^/]+/src/.*\.rs", member.name)]
        return {member.name: content.read().decode() for member in members if (content := tar.extractfile(member))}
