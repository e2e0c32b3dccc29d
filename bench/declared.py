"""1,000 declared tools: start, reload, a page of tools/list, and what reloads do to calls under load.

A reload changes one description. It ends with the changed tools/list, and includes a wait of 100 ms for more changes. A page has 250 tools.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import report, wire, wrk
from harness.postgres import Cluster, within_cluster
from harness.process import CACHE, Server, settle
from harness.wrk import Load

TOOLS = 1_000
# Lists are sorted, so the tool that changes is on the first page. The two tools read different tables.
CHANGED, CALLED = "tool_0000", "tool_0001"
FILES = [str(CACHE / "tpch-0.1" / name) for name in ("nation.parquet", "region.parquet")]
FILE_STATEMENTS = [
    "SELECT n_name, n_comment FROM nation WHERE n_nationkey = :key",
    "SELECT r_name, r_comment FROM region WHERE r_regionkey = :key",
    "SELECT n_name, r_name FROM nation JOIN region ON n_regionkey = r_regionkey WHERE n_nationkey = :key",
]
POSTGRES_STATEMENTS = [
    "SELECT aid, abalance FROM pgbench_accounts WHERE aid = :key",
    "SELECT tid, tbalance FROM pgbench_tellers WHERE tid = :key",
    "SELECT aid, bbalance FROM pgbench_accounts JOIN pgbench_branches USING (bid) WHERE aid = :key",
]
KEY = 3
WARM_SECONDS = 2
POLL_SECONDS = 0.005
RELOAD_SECONDS_MAX = 300.0
RELOAD_EVERY_SECONDS = 1.0


@dataclass(frozen=True)
class ReloadImpact:
    """Medians of runs under load, and the number of reloads in all of them."""

    calm: wrk.Run
    reloading: wrk.Run
    reloads: int
    reload_seconds: float

    @property
    def p99_ratio(self) -> float:
        return self.reloading.p99_ms / self.calm.p99_ms


class Configuration:
    """The generated file; each change alters the description of one tool."""

    def __init__(self, folder: Path, tools: int, cluster: Cluster | None) -> None:
        self.tools = tools
        self.file = folder / "tidegate.yaml"
        self._statements = POSTGRES_STATEMENTS if cluster else FILE_STATEMENTS
        source = {"postgres": "${BENCH_DSN}"} if cluster else {"files": FILES}
        self._database = {"name": "bench", **source}
        self.variables = {"BENCH_DSN": cluster.target} if cluster else {}
        self.version = 0
        self.change()

    def change(self) -> str:
        """Replaces the file atomically. Returns a text that only the first page of tools/list of this version contains."""
        self.version += 1
        # JSON is YAML too.
        text = json.dumps({"databases": [self._database], "tools": [self._tool(number) for number in range(self.tools)]})
        unfinished = self.file.with_suffix(".unfinished")
        unfinished.write_text(text)
        unfinished.rename(self.file)
        return self._stamp()

    def _stamp(self) -> str:
        return f"Version {self.version} of"

    def _tool(self, number: int) -> wire.Json:
        name = f"tool_{number:04}"
        opening = f"{self._stamp()} one" if name == CHANGED else "One"
        return {
            "name": name,
            "description": f"{opening} row of a frequent query, by its key; tool {number} of {self.tools}.",
            "database": "bench",
            "sql": self._statements[number % len(self._statements)],
            "input": {"key": {"type": "integer", "description": "The key"}},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=TOOLS)
    parser.add_argument("--rounds", type=int, default=5, help="starts, reloads, and runs under load")
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--postgres", action="store_true", help="tools over PostgreSQL instead of files")
    options = parser.parse_args()
    cluster = within_cluster() if options.postgres else None
    if cluster:
        cluster.fill(1)
    with tempfile.TemporaryDirectory() as folder:
        configuration = Configuration(Path(folder), options.tools, cluster)
        starts = [start_to_first_answer(configuration) for _ in range(options.rounds)]
        with server_of(configuration) as server:
            first_call(server)
            settle()
            reloads = [reload(server, configuration) for _ in range(options.rounds)]
            page, page_bytes = page_of_list(server, options.rounds, options.seconds)
            impact = under_load(server, configuration, options.rounds, options.seconds)
    report.keep(
        "declared-postgres" if cluster else "declared",
        {
            "tools": options.tools,
            "start_to_first_answer_seconds": starts,
            "reload_seconds": reloads,
            "page_bytes": page_bytes,
            "page": asdict(page),
            "under_load": asdict(impact) | {"p99_ratio": impact.p99_ratio},
        },
    )
    title = f"{options.tools:,} declared tools over {'PostgreSQL' if cluster else 'files'}"
    show(title, starts, reloads, page, page_bytes, impact)


def server_of(configuration: Configuration) -> Server:
    return Server.tidegate("--config", configuration.file, variables=configuration.variables)


def start_to_first_answer(configuration: Configuration) -> float:
    started = time.perf_counter()
    with server_of(configuration) as server:
        first_call(server)
        return time.perf_counter() - started


def first_call(server: Server) -> None:
    connection = wire.connect(server.address)
    wire.call(connection, CALLED, {"key": KEY})
    connection.close()


def reload(server: Server, configuration: Configuration) -> float:
    """The seconds from writing the file to the first answer that shows the change."""
    connection = wire.connect(server.address)
    stamp = configuration.change().encode()
    started = time.perf_counter()
    while stamp not in wire.send(connection, "tools/list", {}).read():
        if time.perf_counter() - started > RELOAD_SECONDS_MAX:
            raise RuntimeError("the change did not take effect")
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def page_of_list(server: Server, rounds: int, seconds: int) -> tuple[wrk.Run, int]:
    load = Load("tidegate", "tools/list, first page", "tools/list", {})
    size = wrk.check(server, load)
    wrk.run(server, load, WARM_SECONDS)
    return wrk.median(tuple(wrk.run(server, load, seconds) for _ in range(rounds))), size


class Reloads:
    """Reloads every second while the block runs, and waits for each reload."""

    def __init__(self, server: Server, configuration: Configuration) -> None:
        self.seconds: list[float] = []
        self._server, self._configuration = server, configuration
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._error: RuntimeError | None = None

    def _run(self) -> None:
        try:
            while not self._ended.wait(RELOAD_EVERY_SECONDS):
                self.seconds.append(reload(self._server, self._configuration))
        except RuntimeError as error:
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._error:
            raise self._error


def under_load(server: Server, configuration: Configuration, rounds: int, seconds: int) -> ReloadImpact:
    """Calls one tool, alternately without and with reloads. Any failed call, including a tool error, ends the run."""
    load = Load("tidegate", "tools/call", "tools/call", {"name": CALLED, "arguments": {"key": KEY}})
    wrk.check(server, load)
    wrk.run(server, load, WARM_SECONDS, answers_read=True)
    calm, reloading, waits = [], [], []
    for _ in range(rounds):
        calm.append(wrk.run(server, load, seconds, answers_read=True))
        reloads = Reloads(server, configuration)
        with reloads:
            reloading.append(wrk.run(server, load, seconds, answers_read=True))
        waits += reloads.seconds
    return ReloadImpact(wrk.median(tuple(calm)), wrk.median(tuple(reloading)), len(waits), statistics.median(waits))


def show(
    title: str, starts: list[float], reloads: list[float], page: wrk.Run, page_bytes: int, impact: ReloadImpact
) -> None:
    rows = [
        ["start to first answered call, median", report.milliseconds(statistics.median(starts))],
        ["start to first answered call, slowest", report.milliseconds(max(starts))],
        ["file written to list changed, median", report.milliseconds(statistics.median(reloads))],
        ["file written to list changed, slowest", report.milliseconds(max(reloads))],
        ["first page of tools/list, bytes", f"{page_bytes:,}"],
        ["first page of tools/list, requests/s", f"{page.requests_per_second:,.0f}"],
        ["first page of tools/list, p99", f"{page.p99_ms:.2f} ms"],
        ["calls/s, without reloads", f"{impact.calm.requests_per_second:,.0f}"],
        ["calls/s, a reload every second", f"{impact.reloading.requests_per_second:,.0f}"],
        ["p99, without reloads", f"{impact.calm.p99_ms:.2f} ms"],
        ["p99, a reload every second", f"{impact.reloading.p99_ms:.2f} ms"],
        ["p99, ratio", f"{impact.p99_ratio:.2f}"],
        ["reloads during the runs", str(impact.reloads)],
        ["file written to list changed, under load, median", report.milliseconds(impact.reload_seconds)],
        ["calls that failed", "0"],
    ]
    report.show(title, [f"{wrk.CONNECTIONS} connections", "measured"], rows)


if __name__ == "__main__":
    main()
