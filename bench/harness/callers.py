"""Load over any transport: callers that make one call after the other, driven by one event loop.

Like wrk for HTTP: requests are built in advance, and of an answer only its end and the mark of success are checked.
"""

from __future__ import annotations

import json
import os
import re
import select
import statistics
import subprocess
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass

from harness import streams, wire
from harness.process import cpu_seconds
from harness.streams import READ_BYTES

HTTP, REST, SSE, WEB_SOCKET, PIPE = "HTTP", "REST", streams.SSE, streams.WEB_SOCKET, "pipe"
WARM_SECONDS = 2.0
POLL_SECONDS = 0.1
STOP_SECONDS_MAX = 30
ACCEPTED = b"HTTP/1.1 202"
ID = re.compile(rb'"id": ?(\d+)')
# Of so many digits that all requests are of one length.
FIRST_ID = 1_000_000_000


@dataclass(frozen=True)
class Plan:
    """The tool, the transport, the number of callers and the duration."""

    transport: str
    tool: str
    # The address of the server; unused for a pipe.
    address: str = ""
    # The program to start for a pipe, over its standard input and output.
    command: tuple[str, ...] = ()
    callers: int = 50
    seconds: float = 8.0
    calls_max: int | None = None
    # Processes to include in the processor time, in addition to the command.
    pids: tuple[int, ...] = ()
    # A text that each successful answer contains.
    mark: bytes = wire.NO_ERROR
    warm_seconds: float = WARM_SECONDS


@dataclass(frozen=True)
class LoadResult:
    """The result of a plan."""

    calls_per_second: float
    p50_ms: float
    p99_ms: float
    servers_cpu_us: float
    own_cpu_us: float

    @property
    def own_share(self) -> float:
        """The share of one core that the loop used; at 1 the loop is the bottleneck."""
        return self.calls_per_second * self.own_cpu_us / 1e6


class Tally:
    """The answers so far."""

    def __init__(self, mark: bytes) -> None:
        self.waits = array("d")
        self._mark = mark

    def add(self, answer: bytes, seconds: float) -> None:
        if self._mark not in answer:
            raise RuntimeError(f"a call failed: {answer[:1000]!r}")
        self.waits.append(seconds)


class NumberedRequest:
    """A request with a new id each time, as a session requires."""

    def __init__(self, request: bytes) -> None:
        self._opening, self._ending = request.split(b"%d" % FIRST_ID)

    def text(self, request_id: int) -> bytes:
        return b"%s%d%s" % (self._opening, request_id, self._ending)


# The function to call for each readable descriptor.
Ready = dict[int, Callable[[], None]]


class HttpCaller:
    """Sends POST requests over one connection and reads the answers from it."""

    def __init__(self, plan: Plan, tally: Tally) -> None:
        self._socket = streams.connect_socket(plan.address)
        self._request, self._tally = http_request(plan), tally
        self._rest, self._sent = b"", 0.0

    def ready(self) -> Ready:
        return {self._socket.fileno(): self._receive}

    def begin(self) -> None:
        self._sent = time.perf_counter()
        self._socket.send(self._request)

    def _receive(self) -> None:
        data = self._rest + require_data(self._socket.recv(READ_BYTES))
        if not streams.is_whole_response(data):
            self._rest = data
            return
        self._rest = b""
        self._tally.add(data, time.perf_counter() - self._sent)
        self.begin()

    def close(self) -> None:
        self._socket.close()


