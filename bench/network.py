"""The cost of authentication, limits and an audit log; long load; and a polite caller beside a greedy one.

The polite caller requests one row 25 times a second, the greedy one uses 50 connections. Each may send 50 requests a second.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from harness import report, streams, wire, wrk
from harness.process import TIDEGATE, Server, rss_anon_bytes, settle
from harness.wrk import Load, Run

OPEN, GUARDED = "anonymous", "key, limits, audit"
COST_MAX = 0.10
COST_SECONDS_MAX = 50e-6
WARM_SECONDS = 2
LONE_REQUESTS = 4_000
CONNECTIONS = (100, 1_000)
LONG_SECONDS = 600
# The limit of memory growth after the first quarter of a run, in which caches fill.
GROWTH_MAX = 1.10
POLITE_PAUSE_SECONDS = 0.02
POLITE_TIMES_MAX = 1.5
GREEDY_REQUESTS_PER_SECOND = 50
# Open files of the node: connections and others.
FILES_MIN = 4_096
ROWS = 20_000

DATABASE = "people"
NODE = """\
databases: [{{name: {database}, files: {files}}}]
"""
GUARDS = """\
roles: [{{name: colleague, toolsets: ["*"], databases: ["*"]}}]
auth: {{keys: keys.json}}
limits:
  requests_per_second: 1000000
  principal: {{requests_per_second: {rate}, burst: {rate}, rows_per_day: 1000000000000, bytes_per_day: 1000GB}}
