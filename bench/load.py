"""Requests a second and latency with 50 connections, beside rmcp with the same tool."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path

from harness import report, wire
from harness.process import CACHE, TARGET, TIDEGATE, Server, cpu_seconds

SCRIPT = Path(__file__).resolve().parent / "post.lua"
CONNECTIONS = 50
WARM_SECONDS = 2

HELLO, RMCP, NODE = "tidegate, one tool", "rmcp 3.9, one tool", "tidegate serve, ten tools"
ASKING = "tidegate, one tool, behind a key"


@dataclass(frozen=True)
class Load:
    """One kind of request to one server."""

    server: str
    request: str
    method: str
    params: wire.Json


@dataclass(frozen=True)
class Run:
    """What one run of wrk gave."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_us_per_request: float


LISTS = [Load(server, "tools/list", "tools/list", {}) for server in (HELLO, ASKING, RMCP)]
CALLS = [
    Load(server, "tools/call hello", "tools/call", {"name": "hello", "arguments": {"name": "tide"}})
    for server in (HELLO, RMCP)
]
ONE_ROW = {"table": "nation", "select": ["n_name"], "where": {"column": "n_nationkey", "op": "=", "value": 7}}
ASKED = [
    Load(NODE, "tools/list", "tools/list", {}),
    Load(NODE, "tools/call query, one row", "tools/call", {"name": "query", "arguments": ONE_ROW}),
    Load(
        NODE,
        "tools/call sql, one row",
        "tools/call",
        {"name": "sql", "arguments": {"sql": "SELECT n_name FROM nation WHERE n_nationkey = 7"}},
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind of request, in turn")
    parser.add_argument("--hello", type=Path, default=TARGET / "release/tidegate-hello")
    parser.add_argument("--peer", type=Path, default=TARGET / "peer/release/rmcp-hello")
    options = parser.parse_args()
    servers = {HELLO: Server(options.hello), ASKING: Server(options.hello, "--ask"), RMCP: Server(options.peer)}
    loads = LISTS + CALLS
    if TIDEGATE.exists():
        servers[NODE] = Server.tidegate(CACHE / "tpch-0.1")
        loads += ASKED
    with ExitStack() as running:
        for server in servers.values():
            running.enter_context(server)
        for load in loads:
            check(servers[load.server], load)
            run_wrk(servers[load.server], load, WARM_SECONDS)
        rounds = [
            [run_wrk(servers[load.server], load, options.seconds) for load in loads] for _ in range(options.rounds)
        ]
    medians = [median(runs) for runs in zip(*rounds, strict=True)]
    keep_and_show(loads, medians)


def check(server: Server, load: Load) -> None:
    """One answer is looked at before thousands are counted."""
    connection = wire.connect(server.address)
    response = wire.send(connection, load.method, load.params, server.key)
    text = response.read()
    is_json = (response.getheader("Content-Type") or "").startswith("application/json")
    result = json.loads(text).get("result") if response.status == HTTPStatus.OK and is_json else None
    if result is None or result.get("isError") or not (result.get("tools") or result.get("content")):
        raise RuntimeError(f"{load.server}, {load.request}: {response.status} {text[:1000]!r}")
    connection.close()


def run_wrk(server: Server, load: Load, seconds: int) -> Run:
    body = json.dumps(wire.message(load.method, load.params), separators=(",", ":"))
    lines = [f"{name}: {value}\n" for name, value in wire.headers(load.method, load.params.get("name"), server.key).items()]
    with tempfile.TemporaryDirectory() as folder:
        body_path, headers_path = Path(folder, "body"), Path(folder, "headers")
        body_path.write_text(body)
        headers_path.write_text("".join(lines))
        before = cpu_seconds(server.pid)
        output = subprocess.run(
            [
                "wrk",
                "--threads=1",
                f"--connections={CONNECTIONS}",
                f"--duration={seconds}s",
                f"--script={SCRIPT}",
                f"http://{server.address}/mcp",
                "--",
                body_path,
                headers_path,
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        spent = cpu_seconds(server.pid) - before
    counted = json.loads(output.splitlines()[-1])
    if counted["failed"]:
        raise RuntimeError(f"{load.server}, {load.request}: {output}")
    requests = counted["requests"]
    return Run(requests / counted["seconds"], counted["p50_ms"], counted["p99_ms"], spent / requests * 1e6)


def median(runs: tuple[Run, ...]) -> Run:
    columns = zip(*(asdict(run).values() for run in runs), strict=True)
    return Run(*(statistics.median(column) for column in columns))


def keep_and_show(loads: list[Load], medians: list[Run]) -> None:
    report.keep(
        "load",
        [
            {"server": load.server, "request": load.request, **asdict(run)}
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


if __name__ == "__main__":
    main()