class EventStreamCaller:
    """Sends POST requests over one connection and reads answers from an event stream. The next call waits for both."""

    def __init__(self, plan: Plan, tally: Tally) -> None:
        opened = streams.open_event_stream(plan.address)
        self._stream, self._tally = opened.socket, tally
        self._posts = streams.connect_socket(plan.address)
        for message in (streams.initialize(), streams.INITIALIZED):
            self._posts.sendall(event_post(plan.address, opened.endpoint, message))
            streams.read_until(self._posts, re.compile(rb"HTTP/1.1 202 (?:.|\n)*\r\n\r\n"))
        streams.read_until(self._stream, re.compile(rb"data: (?:.|\n)*\n\n"))
        call = wire.message("tools/call", params_of(plan), FIRST_ID, streams.HANDSHAKE_REVISION)
        self._request, self._id = NumberedRequest(event_post(plan.address, opened.endpoint, call)), FIRST_ID
        self._rest, self._sent, self._pending = b"", 0.0, 0

    def ready(self) -> Ready:
        return {self._stream.fileno(): self._receive, self._posts.fileno(): self._accepted}

    def begin(self) -> None:
        self._pending = 2
        self._id += 1
        self._sent = time.perf_counter()
        self._posts.send(self._request.text(self._id))

    def _accepted(self) -> None:
        data = require_data(self._posts.recv(READ_BYTES))
        if not data.startswith(ACCEPTED):
            raise RuntimeError(f"a POST failed: {data[:1000]!r}")
        self._receive_one()

    def _receive(self) -> None:
        data = self._rest + require_data(self._stream.recv(READ_BYTES))
        # The end of an event and of the chunk that holds it.
        if not data.endswith(b"\n\n\r\n"):
            self._rest = data
            return
        self._rest = b""
        # Otherwise it is a keep-alive comment.
        if b"data: " in data:
            self._tally.add(data, time.perf_counter() - self._sent)
            self._receive_one()

    def _receive_one(self) -> None:
        self._pending -= 1
        if not self._pending:
            self.begin()

    def close(self) -> None:
        self._stream.close()
        self._posts.close()


class WebSocketCaller:
    """Sends calls and reads answers as messages of one WebSocket."""

    def __init__(self, plan: Plan, tally: Tally) -> None:
        self._socket = streams.open_web_socket(plan.address)
        self._request, self._tally = NumberedRequest(streams.text_frame(call_text(plan, FIRST_ID))), tally
        self._rest, self._sent, self._id = b"", 0.0, FIRST_ID

    def ready(self) -> Ready:
        return {self._socket.fileno(): self._receive}

    def begin(self) -> None:
        self._id += 1
        self._sent = time.perf_counter()
        self._socket.send(self._request.text(self._id))

    def _receive(self) -> None:
        data = self._rest + require_data(self._socket.recv(READ_BYTES))
        while match := streams.first_frame(data):
            opcode, payload, data = match
            if opcode == streams.TEXT:
                self._tally.add(payload, time.perf_counter() - self._sent)
                self.begin()
            elif opcode == streams.PING:
                self._socket.send(streams.frame(streams.PONG, payload))
            else:
                raise RuntimeError(f"a frame of the kind {opcode:#x}: {payload[:1000]!r}")
        self._rest = data

    def close(self) -> None:
        self._socket.close()


