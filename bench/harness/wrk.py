"""Load by wrk: one kind of request, sent over many connections, each as soon as the previous answer has arrived."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO

from harness import wire
from harness.process import Server, cpu_seconds

SCRIPT = Path(__file__).resolve().parents[1] / "post.lua"
CONNECTIONS = 50
# A placeholder for a number of six digits, different in each request.
RANDOM = "@random@"
RANDOM_EXAMPLE = 100_000


@dataclass(frozen=True)
class Load:
    """One kind of request to one server."""

    server: str
    request: str
    method: str
    params: wire.Json
    revision: str = wire.REVISION


@dataclass(frozen=True)
class Run:
    """The result of one run of wrk, or the medians of several."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    server_cpu_us_per_request: float
    # Of the processes that the server calls, such as a database; 0 if they are not measured.
    others_cpu_us_per_request: float = 0.0


def check(server: Server, load: Load) -> int:
    """Checks one answer before thousands are counted. Returns its length in bytes."""
    params = json.loads(json.dumps(load.params).replace(f'"{RANDOM}"', str(RANDOM_EXAMPLE)))
    connection = wire.connect(server.address)
    response = wire.send(connection, load.method, params, server.key, load.revision)
    text = response.read()
    is_json = (response.getheader("Content-Type") or "").startswith("application/json")
    result = json.loads(text).get("result") if response.status == HTTPStatus.OK and is_json else None
    if result is None or result.get("isError") or not (result.get("tools") or result.get("content")):
        raise RuntimeError(f"{load.server}, {load.request}: {response.status} {text[:1000]!r}")
    connection.close()
    return len(text)


def run(
    server: Server,
    load: Load,
    seconds: int,
    *,
    others: Callable[[], float] | None = None,
    answers_read: bool = False,
) -> Run:
    """Loads the server; `others` returns the processor seconds of the processes that the server calls.

    Raises RuntimeError when a request fails or, with `answers_read`, when a tool fails.
    """
    before, others_before = cpu_seconds(server.pid), others() if others else 0.0
    counted = counts(server, load, seconds, answers_read)
    spent = cpu_seconds(server.pid) - before
    others_spent = others() - others_before if others else 0.0
    requests = counted["requests"]
    if counted["failed"] or not requests:
        raise RuntimeError(f"{load.server}, {load.request}: {counted}")
    return Run(
        requests / counted["seconds"],
        counted["p50_ms"],
        counted["p99_ms"],
        spent / requests * 1e6,
        others_spent / requests * 1e6,
    )


def request(server: Server, load: Load) -> tuple[str, dict[str, str]]:
    """Body and headers."""
    body = json.dumps(wire.message(load.method, load.params, revision=load.revision), separators=(",", ":"))
    return body, wire.headers(load.method, load.params.get("name"), server.key, load.revision)


def counts(server: Server, load: Load, seconds: int, answers_read: bool) -> wire.Json:
    """The counts that wrk prints."""
    body, headers = request(server, load)
    return post(f"http://{server.address}/mcp", body, headers, seconds, answers_read=answers_read)


def post(
    url: str,
    body: str,
    headers: dict[str, str],
    seconds: int,
    *,
    answers_read: bool = False,
    connections: int = CONNECTIONS,
) -> wire.Json:
    """Posts the body for some seconds and returns the counts of wrk."""
    with tempfile.TemporaryFile("w+") as output:
        with posting(
            url, body, headers, seconds, output, answers_read=answers_read, connections=connections
        ) as process:
            process.wait()
        output.seek(0)
        counted: wire.Json = json.loads(output.read().splitlines()[-1])
    return counted


@contextmanager
def posting(
    url: str,
    body: str,
    headers: dict[str, str],
    seconds: int,
    output: IO[str],
    *,
    answers_read: bool = False,
    connections: int = CONNECTIONS,
) -> Iterator[subprocess.Popen[str]]:
    """Runs wrk, which posts the body and prints its counts as the last line of `output`. The block may kill it.

    Raises RuntimeError when wrk fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        body_path, headers_path = Path(folder, "body"), Path(folder, "headers")
        body_path.write_text(body)
        headers_path.write_text("".join(f"{name}: {value}\n" for name, value in headers.items()))
        command = [
            "wrk",
            "--threads=1",
            f"--connections={connections}",
            f"--duration={seconds}s",
            f"--script={SCRIPT}",
            url,
            "--",
            body_path,
            headers_path,
            *(["read"] if answers_read else []),
        ]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True)
        try:
            yield process
            _, error_text = process.communicate()
            if process.returncode not in {0, -signal.SIGKILL}:
                raise RuntimeError(f"wrk ended with {process.returncode}: {error_text}")
        finally:
            process.kill()
            process.wait()


def median(runs: tuple[Run, ...]) -> Run:
    return Run(*(statistics.median(column) for column in zip(*map(astuple, runs), strict=True)))
