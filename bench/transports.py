"""One small call over each transport and the bridge; the cost of a thousand open streams; the cost of the bridge.

The load is wrk, or a loop over bare sockets and pipes. The processor time of a bridge is counted.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import callers, report, wire, wrk
from harness.callers import LoadResult, Plan
from harness.echo import Echo
from harness.process import TIDEGATE, Server, children_cpu_seconds, cpu_seconds, rss_anon_bytes, settle
from harness.streams import HANDSHAKE_REVISION, INITIALIZED, SSE, WEB_SOCKET, OpenStreams, initialize

TOOL = "list_databases"
TABLE = "id,name\n1,ann\n2,ben\n3,cy\n"
STREAMS = 1_000
STREAM_BYTES_MAX = 64 * 1024
STARTS = 20
# Longer runs beside streams, so that they include the keep-alive comments of every 15 s.
STREAMS_TIMES_SECONDS = 2
CALLS_IN_A_ROW = 1_000
# The limit for a run whose calls hang.
IN_A_ROW_SECONDS_MAX = 60
CEILING_SECONDS = 4
# Open files of the node: connections, streams and others.
FILES_MIN = 4_096
REST_MARK = b'"Query":['
# `cat` returns the requests.
CAT_MARK = b'"method"'

HTTP, REST, STDIO = "Streamable HTTP", "REST", "stdio"
BRIDGE_HTTP, BRIDGE_WEB_SOCKET = "bridge over HTTP", "bridge over WebSocket"
WRK, LOOP = "wrk", "loop"


@dataclass(frozen=True)
class Route:
    """A transport and the load over it."""

    name: str
    load: str
    measure: Callable[[int], LoadResult]
    # The same load against an echo, which answers at once.
    ceiling: Callable[[int], LoadResult]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind, in turn")
    parser.add_argument("--streams", type=int, default=STREAMS, help="number of open streams")
    parser.add_argument("--starts", type=int, default=STARTS, help="starts of each process")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are: {', '.join(PARTS)}")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most < 0 else max(most, FILES_MIN), most))
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "people.csv").write_text(TABLE)
        for name in options.parts or PARTS:
            results[name] = PARTS[name](Path(folder), options)
    report.keep("transports", results)


# ---- The same call over each transport ----


def calls(folder: Path, options: argparse.Namespace) -> list[wire.Json]:
    with Server.tidegate(folder) as server:
        connection = wire.connect(server.address)
        response = wire.send(connection, "tools/call", {"name": TOOL, "arguments": {}})
        with Echo(response.read()) as echo:
            connection.close()
            routes = routes_to(server, echo, folder)
            ceilings = [route.ceiling(min(options.seconds, CEILING_SECONDS)) for route in routes]
            rounds = [[route.measure(options.seconds) for route in routes] for _ in range(options.rounds)]
    medians = [median(list(runs)) for runs in zip(*rounds, strict=True)]
    show_calls(routes, medians, ceilings)
    return [
        {
            "transport": route.name,
            "load": route.load,
            **asdict(run),
            "own_share_of_a_core": run.own_share,
            "ceiling_calls_per_second": ceiling.calls_per_second,
        }
        for route, run, ceiling in zip(routes, medians, ceilings, strict=True)
    ]


def routes_to(server: Server, echo: Echo, folder: Path) -> list[Route]:
    def by_wrk(name: str, path: str, body: str, headers: dict[str, str]) -> Route:
        load = partial(load_by_wrk, path=path, body=body, headers=headers)
        return Route(name, WRK, partial(load, server.address, server.pid), partial(load, echo.address, None))

    def by_loop(name: str, transport: str, mark: bytes = wire.NO_ERROR) -> Route:
        plan = Plan(transport, TOOL, server.address, pids=(server.pid,), mark=mark)
        echoed = replace(plan, address=echo.address, pids=(), mark=b"")
        return Route(name, LOOP, measured_in_new_process(plan), measured_in_new_process(echoed))

    def by_pipe(name: str, *arguments: str | Path, pids: tuple[int, ...] = ()) -> Route:
        plan = Plan(callers.PIPE, TOOL, command=command(*arguments), pids=pids)
        cat = replace(plan, command=("cat",), mark=CAT_MARK, pids=())
        return Route(name, LOOP, measured_in_new_process(plan), measured_in_new_process(cat))

    call, headers = callers.call_text(Plan(callers.HTTP, TOOL), 1).decode(), wire.headers("tools/call", TOOL)
    return [
        by_wrk(HTTP, "/mcp", call, headers),
        by_loop(HTTP, callers.HTTP),
        by_wrk(REST, callers.rest_path(TOOL), "{}", callers.REST_HEADERS),
        by_loop(REST, callers.REST, REST_MARK),
        by_loop(SSE, callers.SSE),
        by_loop(WEB_SOCKET, callers.WEB_SOCKET),
        by_pipe(STDIO, folder),
        by_pipe(BRIDGE_HTTP, "--connect", http_url(server), pids=(server.pid,)),
        by_pipe(BRIDGE_WEB_SOCKET, "--connect", web_socket_url(server), pids=(server.pid,)),
    ]


def command(*arguments: str | Path) -> tuple[str, ...]:
    return (str(TIDEGATE), "stdio", *map(str, arguments))


def http_url(server: Server) -> str:
    return f"http://{server.address}/mcp"


def web_socket_url(server: Server) -> str:
    return f"ws://{server.address}/mcp/ws"


def load_by_wrk(address: str, pid: int | None, seconds: int, *, path: str, body: str, headers: dict[str, str]) -> LoadResult:
    """Load by wrk; without a `pid`, only the processor time of wrk is measured."""
    url = f"http://{address}{path}"
    wrk.post(url, body, headers, 1)
    spent, own = cpu_seconds(pid) if pid else 0.0, children_cpu_seconds()
    counted = wrk.post(url, body, headers, seconds)
    spent, own = (cpu_seconds(pid) if pid else 0.0) - spent, children_cpu_seconds() - own
    requests = counted["requests"]
    if counted["failed"] or not requests:
        raise RuntimeError(f"{url}: {counted}")
    rate = requests / counted["seconds"]
    return LoadResult(rate, counted["p50_ms"], counted["p99_ms"], spent / requests * 1e6, own / requests * 1e6)


def measured_in_new_process(plan: Plan) -> Callable[[int], LoadResult]:
    """Measures in a new process, because this one reads the log of the server."""

    def measure(seconds: int) -> LoadResult:
        with ProcessPoolExecutor(1) as process:
            return process.submit(callers.measure, replace(plan, seconds=seconds)).result()

    return measure


def median(runs: list[LoadResult]) -> LoadResult:
    return LoadResult(*(statistics.median(column) for column in zip(*map(astuple, runs), strict=True)))


def show_calls(routes: list[Route], medians: list[LoadResult], ceilings: list[LoadResult]) -> None:
    rows = [
        [
            route.name,
            route.load,
            f"{run.calls_per_second:,.0f}",
            f"{run.p50_ms:.2f} ms",
            f"{run.p99_ms:.2f} ms",
            f"{run.servers_cpu_us:.1f} µs",
            f"{run.own_cpu_us:.1f} µs",
            f"{run.own_share:.0%}",
            f"{ceiling.calls_per_second:,.0f}",
        ]
        for route, run, ceiling in zip(routes, medians, ceilings, strict=True)
    ]
    header = [f"{wrk.CONNECTIONS} calls at a time", "load", "calls/s", "p50", "p99", "server CPU a call"]
    report.show("One call over each transport", [*header, "load CPU a call", "of a core", "against an echo"], rows)


# ---- Open streams ----


def streams(folder: Path, options: argparse.Namespace) -> wire.Json:
    memory = {
        kind: statistics.median(bytes_of_a_stream(folder, kind, options.streams) for _ in range(3))
        for kind in (SSE, WEB_SOCKET)
    }
    runs = under_streams(folder, options)
    calm = runs[None]
    rows = []
    for kind, run in runs.items():
        rows.append(
            [
                f"{options.streams:,} over {kind}" if kind else "none",
                f"{memory[kind] / 1024:.1f} KiB" if kind else "",
                f"{run.requests_per_second:,.0f}",
                f"{slower_by(run, calm):.1%}" if kind else "",
                f"{run.p50_ms:.2f} ms",
                f"{run.p99_ms:.2f} ms",
                f"{run.p99_ms / calm.p99_ms:.2f}" if kind else "",
            ]
        )
    header = ["open streams", "RssAnon of a stream", "calls/s", "fewer by", "p50", "p99", "p99, ratio"]
    report.show("Calls over Streamable HTTP beside open streams", header, rows)
    for kind, size in memory.items():
        print(f"{kind}: {'held' if size <= STREAM_BYTES_MAX else 'missed'}: {STREAM_BYTES_MAX // 1024} KiB of a stream")
    return {
        "open": options.streams,
        "bytes_of_a_stream": memory,
        "calls": [{"beside": kind, **asdict(run), "slower_by": slower_by(run, calm)} for kind, run in runs.items()],
    }


def slower_by(run: wrk.Run, calm: wrk.Run) -> float:
    return 1 - run.requests_per_second / calm.requests_per_second


def bytes_of_a_stream(folder: Path, kind: str, count: int) -> float:
    """Uses a fresh server, because freed memory of a used one would hide part of the cost."""
    with Server.tidegate(folder) as server:
        connection = wire.connect(server.address)
        wire.call(connection, TOOL, {})
        connection.close()
        settle()
        before = rss_anon_bytes(server.pid)
        with OpenStreams(kind, server.address, count):
            settle()
            return (rss_anon_bytes(server.pid) - before) / count


def under_streams(folder: Path, options: argparse.Namespace) -> dict[str | None, wrk.Run]:
    """The medians of runs without streams and with streams of each kind, in turn."""
    load = wrk.Load("tidegate", "tools/call", "tools/call", {"name": TOOL, "arguments": {}})
    runs: dict[str | None, list[wrk.Run]] = {None: [], SSE: [], WEB_SOCKET: []}
    with Server.tidegate(folder) as server:
        wrk.check(server, load)
        wrk.run(server, load, int(callers.WARM_SECONDS))
        for number in range(options.rounds):
            # Each kind is first in a round equally often.
            turn = number % len(runs)
            kinds = list(runs)
            for kind in kinds[turn:] + kinds[:turn]:
                with OpenStreams(kind, server.address, options.streams) if kind else nullcontext():
                    settle()
                    runs[kind].append(wrk.run(server, load, options.seconds * STREAMS_TIMES_SECONDS))
                settle()
    return {kind: wrk.median(tuple(measured)) for kind, measured in runs.items()}


# ---- The bridge ----


def bridge(folder: Path, options: argparse.Namespace) -> wire.Json:
    with Server.tidegate(folder) as server:
        processes = {
            STDIO: command(folder),
            BRIDGE_HTTP: command("--connect", http_url(server)),
            BRIDGE_WEB_SOCKET: command("--connect", web_socket_url(server)),
        }
        rounds = [[start_to_answer(process) for process in processes.values()] for _ in range(options.starts)]
        starts = {name: list(seconds) for name, seconds in zip(processes, zip(*rounds, strict=True), strict=True)}
        one = Plan("", TOOL, server.address, callers=1, calls_max=CALLS_IN_A_ROW)
        plans = {
            HTTP: replace(one, transport=callers.HTTP),
            WEB_SOCKET: replace(one, transport=callers.WEB_SOCKET),
            **{name: replace(one, transport=callers.PIPE, command=process) for name, process in processes.items()},
        }
        measured = {name: measured_in_new_process(plan) for name, plan in plans.items()}
        in_a_row = {
            name: median([run(IN_A_ROW_SECONDS_MAX) for _ in range(options.rounds)]) for name, run in measured.items()
        }
    show_bridge(starts, in_a_row)
    return {
        "start_to_first_answer_seconds": starts,
        "calls_in_a_row": {name: asdict(run) for name, run in in_a_row.items()},
    }


def start_to_answer(process: tuple[str, ...]) -> float:
    """The seconds from the start of the process to the answer of its first call, including the handshake."""
    started = time.perf_counter()
    server = wire.Stdio(*process)
    server.write(initialize())
    server.read()
    server.write(INITIALIZED)
    server.write(wire.message("tools/call", {"name": TOOL, "arguments": {}}, revision=HANDSHAKE_REVISION))
    line = server.read()
    seconds = time.perf_counter() - started
    server.close()
    if wire.NO_ERROR not in line:
        raise RuntimeError(f"the first call failed: {line[:1000]!r}")
    return seconds


def show_bridge(starts: dict[str, list[float]], in_a_row: dict[str, LoadResult]) -> None:
    rows = []
    for name, run in in_a_row.items():
        seconds = starts.get(name)
        added = {HTTP: run.p50_ms - in_a_row[HTTP].p50_ms, STDIO: run.p50_ms - in_a_row[STDIO].p50_ms}
        rows.append(
            [
                name,
                report.milliseconds(statistics.median(seconds)) if seconds else "",
                report.milliseconds(max(seconds)) if seconds else "",
                f"{run.p50_ms * 1e3:,.0f} µs",
                f"{run.p99_ms * 1e3:,.0f} µs",
                *(f"{more * 1e3:+,.0f} µs" if name.startswith("bridge") else "" for more in added.values()),
            ]
        )
    header = ["one call at a time", "start to first answer, median", "slowest", "a call, p50", "p99"]
    report.show("The bridge", [*header, "added to HTTP", "added to stdio"], rows)


PARTS: dict[str, Callable[[Path, argparse.Namespace], Any]] = {"calls": calls, "streams": streams, "bridge": bridge}


if __name__ == "__main__":
    main()
