"""All accounts of pgbench through one declared tool, compared with other MCP servers and COPY: first row, total, memory.

The other servers have their default logs, and revision 2025-11-25 of MCP.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from functools import partial
from pathlib import Path

from harness import peers, report, wire
from harness.postgres import Cluster, within_cluster
from harness.process import RssPeak, Server, cpu_seconds, settle

SCALE, LARGE_SCALE = 10, 100
CONNECTIONS = 10
ROW_MARK = b'\\"aid\\"'
ALL_ACCOUNTS = "SELECT aid, bid, abalance, filler FROM pgbench_accounts"
ONE_ACCOUNT = f"{ALL_ACCOUNTS} WHERE aid = 7"
COPIES = {
    "COPY (SELECT row_to_json(…)) by psql": f"COPY (SELECT row_to_json(t) FROM ({ALL_ACCOUNTS}) AS t) TO STDOUT",
    "binary COPY by psql, the floor": f"COPY ({ALL_ACCOUNTS}) TO STDOUT (FORMAT binary)",
}

TIDEGATE = f"""\
databases:
  - name: bank
    postgres: ${{BENCH_DSN}}
    connections: {CONNECTIONS}
tools:
  - name: accounts
    description: All accounts.
    database: bank
    sql: {ALL_ACCOUNTS}
    limits: {{inline_bytes: unlimited, inline_rows: unlimited, timeout: 10m}}
  - name: account
    description: One account.
    database: bank
    sql: {ONE_ACCOUNT}
"""

TOOLBOX = f"""\
tools:
  accounts:
    kind: postgres-sql
    source: bank
    description: All accounts.
    statement: {ALL_ACCOUNTS}
  account:
    kind: postgres-sql
    source: bank
    description: One account.
    statement: {ONE_ACCOUNT}
"""

DBHUB = f"""\
[[tools]]
name = "accounts"
source = "bank"
description = "All accounts."
statement = "{ALL_ACCOUNTS}"

