"""SQLite's logic tests: over files of their tables, the node has the answers that the scripts contain, or refuses the statement.

    sqlite_scripts.py FOLDER [--seed N] [--statements N] [--write-docs] [--output FILE]

FOLDER has `select1.test` to `select5.test` and the folder `random`: the folder `test` of the repository `gregrahn/sqllogictest`, or of another copy. The seed
chooses `--statements` of each of the five, and as many of `random`. SQLite's own library makes the tables.
"""

import argparse
import hashlib
import os
import random
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from answers import Answer, Float, from_arrow
from databases_node import DatabasesNode, NodeError
from outcomes import INTERNAL_WORDS, Judged, apply_known, report, write_document, write_output

# Whose statements are asked: the scripts mark what one engine lacks.
ENGINE = "postgresql"
GROUPS = ("select1", "select2", "select3", "select4", "select5")
TYPES = {"INTEGER": pa.int64(), "REAL": pa.float64(), "FLOAT": pa.float64()}
STATEMENTS_OF_GROUP = 1_000
# Joins of up to 64 tables, which take a debug build seconds.
STATEMENTS_OF_SELECT5_MAX = 150
# Of one file, so that many files have a part.
STATEMENTS_OF_FILE = 25
PROGRESS_STATEMENTS = 500


@dataclass
class Query:
    area: str
    line: int
    sql: str
    # A letter for each column: I, T or R.
    types: str
    sorting: str
    # The values, or `N values hashing to MD5`.
    expected: list[str]


@dataclass
class LogicTest:
    """A script: its tables, after its statements, and its queries."""

    area: str
    path: Path
    tables: dict[str, pa.Table] = field(default_factory=dict)
    queries: list[Query] = field(default_factory=list)


def read_test(area: str, path: Path) -> LogicTest:
    test = LogicTest(area, path)
    database = sqlite3.connect(":memory:")
    line = 1
    for record in re.split(r"\n[ \t]*\n", path.read_text()):
        first, line = line, line + record.count("\n") + 2
        lines = [text for text in record.splitlines() if not text.startswith("#")]
        is_meant = True
        while lines and re.match(r"(skipif|onlyif)\b", lines[0]):
            word, engine = lines.pop(0).split()[:2]
            is_meant = is_meant and (engine == ENGINE) == (word == "onlyif")
        if not lines or not is_meant:
            continue
        if lines[0].startswith("statement ok"):
            database.execute("\n".join(lines[1:]))
        elif lines[0].startswith("query"):
            _, types, *words = lines[0].split()
            end = lines.index("----") if "----" in lines else len(lines)
            sorting = words[0] if words and words[0] in ("nosort", "rowsort", "valuesort") else "nosort"
            test.queries.append(Query(area, first, "\n".join(lines[1:end]), types, sorting, lines[end + 1 :]))
    for name, sql in database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall():
        test.tables[name] = table_of(database, name)
    return test


def table_of(database: sqlite3.Connection, name: str) -> pa.Table:
    columns = database.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
    rows = database.execute(f'SELECT * FROM "{name}"').fetchall()
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, TYPES.get(of.upper(), pa.string())) for column, (_, of) in zip(values, columns, strict=True)]
    return pa.table(dict(zip([column for column, _ in columns], arrays, strict=True)))


def printed(value, of: str) -> str:
    """A value as the scripts write it."""
    if value is None:
        return "NULL"
    if of == "I":
        return str(int(value.number if isinstance(value, Float) else value))
    if of == "R":
        return f"{value.number if isinstance(value, Float) else value:.3f}"
    return re.sub(r"[^ -~]", "@", str(value)) or "(empty)"


def has_expected(query: Query, answer: Answer) -> str | None:
    """Why the answer is another one than expected."""
    if len(answer.names) != len(query.types):
        return f"{len(answer.names)} columns instead of {len(query.types)}"
    try:
        rows = [[printed(value, of) for value, of in zip(row, query.types, strict=True)] for row in answer.rows]
    except (ValueError, TypeError) as error:
        return f"a value has another type: {error}"
    if query.sorting == "rowsort":
        rows.sort()
    values = [value for row in rows for value in row]
    if query.sorting == "valuesort":
        values.sort()
    if found := re.fullmatch(r"(\d+) values hashing to (\w+)", query.expected[0] if query.expected else ""):
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
        return None if (len(values), digest) == (int(found[1]), found[2]) else f"{len(values)} values with the hash {digest}"
    return None if values == query.expected else f"{values[:12]} instead of {query.expected[:12]}"