audit: {{file: audit.jsonl, max_size: 100MB, keep_files: 2}}
"""
UNBOUNDED = 1_000_000
LIST = Load(GUARDED, "tools/list", "tools/list", {})
POLITE_CALL = {
    "database": DATABASE,
    "table": "people",
    "select": ["name"],
    "where": {"column": "id", "op": "=", "value": 7},
}
GREEDY_CALL = {
    "database": DATABASE,
    "table": "people",
    "select": [{"function": "sum", "column": "id", "as": "total"}],
    "where": {"column": "id", "op": ">", "value": wrk.RANDOM},
}


class Node:
    """A folder with a table, a configuration and keys."""

    def __init__(self, folder: Path, guards: str = "") -> None:
        self._folder = folder
        files = folder / DATABASE
        files.mkdir(parents=True)
        rows = "".join(f"{number},name {number}\n" for number in range(ROWS))
        (files / "people.csv").write_text(f"id,name\n{rows}")
        # JSON is valid YAML and quotes any character of the path.
        node = NODE.format(database=DATABASE, files=json.dumps(str(files)))
        (folder / "tidegate.yaml").write_text(node + guards)

    def key(self, name: str) -> str:
        """A new key."""
        command = [TIDEGATE, "key", "add", name, "--role", "colleague"]
        return subprocess.run(command, cwd=self._folder, check=True, capture_output=True, text=True).stdout.strip()

    def server(self, key: str | None = None) -> Server:
        """The server of this folder, and the key that requests send."""
        server = Server.tidegate("--config", self._folder / "tidegate.yaml", "--log", "warn")
        server.key = key
        return server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server, in turn")
    parser.add_argument("--long", action="store_true", help=f"loads for {LONG_SECONDS} s each")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES_MIN, most), most))
    results = {}
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            results[part] = PARTS[part](Path(folder), options)
    report.keep("network", results)


def cost(folder: Path, options: argparse.Namespace) -> wire.Json:
    """The same list, requested anonymously and by an authenticated principal with limits and an audit log."""
    guarded = Node(folder / "guarded", GUARDS.format(rate=UNBOUNDED))
    servers = {OPEN: Node(folder / "open").server(), GUARDED: guarded.server(guarded.key("ann"))}
    with ExitStack() as running:
        for server in servers.values():
            running.enter_context(server)
            wrk.check(server, LIST)
            wrk.run(server, LIST, WARM_SECONDS)

        def measured(server: Server) -> tuple[Run, float]:
            return wrk.run(server, LIST, options.seconds), lone_seconds(server)

        rounds = [{name: measured(server) for name, server in servers.items()} for _ in range(options.rounds)]
    runs = {name: wrk.median(tuple(one[name][0] for one in rounds)) for name in servers}
    alone = {name: statistics.median(one[name][1] for one in rounds) for name in servers}
    show_cost(runs, alone)
    return {name: {**asdict(runs[name]), "lone_p50_us": alone[name] * 1e6} for name in servers}


def lone_seconds(server: Server) -> float:
    """The median time of sequential requests on one connection."""
    body = json.dumps(wire.message("tools/list"), separators=(",", ":")).encode()
    request = streams.post(server.address, "/mcp", body, wire.headers("tools/list", key=server.key))
    with streams.connect_socket(server.address) as connection:
        return statistics.median(answered_seconds(connection, request) for _ in range(LONE_REQUESTS))


def answered_seconds(connection: socket.socket, request: bytes) -> float:
    """The seconds from the request to the last byte of its answer, which must be a success."""
    started = time.perf_counter()
    connection.sendall(request)
    data = b""
    while not streams.is_whole_response(data):
        piece = connection.recv(streams.READ_BYTES)
        if not piece:
            raise RuntimeError(f"the server closed: {data[:1000]!r}")
        data += piece
    if not data.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"unexpected answer: {data[:1000]!r}")
    return time.perf_counter() - started


def show_cost(runs: dict[str, Run], alone: dict[str, float]) -> None:
    rows = [
        [
            name,
            f"{run.requests_per_second:,.0f}",
            f"{run.p50_ms:.2f} ms",
            f"{run.p99_ms:.2f} ms",
            f"{run.server_cpu_us_per_request:.1f} µs",
            f"{alone[name] * 1e6:.0f} µs",
        ]
        for name, run in runs.items()
    ]
    header = ["tools/list", "requests/s", "p50", "p99", "server CPU a request", "p50 of one caller"]
    report.show("Network: cost, 50 connections", header, rows)
    lost = 1 - runs[GUARDED].requests_per_second / runs[OPEN].requests_per_second
    longer = alone[GUARDED] - alone[OPEN]
    print(f"Lost: {lost:.1%} of the requests a second (aim: under {COST_MAX:.0%}); {longer * 1e6:.0f} µs at p50")
    print(f"of one caller (aim: under {COST_SECONDS_MAX * 1e6:.0f} µs).", flush=True)


def load(folder: Path, options: argparse.Namespace) -> wire.Json:
    """Many connections for the chosen time: no request is lost, and memory does not grow."""
    seconds = LONG_SECONDS if options.long else options.seconds
    node = Node(folder / "node", GUARDS.format(rate=UNBOUNDED))
    results, rows = {}, []
    with node.server(node.key("ann")) as server:
        for connections in CONNECTIONS:
            quarter, rest = max(seconds // 4, 1), max(seconds - seconds // 4, 1)
            counted = [list_load(server, connections, quarter)]
            memory = rss_anon_bytes(server.pid)
            counted.append(list_load(server, connections, rest))
            settle()
            growth = rss_anon_bytes(server.pid) / memory
            failed = sum(int(run["failed"]) for run in counted)
            rows.append(
                [
                    f"{connections:,} connections, {seconds} s",
                    f"{counted[1]['requests'] / counted[1]['seconds']:,.0f}",
                    f"{counted[1]['p99_ms']:.1f} ms",
                    f"{failed:,}",
                    report.megabytes(memory),
                    f"{growth:.2f}",
                ]
            )
            results[str(connections)] = {**counted[1], "failed": failed, "memory_bytes": memory, "growth": growth}
    header = ["tools/list", "requests/s", "p99", "lost", "memory after a quarter", "at the end, times"]
    report.show("Network: load", header, rows)
    print(f"Aims: none lost; memory at the end under {GROWTH_MAX:.2f} times.", flush=True)
    return results


def list_load(server: Server, connections: int, seconds: int) -> wire.Json:
    body = json.dumps(wire.message("tools/list"), separators=(",", ":"))
    headers = wire.headers("tools/list", key=server.key)
    return wrk.post(f"http://{server.address}/mcp", body, headers, seconds, connections=connections)


def fairness(folder: Path, options: argparse.Namespace) -> wire.Json:
    """One caller with occasional requests, alone and beside a caller that sends as many requests as possible."""
    node = Node(folder / "node", GUARDS.format(rate=GREEDY_REQUESTS_PER_SECOND))
    polite, greedy = node.key("polite"), node.key("greedy")
    body = json.dumps(wire.message("tools/call", {"name": "query", "arguments": GREEDY_CALL}), separators=(",", ":"))
    headers = wire.headers("tools/call", "query", greedy)
    with node.server(polite) as server:
        calls_seconds(server, WARM_SECONDS)
        alone = calls_seconds(server, options.seconds)
        beside, counted = [], {}
        with tempfile.TemporaryFile("w+") as output:
            # Longer than the measurement, so that the greedy caller is always active.
            with wrk.posting(f"http://{server.address}/mcp", body, headers, options.seconds + 2, output) as greedy_load:
                settle()
                beside = calls_seconds(server, options.seconds)
                greedy_load.wait()
            output.seek(0)
            counted = json.loads(output.read().splitlines()[-1])
    medians = [statistics.median(times) for times in (alone, beside)]
    slowest = [statistics.quantiles(times, n=100)[98] for times in (alone, beside)]
    names = ("alone", "beside a greedy one")
    rows = [
        [name, report.milliseconds(median), report.milliseconds(last)]
        for name, median, last in zip(names, medians, slowest, strict=True)
    ]
    report.show("Network: a polite caller", ["query, one row, now and then", "p50", "p99"], rows)
    ratio, taken = medians[1] / medians[0], counted["requests"] - counted["failed"]
    print(f"p50 beside is {ratio:.2f} times that alone (aim: under {POLITE_TIMES_MAX}). The greedy caller sent ", end="")
    print(f"{counted['requests']:,} requests over {wrk.CONNECTIONS} connections and received {taken:,} answers.")
    return {"alone_p50_s": medians[0], "beside_p50_s": medians[1], "ratio": ratio, "greedy": counted}


def calls_seconds(server: Server, seconds: int) -> list[float]:
    """The duration of each call of a caller that pauses between calls."""
    body = json.dumps(wire.message("tools/call", {"name": "query", "arguments": POLITE_CALL})).encode()
    request = streams.post(server.address, "/mcp", body, wire.headers("tools/call", "query", server.key))
    times: list[float] = []
    ends = time.perf_counter() + seconds
    with streams.connect_socket(server.address) as connection:
        while time.perf_counter() < ends:
            times.append(answered_seconds(connection, request))
            # Stays within the rate limit, which is the same for both callers.
            time.sleep(POLITE_PAUSE_SECONDS + 1 / GREEDY_REQUESTS_PER_SECOND)
    return times


PARTS = {"cost": cost, "load": load, "fairness": fairness}

if __name__ == "__main__":
    main()
