"""A recording proxy in front of an HTTP server.

    http_proxy.py FOLDER UPSTREAM_URL

It prints `listening on http://127.0.0.1:PORT/mcp`, the same line as the server, so that clients need no special case for
the proxy. Bytes are forwarded unchanged as they arrive, so that a chunk, an SSE event or a disconnect reaches the peer at
once. A copy of the bytes is parsed and each JSON-RPC message is recorded, for UPSTREAM_URL and paths below it, not for other
endpoints of the same server.

A WebSocket, and a session of HTTP+SSE with all its POSTs, is one conversation, like standard input and output, and has
its own recording.
"""

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import h11
from recording import Message, Recording
from websocket_observer import WebSocketObserver

CHUNK_BYTES = 64 * 1024


class Recordings:
    """The recordings: one for all exchanges of Streamable HTTP, one for each long conversation."""

    def __init__(self, folder: Path, endpoint: str):
        self._folder = folder
        self._endpoint = endpoint
        self.exchanges = Recording(folder, "http")
        self.exchange_numbers = itertools.count()
        # HTTP+SSE: by the address that receives the client's messages.
        self._sessions: dict[str, Recording] = {}

    def is_mcp_path(self, target: str) -> bool:
        """Whether this path is the MCP endpoint, and not another endpoint of the same server."""
        path = urlsplit(target).path
        return path == self._endpoint or path.startswith(f"{self._endpoint}/")

    def begin_socket(self) -> Recording:
        return Recording(self._folder, "ws")

    def begin_session(self, address: str) -> Recording:
        self._sessions[address] = Recording(self._folder, "sse")
        return self._sessions[address]

    def session(self, address: str) -> Recording | None:
        return self._sessions.get(address)


class Observer:
    """Follows one connection with a pair of HTTP state machines, each of which receives the events of the other.

    h11 refuses to read an answer to a request that was never sent, so `server_side` reads the request and `client_side`
    pretends to send it, and the other way round for the answer.
    """

    def __init__(self, recordings: Recordings):
        self._recordings = recordings
        self._server_side = h11.Connection(h11.SERVER)
        self._client_side = h11.Connection(h11.CLIENT)
        self._socket: WebSocketObserver | None = None
        self._lost = False
        self._start_exchange()

    def _start_exchange(self) -> None:
        self._exchange = next(self._recordings.exchange_numbers)
        self._session: Recording | None = None
        self._is_mcp = True
        self._request_headers: dict[str, str] = {}
        self._response_headers: dict[str, str] = {}
        self._request_body = b""
        self._response_body = b""

    def from_client(self, data: bytes) -> None:
        if self._socket:
            self._socket.from_client(data)
        else:
            self._observe("client", self._server_side, self._client_side, data, self._request_event)

    def from_server(self, data: bytes) -> None:
        if self._socket:
            self._socket.from_server(data)
            return
        self._observe("server", self._client_side, self._server_side, data, self._response_event)
        if self._client_side.their_state is h11.SWITCHED_PROTOCOL:
            self._socket = WebSocketObserver(self._recordings.begin_socket())
            # The bytes after the heads.
            self._socket.from_client(self._server_side.trailing_data[0])
            self._socket.from_server(self._client_side.trailing_data[0])
        elif self._server_side.our_state is h11.DONE and self._server_side.their_state is h11.DONE:
            self._server_side.start_next_cycle()
            self._client_side.start_next_cycle()
            self._start_exchange()

    def _observe(
        self, sender: str, reader: h11.Connection, writer: h11.Connection, data: bytes, take: Callable[[h11.Event], None]
    ) -> None:
        if self._lost:
            return
        try:
            reader.receive_data(data)
            while True:
                event = reader.next_event()
                if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                    return
                take(event)
                writer.send(event)
        except h11.ProtocolError as error:
            # The bytes still pass; only the recording of this connection ends, with the reason.
            self._lost = True
            self._recordings.exchanges.add(Message(sender, "", unreadable=f"not HTTP/1.1: {error}"))

    def _request_event(self, event: h11.Event) -> None:
        if isinstance(event, h11.Request):
            self._request_headers = headers_of(event)
            target = event.target.decode("ascii")
            self._session = self._recordings.session(target)
            self._is_mcp = self._recordings.is_mcp_path(target)
        elif isinstance(event, h11.Data):
            self._request_body += event.data
        elif isinstance(event, h11.EndOfMessage) and self._request_body:
            self._record("client", self._request_body)

    def _response_event(self, event: h11.Event) -> None:
        if isinstance(event, h11.Response):
            self._response_headers = headers_of(event)
        elif isinstance(event, h11.Data):
            self._response_body += event.data
            if self._media_type() == "text/event-stream":
                self._record_events()
        elif isinstance(event, h11.EndOfMessage) and self._response_body and self._media_type() == "application/json":
            # In HTTP+SSE the answer comes on the stream; the body of the POST only has the reason of a rejection.
            if not self._session:
                self._record("server", self._response_body)

    def _media_type(self) -> str:
        return self._response_headers.get("content-type", "").split(";")[0].strip().lower()

    def _record_events(self) -> None:
        """Takes the complete events off the front of the body; an event without data (a priming event) is no message."""
        *events, self._response_body = self._response_body.replace(b"\r\n", b"\n").split(b"\n\n")
        for event in events:
            lines = event.split(b"\n")
            text = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
            if b"event: endpoint" in lines:
                self._session = self._recordings.begin_session(text.decode("ascii"))
            elif text:
                self._record("server", text)

    def _record(self, sender: str, body: bytes) -> None:
        if not self._is_mcp:
            return
        if self._session:
            self._session.add(Message(sender, body.decode("utf-8", errors="replace")))
            return
        session = self._response_headers.get("mcp-session-id") or self._request_headers.get("mcp-session-id")
        self._recordings.exchanges.add(
            Message(
                sender,
                body.decode("utf-8", errors="replace"),
                exchange=self._exchange,
                version=self._request_headers.get("mcp-protocol-version"),
                session=session,
            )
        )


def headers_of(event: h11.Request | h11.Response) -> dict[str, str]:
    return {name.decode("ascii"): value.decode("latin-1").strip() for name, value in event.headers}


async def pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, observe: Callable[[bytes], None]
) -> None:
    """Copies until one side ends, then closes the other: a disconnect has a meaning in MCP and must be forwarded."""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(CHUNK_BYTES):
            # Observed first: a request must be recorded before its answer.
            observe(chunk)
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def serve(folder: Path, upstream: str) -> None:
    address = urlsplit(upstream)
    recordings = Recordings(folder, address.path.rstrip("/"))

    async def connection(client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(address.hostname, address.port)
        observer = Observer(recordings)
        await asyncio.gather(
            pump(client_reader, server_writer, observer.from_client),
            pump(server_reader, client_writer, observer.from_server),
        )

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}{address.path}", file=sys.stderr, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(Path(sys.argv[1]), sys.argv[2]))
