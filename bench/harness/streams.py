"""Connections that stay open, over bare sockets: event streams of HTTP+SSE and WebSockets, one by one or a thousand."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import threading
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType

from harness import wire
from harness.process import START_SECONDS_MAX

# The newest revision with a handshake, which the session of HTTP+SSE needs.
HANDSHAKE_REVISION = "2025-11-25"
SSE, WEB_SOCKET = "HTTP+SSE", "WebSocket"
READ_BYTES = 1 << 16
POLL_SECONDS = 0.25
# Opcodes of RFC 6455, each with the bit that marks the end of a message.
TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
LENGTH_FOLLOWS, LONG_LENGTH_FOLLOWS, MASKED = 126, 127, 0x80
ENDPOINT = re.compile(rb"event: endpoint\ndata: (\S+)\n\n")
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class EventStream:
    """A stream of events, and the endpoint that receives its messages."""

    socket: socket.socket
    endpoint: str


def initialize() -> wire.Json:
    info = {"name": "tidegate-bench", "version": "1"}
    params = {"protocolVersion": HANDSHAKE_REVISION, "capabilities": {}, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


INITIALIZED: wire.Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def connect_socket(address: str) -> socket.socket:
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)), START_SECONDS_MAX)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def open_event_stream(address: str) -> EventStream:
    connection = connect_socket(address)
    connection.sendall(f"GET /mcp/sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n".encode())
    match = read_until(connection, ENDPOINT)
    return EventStream(connection, match[1].decode())


def open_web_socket(address: str) -> socket.socket:
    connection = connect_socket(address)
    opening = (
        f"GET /mcp/ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Protocol: mcp\r\n\r\n"
    )
    connection.sendall(opening.encode())
    read_until(connection, re.compile(rb"HTTP/1.1 101 (?:.|\n)*\r\n\r\n"))
    return connection


def read_until(connection: socket.socket, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
    """Reads until `pattern` matches.

    Raises RuntimeError when the server closes before that.
    """
    data = b""
    while not (match := pattern.search(data)):
        piece = connection.recv(READ_BYTES)
        if not piece:
            raise RuntimeError(f"the server closed: {data[:1000]!r}")
        data += piece
    return match


def post(address: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """The bytes of a POST request."""
    fields = {"Host": address, "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def is_whole_response(data: bytes) -> bool:
    """Whether the response to a POST is complete."""
    head, blank, body = data.partition(b"\r\n\r\n")
    if not blank:
        return False
    length = CONTENT_LENGTH.search(head)
    return len(body) >= int(length[1]) if length else body.endswith(LAST_CHUNK)


def text_frame(text: bytes, *, masked: bool = True) -> bytes:
    """A message of a client, or an unmasked one of a server. A mask of zeros leaves the text as it is."""
    return frame(TEXT, text, masked=masked)


def frame(opcode: int, payload: bytes, *, masked: bool = True) -> bytes:
    bit, mask = (MASKED, bytes(4)) if masked else (0, b"")
    if len(payload) < LENGTH_FOLLOWS:
        return bytes([opcode, bit | len(payload)]) + mask + payload
    return bytes([opcode, bit | LENGTH_FOLLOWS]) + len(payload).to_bytes(2, "big") + mask + payload


def first_frame(data: bytes) -> tuple[int, bytes, bytes] | None:
    """Opcode and payload of the first frame of a server, and the rest; `None` while the frame is incomplete."""
    start = 2
    if len(data) < start:
        return None
    length = data[1]
    if length == LENGTH_FOLLOWS:
        start += 2
        length = int.from_bytes(data[2:start], "big")
    elif length == LONG_LENGTH_FOLLOWS:
        start += 8
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        return None
    return data[0], data[start : start + length], data[start + length :]


class OpenStreams:
    """Many open streams of one kind, after their handshake; a thread reads them while the block runs.

    Answers pings. Raises RuntimeError at the end when a stream was closed early.
    """

    def __init__(self, kind: str, address: str, count: int) -> None:
        self._kind, self._address, self._count = kind, address, count
        self._streams: dict[int, socket.socket] = {}
        self._broken = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> OpenStreams:
        opened = self._event_streams() if self._kind == SSE else self._web_sockets()
        self._streams = {stream.fileno(): stream for stream in opened}
        self._thread.start()
        return self

    def _event_streams(self) -> list[socket.socket]:
        poster = wire.connect(self._address)
        opened = []
        for _ in range(self._count):
            stream = open_event_stream(self._address)
            for message in (initialize(), INITIALIZED):
                poster.request("POST", stream.endpoint, json.dumps(message), {"Content-Type": "application/json"})
                response = poster.getresponse()
                response.read()
                if response.status != HTTPStatus.ACCEPTED:
                    raise RuntimeError(f"{stream.endpoint}: {response.status}")
            read_until(stream.socket, re.compile(rb'data: .*"result"(?:.|\n)*\n\n'))
            opened.append(stream.socket)
        poster.close()
        return opened

    def _web_sockets(self) -> list[socket.socket]:
        opened = []
        for _ in range(self._count):
            stream = open_web_socket(self._address)
            stream.sendall(text_frame(json.dumps(initialize()).encode()))
            read_until(stream, re.compile(rb'"result"'))
            stream.sendall(text_frame(json.dumps(INITIALIZED).encode()))
            opened.append(stream)
        return opened

    def _read(self) -> None:
        poll = select.epoll()
        for descriptor in self._streams:
            poll.register(descriptor, select.EPOLLIN)
        while not self._ended.is_set():
            for descriptor, _ in poll.poll(POLL_SECONDS):
                data = os.read(descriptor, READ_BYTES)
                if not data or (self._kind == WEB_SOCKET and data[0] == CLOSE):
                    self._broken += 1
                    poll.unregister(descriptor)
                elif self._kind == WEB_SOCKET and data[0] == PING:
                    self._streams[descriptor].sendall(frame(PONG, data[2 : 2 + data[1]]))
        poll.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        for stream in self._streams.values():
            stream.close()
        if self._broken and error is None:
            raise RuntimeError(f"{self._broken} of {self._count} streams over {self._kind} were closed early")
