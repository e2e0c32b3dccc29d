"""Parses the frames of a WebSocket in both directions and records each text message."""

from recording import Message, Recording
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, TextMessage
from wsproto.utilities import ProtocolError


class Direction:
    """The frames of one side; a message may have several frames."""

    def __init__(self, sender: str, reader: Connection, recording: Recording):
        self._sender = sender
        self._reader = reader
        self._recording = recording
        self._text = ""
        self._lost = False

    def take(self, data: bytes) -> None:
        if self._lost or not data:
            return
        try:
            self._reader.receive_data(data)
            for event in self._reader.events():
                if isinstance(event, TextMessage):
                    self._text += event.data
                    if event.message_finished:
                        self._recording.add(Message(self._sender, self._text))
                        self._text = ""
                elif isinstance(event, BytesMessage):
                    self._lose("a binary message")
        except ProtocolError as error:
            self._lose(f"not WebSocket: {error}")

    def _lose(self, why: str) -> None:
        """The bytes are still forwarded; only the recording of this side ends, with the reason."""
        self._lost = True
        self._recording.add(Message(self._sender, "", unreadable=why))


class WebSocketObserver:
    def __init__(self, recording: Recording):
        # Each direction is parsed with the role of its receiver.
        self._from_client = Direction("client", Connection(ConnectionType.SERVER), recording)
        self._from_server = Direction("server", Connection(ConnectionType.CLIENT), recording)

    def from_client(self, data: bytes) -> None:
        self._from_client.take(data)

    def from_server(self, data: bytes) -> None:
        self._from_server.take(data)
