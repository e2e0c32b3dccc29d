"""A node of TIDEGATE_BINARY over a folder, whose memory and answers are bounded: one that exceeds a bound is killed."""

import contextlib
import http.client
import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

BINARY = os.environ["TIDEGATE_BINARY"]
DATABASE = "collection"
ARROW = "application/vnd.apache.arrow.stream"
# A debug build reads the largest of these files in a few seconds.
ANSWER_SECONDS_MAX = 90
# Of all queries together, and of the process.
QUERY_MEMORY, MEMORY_BYTES_MAX = "1GiB", 2 << 30
WATCHED_EVERY_SECONDS = 0.05
ROWS_PATH = f"/rest/sql?database={DATABASE}&max_rows=100000000"
# A retry may correct the type of one column.
RETRIES_MAX = 8
REASON_BYTES_MAX = 500


class Ended(Exception):
    """The node ended during a request; the outcome is `crashed` or `hung`."""

    def __init__(self, outcome: str, reason: str):
        super().__init__(reason)
        self.outcome = outcome


class Refused(Exception):
    """The node refused the request, with a message."""

    def __init__(self, message: str, is_internal: bool):
        super().__init__(message)
        self.is_internal = is_internal


class Node:
    """Runs as long as the block, over the folder `files` below `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder
        configuration = {"databases": [{"name": DATABASE, "files": "./files"}], "limits": {"memory": QUERY_MEMORY}}
        # JSON is valid YAML.
        (folder / "tidegate.yaml").write_text(json.dumps(configuration))
        self.log: list[str] = []
        # Why the node was killed here: an outcome and a reason.
        self.killed: tuple[str, str] | None = None
        self.deadline = float("inf")
        self.address = ""

    def __enter__(self):
        command = [BINARY, "serve", "--config", str(self.folder / "tidegate.yaml"), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        self.deadline = time.monotonic() + ANSWER_SECONDS_MAX
        threading.Thread(target=self.watch, daemon=True).start()
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"listening on http://(\S+)/mcp", line):
                self.address = found[1]
                break
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()
        self.deadline = float("inf")
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def watch(self):
        """Kills the node at a bound."""
        while self.process.poll() is None:
            if time.monotonic() > self.deadline:
                self.kill("hung", f"no answer within {ANSWER_SECONDS_MAX} s")
            elif self.memory_bytes() > MEMORY_BYTES_MAX:
                self.kill("crashed", f"more than {MEMORY_BYTES_MAX >> 20} MiB of memory")
            time.sleep(WATCHED_EVERY_SECONDS)

    def kill(self, outcome: str, reason: str):
        self.killed = self.killed or (outcome, reason)
        self.process.kill()

    def memory_bytes(self) -> int:
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def request(self, method: str, path: str, body: bytes, accept: str) -> tuple[int, bytes]:
        host, _, port = self.address.rpartition(":")
        self.deadline = time.monotonic() + ANSWER_SECONDS_MAX
        try:
            connection = http.client.HTTPConnection(host, int(port or 0), timeout=2 * ANSWER_SECONDS_MAX)
            connection.request(method, path, body, {"Content-Type": "application/sql", "Accept": accept})
            response = connection.getresponse()
            answer = response.read()
            connection.close()
            return response.status, answer
        except http.client.IncompleteRead as error:
            if self.process.poll() is None and not self.killed:
                raise Refused("the answer broke off", False) from error
            raise self.ended() from error
        except (OSError, http.client.HTTPException) as error:
            raise self.ended() from error
        finally:
            self.deadline = float("inf")

    def ended(self) -> Ended:
        if self.killed:
            return Ended(*self.killed)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(WATCHED_EVERY_SECONDS * 20)
        last = next((line.strip() for line in reversed(self.log) if line.strip()), "")
        return Ended("crashed", f"the process ended with {self.process.returncode}: {last}")

    def answer(self, method: str, path: str, body: bytes, accept: str) -> bytes:
        status, answer = self.request(method, path, body, accept)
        if status == 200:
            return answer
        try:
            problem = json.loads(answer)
            message, kind = problem.get("detail") or str(problem), problem.get("type", "").rpartition("/")[2]
        except ValueError:
            problem, message, kind = {}, f"{status} {answer[:REASON_BYTES_MAX]!r}", ""
        if kind == "timed_out":
            raise Ended("hung", message)
        if status == 500:
            raise Refused(self.logged(problem.get("id", "")) or message, True)
        raise Refused(message, False)

    def logged(self, number: str) -> str:
        """What the server's log has about an internal error."""
        lines = [line.strip() for line in self.log if number and number in line]
        return lines[-1] if lines else ""

    def rows(self, table: str) -> bytes:
        """All rows of the table, as an Arrow stream."""
        for attempt in range(RETRIES_MAX):
            try:
                return self.answer("POST", ROWS_PATH, f'SELECT * FROM "{table}"'.encode(), ARROW)
            except Refused as refused:
                # A type was corrected after rows had been sent; the message says: retry.
                if attempt + 1 == RETRIES_MAX or "retry" not in str(refused) and refused.__cause__ is None:
                    raise
        raise AssertionError

    def reason(self, table: str) -> str:
        """Why an answer of the table breaks off: NDJSON has the reason in its last line."""
        with contextlib.suppress(Ended, IndexError):
            try:
                text = self.answer("POST", ROWS_PATH, f'SELECT * FROM "{table}"'.encode(), "application/x-ndjson")
            except Refused as refused:
                text = getattr(refused.__cause__, "partial", b"") or str(refused).encode()
            return text.splitlines()[-1].decode(errors="replace")[:REASON_BYTES_MAX]
        return "the answer broke off"

    def tables(self) -> dict[str, str]:
        """The comments of all tables, by name."""
        answer = json.loads(self.answer("GET", f"/rest/databases/{DATABASE}/tables", b"", "application/json"))
        return {table["name"]: table["comment"] or "" for table in answer["Query"]}
