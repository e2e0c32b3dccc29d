"""Programs under measurement: how to start them, and their memory and processor time."""

from __future__ import annotations

import os
import re
import resource
import socket
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("TIDEGATE_BENCH_CACHE", Path.home() / ".cache/tidegate/bench"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TIDEGATE = Path(os.environ.get("TIDEGATE_BINARY", TARGET / "release/tidegate"))

START_SECONDS_MAX = 60
CONNECT_POLL_SECONDS = 0.02
STOP_SECONDS_MAX = 30
RSS_SAMPLE_SECONDS = 0.02
ADDRESS = re.compile(rb"(127\.0\.0\.1:\d+)")
# Printed before the address by a server that requires a key.
KEY = re.compile(rb"(tg_\S+)")


class Server:
    """A server on a free port that runs as long as the block."""

    def __init__(self, *command: str | Path, address: str = "", variables: dict[str, str] | None = None) -> None:
        """Pass `address` for a server that does not print its own. `variables` are added to the environment."""
        self.command = [str(part) for part in command]
        self.address = address
        self.key: str | None = None
        self._environment = os.environ | (variables or {})

    @classmethod
    def tidegate(
        cls, *arguments: str | Path, program: Path = TIDEGATE, variables: dict[str, str] | None = None
    ) -> Server:
        """Tidegate, by default the release binary, which prints its address on standard error and logs its calls there."""
        return cls(program, "serve", "--listen", "127.0.0.1:0", *arguments, variables=variables)

    def __enter__(self) -> Server:
        output, writer = os.pipe()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, env=self._environment
        )
        os.close(writer)
        if self.address:
            threading.Thread(target=discard, args=(output,), daemon=True).start()
            self._wait_until_listening()
        else:
            self._read_address(output)
            threading.Thread(target=discard, args=(output,), daemon=True).start()
        return self

    def _wait_until_listening(self) -> None:
        host, port = self.address.split(":")
        for _ in range(int(START_SECONDS_MAX / CONNECT_POLL_SECONDS)):
            try:
                socket.create_connection((host, int(port))).close()
                return
            except OSError:
                time.sleep(CONNECT_POLL_SECONDS)
        self.process.kill()
        raise RuntimeError(f"{self.command} does not listen on {self.address}")

    def _read_address(self, output: int) -> None:
        output_text = b""
        with os.fdopen(output, "rb", buffering=0, closefd=False) as lines:
            while not (match := ADDRESS.search(output_text)):
                piece = lines.read(4096)
                if not piece:
                    raise RuntimeError(f"{self.command} ended: {output_text.decode(errors='replace')}")
                output_text += piece
        self.address = match[1].decode()
        if key := KEY.search(output_text):
            self.key = key[1].decode()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self) -> int:
        return self.process.pid


def free_address() -> str:
    """An address on which no program listens at this moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def discard(descriptor: int) -> None:
    """Reads and drops the log, so that the server is never blocked by its reader."""
    while os.read(descriptor, 1 << 16):
        pass
    os.close(descriptor)


def rss_anon_bytes(pid: int) -> int:
    """The resident anonymous memory of a process; 0 after it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    match = re.search(r"^RssAnon:\s+(\d+) kB$", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def cpu_seconds(pid: int) -> float:
    """The processor time of all living threads, to the nanosecond where the scheduler records it."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            nanoseconds += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return nanoseconds / 1e9


def children_cpu_seconds() -> float:
    """The processor time of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class RssPeak:
    """The highest anonymous memory of a process while the block runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.before = rss_anon_bytes(pid)
        self.peak = self.before
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._ended.wait(RSS_SAMPLE_SECONDS):
            self.peak = max(self.peak, rss_anon_bytes(self.pid))

    def __enter__(self) -> RssPeak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self.peak - self.before


def settle(seconds: float = 1.0) -> None:
    """Waits until a server that has just started or answered is idle again."""
    time.sleep(seconds)
