"""Memory while many Parquet answers are sent at once, and some seconds after: rows of TPC-H's lineitem at scale 1."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import report, wire
from harness.process import CACHE, RssPeak, Server, rss_anon_bytes, settle

UNLIMITED = ("--timeout", "1h", "--inline-bytes", "unlimited", "--inline-rows", "unlimited")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=50, help="answers at once (default: 50)")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each answer (default: 200000)")
    parser.add_argument("--seconds", type=float, default=10, help="time between the last answer and the last measurement")
    parser.add_argument("--folder", type=Path, default=CACHE / "tpch-1", help="a folder with lineitem.parquet")
    options = parser.parse_args()
    sql = f"SELECT * FROM lineitem LIMIT {options.rows}"
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
            raise RuntimeError(f"{timing.rows} rows; {timing.tail[-1000:]}")
    results = {
        "answers": options.answers,
        "rows": options.rows,
        "slowest_seconds": max(timing.total_seconds for timing in timings),
        "idle_bytes": memory.before,
        "peak_bytes": memory.peak,
        "after_bytes": after,
    }
    report.keep("answers", results)
    row = [
        f"{options.answers} × {options.rows:,} rows",
        f"{results['slowest_seconds']:,.1f} s",
        *(report.megabytes(results[key]) for key in ("idle_bytes", "peak_bytes", "after_bytes")),
    ]
    header = ["answers at once", "slowest answer", "idle", "peak", f"{options.seconds:g} s after the last answer"]
    report.show("Memory of many answers", header, [row])


if __name__ == "__main__":
    main()
