"""Start to first answered call, idle memory, time until a cancelled query stops, size of the binary."""

from __future__ import annotations

import argparse
import json
import statistics
import time

from harness import report, wire
from harness.process import CACHE, TIDEGATE, Server, cpu_seconds, rss_anon_bytes, settle
from rows import folder_of

FOLDER = CACHE / "tpch-0.1"
FIRST_CALL = {"name": "sql", "arguments": {"sql": "SELECT n_name FROM nation WHERE n_nationkey = 7"}}
JOIN = """
    SELECT count(*) FROM (SELECT * FROM rows LIMIT 200000) AS a
    JOIN (SELECT * FROM rows LIMIT 200000) AS b ON a.value < b.value AND a.label <> b.label
"""
SORT = "SELECT * FROM rows ORDER BY value, label"
AGGREGATE = "SELECT label, count(DISTINCT value) FROM rows GROUP BY label ORDER BY 2"
RUNNING_SECONDS = 0.5
POLL_SECONDS = 0.002
QUIET_SECONDS = 0.25
# The processor time of an idle server within the quiet time, for its timers.
QUIET_CPU_SECONDS = 0.002
# The least processor time of a running query, also on a busy machine.
BUSY_CPU_SECONDS = 0.02
STOP_SECONDS_MAX = 20.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    starts = [start_to_first_answer() for _ in range(rounds)]
    idle, idle_after_call = idle_memory()
    stops = {name: [cancelled_until_quiet(sql) for _ in range(rounds)] for name, sql in QUESTIONS.items()}
    size = TIDEGATE.stat().st_size
    report.keep(
        "latency",
        {
            "start_to_first_answer_seconds": starts,
            "idle_bytes": idle,
            "idle_after_first_call_bytes": idle_after_call,
            "cancelled_until_quiet_seconds": stops,
            "binary_bytes": size,
        },
    )
    rows = [
        ["start to first answered call, stdio, median", report.milliseconds(statistics.median(starts))],
        ["start to first answered call, stdio, slowest", report.milliseconds(max(starts))],
        ["idle memory (RssAnon) after the start", report.megabytes(idle)],
        ["idle memory (RssAnon) after the first call", report.megabytes(idle_after_call)],
        *(
            [f"cancelled {name}: time until it stops, slowest of {rounds}", report.milliseconds(max(seconds))]
            for name, seconds in stops.items()
        ),
        ["size of the binary", report.megabytes(size)],
    ]
    report.show("Start, idle, cancel", ["what", "measured"], rows)


QUESTIONS = {"join": JOIN, "sort": SORT, "aggregate": AGGREGATE}


def start_to_first_answer() -> float:
    started = time.perf_counter()
    server = wire.Stdio(TIDEGATE, "stdio", FOLDER)
    server.write(wire.message("tools/call", FIRST_CALL))
    line = server.read()
    seconds = time.perf_counter() - started
    server.close()
    if b"GERMANY" not in line:
        raise RuntimeError(f"the first call failed: {line[:1000]!r}")
    return seconds


def idle_memory() -> tuple[int, int]:
    with Server.tidegate(FOLDER) as server:
        settle()
        before = rss_anon_bytes(server.pid)
        connection = wire.connect(server.address)
        wire.send(connection, "tools/call", FIRST_CALL).read()
        connection.close()
        settle()
        return before, rss_anon_bytes(server.pid)


def cancelled_until_quiet(sql: str) -> float:
    """Closes the connection of a running query and waits until the server is idle."""
    with Server.tidegate("--timeout", "10m", "--inline-bytes", "unlimited", folder_of("parquet")) as server:
        connection = wire.connect(server.address)
        body = json.dumps(wire.message("tools/call", {"name": "sql", "arguments": wire.sql_arguments(sql)}))
        connection.request("POST", "/mcp", body, wire.headers("tools/call", "sql"))
        time.sleep(RUNNING_SECONDS)
        before = cpu_seconds(server.pid)
        time.sleep(QUIET_SECONDS)
        if cpu_seconds(server.pid) - before < BUSY_CPU_SECONDS:
            raise RuntimeError("the query was over before it could be cancelled")
        connection.close()
        return seconds_until_quiet(server.pid)


def seconds_until_quiet(pid: int) -> float:
    """The time until the process uses no more than an idle one."""
    started = time.perf_counter()
    busy_until, spent = started, cpu_seconds(pid)
    while (now := time.perf_counter()) - busy_until < QUIET_SECONDS:
        if now - started > STOP_SECONDS_MAX:
            raise RuntimeError("the query did not stop")
        time.sleep(POLL_SECONDS)
        if (spends := cpu_seconds(pid)) - spent > QUIET_CPU_SECONDS:
            busy_until, spent = time.perf_counter(), spends
    return busy_until - started


if __name__ == "__main__":
    main()
