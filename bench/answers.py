"""Memory while many Parquet answers are sent at once, in the order of the file and sorted: rows of TPC-H's lineitem at scale 1."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import report, wire
from harness.process import CACHE, RssPeak, Server, rss_anon_bytes, settle

UNLIMITED = ("--timeout", "1h", "--inline-bytes", "unlimited", "--inline-rows", "unlimited")
STATEMENTS = {
    "in order of the file": "SELECT * FROM lineitem LIMIT {rows}",
    # The limit within keeps the sort from being one of the first rows only.
    "sorted": "SELECT * FROM (SELECT * FROM lineitem LIMIT {rows}) AS first ORDER BY l_comment, l_orderkey",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=50, help="answers at once (default: 50)")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each answer (default: 200000)")
    parser.add_argument("--seconds", type=float, default=10, help="time between the last answer and the last measurement")
    parser.add_argument("--folder", type=Path, default=CACHE / "tpch-1", help="a folder with lineitem.parquet")
    options = parser.parse_args()
    measured = [measure(options, order, sql.format(rows=options.rows)) for order, sql in STATEMENTS.items()]
    report.keep("answers", measured)
    rows = [
        [
            f"{options.answers} × {options.rows:,} rows, {results['order']}",
            f"{results['slowest_seconds']:,.1f} s",
            *(report.megabytes(results[key]) for key in ("idle_bytes", "peak_bytes", "after_bytes")),
        ]
        for results in measured
    ]
    header = ["answers at once", "slowest answer", "idle", "peak", f"{options.seconds:g} s after the last answer"]
    report.show("Memory of many answers", header, rows)


def measure(options: argparse.Namespace, order: str, sql: str) -> dict[str, int | float | str]:
    """The answers of one statement from a server of its own."""
    with Server.tidegate(*UNLIMITED, options.folder) as server:
        connection = wire.connect(server.address)
        wire.call(connection, "sql", {"sql": "SELECT l_orderkey FROM lineitem LIMIT 1"})
        connection.close()
        settle()
        with RssPeak(server.pid) as memory, ThreadPoolExecutor(options.answers) as readers:
            timings = list(readers.map(wire.time_sql, [server.address] * options.answers, [sql] * options.answers))
        time.sleep(options.seconds)
        after = rss_anon_bytes(server.pid)
    for timing in timings:
        if timing.is_error or timing.rows != options.rows:
            raise RuntimeError(f"{order}: {timing.rows} rows; {timing.tail[-1000:]}")
    return {
        "order": order,
        "answers": options.answers,
        "rows": options.rows,
        "slowest_seconds": max(timing.total_seconds for timing in timings),
        "idle_bytes": memory.before,
        "peak_bytes": memory.peak,
        "after_bytes": after,
    }


if __name__ == "__main__":
    main()
