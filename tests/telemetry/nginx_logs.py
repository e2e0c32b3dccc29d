"""The access log of Debian's nginx as a log source, while requests arrive in parallel and the log is rotated.

Each request has its number in the path, so that lost and doubled entries are found. Each check prints a line; the exit
status says whether all held.
"""

import collections
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from node import SECONDS_MAX, Node, wait_until
from report import Report

REQUESTS = 20_000
# The requests before the server starts, which finds the log then.
FIRST_REQUESTS = 100
CLIENTS = 4
# The number of ports that are tried.
PORTS_MAX = 5
KINDS = ("found", "missing", "moved", "broken")
STATUSES = {"found": 200, "missing": 404, "moved": 301, "broken": 500}
CONFIGURATION = """
databases: [{name: web, files: ./logs}]
auth: {keys: keys.json}
roles: [{name: reader, databases: [web], toolsets: ["*"]}]
"""
# One worker, because the clocks of several differ by some milliseconds: then lines are not in the order of time.
NGINX = """
daemon off;
worker_processes 1;
%(user)s
pid %(folder)s/nginx.pid;
error_log %(folder)s/error.txt;
events { worker_connections 64; }
http {
  access_log %(folder)s/logs/access.log combined;
  client_body_temp_path %(folder)s/body;
  proxy_temp_path %(folder)s/proxy;
  fastcgi_temp_path %(folder)s/fastcgi;
  uwsgi_temp_path %(folder)s/uwsgi;
  scgi_temp_path %(folder)s/scgi;
  keepalive_requests 100000;
  server {
    listen 127.0.0.1:%(port)d;
    location /found/ { return 200 "here\\n"; }
    location /missing/ { return 404; }
    location /moved/ { return 301 /found/; }
    location /broken/ { return 500; }
  }
}
"""


class Nginx:
    def __init__(self, folder: Path):
        self.folder = folder
        self.log = folder / "logs" / "access.log"
        for _ in range(PORTS_MAX):
            self.start()
            # It ends if another program takes the port first.
            wait_until(lambda: self.has_ended() or self.listens(), "nginx listens")
            if not self.has_ended():
                return
        sys.exit("nginx does not start:\n" + (folder / "error.txt").read_text())

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        user = "user root;" if os.geteuid() == 0 else ""
        file = self.folder / "nginx.conf"
        file.write_text(NGINX % {"folder": self.folder, "port": self.port, "user": user})
        # Before it has read the configuration, it would write to the log of the machine.
        command = ["nginx", "-c", str(file), "-p", str(self.folder), "-e", str(self.folder / "error.txt")]
        self.process = subprocess.Popen(command)

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def listens(self) -> bool:
        # It writes the file when it has the port.
        return (self.folder / "nginx.pid").exists()

    def rotate(self, compresses: bool):
        """As logrotate does it: the renamed log is still written to, until nginx opens a new one."""
        first, second = (self.log.with_name(f"access.log.{number}") for number in (1, 2))
        if compresses:
            first.rename(second)
            subprocess.run(["gzip", str(second)], check=True)
        self.log.rename(first)
        self.process.send_signal(signal.SIGUSR1)
        # The worker writes to the new log from now on.
        wait_until(lambda: self.log.exists() and self.log.stat().st_size > 0, "nginx opens a new log")

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(SECONDS_MAX)


class Load:
    """Requests of several clients at once."""

    def __init__(self, port: int):
        self.port = port
        self.statuses = collections.Counter()
        self.errors: list[Exception] = []
        self.sent = 0
        self.lock = threading.Lock()
        self.continues = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(client,)) for client in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, client: int):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS_MAX)
            for number in range(client, REQUESTS, CLIENTS):
                if number >= FIRST_REQUESTS:
                    self.continues.wait()
                kind = KINDS[number * 7 % 11 % len(KINDS)]
                connection.request("GET", f"/{kind}/{number}")
                response = connection.getresponse()
                response.read()
                assert response.status == STATUSES[kind], (kind, response.status)
                with self.lock:
                    self.statuses[str(response.status)] += 1
                    self.sent += 1
            connection.close()
        except Exception as error:  # noqa: BLE001
            self.errors.append(error)

    def wait_for(self, requests: int):
        wait_until(lambda: self.sent >= requests or self.errors, f"{requests} requests are sent")
        assert not self.errors, self.errors


