"""Runs a stdio server and forwards bytes unchanged in both directions, recording each line.

    stdio_tee.py FOLDER COMMAND [ARGUMENT…]

Clients start this in place of the server. It ends as the server ends, with the server's exit code.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from recording import Message, Recording

CHUNK_BYTES = 64 * 1024


def pass_on(source: int, target: int, sender: str, recording: Recording) -> None:
    """Copies `source` to `target` until it ends; each complete line is recorded before its last bytes go on."""
    rest = b""
    while chunk := os.read(source, CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            record(line, sender, recording)
        try:
            write_all(target, chunk)
        except BrokenPipeError:
            return
    if rest:
        # An incomplete last line is no message; the validator reports it.
        recording.add(Message(sender, "", unreadable=f"the stream ended inside a line: {rest[:200]!r}"))


def record(line: bytes, sender: str, recording: Recording) -> None:
    try:
        recording.add(Message(sender, line.decode("utf-8")))
    except UnicodeDecodeError as error:
        recording.add(Message(sender, "", unreadable=f"not UTF-8: {error}"))


def write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def main() -> int:
    folder, *command = sys.argv[1:]
    recording = Recording(Path(folder), "stdio")
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin and server.stdout
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: server.send_signal(received))

    def client_to_server() -> None:
        pass_on(sys.stdin.fileno(), server.stdin.fileno(), "client", recording)
        server.stdin.close()

    # A daemon: after the server has ended, the program does not wait for a client that holds its end open.
    threading.Thread(target=client_to_server, daemon=True).start()
    pass_on(server.stdout.fileno(), sys.stdout.fileno(), "server", recording)
    return server.wait()


if __name__ == "__main__":
    # Not sys.exit: the interpreter would wait for the lock of stdin, which the reading thread holds.
    code = main()
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)
