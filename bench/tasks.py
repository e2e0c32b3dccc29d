"""What asking after a task takes when 10,000 finished ones are kept, beside a request that looks nothing up."""

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
from harness.process import Server, rss_anon_bytes, settled

TASKS = 10_000
GETS = 5_000
WARM_GETS = 200
P50_SECONDS_MAX = 0.001
# Of one caller, as many go on at once as the server lets go on; what it refuses is asked again.
REFUSED = -31_000
REFUSED_PAUSE_SECONDS = 0.01
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
    """How long one request after the other took, and how long the answers were."""

    p50_seconds: float
    p99_seconds: float
    answer_bytes: float


class Connection:
    """One kept-alive connection, with requests made up beforehand."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket: socket.socket = streams.connected(address)

    def request(self, method: str, params: wire.Json) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}).encode()
        return streams.post(self._address, "/mcp", body, wire.headers(method, params.get("name") or params.get("taskId")))

    def answer(self, request: bytes) -> bytes:
        """Sends a request and gives the whole response."""
        self._socket.sendall(request)
        response = b""
        while not streams.is_whole_response(response):
            piece = self._socket.recv(streams.READ_BYTES)
            if not piece:
                raise RuntimeError(f"the server closed: {response[:1000]!r}")
            response += piece
        return response

    def ask(self, method: str, params: wire.Json) -> wire.Json:
        """The JSON-RPC message that answers."""
        body = self.answer(self.request(method, params)).partition(b"\r\n\r\n")[2]
        return json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])

    def close(self) -> None:
        self._socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each kind, in turn")
    parser.add_argument("--tasks", type=int, default=TASKS, help="how many are kept")
    parser.add_argument("--gets", type=int, default=GETS, help="of each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measured(Path(folder), options)
    report.keep("tasks", results)


def measured(folder: Path, options: argparse.Namespace) -> wire.Json:
    files = folder / "people"
    files.mkdir()
    (files / "people.csv").write_text(TABLE)
    file = folder / "tidegate.yaml"
    # A JSON text is one of YAML, whatever the path has in it.
    file.write_text(CONFIGURATION.format(files=json.dumps(str(files)), folder=json.dumps(str(folder / "results"))))
    with Server.tidegate("--config", file, "--log", "error") as server:
        connection = Connection(server.address)
        first = finished(connection, begun(connection))
        settled()
        before = rss_anon_bytes(server.pid)
        started = time.perf_counter()
        ids = [first, *(begun(connection) for _ in range(options.tasks - 1))]
        begun_seconds = time.perf_counter() - started
        for task in ids:
            finished(connection, task)
        settled()
        memory = (rss_anon_bytes(server.pid) - before) / len(ids)
        waits = rounds(connection, ids, options)
        connection.close()
    show(waits, len(ids), begun_seconds, memory)
    return {
        "tasks": len(ids),
        "begun_a_second": len(ids) / begun_seconds,
        "bytes_of_a_task": memory,
        "requests": [{"method": method, **asdict(found)} for method, found in waits.items()],
    }


def begun(connection: Connection) -> str:
    """Begins a task and gives its id."""
    while True:
        answer = connection.ask("tools/call", EXPORT)
        if answer.get("error", {}).get("code") == REFUSED:
            time.sleep(REFUSED_PAUSE_SECONDS)
        elif answer.get("result", {}).get("resultType") == "task":
            return answer["result"]["taskId"]
        else:
            raise RuntimeError(f"it became no task: {json.dumps(answer)[:2000]}")


def finished(connection: Connection, task: str) -> str:
    """Waits until a task has completed, and gives its id again."""
    until = time.monotonic() + TASK_SECONDS_MAX
    while time.monotonic() < until:
        answer = connection.ask(GET, {"taskId": task})
        if answer["result"]["status"] == "completed":
            return task
        if answer["result"]["status"] != "working":
            raise RuntimeError(f"a task failed: {json.dumps(answer)[:2000]}")
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"a task takes longer than {TASK_SECONDS_MAX} s")


def rounds(connection: Connection, ids: list[str], options: argparse.Namespace) -> dict[str, Waits]:
    """Medians of rounds in turn."""
    runs: dict[str, list[Waits]] = {GET: [], FLOOR: []}
    for number in range(options.rounds):
        order = list(runs) if number % 2 == 0 else list(reversed(runs))
        for method in order:
            wanted = [{"taskId": task} if method == GET else {} for task in random.choices(ids, k=options.gets + WARM_GETS)]
            runs[method].append(waits_of(connection, [connection.request(method, params) for params in wanted]))
    return {
        method: Waits(*(statistics.median(column) for column in zip(*map(astuple, found), strict=True)))
        for method, found in runs.items()
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


def show(waits: dict[str, Waits], count: int, begun_seconds: float, memory: float) -> None:
    rows = [
        [f"`{method}`", f"{run.p50_seconds * 1e3:.3f} ms", f"{run.p99_seconds * 1e3:.3f} ms", f"{run.answer_bytes:,.0f} B"]
        for method, run in waits.items()
    ]
    report.show(f"{count:,} finished tasks, one request after the other", ["request", "p50", "p99", "answer"], rows)
    print(f"tasks begun: {count / begun_seconds:,.0f} a second; memory of a finished one: {memory:,.0f} bytes")
    is_held = waits[GET].p50_seconds < P50_SECONDS_MAX
    print(f"{'held' if is_held else 'missed'}: {GET} under {P50_SECONDS_MAX * 1e3:.0f} ms at p50")


if __name__ == "__main__":
    main()
