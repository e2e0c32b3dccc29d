"""Two builds of Tidegate in turn in one run: medians, ratios, and what differs by more than 5 %. Ends with 1 if a figure is worse by more."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import load
import memory
import postgres_load
from harness import pairs, report, wire, wrk
from harness.pairs import Figure, Figures, Scenario
from harness.postgres import within_cluster
from harness.process import Server

# Medians of p99 differ by more than 5 % between runs of one program, so they are not among the figures.
REQUESTS = Figure("requests/s", "{:,.0f}", more_is_better=True)
P50 = Figure("p50", "{:,.2f} ms")
CPU = Figure("its CPU a request", "{:,.1f} µs")
OTHERS_CPU = Figure("PostgreSQL's CPU a request", "{:,.1f} µs")
FIRST_ROW = Figure("first row", "{:,.1f} ms")
TOTAL = Figure("whole answer", "{:,.2f} s")
IDLE = Figure("idle memory", "{:,.1f} MB")
PEAK = Figure("peak memory", "{:,.1f} MB")
KINDS = ("csv", "parquet")
# Reads all values, and answers one row.
SCAN = "SELECT count(id), sum(value), max(label), max(seen_at) FROM rows"

Programs = tuple[Path, Path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD", help="a release build of tidegate")
    parser.add_argument("new", type=Path, metavar="NEW", help="another one")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--pairs", type=int, default=7, help="of runs (default: 7)")
    parser.add_argument("--seconds", type=int, default=4, help="of each run under load (default: 4)")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name contains TEXT")
    options = parser.parse_args()
    programs = options.old.resolve(), options.new.resolve()
    with ExitStack() as running:
        scenarios = PARTS[options.part](programs, running, options.seconds)
        chosen = [scenario for scenario in scenarios if options.only in scenario.name]
        if not chosen:
            names = "\n".join(scenario.name for scenario in scenarios)
            sys.exit(f"no scenario has {options.only!r} in its name; they are:\n{names}")
        comparisons = pairs.in_turn(chosen, options.pairs)
    for name, program in zip(("old", "new"), programs, strict=True):
        version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        print(f"{name}: {program}, {version}, {report.megabytes(program.stat().st_size)}")
    title = f"{options.part}, {options.pairs} pairs"
    report.show(title, [options.part, *pairs.HEADER], [comparison.row() for comparison in comparisons])
    sys.exit(any(comparison.is_worse for comparison in comparisons))


def load_scenarios(programs: Programs, running: ExitStack, seconds: int) -> list[Scenario]:
    """The requests of `load.py` to the shipped program, with both builds running."""
    sides = [load.node_servers(program) for program in programs]
    for server in (server for side in sides for server in side.values()):
        running.enter_context(server)
    for request in load.NODE_LOADS:
        for side in sides:
            load.warm_up(side[request.server], request)
    return [
        Scenario(
            f"{request.request}: {request.server}",
            *(partial(request_figures, side[request.server], request, seconds) for side in sides),
        )
        for request in load.NODE_LOADS
    ]


def postgres_load_scenarios(programs: Programs, running: ExitStack, seconds: int) -> list[Scenario]:
    """The point query of `postgres_load.py`, with both builds running on one cluster."""
    cluster = within_cluster()
    cluster.fill(postgres_load.SCALE)
    sides = []
    for program in programs:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        servers = postgres_load.our_servers(folder, cluster, program)
        sides.append([postgres_load.side_of(name, server, cluster, running) for name, server in servers.items()])
    return [
        Scenario(of_name[0].name, *(partial(query_figures, side, seconds) for side in of_name))
        for of_name in zip(*sides, strict=True)
    ]


def request_figures(server: Server, request: wrk.Load, seconds: int) -> Figures:
    return load_figures(wrk.run(server, request, seconds))


def query_figures(side: postgres_load.Side, seconds: int) -> Figures:
    run = side.measure(seconds)
    return load_figures(run) | {OTHERS_CPU: run.others_cpu_us_per_request}


def load_figures(run: wrk.Run) -> Figures:
    return {REQUESTS: run.requests_per_second, P50: run.p50_ms, CPU: run.server_cpu_us_per_request}


def rows_scenarios(programs: Programs, _running: ExitStack, _seconds: int) -> list[Scenario]:
    """The time to answer and to read 10,000,000 rows; each run has a new process."""
    scenarios = []
    for kind in KINDS:
        scenarios += [
            Scenario(f"{kind}: all rows", *(partial(answer_figures, kind, program) for program in programs)),
            Scenario(f"{kind}: sums of all rows", *(partial(scan_figures, kind, program) for program in programs)),
        ]
    return scenarios


def answer_figures(kind: str, program: Path) -> Figures:
    measured = memory.one_call(kind, program)
    first = measured.first_row_seconds or measured.total_seconds
    return {FIRST_ROW: first * 1e3, TOTAL: measured.total_seconds}


def scan_figures(kind: str, program: Path) -> Figures:
    with memory.warm_server(kind, program) as server:
        timing = wire.time_sql(server.address, SCAN)
    if timing.is_error or timing.rows != 1:
        raise RuntimeError(f"{kind}: {timing.tail[-1000:]}")
    return {TOTAL: timing.total_seconds}


def memory_scenarios(programs: Programs, _running: ExitStack, _seconds: int) -> list[Scenario]:
    """The scenarios of `memory.py`; each run has a new process."""
    return [
        Scenario(f"{kind}: {scenario.__name__}", *(partial(memory_figures, scenario, kind, program) for program in programs))
        for scenario in memory.SCENARIOS
        for kind in KINDS
    ]


def memory_figures(scenario: memory.Scenario, kind: str, program: Path) -> Figures:
    measured = scenario(kind, program)
    return {IDLE: measured.idle_bytes / 1e6, PEAK: measured.peak_bytes / 1e6, TOTAL: measured.total_seconds}


PARTS: dict[str, Callable[[Programs, ExitStack, int], list[Scenario]]] = {
    "load": load_scenarios,
    "postgres-load": postgres_load_scenarios,
    "rows": rows_scenarios,
    "memory": memory_scenarios,
}


if __name__ == "__main__":
    main()
