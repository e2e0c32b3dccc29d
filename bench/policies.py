"""10,000,000 rows under a row policy, compared with the same condition written by hand: in Parquet and in SQLite."""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import duckdb

from harness import report, wire
from harness.process import CACHE, TIDEGATE, Server, settle
from rows import COLUMNS, ROWS

# The limit of the time of a policy, as a multiple of the same condition written by hand.
TIMES_MAX = 1.2
INSERTED_AT_ONCE = 50_000
CONDITIONS = {"one in 5,000": "label = 'station 7'", "half": "value < 50000"}
KINDS = {"Parquet": "files", "SQLite": "sqlite"}
QUESTIONS = {
    "count, sum, maximum": "SELECT count(*) AS n, sum(id) AS total, max(value) AS most FROM rows{where}",
    "groups": "SELECT label, count(*) AS n, max(value) AS most FROM rows{where} GROUP BY label ORDER BY n DESC, label LIMIT 10",
    "the first 100": "SELECT id, value, label FROM rows{where} ORDER BY value DESC, id LIMIT 100",
    "a condition besides": "SELECT count(*) AS n FROM rows{where_and}id < 100000",
    "an expression besides": "SELECT count(*) AS n FROM rows{where_and}length(label) + id % 7 > 12",
}
ROLES = """\
roles:
  - {name: limited, toolsets: ["*"], databases: ["*"]}
  - {name: auditor, toolsets: ["*"], databases: ["*"]}
auth: {keys: keys.json}
databases:
"""
DATABASE = """\
  - name: {name}
    {kind}: {place}
    policies: [{{table: rows, rows: {condition}, except_roles: [auditor]}}]
"""


@dataclass(frozen=True)
class Measurement:
    """Medians of one question of one database."""

    kind: str
    selection: str
    question: str
    limited_seconds: float
    by_hand_seconds: float

    @property
    def times(self) -> float:
        return self.limited_seconds / self.by_hand_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="answers of each, in turn")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the table; results are saved only for the default number")
    options = parser.parse_args()
    places = dict(zip(KINDS, tables(options.rows), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), places, options.rounds)
    if options.rows == ROWS:
        report.keep("policies", [{**asdict(one), "times": one.times} for one in measured])
    show(measured, options.rows)


def tables(rows: int) -> tuple[Path, Path]:
    """The table as a Parquet file and in a SQLite database, created once."""
    folder = CACHE / f"policies-{rows}"
    parquet, database = folder / "rows.parquet", folder / "rows.db"
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / "unfinished"
    if not parquet.exists():
        duckdb.execute(f"COPY ({COLUMNS.format(rows=rows)}) TO '{unfinished}' (FORMAT parquet, COMPRESSION snappy)")
        unfinished.rename(parquet)
    if not database.exists():
        unfinished.unlink(missing_ok=True)
        fill(unfinished, parquet)
        unfinished.rename(database)
    return parquet, database


def fill(database: Path, parquet: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA synchronous = off")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value REAL, label TEXT, seen_at TEXT)")
    selected = duckdb.execute(f"SELECT id, value, label, seen_at::VARCHAR FROM '{parquet}' ORDER BY id")
    while some := selected.fetchmany(INSERTED_AT_ONCE):
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", some)
    connection.commit()
    connection.close()


def measure(folder: Path, places: dict[str, Path], rounds: int) -> list[Measurement]:
    """Runs each question in turn for a caller under a policy and for one that writes the condition."""
    databases = {(kind, selection): f"d{number}" for number, (kind, selection) in enumerate(product(KINDS, CONDITIONS))}
    # JSON is valid YAML and quotes any character.
    database_texts = [
        DATABASE.format(
            name=name, kind=KINDS[kind], place=json.dumps(str(places[kind])), condition=json.dumps(CONDITIONS[selection])
        )
        for (kind, selection), name in databases.items()
    ]
    (folder / "tidegate.yaml").write_text(ROLES + "".join(database_texts))
    limited, auditor = (key_of(folder, role) for role in ("limited", "auditor"))
    measured = []
    with Server.tidegate("--config", folder / "tidegate.yaml", "--log", "warn") as server:
        settle()
        for ((kind, selection), name), question in product(databases.items(), QUESTIONS):
            by_policy = statement(question, None)
            by_hand = statement(question, CONDITIONS[selection])
            if timed_sql(server, limited, name, by_policy)[0] != timed_sql(server, auditor, name, by_hand)[0]:
                raise RuntimeError(f"the answers differ: {kind}, {by_hand}")
            runs = [
                (timed_sql(server, limited, name, by_policy)[1], timed_sql(server, auditor, name, by_hand)[1])
                for _ in range(rounds)
            ]
            medians = (statistics.median(times) for times in zip(*runs, strict=True))
            measured.append(Measurement(kind, selection, question, *medians))
    return measured


def key_of(folder: Path, role: str) -> str:
    command = [TIDEGATE, "key", "add", role, "--role", role]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def statement(question: str, condition: str | None) -> str:
    where = f" WHERE {condition}" if condition else ""
    return QUESTIONS[question].format(where=where, where_and=f"{where} AND " if condition else " WHERE ")


def timed_sql(server: Server, key: str, database: str, sql: str) -> tuple[str, float]:
    """The answer, and its duration over a new connection."""
    connection = wire.connect(server.address)
    connection.connect()
    started = time.perf_counter()
    arguments = {"database": database, "sql": sql, "format": "csv", "no_cache": True}
    text = wire.call(connection, "sql", arguments, key)
    seconds = time.perf_counter() - started
    connection.close()
    return text, seconds


def show(measured: list[Measurement], rows: int) -> None:
    lines = [
        [
            f"{one.kind}, {one.selection}: {one.question}",
            report.milliseconds(one.limited_seconds),
            report.milliseconds(one.by_hand_seconds),
            f"{one.times:.2f}" + (f" (over {TIMES_MAX})" if one.times > TIMES_MAX else ""),
        ]
        for one in measured
    ]
    report.show(f"{rows:,} rows under a policy", ["question", "policy", "by hand", "times"], lines)


if __name__ == "__main__":
    main()
