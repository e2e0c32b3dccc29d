"""A handler inside PostgreSQL, compared with a declared tool with the same SELECT; and the delay of a new handler.

wrk requests the balance of a random account of pgbench. The server has ten connections to PostgreSQL. pgbench calls the SQL dispatcher without a server or
HTTP. The delay begins with the COMMIT of a registration.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from harness import report, wire, wrk
from harness.postgres import LOGIN, Cluster, within_cluster
from harness.process import ROOT, Server, settle
from harness.wrk import Load, Run
from listeners import LISTS, MARKS, Listeners

SCALE = 10
CONNECTIONS = 10
WARM_SECONDS = 2
SINGLE_CALLS = 2_000
LAYER = ROOT / "crates/postgres-handlers/sql/handlers"
DECLARED, PLAIN, HANDLER, ROWS = "balance_declared", "balance_plain", "balance_handler", "balance_rows"
NAMES = {DECLARED: "declared tool", PLAIN: "declared tool, database without handlers", HANDLER: "handler", ROWS: "handler of rows"}
DISPATCHER = "the SQL dispatcher, pgbench -M prepared -c"
DISPATCHER_CLIENTS = (1, 50)
# Each pgbench connection first loads about a hundred functions.
DISPATCHER_SECONDS_MIN = 5
# The limits: cost as a multiple of a declared tool, latency of one caller, and delay of a new handler.
RATIO_MAX = 1.3
SINGLE_P50_MS_MAX = 2.0
REGISTRATION_SECONDS_MAX = 1.0
LISTED_SECONDS_MAX = 60.0
POLL_SECONDS = 0.002

CONFIGURATION = f"""\
databases:
  - name: bank
    postgres: ${{BENCH_DSN}}
    handlers: api
    connections: {CONNECTIONS}
  - name: plain
    postgres: ${{BENCH_DSN}}
    connections: {CONNECTIONS}
tools:
""" + "".join(
    f"""\
  - name: {name}
    description: The balance of one account.
    database: {database}
    sql: SELECT aid, abalance FROM pgbench_accounts WHERE aid = :aid
    input:
      aid: {{type: integer, description: The account}}
"""
    for name, database in ((DECLARED, "bank"), (PLAIN, "plain"))
)
SELECT = "SELECT aid, abalance FROM pgbench_accounts WHERE aid = ((request).arguments ->> 'aid')::integer"
METADATA = {
    "type": "tool",
    "description": "The balance of one account.",
    "inputSchema": {"properties": {"aid": {"type": "integer", "description": "The account"}}, "required": ["aid"]},
    "requiresAuth": False,
    "readOnly": True,
}
BODY = f"""
BEGIN
    RETURN api.mcp_structured_result((SELECT to_jsonb(account) FROM ({SELECT}) AS account), (request).request_id);
END
"""
DISPATCHED = f"""\
\\set aid random(1, {SCALE * 100_000})
SELECT (api.mcp_handle_request(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', 'tools/call', 'params',
    jsonb_build_object('name', '{HANDLER}', 'arguments', jsonb_build_object('aid', :aid::integer))))).envelope;
