"""Sends a hundred pings while a call over millions of rows runs on the same stdio: they are answered at once, before the call.

    ping_flood.py TRANSPORT…

Transports are `stdio`, `bridge-http` and `bridge-ws`. Runs under `with_server.py`; TIDEGATE_BINARY names the binary.
"""

import json
import os
import statistics
import sys
import time

from endpoints import command
from raw_stdio import connect
from report import Report

PINGS = 100
# Of the median: the call keeps all cores busy, so that single pings wait for one. The bridge shares the cores with three more processes,
# including the recorder.
PING_SECONDS_MAX = {"stdio": 0.1, "bridge-http": 0.5, "bridge-ws": 0.5}
# Of the slowest ping, as a part of the time of the call, if that is more: a ping that waits for the end of the call takes all of it.
CALL_PART_MAX = 1 / 4
# The engine must read every row, so that the cores are busy during the pings.
STATEMENT = "SELECT count(*) AS rows, sum(n % 1000) AS total FROM (SELECT n FROM numbers LIMIT {rows})"
# Fewer rows are enough to measure the bridge.
ROWS = {"stdio": 10_000_000, "bridge-http": 1_000_000, "bridge-ws": 1_000_000}


def check_flood(transport: str, report: Report) -> None:
    rows = ROWS[transport]
    # Without `no_cache`, the second transport would receive the cached answer.
    arguments = {"database": "large", "sql": STATEMENT.format(rows=rows), "no_cache": True}
    delays: list[float] = []
    with report.check("the server exits successfully"), connect(command(transport)) as connection:
        connection.initialize("2025-11-25")
        call_started = time.monotonic()
        call = connection.start("tools/call", {"name": "sql", "arguments": arguments})
        answer = None
        while answer is None and len(delays) < PINGS:
            started = time.monotonic()
            ping = connection.start("ping")
            while (message := connection.receive()).get("id") != ping:
                if message.get("id") == call:
                    answer = message
            delays.append(time.monotonic() - started)
        with report.check(f"{PINGS} pings are answered before the call ends"):
            assert len(delays) == PINGS and answer is None, f"the call was over after {len(delays)} pings: {answer}"
        while answer is None:
            message = connection.receive()
            answer = message if message.get("id") == call else None
        call_seconds = time.monotonic() - call_started
        with report.check("the call itself is answered"):
            result = answer["result"]
            assert not result.get("isError"), result
            counted = json.loads(result["content"][0]["text"])[0]
            assert counted["rows"] == rows and counted["total"] > 0, result
        seconds_max = PING_SECONDS_MAX[transport]
        median, slowest = statistics.median(delays), max(delays)
        with report.check(f"half of the pings are answered within {seconds_max * 1000:.0f} ms"):
            assert median <= seconds_max, f"the median is {median * 1000:.1f} ms"
        with report.check("no ping takes as long as the call"):
            slowest_max = max(seconds_max, call_seconds * CALL_PART_MAX)
            assert slowest <= slowest_max, f"the slowest took {slowest * 1000:.1f} ms, the call {call_seconds * 1000:.1f} ms"
        print(f"     {len(delays)} pings, median {median * 1000:.2f} ms, slowest {slowest * 1000:.2f} ms")


def main(transports: list[str]) -> int:
    # On a busy machine the call takes longer than calls may by default.
    os.environ["TIDEGATE_TIMEOUT"] = "240s"
    report = Report()
    for transport in transports:
        report.subject = f"ping flood {transport}"
        check_flood(transport, report)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
