"""MCP over raw HTTP, timed to the byte; and JSON-RPC lines over stdio."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

REVISION = "2026-07-28"
# The newest revision that the peers support.
PEERS_REVISION = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "tidegate-bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
UNLIMITED_ROWS = 10**12
READ_BYTES = 1 << 20
TAIL_BYTES = 4096
CALL_SECONDS_MAX = 900
# A row within a text block: its opening brace, then the escaped quote of its first name.
ROW_OPENING = b'{\\"'
NO_ERROR = b'"isError":false'
IS_ERROR = re.compile(rb'"isError":\s*true|"error":\s*\{')

Json = dict[str, Any]


@dataclass(frozen=True)
class Timing:
    """The timing of one answer, in seconds since the request was sent."""

    headers_seconds: float
    first_row_seconds: float | None
    total_seconds: float
    body_bytes: int
    rows: int | None
    is_error: bool
    tail: str

    @property
    def rows_per_second(self) -> float:
        return (self.rows or 0) / self.total_seconds


def message(method: str, params: Json | None = None, request_id: int = 1, revision: str = REVISION) -> Json:
    """A request of the revision; the older one has no metadata in each request."""
    meta = {"_meta": META} if revision == REVISION else {}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**(params or {}), **meta}}


def headers(method: str, name: str | None = None, key: str | None = None, revision: str = REVISION) -> dict[str, str]:
    """The headers that a request of the revision must have, and the key that the server requires."""
    mirrored = {"Mcp-Method": method, **({"Mcp-Name": name} if name else {})}
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": revision,
        **(mirrored if revision == REVISION else {}),
        **({"Authorization": f"Bearer {key}"} if key else {}),
    }


def connect(address: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(address, timeout=CALL_SECONDS_MAX)


def send(
    connection: http.client.HTTPConnection,
    method: str,
    params: Json,
    key: str | None = None,
    revision: str = REVISION,
) -> http.client.HTTPResponse:
    """Sends a request and returns its response after the headers have arrived."""
    body = json.dumps(message(method, params, revision=revision)).encode()
    connection.request("POST", "/mcp", body, headers(method, params.get("name"), key, revision))
    return connection.getresponse()


def call(connection: http.client.HTTPConnection, tool: str, arguments: Json, key: str | None = None) -> str:
    """Calls a tool, with `key` as the credential, and returns the text of its answer.

    Raises RuntimeError when the tool fails.
    """
    response = send(connection, "tools/call", {"name": tool, "arguments": arguments}, key)
    answer = json.loads(response.read())
    result = answer.get("result")
    if response.status != HTTPStatus.OK or result is None or result.get("isError"):
        raise RuntimeError(f"{tool} failed: {json.dumps(answer)[:2000]}")
    return "".join(block["text"] for block in result["content"])


def sql_arguments(sql: str) -> Json:
    return {"sql": sql, "max_rows": UNLIMITED_ROWS}


def time_sql(address: str, sql: str) -> Timing:
    """Runs a statement over a new connection and reads its answer as it arrives."""
    return time_call(address, "sql", sql_arguments(sql), ROW_OPENING)


def time_call(
    address: str, tool: str, arguments: Json, row_mark: bytes, *, counted: bool = False, revision: str = REVISION
) -> Timing:
    """Calls a tool over a new connection and reads its answer as it arrives.

    The first `row_mark` marks the first row. The rows are the number that the server reports or, with `counted`, the number of marks.
    """
    connection = connect(address)
    connection.connect()
    started = time.perf_counter()
    response = send(connection, "tools/call", {"name": tool, "arguments": arguments}, revision=revision)
    headers_seconds = time.perf_counter() - started
    first_row_seconds: float | None = None
    body_bytes, marks, seam, tail = 0, 0, b"", b""
    while piece := response.read1(READ_BYTES):
        body_bytes += len(piece)
        joined = seam + piece
        if first_row_seconds is None and row_mark in joined:
            first_row_seconds = time.perf_counter() - started
        marks += joined.count(row_mark) if counted else 0
        # One byte less than a mark, so that a mark across two pieces counts once.
        seam = joined[1 - len(row_mark) :]
        tail = (tail + piece)[-TAIL_BYTES:]
    total_seconds = time.perf_counter() - started
    connection.close()
    reported = re.search(rb'"dev\.tidegate/rows":(\d+)', tail)
    return Timing(
        headers_seconds=headers_seconds,
        first_row_seconds=first_row_seconds,
        total_seconds=total_seconds,
        body_bytes=body_bytes,
        rows=marks if counted else int(reported[1]) if reported else None,
        is_error=response.status != HTTPStatus.OK or is_error(tail, revision),
        tail=tail.decode(errors="replace"),
    )


def is_error(tail: bytes, revision: str) -> bool:
    """Whether the answer with this end failed. The peers omit `isError` when it did not."""
    return NO_ERROR not in tail if revision == REVISION else IS_ERROR.search(tail) is not None


class Stdio:
    """A program that serves MCP over its standard input and output."""

    def __init__(self, *command: str | Path) -> None:
        parts = [str(part) for part in command]
        self.process = subprocess.Popen(
            parts, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin and self.process.stdout
        self._input, self._output = self.process.stdin, self.process.stdout
        self._rest = b""

    def write(self, request: Json) -> None:
        self._input.write(json.dumps(request).encode() + b"\n")

    def read(self) -> bytes:
        """The next line, however long."""
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            piece = self._output.read(READ_BYTES)
            if not piece:
                raise RuntimeError("the server closed its output")
            pieces.append(piece)
        line, _, last = pieces[-1].partition(b"\n")
        self._rest = last
        return b"".join([*pieces[:-1], line])

    def close(self) -> None:
        self._input.close()
        self.process.wait(CALL_SECONDS_MAX)
        self._output.close()
