"""TPC-H through Tidegate (HTTP, tool sql, JSON rows) and through DuckDB in Python's process, on the same Parquet files.

The 22 queries have their validation parameters. Answers are compared: they are equal within a millionth or the last digit of a decimal. Both have two threads.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from harness import report, wire
from harness.process import CACHE, Server

QUERIES = sorted((Path(__file__).resolve().parent / "tpch").glob("q*.sql"))
THREADS = 2
TOLERANCE = Decimal("1e-6")

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Measurement:
    """One query, in seconds (medians)."""

    query: str
    tidegate_seconds: float
    duckdb_seconds: float
    rows: int
    difference: str | None

    @property
    def ratio(self) -> float:
        return self.tidegate_seconds / self.duckdb_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", nargs="+", default=["0.1", "1"])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each query, after one warm-up run")
    options = parser.parse_args()
    results = {}
    for scale in options.scales:
        measured = measure(CACHE / f"tpch-{scale}", scale, options.rounds)
        results[scale] = [asdict(query) for query in measured] + [{"geometric_mean_ratio": mean_ratio(measured)}]
        show(scale, measured)
    report.keep("tpch", results)


def measure(folder: Path, scale: str, rounds: int) -> list[Measurement]:
    duck = duckdb.connect(config={"threads": THREADS})
    for file in folder.glob("*.parquet"):
        duck.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
    fraction = str(Decimal("0.0001") / Decimal(scale))
    with Server.tidegate("--inline-bytes", "unlimited", folder) as server:
        connection = wire.connect(server.address)
        measured = []
        for path in QUERIES:
            sql = path.read_text().replace(":fraction", fraction)
            ours, theirs = partial(query_tidegate, connection, sql), partial(query_duckdb, duck, sql)
            measured.append(measure_query(path.stem, ours, theirs, rounds))
        connection.close()
    return measured


def query_tidegate(connection: http.client.HTTPConnection, sql: str) -> bytes:
    response = wire.send(connection, "tools/call", {"name": "sql", "arguments": wire.sql_arguments(sql)})
    return response.read()


def query_duckdb(duck: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    return duck.execute(sql).fetchall()


def measure_query(name: str, tidegate: Callable[[], bytes], duck: Callable[[], list[Row]], rounds: int) -> Measurement:
    difference, rows = compare(tidegate(), duck())
    seconds: list[tuple[float, float]] = [(elapsed(tidegate), elapsed(duck)) for _ in range(rounds)]
    ours, theirs = (statistics.median(column) for column in zip(*seconds, strict=True))
    return Measurement(name, ours, theirs, rows, difference)


def elapsed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def compare(answer: bytes, expected: list[Row]) -> tuple[str | None, int]:
    """The first difference, if any, and the number of expected rows. Every query of several rows has an order."""
    result = json.loads(answer).get("result", {})
    if not result.get("content") or result.get("isError"):
        return f"failed: {answer[:500].decode(errors='replace')}", len(expected)
    rows = json.loads(result["content"][0]["text"], parse_float=Decimal, parse_int=Decimal)
    if len(rows) != len(expected):
        return f"{len(rows)} rows instead of {len(expected)}", len(expected)
    for number, (row, other) in enumerate(zip(rows, expected, strict=True), start=1):
        for (column, value), expected_value in zip(row.items(), other, strict=True):
            if not is_equal(value, expected_value):
                return f"row {number}, {column}: {value} instead of {expected_value}", len(expected)
    return None, len(expected)


def is_equal(value: Any, expected_value: Any) -> bool:
    """Numbers may differ by a millionth, or in the last digit of the decimal from Tidegate."""
    if isinstance(expected_value, bool) or expected_value is None or isinstance(expected_value, str):
        return bool(value == expected_value)
    if isinstance(expected_value, datetime.date):
        return bool(value == expected_value.isoformat())
    ours, theirs = Decimal(value), Decimal(str(expected_value))
    exponent = ours.as_tuple().exponent
    last_digit = Decimal(1).scaleb(exponent) if isinstance(exponent, int) and exponent < 0 else Decimal(0)
    return abs(ours - theirs) <= max(TOLERANCE * abs(theirs), last_digit)


def mean_ratio(measured: list[Measurement]) -> float:
    return statistics.geometric_mean(query.ratio for query in measured)


def show(scale: str, measured: list[Measurement]) -> None:
    rows = [
        [
            query.query,
            report.milliseconds(query.tidegate_seconds),
            report.milliseconds(query.duckdb_seconds),
            f"{query.ratio:.2f}",
            query.difference or "equal",
        ]
        for query in measured
    ]
    totals = [sum(seconds) for seconds in zip(*((q.tidegate_seconds, q.duckdb_seconds) for q in measured), strict=True)]
    rows.append(["all", *map(report.milliseconds, totals), f"{totals[0] / totals[1]:.2f}", ""])
    rows.append(["geometric mean", "", "", f"{mean_ratio(measured):.2f}", ""])
    report.show(
        f"TPC-H, scale {scale}", ["query", "Tidegate", f"DuckDB {duckdb.__version__}", "ratio", "answers"], rows
    )


if __name__ == "__main__":
    main()
