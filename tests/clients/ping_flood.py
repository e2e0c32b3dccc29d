"""A hundred pings while a call over ten million rows runs on the same stdio: each is answered at once, and before the call.

Runs under `with_server.py`; TIDEGATE_BINARY names the binary.
"""

import json
import os
import sys
import time

from raw_stdio import connected
from report import Report

PINGS = 100
PING_SECONDS_MAX = 0.1
# The engine must read every row for it, which keeps the cores busy while the pings come.
STATEMENT = "SELECT count(*) AS rows, sum(n % 1000) AS total FROM numbers"
ANSWER = [{"rows": 10_000_000, "total": 4_995_000_000}]


def main() -> int:
    binary, folder = os.environ["TIDEGATE_BINARY"], os.environ["TIDEGATE_LARGE"]
    report = Report()
    report.subject = "ping flood"
    delays: list[float] = []
    with report.check("the server ends well"), connected(binary, folder) as connection:
        connection.initialize("2025-11-25")
        call = connection.start("tools/call", {"name": "sql", "arguments": {"database": "large", "sql": STATEMENT}})
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
        with report.check("the call itself is answered"):
            result = answer["result"]
            assert not result.get("isError"), result
            assert json.loads(result["content"][0]["text"]) == ANSWER, result
    with report.check(f"each ping is answered within {PING_SECONDS_MAX * 1000:.0f} ms"):
        assert delays and max(delays) <= PING_SECONDS_MAX, f"the slowest took {max(delays, default=0) * 1000:.1f} ms"
    if delays:
        ordered = sorted(delays)
        middle, slowest = ordered[len(ordered) // 2] * 1000, ordered[-1] * 1000
        print(f"     {len(delays)} pings, median {middle:.2f} ms, slowest {slowest:.2f} ms")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
