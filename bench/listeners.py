"""1,000 open `subscriptions/listen`: how long a change takes to reach all of them, and the memory of a stream."""

from __future__ import annotations

import argparse
import json
import resource
import select
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from types import TracebackType

from harness import report, streams, wire
from harness.process import Server, rss_anon_bytes, settle

LISTENERS = 1_000
LAST_SECONDS_MAX = 1.0
STREAM_BYTES_MAX = 16 * 1024
# Longer than the delivery of any change may take.
DELIVERY_SECONDS_MAX = 60.0
# Open files of the node: connections and others.
FILES_MIN = 4_096
DATABASE = "people"
TABLE = "id,name\n1,ann\n"
CONFIGURATION = """\
databases: [{{name: {database}, files: {files}}}]
tools: [{{name: version, description: Version {version}., sql: SELECT 1 AS one, database: {database}}}]
"""
ACKNOWLEDGED = b"notifications/subscriptions/acknowledged"
LISTS, UPDATES = "a configuration is replaced", "a table's file is replaced"
MARKS = {LISTS: b"notifications/tools/list_changed", UPDATES: b"notifications/resources/updated"}


@dataclass(frozen=True)
class Delivery:
    """Seconds from the change until the first and until the last listener received it."""

    first_seconds: float
    last_seconds: float


class Node:
    """A server with one table and one tool, both of which change."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / DATABASE
        self._files.mkdir(exist_ok=True)
        self.file = folder / "tidegate.yaml"
        self._version = 0
        self.change_table()
        self.change_configuration()

    def change_configuration(self) -> None:
        self._version += 1
        # JSON is valid YAML and quotes any character of the path.
        files = json.dumps(str(self._files))
        replace(self.file, CONFIGURATION.format(database=DATABASE, files=files, version=self._version))

    def change_table(self) -> None:
        self._version += 1
        replace(self._files / "people.csv", TABLE + f"{self._version},ben\n")


def replace(file: Path, text: str) -> None:
    """Replaces a file atomically, as an editor does."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.rename(file)


class Listeners:
    """Many streams with the same subscription, open as long as the block."""

    def __init__(self, address: str, count: int, subscription_filter: wire.Json) -> None:
        self._address, self._count, self._filter = address, count, subscription_filter
        self._sockets: dict[int, socket.socket] = {}

    def __enter__(self) -> Listeners:
        params = {"notifications": self._filter}
        body = json.dumps(wire.message("subscriptions/listen", params)).encode()
        request = streams.post(self._address, "/mcp", body, wire.headers("subscriptions/listen"))
        for _ in range(self._count):
            opened = streams.connect_socket(self._address)
            opened.sendall(request)
            self._sockets[opened.fileno()] = opened
        for opened in self._sockets.values():
            data = b""
            while ACKNOWLEDGED not in data:
                data += receive(opened)
        return self

    def wait_for(self, mark: bytes, change: Callable[[], None]) -> Delivery:
        """Waits until each stream has received `mark` after `change`."""
        poll = select.epoll()
        for descriptor in self._sockets:
            poll.register(descriptor, select.EPOLLIN)
        missing = dict.fromkeys(self._sockets, b"")
        started = time.perf_counter()
        change()
        moments: list[float] = []
        while missing:
            ready = poll.poll(DELIVERY_SECONDS_MAX)
            if not ready:
                raise RuntimeError(f"{len(missing)} of {self._count} listeners received nothing")
            for descriptor, _ in ready:
                data = receive(self._sockets[descriptor])
                if descriptor in missing:
                    missing[descriptor] += data
                    if mark in missing[descriptor]:
                        moments.append(time.perf_counter() - started)
                        del missing[descriptor]
        poll.close()
        return Delivery(moments[0], moments[-1])

    def discard(self) -> None:
        """Reads and drops everything that has arrived."""
        for opened in self._sockets.values():
            while select.select([opened], [], [], 0)[0]:
                receive(opened)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in self._sockets.values():
            opened.close()


def receive(stream: socket.socket) -> bytes:
    data = stream.recv(streams.READ_BYTES)
    if not data:
        raise RuntimeError("a stream ended")
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="changes of each kind")
    parser.add_argument("--listeners", type=int, default=LISTENERS, help="number of listeners")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most if most < 0 else max(most, FILES_MIN), most))
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder))
        memory = {kind: statistics.median(bytes_of_a_stream(node, kind, options) for _ in range(3)) for kind in MARKS}
        deliveries = {kind: measure_delivery(node, kind, options) for kind in MARKS}
    show(deliveries, memory, options.listeners)
    results = [{"change": kind, "bytes_of_a_stream": memory[kind], **asdict(deliveries[kind])} for kind in MARKS]
    report.keep("listeners", {"listeners": options.listeners, "changes": results})


def server_of(node: Node) -> Server:
    return Server.tidegate("--config", node.file, "--log", "error")


def subscription_filter(server: Server, kind: str) -> wire.Json:
    """The notification filter for that kind of change."""
    if kind == LISTS:
        return {"toolsListChanged": True}
    connection = wire.connect(server.address)
    listed = json.loads(wire.send(connection, "resources/list", {}).read())["result"]["resources"]
    connection.close()
    return {"resourceSubscriptions": [next(entry["uri"] for entry in listed if "people" in entry["name"])]}


def bytes_of_a_stream(node: Node, kind: str, options: argparse.Namespace) -> float:
    """Uses a fresh server, because freed memory of a used one would hide part of the cost."""
    with server_of(node) as server:
        subscription = subscription_filter(server, kind)
        with Listeners(server.address, 1, subscription):
            settle()
            before = rss_anon_bytes(server.pid)
            with Listeners(server.address, options.listeners, subscription):
                settle()
                return (rss_anon_bytes(server.pid) - before) / options.listeners


def measure_delivery(node: Node, kind: str, options: argparse.Namespace) -> Delivery:
    """The medians of several changes, delivered to the same listeners."""
    change = node.change_configuration if kind == LISTS else node.change_table
    with server_of(node) as server, Listeners(server.address, options.listeners, subscription_filter(server, kind)) as listeners:
        runs = []
        for _ in range(options.rounds):
            settle()
            runs.append(listeners.wait_for(MARKS[kind], change))
    return Delivery(*(statistics.median(column) for column in zip(*map(astuple, runs), strict=True)))


def show(deliveries: dict[str, Delivery], memory: dict[str, float], count: int) -> None:
    rows = [
        [
            kind,
            report.milliseconds(run.first_seconds),
            report.milliseconds(run.last_seconds),
            f"{memory[kind] / 1024:.1f} KiB",
        ]
        for kind, run in deliveries.items()
    ]
    report.show(f"{count:,} listeners", ["change", "first has received", "last has received", "RssAnon of a stream"], rows)
    for kind, run in deliveries.items():
        is_soon, is_small = run.last_seconds < LAST_SECONDS_MAX, memory[kind] < STREAM_BYTES_MAX
        print(f"{kind}: {'held' if is_soon else 'missed'}: all have received it within {LAST_SECONDS_MAX:.0f} s")
        print(f"{kind}: {'held' if is_small else 'missed'}: under {STREAM_BYTES_MAX // 1024} KiB of a stream")


if __name__ == "__main__":
    main()
