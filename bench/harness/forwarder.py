"""A TCP forwarder that counts bytes: what travels between two programs."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

PIECE_BYTES = 1 << 16


class Forwarder:
    """Forwards connections from a free port to `port` as long as the block, and counts the bytes of both directions."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.bytes = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Forwarder:
        self._thread.start()
        starting = asyncio.start_server(self._forward, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(self._copy(reader, to_writer), self._copy(to_reader, writer), return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            self.bytes += len(piece)
            writer.write(piece)
            await writer.drain()
        writer.close()