def judge(query: Query, ours: pa.Table | NodeError) -> Judged:
    if isinstance(ours, NodeError):
        is_internal = ours.is_internal or INTERNAL_WORDS.search(ours.message)
        outcome, detail = "internal" if is_internal else "refused", f"{ours.message} [{ours.hint}]"
    else:
        ours = from_arrow(ours)
        detail = has_expected(query, ours)
        outcome, detail = ("equal", "") if detail is None else ("different", detail)
    return Judged(query.area, query.line, query.sql, outcome, detail, None, ours)


def chosen(folder: Path, seed: int, statements: int) -> list[LogicTest]:
    """The tests, with the queries that the seed chooses."""
    tests = [read_test(name, path) for name in GROUPS if (path := folder / f"{name}.test").is_file()]
    choice = random.Random(seed)
    for test in tests:
        statements_max = min(statements, STATEMENTS_OF_SELECT5_MAX) if test.area == "select5" else statements
        test.queries = choice.sample(test.queries, min(len(test.queries), statements_max))
    kinds = sorted(path for path in (folder / "random").glob("*") if path.is_dir())
    for kind in kinds:
        files = sorted(kind.glob("*.test"))
        for path in choice.sample(files, min(len(files), statements // len(kinds) // STATEMENTS_OF_FILE)):
            test = read_test(f"random/{kind.name}", path)
            test.queries = choice.sample(test.queries, min(len(test.queries), STATEMENTS_OF_FILE))
            tests.append(test)
    return tests


def queries_of(folder: Path) -> int:
    """How many queries all scripts have."""
    paths = [path for name in GROUPS if (path := folder / f"{name}.test").is_file()]
    return sum(f"\n{path.read_text()}".count("\nquery ") for path in [*paths, *(folder / "random").glob("*/*.test")])


def ask(tests: list[LogicTest], scratch: Path) -> list[Judged]:
    names = [f"test{number}" for number in range(1, len(tests) + 1)]
    for name, test in zip(names, tests, strict=True):
        (scratch / name).mkdir()
        for table, rows in test.tables.items():
            pq.write_table(rows, scratch / name / f"{table}.parquet")
    judged: list[Judged] = []
    rest = [(name, query) for name, test in zip(names, tests, strict=True) for query in test.queries]
    while rest:
        with DatabasesNode(scratch, names) as node:
            for number, (name, query) in enumerate(rest, 1):
                judged.append(judge(query, node.ask(name, query.sql)))
                if number % PROGRESS_STATEMENTS == 0:
                    print(f"{len(judged)} asked: {Counter(one.outcome for one in judged)}", file=sys.stderr, flush=True)
                if node.process.poll() is not None or node.killed:
                    break
        rest = rest[number:]
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=os.environ.get("TIDEGATE_SQLITE_TESTS"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--statements", type=int, default=STATEMENTS_OF_GROUP, help="of each of the five, and of the folder `random`")
    parser.add_argument("--write-docs", action="store_true", help="write the totals to docs/reference/sql.md")
    parser.add_argument("--output", type=Path, help="write what is not equal to this file, as JSON lines")
    options = parser.parse_args()
    if options.folder is None or not Path(options.folder, "select1.test").is_file():
        parser.error("FOLDER, or TIDEGATE_SQLITE_TESTS, must be a folder with select1.test to select5.test and `random`")
    tests = chosen(Path(options.folder), options.seed, options.statements)
    with tempfile.TemporaryDirectory() as scratch:
        judged = ask(tests, Path(scratch))
    judged.sort(key=lambda one: one.area)
    skipped = Counter({"not chosen, or for another engine": queries_of(Path(options.folder)) - len(judged)})
    if options.output:
        write_output(options.output, judged)
    apply_known(judged, "sqlite")
    if options.write_docs:
        write_document("SQLite's logic tests", judged, skipped)
    return report(judged, skipped)


if __name__ == "__main__":
    sys.exit(main())
