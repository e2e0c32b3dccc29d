"""The latency of `tasks/get` with 10,000 stored finished tasks, compared with a request that needs no lookup."""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import tempfile
import time
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from harness import report, streams, wire
from harness.process import Server, rss_anon_bytes, settle

TASKS = 10_000
GETS = 5_000
WARM_GETS = 200
P50_SECONDS_MAX = 0.001
# The server limits the running tasks of one caller; a rejected call is repeated.
REJECTED = -31_000
REJECTED_PAUSE_SECONDS = 0.01
POLL_SECONDS = 0.02
TASK_SECONDS_MAX = 60
EXTENSION = "io.modelcontextprotocol/tasks"
META = {**wire.META, "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
EXPORT = {"name": "sql", "arguments": {"sql": "SELECT * FROM people", "delivery": "blocks"}}
TABLE = "id,name\n1,ann\n"
CONFIGURATION = """\
databases: [{{name: people, files: {files}}}]
results: {{folder: {folder}}}
"""
GET, FLOOR = "tasks/get", "server/discover"


@dataclass(frozen=True)
class Waits:
    """The latency of sequential requests, and the mean length of the answers."""

    p50_seconds: float
    p99_seconds: float
    answer_bytes: float


class Connection:
    """One keep-alive connection, with requests built in advance."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket = streams.connect_socket(address)

    def request(self, method: str, params: wire.Json) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
        return streams.post(self._address, "/mcp", body, wire.headers(method, params.get("name") or params.get("taskId")))

    def answer(self, request: bytes) -> bytes:
        """Sends a request and returns the complete response."""
        self._socket.sendall(request)
        response = b""
        while not streams.is_whole_response(response):
            piece = self._socket.recv(streams.READ_BYTES)
            if not piece:
                raise RuntimeError(f"the server closed: {response[:1000]!r}")
            response += piece
        return response

    def call(self, method: str, params: wire.Json) -> wire.Json:
        """Sends a request and returns the JSON-RPC response."""
        body = self.answer(self.request(method, params)).partition(b"\r\n\r\n")[2]
        return json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])

    def close(self) -> None:
        self._socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind, in turn")
    parser.add_argument("--tasks", type=int, default=TASKS, help="number of stored tasks")
    parser.add_argument("--gets", type=int, default=GETS, help="requests of each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure_tasks(Path(folder), options)
    report.keep("tasks", results)


def measure_tasks(folder: Path, options: argparse.Namespace) -> wire.Json:
    files = folder / "people"
    files.mkdir()
    (files / "people.csv").write_text(TABLE)
    file = folder / "tidegate.yaml"
    # JSON is valid YAML and quotes any character of the path.
    file.write_text(CONFIGURATION.format(files=json.dumps(str(files)), folder=json.dumps(str(folder / "results"))))
    with Server.tidegate("--config", file, "--log", "error") as server:
        connection = Connection(server.address)
        first = wait_for_task(connection, begin_task(connection))
        settle()
        before = rss_anon_bytes(server.pid)
        started = time.perf_counter()
        ids = [first, *(begin_task(connection) for _ in range(options.tasks - 1))]
        begin_seconds = time.perf_counter() - started
        for task in ids:
            wait_for_task(connection, task)
        settle()
        memory = (rss_anon_bytes(server.pid) - before) / len(ids)
        waits = rounds(connection, ids, options)
        connection.close()
    show(waits, len(ids), begin_seconds, memory)
    return {
        "tasks": len(ids),
        "begun_per_second": len(ids) / begin_seconds,
        "bytes_of_a_task": memory,
        "requests": [{"method": method, **asdict(runs_of_method)} for method, runs_of_method in waits.items()],
    }


def begin_task(connection: Connection) -> str:
    """Starts a task and returns its id."""
    while True:
        answer = connection.call("tools/call", EXPORT)
        if answer.get("error", {}).get("code") == REJECTED:
            time.sleep(REJECTED_PAUSE_SECONDS)
        elif answer.get("result", {}).get("resultType") == "task":
            return answer["result"]["taskId"]
        else:
            raise RuntimeError(f"the call did not become a task: {json.dumps(answer)[:2000]}")


def wait_for_task(connection: Connection, task: str) -> str:
    """Waits until a task has completed and returns its id."""
    until = time.monotonic() + TASK_SECONDS_MAX
    while time.monotonic() < until:
        answer = connection.call(GET, {"taskId": task})
        if answer["result"]["status"] == "completed":
            return task
        if answer["result"]["status"] != "working":
            raise RuntimeError(f"a task failed: {json.dumps(answer)[:2000]}")
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"a task takes longer than {TASK_SECONDS_MAX} s")


def rounds(connection: Connection, ids: list[str], options: argparse.Namespace) -> dict[str, Waits]:
    """The medians of rounds of each method, in turn."""
    runs: dict[str, list[Waits]] = {GET: [], FLOOR: []}
    for number in range(options.rounds):
        order = list(runs) if number % 2 == 0 else list(reversed(runs))
        for method in order:
            parameters = [{"taskId": task} if method == GET else {} for task in random.choices(ids, k=options.gets + WARM_GETS)]
            runs[method].append(waits_of(connection, [connection.request(method, params) for params in parameters]))
    return {
        method: Waits(*(statistics.median(column) for column in zip(*map(astuple, runs_of_method), strict=True)))
        for method, runs_of_method in runs.items()
    }


def waits_of(connection: Connection, requests: list[bytes]) -> Waits:
    seconds, size = [], 0
    for number, request in enumerate(requests):
        started = time.perf_counter()
        answer = connection.answer(request)
        if number >= WARM_GETS:
            seconds.append(time.perf_counter() - started)
        size += len(answer)
        if b'"result"' not in answer:
            raise RuntimeError(f"a request failed: {answer[:1000]!r}")
    percentiles = statistics.quantiles(seconds, n=100)
    return Waits(percentiles[49], percentiles[98], size / len(requests))


def show(waits: dict[str, Waits], count: int, begin_seconds: float, memory: float) -> None:
    rows = [
        [f"`{method}`", f"{run.p50_seconds * 1e3:.3f} ms", f"{run.p99_seconds * 1e3:.3f} ms", f"{run.answer_bytes:,.0f} B"]
        for method, run in waits.items()
    ]
    report.show(f"{count:,} finished tasks, one request after the other", ["request", "p50", "p99", "answer"], rows)
    print(f"tasks started: {count / begin_seconds:,.0f} a second; memory of a finished one: {memory:,.0f} bytes")
    is_held = waits[GET].p50_seconds < P50_SECONDS_MAX
    print(f"{'held' if is_held else 'missed'}: {GET} under {P50_SECONDS_MAX * 1e3:.0f} ms at p50")


if __name__ == "__main__":
    main()
