"""A stdio client without an SDK: it writes JSON lines and reads JSON lines, and records both for the schema checker.

SDKs choose the revision and hide the time of an answer; these tests choose the revision and measure times.
"""

import itertools
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recording import Message, Recording


CONNECTION_SECONDS_MAX = 300
# Longer than the server waits for calls that run, 10 s.
STOP_SECONDS_MAX = 30


class Connection:
    def __init__(self, process: "subprocess.Popen[str]", recording: Recording):
        self._process = process
        self._recording = recording
        self._ids = itertools.count(1)

    def send(self, message: Any) -> None:
        self.send_text(json.dumps(message))

    def send_text(self, line: str) -> None:
        """Sends a line unchanged; it need not be JSON."""
        assert self._process.stdin
        self._recording.add(Message("client", line))
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"the server closed its output, exit code {self._process.wait()}"
        self._recording.add(Message("server", line.removesuffix("\n")))
        return json.loads(line)

    def start(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Sends a request and returns its id, without waiting for the answer."""
        number = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends a request and waits for its answer; skips earlier notifications."""
        number = self.start(method, params)
        while True:
            message = self.receive()
            if isinstance(message, dict) and message.get("id") == number:
                return message

    def notify(self, method: str) -> None:
        self.send({"jsonrpc": "2.0", "method": method})

    def initialize(self, revision: str) -> dict[str, Any]:
        """Opens a legacy session and returns the answer to `initialize`."""
        client = {"name": "tidegate-tests", "version": "1.0.0"}
        answer = self.request("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": client})
        self.notify("notifications/initialized")
        return answer


@contextmanager
def connect(command: list[str]) -> Iterator[Connection]:
    """Starts a stdio server; at the end closes its input, after which it must exit."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin
    # Ends the server, and the waiting client, if an answer does not arrive.
    watchdog = threading.Timer(CONNECTION_SECONDS_MAX, process.kill)
    watchdog.start()
    try:
        yield Connection(process, Recording(Path(os.environ["TIDEGATE_RECORDINGS"]), "raw"))
        process.stdin.close()
        assert process.wait(timeout=STOP_SECONDS_MAX) == 0, f"exit code {process.returncode}"
    finally:
        watchdog.cancel()
        process.kill()
