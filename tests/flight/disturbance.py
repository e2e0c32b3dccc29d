"""A TCP forwarder before a node that can be cut, slowed and opened again: what happens to a network cable."""

import asyncio
import threading

PIECE_BYTES = 1 << 14


class Cable:
    """Forwards connections from a free port to `port`, or later to another `target`, as long as the block."""

    def __init__(self, port: int):
        # Changes when the node has started again.
        self.target = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open: set[asyncio.StreamWriter] = set()
        # Seconds before each piece; `None` forwards nothing at all.
        self._pause: float | None = 0.0
        self._is_cut = False

    def __enter__(self):
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._forward, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self.cut()
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def cut(self):
        """Ends all connections, and accepts none until `mend`."""
        self._run(self._cut())

    def slow_down(self, seconds_per_piece: float):
        self._pause = seconds_per_piece

    def swallow(self):
        """Connections stay open, and nothing passes."""
        self._pause = None

    def mend(self):
        """Connections that were opened before may have lost bytes, so they end."""
        self._run(self._cut())
        self._is_cut, self._pause = False, 0.0

    @property
    def connections(self) -> int:
        return len(self._open) // 2

    async def _cut(self):
        self._is_cut = True
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _forward(self, reader, writer):
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, to_writer}
        self._open |= ends
        copies = self._copy(reader, to_writer), self._copy(to_reader, writer)
        await asyncio.gather(*copies, return_exceptions=True)
        self._open -= ends

    async def _copy(self, reader, writer):
        try:
            while piece := await reader.read(PIECE_BYTES):
                while self._pause is None and not self._is_cut:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(self._pause or 0)
                writer.write(piece)
                await writer.drain()
        finally:
            writer.close()
