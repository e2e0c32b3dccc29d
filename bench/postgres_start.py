"""A point query in each of the seconds after the start of the server, and the next call after a storm of clients that leave.

Compared with MCP Toolbox. PostgreSQL has the settings that its package installs. Both servers have ten connections to it. Nothing is warmed up. With a caller,
role and claims are set for each call.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import postgres_load
from harness import peers, report, wire, wrk
from harness.postgres import Cluster, within_cluster
from harness.process import TIDEGATE, Server
from harness.wrk import Load, Run

STORM_SECONDS = 0.3

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="after the start")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each server, in turn")
    parser.add_argument("--storms", type=int, default=20)
    options = parser.parse_args()
    cluster = within_cluster()
    cluster.fill(postgres_load.SCALE)
    rounds = [measure(cluster, lambda name, server: seconds(name, server, cluster, options.seconds)) for _ in range(options.rounds)]
    medians = {name: [wrk.median(runs) for runs in zip(*(each[name] for each in rounds), strict=True)] for name in rounds[0]}
    waits = measure(cluster, lambda name, server: storms(name, server, options.storms))
    report.keep("postgres-start", {name: {"seconds": [asdict(run) for run in runs], "after_storms": waits[name]} for name, runs in medians.items()})
    show(medians, waits)


def measure(cluster: Cluster, of_server: Callable[[str, Server], T]) -> dict[str, T]:
    """What `of_server` returns for a new process of each server."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: of_server(name, server) for name, server in make_servers(Path(folder), cluster).items()}


def make_servers(folder: Path, cluster: Cluster) -> dict[str, Server]:
    toolbox = peers.toolbox(folder, cluster, postgres_load.TOOLBOX, postgres_load.CONNECTIONS)
    return postgres_load.our_servers(folder, cluster, TIDEGATE) | {peers.toolbox_name(): toolbox}


def load_of(name: str) -> Load:
    revision = wire.PEERS_REVISION if name == peers.toolbox_name() else wire.REVISION
    parameters = {"name": postgres_load.TOOL, "arguments": {"aid": wrk.RANDOM}}
    return Load(name, postgres_load.REQUEST, "tools/call", parameters, revision)


def seconds(name: str, server: Server, cluster: Cluster, count: int) -> list[Run]:
    """The runs of the first seconds of a new process."""
    with server:
        return [wrk.run(server, load_of(name), 1, others=cluster.cpu_seconds) for _ in range(count)]


def storms(name: str, server: Server, count: int) -> list[float]:
    """Seconds of the next call, each time after all clients have gone in the middle of their calls."""
    load = load_of(name)
    waits = []
    with server:
        for _ in range(count):
            leave(server, load)
            started = time.monotonic()
            wrk.check(server, load)
            waits.append(time.monotonic() - started)
    return waits


def leave(server: Server, load: Load) -> None:
    with tempfile.TemporaryFile("w+") as output:
        body, headers = wrk.request(server, load)
        with wrk.posting(f"http://{server.address}/mcp", body, headers, 60, output) as process:
            time.sleep(STORM_SECONDS)
            process.kill()


def show(medians: dict[str, list[Run]], waits: dict[str, list[float]]) -> None:
    peer = medians[peers.toolbox_name()]
    rows = []
    for name, runs in medians.items():
        for second, (run, other) in enumerate(zip(runs, peer, strict=True), 1):
            rows.append([
                name,
                str(second),
                f"{run.requests_per_second:,.0f}",
                f"{run.requests_per_second / other.requests_per_second:.2f}",
                f"{run.p99_ms:.2f} ms",
                f"{run.server_cpu_us_per_request:.1f} µs",
                f"{run.server_cpu_us_per_request / other.server_cpu_us_per_request:.2f}",
            ])  # fmt: skip
    header = ["point query", "second", "requests/s", "times Toolbox", "p99", "its CPU a request", "times Toolbox's"]
    report.show("A point query of PostgreSQL, second by second after the start", header, rows)
    storms = [[name, f"{statistics.median(all) * 1e3:.1f} ms", f"{max(all) * 1e3:.1f} ms"] for name, all in waits.items()]
    report.show("The next call after a storm of clients that leave", ["server", "median", "longest"], storms)


if __name__ == "__main__":
    main()
