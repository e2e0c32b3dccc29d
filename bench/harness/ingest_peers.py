"""The same rows in other databases: SQLite's insert, PostgreSQL's COPY, and DuckDB reading the file. All are durable, on disk."""

from __future__ import annotations

import csv
import gc
import sqlite3
import subprocess
import time
from pathlib import Path

import duckdb

from harness.ingest_rows import COLUMNS, total_of_ids
from harness.postgres import SCRIPT, Cluster

# Temporary clusters do not sync; this one must, as the others do.
DURABLE = ("fsync = on", "synchronous_commit = on", "full_page_writes = on", "max_wal_size = '4GB'")
TYPES = {
    "postgres": {"integer": "bigint", "timestamp": "timestamptz", "string": "text", "boolean": "boolean", "double": "double precision"},
    "sqlite": {"integer": "INTEGER", "timestamp": "TEXT", "string": "TEXT", "boolean": "INTEGER", "double": "REAL", "decimal(12,2)": "NUMERIC"},
    "duckdb": {"integer": "BIGINT", "timestamp": "TIMESTAMP", "string": "VARCHAR", "boolean": "BOOLEAN", "double": "DOUBLE"},
}
COUNT = "SELECT count(*), sum(id) FROM readings"


def table(database: str) -> str:
    """The statement that creates the table."""
    types = TYPES[database]
    columns = ", ".join(f"{name} {types.get(column, column)}" for name, column in COLUMNS.items())
    return f"CREATE TABLE readings ({columns})"


def require_rows(found: tuple[int, int], rows: int, database: str) -> None:
    if tuple(map(int, found)) != (rows, total_of_ids(rows)):
        raise RuntimeError(f"{database} has {found}, and not {rows} rows")


class Sqlite:
    """Python's `sqlite3`: one transaction of prepared inserts; the rows are values of Python before the clock starts."""

    name = f"SQLite {sqlite3.sqlite_version}, inserts in one transaction"

    def __init__(self, file: Path) -> None:
        with file.open(newline="") as source:
            reader = csv.reader(source)
            next(reader)
            self._rows = [
                (int(r[0]), r[1], r[2], r[3], int(r[4]), r[5] == "true", float(r[6]), float(r[7]), r[8], r[9]) for r in reader
            ]
        # Otherwise, each collection would visit all of them.
        gc.freeze()

    def seconds(self, folder: Path) -> float:
        file = folder / "rows.db"
        connection = sqlite3.connect(file, isolation_level=None)
        connection.execute(table("sqlite"))
        started = time.perf_counter()
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO readings VALUES ({', '.join('?' * len(COLUMNS))})", self._rows)
        connection.execute("COMMIT")
        seconds = time.perf_counter() - started
        require_rows(connection.execute(COUNT).fetchone(), len(self._rows), "SQLite")
        connection.close()
        file.unlink()
        return seconds


class Postgres:
    """COPY by psql from a file of CSV, timed from the start of psql."""

    name = "PostgreSQL 15, COPY of CSV"

    def __init__(self, cluster: Cluster, file: Path, rows: int) -> None:
        self._cluster, self._file, self._rows = cluster, file, rows
        for setting in DURABLE:
            cluster.query(f"ALTER SYSTEM SET {setting}")
        subprocess.run([SCRIPT, "restart", cluster.folder], check=True)
        if cluster.query("SHOW fsync") != "on":
            raise RuntimeError("the cluster does not sync")
        cluster.query(table("postgres"))

    def seconds(self, _folder: Path) -> float:
        # In a transaction of its own, so that COPY writes to the write-ahead log.
        self._cluster.query("TRUNCATE readings")
        command = [self._cluster.bin / "psql", "--no-psqlrc", "-q", "--set=ON_ERROR_STOP=1"]
        copy = ["--command", "COPY readings FROM STDIN (FORMAT csv, HEADER)", self._cluster.superuser]
        with self._file.open("rb") as source:
            started = time.perf_counter()
            subprocess.run([*command, *copy], stdin=source, check=True)
            seconds = time.perf_counter() - started
        count, total = self._cluster.query(COUNT).split("|")
        require_rows((int(count), int(total)), self._rows, "PostgreSQL")
        return seconds


class DuckDb:
    """A table of a database file from the same file, and a checkpoint."""

    def __init__(self, file: Path, rows: int) -> None:
        kind = file.suffix[1:]
        self.name = f"DuckDB {duckdb.__version__}, {'NDJSON' if kind == 'ndjson' else 'CSV'}"
        types = {name: TYPES["duckdb"].get(column, column) for name, column in COLUMNS.items()}
        columns = ", ".join(f"{name}: '{column}'" for name, column in types.items())
        function = "read_json" if kind == "ndjson" else "read_csv"
        options = "format = 'newline_delimited'" if kind == "ndjson" else "header = true"
        self._insert = f"INSERT INTO readings SELECT * FROM {function}('{file}', columns = {{{columns}}}, {options})"
        self._rows = rows

    def seconds(self, folder: Path) -> float:
        file = folder / "rows.duckdb"
        connection = duckdb.connect(str(file))
        connection.execute(table("duckdb"))
        started = time.perf_counter()
        connection.execute(self._insert)
        connection.execute("CHECKPOINT")
        seconds = time.perf_counter() - started
        require_rows(connection.execute(COUNT).fetchone(), self._rows, "DuckDB")
        connection.close()
        file.unlink()
        return seconds
