"""Memory and first bytes of 10,000,000 rows: one call, ten at once, a stalled reader, a sort, a cross join, stdio.

Answers have no limits of bytes and rows. Of ten queries at once, the first row is that of the slowest.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from harness import report, wire
from harness.process import TIDEGATE, RssPeak, Server, settle
from rows import ROWS, folder_of

AT_ONCE = 10
PINGS = 100
HEALTH_SECONDS = 0.01
PING_SECONDS = 0.03
UNLIMITED = ("--timeout", "1h", "--inline-bytes", "unlimited", "--inline-rows", "unlimited")
SMALL_POOL = ("--memory", "256MiB")
ALL_ROWS = "SELECT * FROM rows"
SORTED = "SELECT * FROM rows ORDER BY value, id"
TOO_LARGE = "SELECT * FROM rows AS a CROSS JOIN rows AS b"


@dataclass(frozen=True)
class Measurement:
    """One scenario: the slowest of its calls, and the server's anonymous memory, in bytes."""

    scenario: str
    first_row_seconds: float | None
    total_seconds: float
    rows_per_second: float
    idle_bytes: int
    peak_bytes: int
    remark: str = ""

    @property
    def growth_bytes(self) -> int:
        return self.peak_bytes - self.idle_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [scenario.__name__ for scenario in SCENARIOS]
    parser.add_argument("scenarios", nargs="*", help=f"default: all of {', '.join(names)}")
    parser.add_argument("--kinds", nargs="+", default=["csv", "parquet"])
    options = parser.parse_args()
    chosen = [scenario for scenario in SCENARIOS if not options.scenarios or scenario.__name__ in options.scenarios]
    measured = []
    for scenario in chosen:
        for kind in options.kinds:
            measured.append(scenario(kind, TIDEGATE))
            print(measured[-1], flush=True)
    report.keep("memory", [asdict(row) | {"growth_bytes": row.growth_bytes} for row in measured])
    show(measured)


@contextmanager
def warm_server(kind: str, program: Path, *flags: str) -> Iterator[Server]:
    """A server that has answered one small query, so that its one-time setup is done."""
    with Server.tidegate(*UNLIMITED, *flags, folder_of(kind), program=program) as server:
        connection = wire.connect(server.address)
        wire.call(connection, "sql", {"sql": "SELECT id FROM rows LIMIT 1"})
        connection.close()
        settle()
        yield server


def one_call(kind: str, program: Path) -> Measurement:
    with warm_server(kind, program) as server, RssPeak(server.pid) as memory:
        timing = wire.time_sql(server.address, ALL_ROWS)
    return measured_of(f"{kind}: all rows", [timing], memory)


def ten_at_once(kind: str, program: Path) -> Measurement:
    with warm_server(kind, program) as server, RssPeak(server.pid) as memory:
        timings = calls_at_once(server.address, AT_ONCE)
    return measured_of(f"{kind}: all rows, {AT_ONCE} at once", timings, memory)


def one_reader_stalled(kind: str, program: Path) -> Measurement:
    with warm_server(kind, program) as server, RssPeak(server.pid) as memory:
        stalled = wire.connect(server.address)
        response = wire.send(stalled, "tools/call", {"name": "sql", "arguments": wire.sql_arguments(ALL_ROWS)})
        response.read1(wire.READ_BYTES)
        timings = calls_at_once(server.address, AT_ONCE - 1)
        stalled.close()
    return measured_of(f"{kind}: all rows, {AT_ONCE} at once, one of them stalled", timings, memory)


def sort_in_small_pool(kind: str, program: Path) -> Measurement:
    with warm_server(kind, program, *SMALL_POOL) as server, RssPeak(server.pid) as memory:
        timing = wire.time_sql(server.address, SORTED)
    return measured_of(f"{kind}: all rows sorted, pool of 256 MiB", [timing], memory)


def cross_join_fails_alone(kind: str, program: Path) -> Measurement:
    """The join must fail for lack of memory, while other requests are answered."""
    with warm_server(kind, program, *SMALL_POOL) as server, RssPeak(server.pid) as memory:
        slowest = Slowest(lambda connection: get(connection, "/health"), server.address)
        with slowest:
            timing = wire.time_sql(server.address, TOO_LARGE)
        alive = wire.connect(server.address)
        wire.call(alive, "sql", {"sql": "SELECT id FROM rows LIMIT 1"})
        alive.close()
    if not timing.is_error:
        raise RuntimeError("the cross join did not fail")
    remark = f"failed as expected; {slowest.count} × /health during the join, slowest {report.milliseconds(slowest.seconds)}"
    return Measurement(
        f"{kind}: cross join, pool of 256 MiB", None, timing.total_seconds, 0, memory.before, memory.peak, remark
    )