[[tools]]
name = "account"
source = "bank"
description = "One account."
statement = "{ONE_ACCOUNT}"
"""


@dataclass(frozen=True)
class Measurement:
    """One answer; memory is anonymous, in bytes, of the process that gives the answer."""

    first_row_seconds: float
    total_seconds: float
    body_bytes: float
    idle_bytes: float
    peak_bytes: float
    cpu_seconds: float
    postgres_cpu_seconds: float

    @property
    def growth_bytes(self) -> float:
        return self.peak_bytes - self.idle_bytes


Measure = Callable[[int], Measurement]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="answers of each server, in turn")
    parser.add_argument("--without-tidegate", action="store_true", help="only the others")
    parser.add_argument("--without-large", action="store_true", help=f"no scale {LARGE_SCALE}")
    options = parser.parse_args()
    cluster = within_cluster()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        ours = {} if options.without_tidegate else {"Tidegate": partial(measure_tidegate, cluster, Path(folder))}
        copies = {name: partial(copy, cluster, sql) for name, sql in COPIES.items()}
        others = {
            peers.toolbox_name(): partial(measure_toolbox, cluster, Path(folder)),
            peers.dbhub_name(): partial(measure_dbhub, cluster, Path(folder)),
        }
        scales = {SCALE: ours | others | copies, LARGE_SCALE: ours | copies}
        for scale in [SCALE] if options.without_large else scales:
            rows = cluster.fill(scale)
            results[rows] = in_turn(scales[scale], rows, options.rounds)
    report.keep("postgres-rows", {rows: result_rows(medians) for rows, medians in results.items()})
    for rows, medians in results.items():
        show(rows, medians)


def in_turn(sides: dict[str, Measure], rows: int, rounds: int) -> dict[str, Measurement]:
    """The medians of each side, measured in turn."""
    measured: dict[str, list[Measurement]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            measured[name].append(measure(rows))
            print(name, measured[name][-1], flush=True)
    return {
        name: Measurement(*(statistics.median(column) for column in zip(*map(astuple, runs), strict=True)))
        for name, runs in measured.items()
    }


def measure_tidegate(cluster: Cluster, folder: Path, rows: int) -> Measurement:
    file = folder / "tidegate.yaml"
    file.write_text(TIDEGATE)
    server = cluster.server(file)
    return measure_call(cluster, server, rows, wire.REVISION)


def measure_toolbox(cluster: Cluster, folder: Path, rows: int) -> Measurement:
    return measure_call(cluster, peers.toolbox(folder, cluster, TOOLBOX, CONNECTIONS), rows, wire.PEERS_REVISION)


def measure_dbhub(cluster: Cluster, folder: Path, rows: int) -> Measurement:
    return measure_call(cluster, peers.dbhub(folder, cluster, DBHUB), rows, wire.PEERS_REVISION)


def measure_call(cluster: Cluster, server: Server, rows: int, revision: str) -> Measurement:
    """Calls a fresh server that has answered one small call."""
    call = partial(wire.time_call, arguments={}, row_mark=ROW_MARK, counted=True, revision=revision)
    with server:
        expect(call(server.address, "account"), 1)
        settle()
        spent, postgres_spent = cpu_seconds(server.pid), cluster.cpu_seconds()
        with RssPeak(server.pid) as memory:
            timing = call(server.address, "accounts")
        spent, postgres_spent = cpu_seconds(server.pid) - spent, cluster.cpu_seconds() - postgres_spent
    expect(timing, rows)
    first = timing.first_row_seconds or timing.total_seconds
    return Measurement(first, timing.total_seconds, timing.body_bytes, memory.before, memory.peak, spent, postgres_spent)


def expect(timing: wire.Timing, rows: int) -> None:
    if timing.is_error or timing.rows != rows:
        raise RuntimeError(f"{timing.rows} rows instead of {rows}; {timing.tail[-1000:]}")


def copy(cluster: Cluster, sql: str, rows: int) -> Measurement:
    """The time and memory of psql that copies into a pipe."""
    postgres_spent = cluster.cpu_seconds()
    started = time.perf_counter()
    command = [cluster.bin / "psql", "--no-psqlrc", "--command", sql, cluster.target]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as psql, RssPeak(psql.pid) as memory:
        assert psql.stdout
        first_row_seconds: float | None = None
        body_bytes, lines = 0, 0
        while piece := psql.stdout.read(wire.READ_BYTES):
            first_row_seconds = first_row_seconds or time.perf_counter() - started
            body_bytes += len(piece)
            lines += piece.count(b"\n")
        _, status, usage = os.wait4(psql.pid, 0)
        psql.returncode = os.waitstatus_to_exitcode(status)
        total_seconds = time.perf_counter() - started
    if psql.returncode or ("json" in sql and lines != rows):
        raise RuntimeError(f"{sql}: status {psql.returncode}, {lines} lines")
    return Measurement(
        first_row_seconds or total_seconds,
        total_seconds,
        body_bytes,
        0,
        memory.peak,
        usage.ru_utime + usage.ru_stime,
        cluster.cpu_seconds() - postgres_spent,
    )


def result_rows(medians: dict[str, Measurement]) -> list[wire.Json]:
    return [
        {"server": name, **asdict(median), "growth_bytes": median.growth_bytes} for name, median in medians.items()
    ]


def show(rows: int, medians: dict[str, Measurement]) -> None:
    table = [
        [
            name,
            report.milliseconds(measured.first_row_seconds),
            f"{measured.total_seconds:,.2f} s",
            report.megabytes(measured.body_bytes),
            report.megabytes(measured.idle_bytes),
            report.megabytes(measured.growth_bytes),
            f"{measured.cpu_seconds:,.2f} s",
            f"{measured.postgres_cpu_seconds:,.2f} s",
        ]
        for name, measured in medians.items()
    ]
    header = ["all accounts", "first row", "whole answer", "bytes", "idle", "growth", "its CPU", "PostgreSQL's CPU"]
    report.show(f"{rows:,} rows of PostgreSQL", header, table)


if __name__ == "__main__":
    main()
