"""A point query as a declared tool under 50 connections, compared with MCP Toolbox and with pgbench as the upper bound."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from harness import peers, report, wire, wrk
from harness.postgres import READER, Cluster, within_cluster
from harness.process import TIDEGATE, Server, children_cpu_seconds
from harness.wrk import Load, Run

SCALE = 10
CONNECTIONS = 10
WARM_SECONDS = 2
CEILING_CLIENTS = (10, 50)
# The share of pgbench's transactions with a logged latency.
LOGGED = 0.1
TOOL = "balance"
REQUEST = "point query"
OURS, OURS_AS_CALLER = "Tidegate", "Tidegate, role and claims set for each call, behind a key"

PLAIN_CONFIGURATION = f"""\
databases:
  - name: bank
    postgres: ${{BENCH_DSN}}
    connections: {CONNECTIONS}
tools:
  - name: {TOOL}
    description: The balance of one account.
    database: bank
    sql: SELECT abalance FROM pgbench_accounts WHERE aid = :aid
    input:
      aid: {{type: integer, description: The account}}
"""

CALLER_CONFIGURATION = (
    PLAIN_CONFIGURATION.replace(
        "tools:\n",
        f"""\
    role: {READER}
    claims: request.jwt.claims
    settings: {{app.tenant: tenant}}
tools:
""",
    )
    + """\
toolsets:
  bank: [balance]
roles:
  - name: teller
    toolsets: [bank]
auth:
  keys: keys.json
"""
)

TOOLBOX = f"""\
tools:
  {TOOL}:
    kind: postgres-sql
    source: bank
    description: The balance of one account.
    statement: SELECT abalance FROM pgbench_accounts WHERE aid = $1
    parameters:
      - {{name: aid, type: integer, description: The account}}
"""


@dataclass(frozen=True)
class Side:
    """A server, or pgbench, and the function that measures one run."""

    name: str
    connections: int
    measure: Callable[[int], Run]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side, in turn")
    parser.add_argument("--without-tidegate", action="store_true", help="only the others")
    options = parser.parse_args()
    cluster = within_cluster()
    cluster.fill(SCALE)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        servers = {peers.toolbox_name(): peers.toolbox(folder, cluster, TOOLBOX, CONNECTIONS)}
        if not options.without_tidegate:
            servers = our_servers(folder, cluster, TIDEGATE) | servers
        sides = [side_of(name, server, cluster, running) for name, server in servers.items()]
        for clients in CEILING_CLIENTS:
            sides.append(Side(f"pgbench -S -M prepared -c {clients}", clients, partial(pgbench, cluster, clients)))
        rounds = [[side.measure(options.seconds) for side in sides] for _ in range(options.rounds)]
    medians = [wrk.median(runs) for runs in zip(*rounds, strict=True)]
    results = [
        {"side": side.name, "connections": side.connections, **asdict(run)}
        for side, run in zip(sides, medians, strict=True)
    ]
    report.keep("postgres-load", results)
    show(sides, medians)


def our_servers(folder: Path, cluster: Cluster, program: Path) -> dict[str, Server]:
    return {OURS: plain(folder, cluster, program), OURS_AS_CALLER: as_caller(folder, cluster, program)}


def plain(folder: Path, cluster: Cluster, program: Path) -> Server:
    file = folder / "plain.yaml"
    file.write_text(PLAIN_CONFIGURATION)
    return cluster.server(file, program=program)


def as_caller(folder: Path, cluster: Cluster, program: Path) -> Server:
    """A server that requires a key, and the key that requests send."""
    file = folder / "caller.yaml"
    file.write_text(CALLER_CONFIGURATION)
    server = cluster.server(file, program=program)
    command = [program, "key", "add", "ann", "--role", "teller", "--file", folder / "keys.json"]
    server.key = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
    return server


def side_of(name: str, server: Server, cluster: Cluster, running: ExitStack) -> Side:
    """Checks one answer, and counts the connections that the server opens under load."""
    revision = wire.REVISION if name in (OURS, OURS_AS_CALLER) else wire.PEERS_REVISION
    load = Load(name, REQUEST, "tools/call", {"name": TOOL, "arguments": {"aid": wrk.RANDOM}}, revision)
    before = cluster.connections()
    running.enter_context(server)
    wrk.check(server, load)
    # Counted under load, because some servers close connections whose requests wrk abandons at its end.
    counted: list[int] = []
    counting = threading.Timer(WARM_SECONDS / 2, lambda: counted.append(cluster.connections() - before))
    counting.start()
    wrk.run(server, load, WARM_SECONDS, answers_read=revision == wire.REVISION)
    counting.join()
    return Side(name, counted[0], lambda seconds: wrk.run(server, load, seconds, others=cluster.cpu_seconds))


def pgbench(cluster: Cluster, clients: int, seconds: int) -> Run:
    """The throughput of PostgreSQL for a client that does nothing else; the processor time is pgbench's and the server's."""
    with tempfile.TemporaryDirectory() as folder:
        command = [cluster.bin / "pgbench", "--select-only", "--protocol=prepared", "--no-vacuum"]
        command += [f"--client={clients}", f"--time={seconds}", "--log", f"--sampling-rate={LOGGED}", cluster.target]
        spent, own_spent = cluster.cpu_seconds(), children_cpu_seconds()
        output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout
        spent, own_spent = cluster.cpu_seconds() - spent, children_cpu_seconds() - own_spent
        lines = [line for log in Path(folder).iterdir() for line in log.read_text().splitlines()]
    counted = re.search(r"actually processed: (\d+)(?:.|\n)*tps = ([\d.]+)", output)
    if not counted:
        raise RuntimeError(f"pgbench: {output}")
    requests = int(counted[1])
    # The third word of a line is the time that the transaction took, in microseconds.
    percentiles = statistics.quantiles((int(line.split()[2]) / 1e3 for line in lines), n=100)
    own, servers = own_spent / requests * 1e6, spent / requests * 1e6
    return Run(float(counted[2]), percentiles[49], percentiles[98], own, servers)


def show(sides: list[Side], medians: list[Run]) -> None:
    peer = next(run for side, run in zip(sides, medians, strict=True) if side.name == peers.toolbox_name())
    rows = [
        [
            side.name,
            str(side.connections),
            f"{run.requests_per_second:,.0f}",
            f"{run.requests_per_second / peer.requests_per_second:.2f}",
            f"{run.p50_ms:.2f} ms",
            f"{run.p99_ms:.2f} ms",
            f"{run.server_cpu_us_per_request:.1f} µs",
            f"{run.others_cpu_us_per_request:.1f} µs",
        ]
        for side, run in zip(sides, medians, strict=True)
    ]
    header = ["point query", "connections to PostgreSQL", "requests/s", "times Toolbox", "p50", "p99"]
    report.show("A point query of PostgreSQL", [*header, "its CPU a request", "PostgreSQL's CPU a request"], rows)


if __name__ == "__main__":
    main()
