"""Requests a second and latency with 50 connections of wrk, compared with rmcp with the same tool.

rmcp has its fastest reasonable form: stateless, JSON answers, directly on hyper. `tidegate-hello` has Tidegate's checks and metrics. `tidegate serve` is the
shipped binary with ten tools and the default log.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from harness import report, wire, wrk
from harness.process import CACHE, TARGET, TIDEGATE, Server
from harness.wrk import Load, Run

WARM_SECONDS = 2

HELLO, RMCP, NODE = "tidegate, one tool", "rmcp 3.9, one tool", "tidegate serve, ten tools"
WITH_KEY = "tidegate, one tool, behind a key"

LISTS = [Load(server, "tools/list", "tools/list", {}) for server in (HELLO, WITH_KEY, RMCP)]
CALLS = [
    Load(server, "tools/call hello", "tools/call", {"name": "hello", "arguments": {"name": "tide"}})
    for server in (HELLO, RMCP)
]
QUIET = "tidegate serve, --log error"


def call(tool: str, arguments: wire.Json, name: str | None = None, server: str = NODE) -> Load:
    return Load(server, f"tools/call {name or tool}", "tools/call", {"name": tool, "arguments": arguments})


KEY = {"column": "n_nationkey", "op": "=", "value": 7}
# Has no effect, and is different in each request, so that no stored answer is returned.
ANY = {"column": "n_regionkey", "op": "<", "value": wrk.RANDOM}
SAME, DIFFERENT = "one row", "one row, different each time"
NODE_LOADS = [
    Load(NODE, "tools/list", "tools/list", {}),
    call("list_databases", {}),
    call("list_databases", {}, server=QUIET),
    call("node_status", {}),
    call("query", {"table": "nation", "select": ["n_name"], "where": KEY}, f"query, {SAME}"),
    call("query", {"table": "nation", "select": ["n_name"], "where": {"and": [KEY, ANY]}}, f"query, {DIFFERENT}"),
    call("sql", {"sql": "SELECT n_name FROM nation WHERE n_nationkey = 7"}, f"sql, {SAME}"),
    call(
        "sql",
        {
            "sql": "SELECT n_name FROM nation WHERE n_nationkey = 7 AND n_regionkey < $1",
            "parameters": [wrk.RANDOM],
        },
        f"sql, {DIFFERENT}",
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind of request, in turn")
    parser.add_argument("--hello", type=Path, default=TARGET / "release/tidegate-hello")
    parser.add_argument("--peer", type=Path, default=TARGET / "peer/release/rmcp-hello")
    options = parser.parse_args()
    servers = {HELLO: Server(options.hello), WITH_KEY: Server(options.hello, "--ask"), RMCP: Server(options.peer)}
    loads = LISTS + CALLS
    if TIDEGATE.exists():
        servers |= node_servers(TIDEGATE)
        loads += NODE_LOADS
    with ExitStack() as running:
        for server in servers.values():
            running.enter_context(server)
        for load in loads:
            warm_up(servers[load.server], load)
        rounds = [
            [wrk.run(servers[load.server], load, options.seconds) for load in loads] for _ in range(options.rounds)
        ]
    medians = [wrk.median(runs) for runs in zip(*rounds, strict=True)]
    keep_and_show(loads, medians)


def node_servers(program: Path) -> dict[str, Server]:
    """The servers of `NODE_LOADS`."""
    folder = CACHE / "tpch-0.1"
    return {
        NODE: Server.tidegate(folder, program=program),
        QUIET: Server.tidegate(folder, "--log", "error", program=program),
    }


def warm_up(server: Server, load: Load) -> None:
    wrk.check(server, load)
    wrk.run(server, load, WARM_SECONDS)


def keep_and_show(loads: list[Load], medians: list[Run]) -> None:
    report.keep(
        "load",
        [
            {"server": load.server, "request": load.request, **server_members(run)}
            for load, run in zip(loads, medians, strict=True)
        ],
    )
    peers = {load.request: run for load, run in zip(loads, medians, strict=True) if load.server == RMCP}
    rows = []
    for load, run in zip(loads, medians, strict=True):
        peer = peers.get(load.request)
        ratio = run.requests_per_second / peer.requests_per_second if peer and load.server == HELLO else None
        rows.append(
            [
                f"{load.request}: {load.server}",
                f"{run.requests_per_second:,.0f}",
                f"{ratio:.2f}" if ratio else "",
                f"{run.p50_ms:.2f} ms",
                f"{run.p99_ms:.2f} ms",
                f"{run.server_cpu_us_per_request:.1f} µs",
            ]
        )
    header = ["50 connections", "requests/s", "times rmcp", "p50", "p99", "server CPU a request"]
    report.show("Load", header, sorted(rows))


def server_members(run: Run) -> dict[str, float]:
    """The members of a run whose server calls no other process."""
    return {name: value for name, value in asdict(run).items() if name != "others_cpu_us_per_request"}


if __name__ == "__main__":
    main()