"""


@dataclass(frozen=True)
class RegistrationTimes:
    """Seconds from the COMMIT of a registration until `tools/list` contains it, and until a listener is notified."""

    listed_seconds: list[float]
    notified_seconds: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side, in turn")
    parser.add_argument("--registrations", type=int, default=20, help="of each kind")
    options = parser.parse_args()
    cluster = within_cluster()
    cluster.fill(SCALE)
    install(cluster)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tidegate.yaml"
        file.write_text(CONFIGURATION)
        with cluster.server(file, "--log", "error") as server:
            loaded = under_load(server, cluster, options)
            single = {tool: single_p50_ms(server, tool) for tool in NAMES}
            registration_times = registrations(server, cluster, options.registrations)
    dispatched = {clients: dispatcher(cluster, clients, options.seconds) for clients in DISPATCHER_CLIENTS}
    report.keep(
        "handlers",
        {
            "under_load": {tool: asdict(run) for tool, run in loaded.items()},
            "single_p50_ms": single,
            "registration_times": asdict(registration_times),
            "dispatcher_calls_per_second": dispatched,
        },
    )
    show(loaded, single, registration_times, dispatched)


def install(cluster: Cluster) -> None:
    """Installs the SQL layer and the handlers."""
    layer = "".join(file.read_text() for file in sorted(LAYER.glob("[0-9]*.sql")))
    cluster.run(layer.replace("@schema@", "api"))
    cluster.query(f"SELECT api.grant_mcp_access('{LOGIN}')")
    cluster.query(registration({**METADATA, "name": HANDLER}, BODY))
    cluster.query(registration({**METADATA, "name": ROWS, "rows": True}, SELECT))


def registration(metadata: wire.Json, body: str) -> str:
    return f"SELECT api.create_or_replace_mcp_handler($json${json.dumps(metadata)}$json$, $body${body}$body$)"


def under_load(server: Server, cluster: Cluster, options: argparse.Namespace) -> dict[str, Run]:
    """The medians of each tool. The tools run in turn."""
    loads = {
        tool: Load("tidegate", name, "tools/call", {"name": tool, "arguments": {"aid": wrk.RANDOM}})
        for tool, name in NAMES.items()
    }
    for load in loads.values():
        wrk.check(server, load)
        wrk.run(server, load, WARM_SECONDS, answers_read=True)
    rounds = [
        [wrk.run(server, load, options.seconds, others=cluster.cpu_seconds) for load in loads.values()]
        for _ in range(options.rounds)
    ]
    return dict(zip(loads, map(wrk.median, zip(*rounds, strict=True)), strict=True))


def single_p50_ms(server: Server, tool: str) -> float:
    """One caller, one connection, one call after the other."""
    connection = wire.connect(server.address)
    waits = []
    for number in range(SINGLE_CALLS):
        started = time.perf_counter()
        wire.call(connection, tool, {"aid": 1 + number * 37 % (SCALE * 100_000)})
        waits.append((time.perf_counter() - started) * 1e3)
    connection.close()
    # The first tenth warms the connection and the plans.
    return statistics.median(waits[SINGLE_CALLS // 10 :])


class Session:
    """A running psql with its own connection, so that a COMMIT is one line."""

    def __init__(self, cluster: Cluster) -> None:
        command = [cluster.bin / "psql", "--no-psqlrc", "-qAt", "--set=ON_ERROR_STOP=1", cluster.superuser]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Session:
        return self

    def begin(self, statement: str) -> None:
        """Runs the statement, which must return one line, in a transaction that stays open."""
        assert self._process.stdout
        self._write(f"BEGIN; {statement};")
        if not self._process.stdout.readline():
            raise RuntimeError("psql ended")

    def commit(self) -> None:
        """Sends the COMMIT and does not wait."""
        self._write("COMMIT;")

    def _write(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def registrations(server: Server, cluster: Cluster, count: int) -> RegistrationTimes:
    listed: list[float] = []
    notified: list[float] = []
    with Session(cluster) as session, Listeners(server.address, 1, {"toolsListChanged": True}) as listeners:
        for number in range(count):
            for kind, times, measure in (
                ("listed", listed, partial(seconds_until_listed, server)),
                ("notified", notified, partial(seconds_until_notified, listeners)),
            ):
                name = f"{kind}_{number}"
                session.begin(registration({**METADATA, "name": name}, BODY))
                # Notifications of the previous registration must not count for this one.
                settle()
                listeners.discard()
                times.append(measure(name, session.commit))
    return RegistrationTimes(listed, notified)


def seconds_until_listed(server: Server, name: str, commit: Callable[[], None]) -> float:
    connection = wire.connect(server.address)
    mark = json.dumps(name).encode()
    started = time.perf_counter()
    commit()
    while mark not in wire.send(connection, "tools/list", {}).read():
        if time.perf_counter() - started > LISTED_SECONDS_MAX:
            raise RuntimeError(f"{name} is not listed")
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


def seconds_until_notified(listeners: Listeners, _name: str, commit: Callable[[], None]) -> float:
    return listeners.wait_for(MARKS[LISTS], commit).last_seconds


def dispatcher(cluster: Cluster, clients: int, seconds: int) -> float:
    """Calls a second through `mcp_handle_request`, which is what a gateway without a bridge uses."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "dispatch.sql"
        script.write_text(DISPATCHED)
        command = [cluster.bin / "pgbench", "--no-vacuum", "--protocol=prepared", f"--client={clients}"]
        command += [f"--time={max(seconds, DISPATCHER_SECONDS_MIN)}", f"--file={script}", cluster.target]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    match = re.search(r"tps = ([\d.]+)", output)
    if not match:
        raise RuntimeError(f"pgbench: {output}")
    return float(match[1])


def show(
    loaded: dict[str, Run], single: dict[str, float], registration_times: RegistrationTimes, dispatched: dict[int, float]
) -> None:
    best = loaded[DECLARED].requests_per_second
    rows = [
        [
            NAMES[tool],
            f"{run.requests_per_second:,.0f}",
            f"{best / run.requests_per_second:.2f}",
            f"{run.p50_ms:.2f} ms",
            f"{run.p99_ms:.2f} ms",
            f"{run.server_cpu_us_per_request:.1f} µs",
            f"{run.others_cpu_us_per_request:.1f} µs",
            f"{single[tool]:.2f} ms",
        ]
        for tool, run in loaded.items()
    ]
    rows += [
        [f"{DISPATCHER} {clients}", f"{calls:,.0f}", f"{best / calls:.2f}", *["–"] * 5]
        for clients, calls in dispatched.items()
    ]
    header = ["point query", "requests/s", "declared tool's, times", "p50", "p99", "CPU a request"]
    header += ["PostgreSQL's CPU a request", "p50 of one caller"]
    report.show(f"Handlers inside PostgreSQL, {wrk.CONNECTIONS} connections", header, rows)
    times = {"tools/list contains it": registration_times.listed_seconds, "a listener is notified": registration_times.notified_seconds}
    rows = [
        [name, report.milliseconds(statistics.median(seconds)), report.milliseconds(max(seconds))]
        for name, seconds in times.items()
    ]
    report.show("From the COMMIT of a registration", ["until", "median", "slowest"], rows)
    ratio = best / loaded[HANDLER].requests_per_second
    slowest = max(registration_times.listed_seconds + registration_times.notified_seconds)
    print(f"{verdict(ratio <= RATIO_MAX)}: a handler costs at most {RATIO_MAX} times a declared tool")
    print(f"{verdict(single[HANDLER] < SINGLE_P50_MS_MAX)}: p50 of one caller under {SINGLE_P50_MS_MAX:.0f} ms")
    print(f"{verdict(slowest < REGISTRATION_SECONDS_MAX)}: available within {REGISTRATION_SECONDS_MAX:.0f} s of its COMMIT")


def verdict(is_so: bool) -> str:
    return "held" if is_so else "missed"


if __name__ == "__main__":
    main()