class PipeCallers:
    """All callers share the standard input and output of one process; the id of an answer identifies the caller."""

    def __init__(self, plan: Plan, tally: Tally) -> None:
        self.process = subprocess.Popen(
            plan.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin and self.process.stdout
        self._input, self._output = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._request = NumberedRequest(call_text(plan, FIRST_ID) + b"\n")
        self._sent = [0.0] * plan.callers
        self._tally, self._rest = tally, b""

    def ready(self) -> Ready:
        return {self._output: self._receive}

    def begin(self) -> None:
        self._sent = [time.perf_counter()] * len(self._sent)
        self._write(b"".join(self._request.text(FIRST_ID + number) for number in range(len(self._sent))))

    def _write(self, data: bytes) -> None:
        # A pipe takes a part when it is full.
        while data:
            data = data[os.write(self._input, data) :]

    def _receive(self) -> None:
        *lines, self._rest = (self._rest + require_data(os.read(self._output, READ_BYTES))).split(b"\n")
        now = time.perf_counter()
        requests = []
        for line in lines:
            match = ID.search(line)
            if not match:
                raise RuntimeError(f"a line without an id: {line[:1000]!r}")
            answered = int(match[1])
            caller = (answered - FIRST_ID) % len(self._sent)
            self._tally.add(line, now - self._sent[caller])
            self._sent[caller] = now
            requests.append(self._request.text(answered + len(self._sent)))
        self._write(b"".join(requests))

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        # Reads the remaining answers, so that the process can end.
        while os.read(self._output, READ_BYTES):
            pass
        self.process.stdout.close()
        self.process.wait(STOP_SECONDS_MAX)


Caller = HttpCaller | EventStreamCaller | WebSocketCaller | PipeCallers
CALLERS: dict[str, type[HttpCaller | EventStreamCaller | WebSocketCaller]] = {
    HTTP: HttpCaller,
    REST: HttpCaller,
    SSE: EventStreamCaller,
    WEB_SOCKET: WebSocketCaller,
}


def measure(plan: Plan) -> LoadResult:
    """Runs the plan. Call it in a process that does nothing else.

    Raises RuntimeError when a call fails.
    """
    tally, pids = Tally(plan.mark), list(plan.pids)
    callers: list[Caller]
    if plan.transport == PIPE:
        pipe = PipeCallers(plan, tally)
        callers, pids = [pipe], [*pids, pipe.process.pid]
    else:
        callers = [CALLERS[plan.transport](plan, tally) for _ in range(plan.callers)]
    poll = select.epoll()
    ready = {descriptor: act for caller in callers for descriptor, act in caller.ready().items()}
    for descriptor in ready:
        poll.register(descriptor, select.EPOLLIN)
    for caller in callers:
        caller.begin()
    run(poll, ready, tally, plan.warm_seconds, None)
    del tally.waits[:]
    spent, own, started = sum(map(cpu_seconds, pids)), time.process_time(), time.perf_counter()
    run(poll, ready, tally, plan.seconds, plan.calls_max)
    seconds = time.perf_counter() - started
    spent, own = sum(map(cpu_seconds, pids)) - spent, time.process_time() - own
    for caller in callers:
        caller.close()
    poll.close()
    calls = len(tally.waits)
    percentiles = [wait * 1e3 for wait in statistics.quantiles(tally.waits, n=100)]
    return LoadResult(calls / seconds, percentiles[49], percentiles[98], spent / calls * 1e6, own / calls * 1e6)


def run(poll: select.epoll, ready: Ready, tally: Tally, seconds: float, calls_max: int | None) -> None:
    """Runs until the time or the number of calls is reached. Calls in flight are not awaited."""
    ends_at = time.perf_counter() + seconds
    while time.perf_counter() < ends_at and (calls_max is None or len(tally.waits) < calls_max):
        for descriptor, _ in poll.poll(POLL_SECONDS):
            ready[descriptor]()


def require_data(data: bytes) -> bytes:
    if not data:
        raise RuntimeError("the server closed")
    return data


def params_of(plan: Plan) -> wire.Json:
    return {"name": plan.tool, "arguments": {}}


def call_text(plan: Plan, request_id: int) -> bytes:
    return compact(wire.message("tools/call", params_of(plan), request_id))


def compact(message: wire.Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def http_request(plan: Plan) -> bytes:
    if plan.transport == REST:
        return streams.post(plan.address, rest_path(plan.tool), b"{}", REST_HEADERS)
    headers = wire.headers("tools/call", plan.tool)
    return streams.post(plan.address, "/mcp", call_text(plan, 1), headers)


REST_HEADERS = {"Content-Type": "application/json"}


def rest_path(tool: str) -> str:
    return f"/rest/tools/{tool}/call"


def event_post(address: str, endpoint: str, message: wire.Json) -> bytes:
    return streams.post(address, endpoint, compact(message), {"Content-Type": "application/json"})