def over_stdio(kind: str, program: Path) -> Measurement:
    """100 pings are answered while the rows are written to the same pipe."""
    server = wire.Stdio(program, "stdio", *UNLIMITED, folder_of(kind))
    initialize(server)
    server.write(call_request("small", "SELECT id FROM rows LIMIT 1"))
    server.read()
    settle()
    waits: list[float] = []
    with RssPeak(server.process.pid) as memory:
        started = time.perf_counter()
        server.write(call_request("large", ALL_ROWS))
        for number in range(PINGS):
            sent = time.perf_counter()
            server.write({"jsonrpc": "2.0", "id": number, "method": "ping"})
            answer = json.loads(server.read())
            if answer != {"jsonrpc": "2.0", "id": number, "result": {}}:
                raise RuntimeError(f"no answer to ping {number}: {str(answer)[:500]}")
            waits.append(time.perf_counter() - sent)
            time.sleep(PING_SECONDS)
        line = server.read()
        total = time.perf_counter() - started
    server.close()
    if b'"isError":false' not in line[-wire.TAIL_BYTES :]:
        raise RuntimeError(f"the call failed: {line[-1000:]!r}")
    remark = f"{PINGS} pings during the call, slowest {report.milliseconds(max(waits))}"
    name = f"{kind}: all rows over stdio"
    return Measurement(name, None, total, ROWS / total, memory.before, memory.peak, remark)


Scenario = Callable[[str, Path], Measurement]

SCENARIOS: list[Scenario] = [
    one_call,
    ten_at_once,
    one_reader_stalled,
    sort_in_small_pool,
    cross_join_fails_alone,
    over_stdio,
]


def calls_at_once(address: str, count: int) -> list[wire.Timing]:
    """Calls at once, each read by its own process, so that no reader waits for another."""
    with ProcessPoolExecutor(count) as readers:
        return list(readers.map(wire.time_sql, [address] * count, [ALL_ROWS] * count))


def measured_of(scenario: str, timings: list[wire.Timing], memory: RssPeak) -> Measurement:
    for timing in timings:
        if timing.is_error or timing.rows != ROWS:
            raise RuntimeError(f"{scenario}: {timing.rows} rows; {timing.tail[-1000:]}")
    first = max(timing.first_row_seconds or float("inf") for timing in timings)
    total = max(timing.total_seconds for timing in timings)
    rows_per_second = sum(timing.rows or 0 for timing in timings) / total
    return Measurement(scenario, first, total, rows_per_second, memory.before, memory.peak)


class Slowest:
    """Repeats a request while the block runs, and records the longest wait."""

    def __init__(self, request: Callable[[HTTPConnection], None], address: str) -> None:
        self.seconds, self.count = 0.0, 0
        self._request, self._connection = request, wire.connect(address)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._ended.wait(HEALTH_SECONDS):
            started = time.perf_counter()
            self._request(self._connection)
            self.seconds = max(self.seconds, time.perf_counter() - started)
            self.count += 1

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._connection.close()


def get(connection: HTTPConnection, path: str) -> None:
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status}")


def initialize(server: wire.Stdio) -> None:
    """The handshake of the older revisions, which have a ping."""
    info = {"name": "tidegate-bench", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    server.write({"jsonrpc": "2.0", "id": "initialize", "method": "initialize", "params": params})
    server.read()
    server.write({"jsonrpc": "2.0", "method": "notifications/initialized"})


def call_request(request_id: str, sql: str) -> wire.Json:
    params = {"name": "sql", "arguments": wire.sql_arguments(sql)}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def show(measured: list[Measurement]) -> None:
    rows = [
        [
            row.scenario,
            report.milliseconds(row.first_row_seconds),
            f"{row.total_seconds:,.1f} s",
            f"{row.rows_per_second:,.0f}" if row.rows_per_second else "–",
            report.megabytes(row.idle_bytes),
            report.megabytes(row.peak_bytes),
            report.megabytes(row.growth_bytes),
            row.remark,
        ]
        for row in measured
    ]
    header = ["10,000,000 rows", "first row", "whole answer", "rows/s", "idle", "peak", "growth", ""]
    report.show("Memory and first bytes", header, rows)


if __name__ == "__main__":
    main()
