"""The record of a conversation: one JSON object on a line for each message, in order of arrival.

Both recorders (`stdio_tee.py`, `http_proxy.py`) write it and `validate.py` reads it. A client's message is written before
it is forwarded, so that a request always precedes its answer.
"""

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Message:
    """One message as sent, with the data to determine its revision and the request that it answers."""

    sender: str  # "client" or "server"
    text: str
    exchange: int | None = None  # HTTP: which request and its answer; stdio has none
    version: str | None = None  # HTTP: the MCP-Protocol-Version header of the request
    session: str | None = None  # HTTP: the Mcp-Session-Id of the request or of the answer
    unreadable: str | None = None  # why a recorder could not parse the bytes; `text` is empty then


class Recording:
    """Appends messages to a new file in a folder that several recorders may share."""

    def __init__(self, folder: Path, kind: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{kind}-{os.getpid()}-{time.monotonic_ns()}.jsonl"
        self._file = self.path.open("w", encoding="utf-8")
        self._lock = threading.Lock()

    def add(self, message: Message) -> None:
        line = json.dumps({key: value for key, value in asdict(message).items() if value is not None})
        with self._lock:
            self._file.write(line + "\n")
            # Flushed at once: a recorder may be killed together with its server.
            self._file.flush()


def read(path: Path) -> list[Message]:
    with path.open(encoding="utf-8") as lines:
        return [Message(**json.loads(line)) for line in lines]