class Tail:
    """Follows a log source by its cursor in a thread."""

    def __init__(self, node: Node, source: str):
        self.node = node
        self.arguments = {"source": source, "columns": ["path"]}
        answer = node.json("query_logs", **self.arguments, direction="forward", limit=1_000)
        self.numbers = numbers(answer)
        self.cursor = answer["cursor"]
        self.error = None
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        end = time.monotonic() + SECONDS_MAX
        try:
            while not self.is_over.is_set() and time.monotonic() < end:
                answer = self.node.json("query_logs", **self.arguments, cursor=self.cursor, limit=1_000)
                self.numbers += numbers(answer)
                self.cursor = answer.get("cursor", self.cursor)
        except Exception as error:  # noqa: BLE001
            self.error = error


def numbers(answer: dict) -> list[int]:
    entries = answer["entries"]
    if not entries["rows"]:
        return []
    place = entries["columns"].index("path")
    return [int(row[place].rsplit("/", 1)[1]) for row in entries["rows"]]


def differences(found: list[int]) -> str:
    lost = sorted(set(range(REQUESTS)) - set(found))
    doubled = sorted(number for number, count in collections.Counter(found).items() if count > 1)
    return f"{len(lost)} lost: {lost[:10]}; {len(doubled)} repeated: {doubled[:10]}"


def check_log(node: Node, report: Report, nginx: Nginx, load: Load):
    expected = list(range(REQUESTS))
    [source] = node.json("list_logs_sources")
    tail = Tail(node, source["name"])
    try:
        load.continues.set()
        for number, compresses in ((1, False), (2, True)):
            load.wait_for(REQUESTS * number // 3)
            nginx.rotate(compresses)
        load.wait_for(REQUESTS)
        for thread in load.threads:
            thread.join()
        with report.check("rotation under load leaves a log, a rotated one and a compressed one"):
            names = sorted(path.name for path in nginx.log.parent.iterdir())
            assert names == ["access.log", "access.log.1", "access.log.2.gz"], names
        # The list of files may be some moments old.
        count = f"SELECT count(*) AS n FROM {source['table']}"
        wait_until(lambda: node.sql(count) == [{"n": REQUESTS}] or None, f"{node.sql(count)} is {REQUESTS}")
        with report.check("each request is there once, by SQL"):
            rows = node.sql(f"SELECT path FROM {source['table']}", max_rows=2 * REQUESTS)
            found = [int(row["path"].rsplit("/", 1)[1]) for row in rows]
            assert sorted(found) == expected, differences(found)
        with report.check("facets of the status agree with what was received"):
            answer = node.json("query_logs", source=source["name"], limit=0, facets=["status"])
            values = {value[0]: value[1] for value in answer["facets"]["status"]["values"]}
            assert values == dict(load.statuses) and answer["matched"] == REQUESTS, (values, load.statuses)
            [size] = [row["bytes"] for row in node.json("list_logs_sources")]
            assert size == sum(path.stat().st_size for path in nginx.log.parent.iterdir()), size
        with report.check("pages give each request once"):
            paged, cursor = [], {}
            while True:
                arguments = {"source": source["name"], "columns": ["path"], "limit": 997, "direction": "backward"}
                answer = node.json("query_logs", **arguments, **cursor)
                paged += numbers(answer)
                if "cursor" not in answer:
                    break
                cursor = {"cursor": answer["cursor"]}
            assert sorted(paged) == expected, differences(paged)
        with report.check("following by the cursor loses and repeats nothing over the rotations"):
            followed = lambda: tail.error or len(tail.numbers) >= REQUESTS  # noqa: E731
            end = time.monotonic() + SECONDS_MAX / 2
            while not followed() and time.monotonic() < end:
                time.sleep(0.1)
            assert tail.error is None, tail.error
            assert sorted(tail.numbers) == expected, differences(tail.numbers)
    finally:
        tail.is_over.set()
        tail.thread.join()


def main() -> int:
    report = Report()
    report.subject = "nginx"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        nginx = Nginx(folder)
        load = Load(nginx.port)
        node = None
        try:
            load.wait_for(FIRST_REQUESTS)
            node = Node(folder, CONFIGURATION, roles=("reader",))
            check_log(node, report, nginx, load)
        finally:
            load.continues.set()
            nginx.stop()
            if node:
                node.kill()
    return report.close()


sys.exit(main())
