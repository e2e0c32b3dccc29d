"""The oracle of the statement policy: what it accepts for a PostgreSQL database is one SELECT for PostgreSQL's own parser (PyPI `pglast`), with
the tables and functions that the policy has checked.

    policy_oracle.py PROGRAM [FOLDER]

PROGRAM is the example `statement_policy` of the crate `tidegate-sql`. The statements are those of crates/sql/tests/corpus/postgres and
of the corpus of the fuzz target `statement`; and of PostgreSQL's scripts in FOLDER/sql, if it is given.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from pglast import ast, parser
from pglast.enums import CoercionForm
from psql_script import Script

ROOT = Path(__file__).absolute().parents[3]
CORPUS = ROOT / "crates/sql/tests/corpus/postgres"
FUZZ_CORPUS = ROOT / "fuzz/corpus/statement"
# The policy records them as functions, and PostgreSQL's parser has nodes of their own for them, or no name for a row of them.
SYNTAX_OF_PARSER = """coalesce greatest least nullif grouping unnest xmlelement xmlforest xmlconcat xmlparse xmlpi xmlroot xmlserialize xmltable json_table
    row array current_date current_time current_timestamp localtime localtimestamp current_user session_user current_role user current_catalog
    current_schema any all some json_object json_array json_objectagg json_arrayagg json_exists json_query json_value json json_scalar json_serialize
    merge_action rows_from xmlattributes""".split()
# What the parser makes of LIKE with ESCAPE, and of SIMILAR TO. No statement calls them.
CALLS_OF_PARSER = {"like_escape", "similar_to_escape"}
SHOWN_CHARACTERS_MAX = 300


class Names:
    """Tables and functions of a parsed statement, and what in it is more than reading."""

    def __init__(self):
        self.tables: set[str] = set()
        self.functions: set[str] = set()
        # Those that come from syntax such as EXTRACT: they are not written as calls.
        self.of_syntax: set[str] = set()
        self.writes: list[str] = []

    def visit(self, node, visible: frozenset[str] = frozenset()):
        if isinstance(node, (list, tuple)):
            for child in node:
                self.visit(child, visible)
            return
        if not isinstance(node, ast.Node):
            return
        if isinstance(node, (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt, ast.IntoClause, ast.LockingClause)):
            self.writes.append(type(node).__name__)
        if isinstance(node, ast.RangeVar):
            parts = [part for part in (node.catalogname, node.schemaname, node.relname) if part]
            if len(parts) > 1 or node.relname not in visible:
                self.tables.add(".".join(parts))
        if isinstance(node, ast.FuncCall):
            is_call = node.funcformat == CoercionForm.COERCE_EXPLICIT_CALL
            (self.functions if is_call else self.of_syntax).add(node.funcname[-1].sval.lower())
        with_clause = getattr(node, "withClause", None)
        if with_clause:
            visible = self.visit_with(with_clause, visible)
        for name in node:
            if name != "withClause":
                self.visit(getattr(node, name), visible)

    def visit_with(self, clause: ast.WithClause, visible: frozenset[str]) -> frozenset[str]:
        """What is visible after the clause. Without RECURSIVE, a common table expression sees those before it."""
        everything = visible | {cte.ctename for cte in clause.ctes}
        for cte in clause.ctes:
            self.visit(cte.ctequery, everything if clause.recursive else visible)
            visible |= {cte.ctename}
        return everything


def difference_of(accepted: dict, sql: str) -> tuple[str, str]:
    """The outcome of a statement that the policy accepts, and its detail."""
    try:
        statements = parser.parse_sql(sql)
    except (parser.ParseError, ValueError) as error:
        return "not for PostgreSQL", str(error)
    if len(statements) != 1:
        return "different", f"{len(statements)} statements"
    if not isinstance(statements[0].stmt, ast.SelectStmt):
        return "different", f"a {type(statements[0].stmt).__name__}"
    names = Names()
    names.visit(statements[0].stmt)
    if names.writes:
        return "different", f"it has {', '.join(names.writes)}"
    if names.tables != set(accepted["tables"]):
        return "different", f"the tables are {sorted(names.tables)} there and {sorted(accepted['tables'])} here"
    ours = set(accepted["functions"])
    unchecked = names.functions - ours - CALLS_OF_PARSER
    invented = ours - names.functions - names.of_syntax - set(SYNTAX_OF_PARSER)
    if unchecked or invented:
        return "different", f"the functions {sorted(unchecked)} are only there and {sorted(invented)} only here"
    return "equal", ""


def statements(folder: Path | None) -> list[str]:
    found = []
    for name in ("honest.sql", "attempts.sql"):
        for block in (CORPUS / name).read_text().split("\n\n"):
            lines = block.split("\n")
            while lines and lines[0].startswith("-- "):
                lines.pop(0)
            found.append("\n".join(lines).rstrip())
    found += [path.read_bytes().decode(errors="replace") for path in sorted(FUZZ_CORPUS.iterdir())]
    for path in sorted((folder / "sql").glob("*.sql")) if folder else []:
        found += [statement.sql for statement in Script(path, {}).statements()]
    return [sql for sql in dict.fromkeys(found) if sql.strip()]


def main() -> int:
    program, folder = sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None
    asked = statements(folder)
    lines = "".join(json.dumps(sql) + "\n" for sql in asked)
    output = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    counts: Counter[str] = Counter()
    for sql, line in zip(asked, output.splitlines(), strict=True):
        accepted = json.loads(line)
        if "refusal" in accepted:
            counts["refused"] += 1
            continue
        # What the database receives.
        outcome, detail = difference_of(accepted, accepted["text"])
        counts[outcome] += 1
        if outcome == "different":
            print(f"FAIL {detail}\n  {sql[:SHOWN_CHARACTERS_MAX]}\n  {accepted['text'][:SHOWN_CHARACTERS_MAX]}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    print(f"{counts.total() - counts['different']} passed, {counts['different']} failed")
    return 1 if counts["different"] or not counts["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
