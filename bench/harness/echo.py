"""A server that answers each call with the same text at once; it measures the maximum speed of the load generator."""

from __future__ import annotations

import multiprocessing
import select
import socket
from types import TracebackType

from harness import streams
from harness.streams import READ_BYTES

BACKLOG = 1024
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
MESSAGES = b"POST /mcp/messages/"


class Echo:
    """A process that implements the part of each transport that the load generator uses. It runs as long as the block."""

    def __init__(self, text: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._response = HEAD % len(text) + text
        self._frame = streams.text_frame(text, masked=False)
        self._event = chunk(b"event: message\nid: 1\ndata: " + text + b"\n\n")
        self._connections: dict[int, socket.socket] = {}
        self._process = multiprocessing.get_context("fork").Process(target=self._serve, daemon=True)

    def __enter__(self) -> Echo:
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()
        self._listener.close()

    def _serve(self) -> None:
        poll = select.epoll()
        poll.register(self._listener, select.EPOLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._listener.fileno():
                    connection, _ = self._listener.accept()
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._connections[connection.fileno()] = connection
                    poll.register(connection, select.EPOLLIN)
                elif not self._answer(descriptor):
                    self._connections.pop(descriptor).close()

    def _answer(self, descriptor: int) -> bool:
        """False after the peer has closed. Each read is one message, because a client sends one at a time."""
        connection = self._connections[descriptor]
        try:
            data = connection.recv(READ_BYTES)
            if data.startswith(MESSAGES):
                stream = data[len(MESSAGES) : data.index(b" ", len(MESSAGES))]
                connection.send(ACCEPTED)
                # Notifications have no answer.
                if b'"id"' in data:
                    self._connections[int(stream)].send(self._event)
            elif data.startswith(b"POST "):
                connection.send(self._response)
            elif data.startswith(b"GET /mcp/sse "):
                connection.send(EVENTS + chunk(b"event: endpoint\ndata: /mcp/messages/%d\n\n" % descriptor))
            elif data.startswith(b"GET "):
                connection.send(UPGRADED)
            elif data:
                connection.send(self._frame)
        except (ConnectionError, KeyError):
            return False
        return bool(data)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)
