"""A stdio client without an SDK: it writes JSON lines and reads JSON lines, and records both for the schema checker.

SDKs speak the revisions they like and hide when an answer came; these tests choose the revision and look at the clock.
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
STOP_SECONDS_MAX = 15


class Connection:
    def __init__(self, process: "subprocess.Popen[str]", recording: Recording):
        self._process = process
        self._recording = recording
        self._ids = itertools.count(1)

    def send(self, message: Any) -> None:
        self.send_text(json.dumps(message))

    def send_text(self, line: str) -> None:
        """Sends a line as it is, which need not be JSON."""
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
        """Sends a request and gives its id, without waiting for the answer."""
        number = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})})
        return number

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Sends a request and waits for its answer; notifications that come first are passed over."""
        number = self.start(method, params)
        while True:
            message = self.receive()
            if isinstance(message, dict) and message.get("id") == number:
                return message

    def notify(self, method: str) -> None:
        self.send({"jsonrpc": "2.0", "method": method})

    def initialize(self, revision: str) -> dict[str, Any]:
        """Opens a legacy session and gives the answer to `initialize`."""
        client = {"name": "tidegate-tests", "version": "1.0.0"}
        answer = self.ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": client})
        self.notify("notifications/initialized")
        return answer


@contextmanager
def connected(command: list[str]) -> Iterator[Connection]:
    """Starts a stdio server; in the end closes its input, upon which it must end by itself."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin
    # An answer that never comes ends the server, and with it the waiting.
    watchdog = threading.Timer(CONNECTION_SECONDS_MAX, process.kill)
    watchdog.start()
    try:
        yield Connection(process, Recording(Path(os.environ["TIDEGATE_RECORDINGS"]), "raw"))
        process.stdin.close()
        assert process.wait(timeout=STOP_SECONDS_MAX) == 0, f"exit code {process.returncode}"
    finally:
        watchdog.cancel()
        process.kill()
