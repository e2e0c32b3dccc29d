"""Writers, readers, flushes, compactions and retention at the same time for some minutes. Each answer and the rows at the end are checked.

Each writer sends numbers without gaps, some requests twice with the same key. So a reader can check each answer: the rows of a writer are
whole requests from its first one on, at least all that were acknowledged before, each once.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import statistics
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

from harness import report, wire
from harness.process import CACHE, TIDEGATE, Server, free_address, rss_anon_bytes

MINUTES = 10
WRITERS = 8
ROWS_PER_REQUEST = 500
REPEATED_EVERY = 10
MAINTENANCE_PAUSE_SECONDS = 3.0
VERIFIED_EVERY = 10
RETRY_SECONDS = 0.1
SECONDS_MAX = 120
# Retention runs each minute, after rows left the log.
RETENTION_SECONDS_MAX = 240
EXPIRED = timedelta(hours=5)
FRESH = timedelta(hours=1)
COLUMNS = {"writer": "integer", "number": "integer", "time": "timestamp", "fresh": "boolean", "text": "string"}
TABLES: wire.Json = {
    "events": {"columns": COLUMNS},
    "recent": {"columns": COLUMNS, "partition_by": ["hour(time)"], "retention": "2h"},
}
CHECKSUM_MODULUS = 1_000_003
# Computed for each writer by readers, and by the writer itself.
SUMS = f"""
  SELECT writer, count(*) AS n, min(number) AS low, max(number) AS high, CAST(sum(number) AS bigint) AS total,
    CAST(sum(number * number % {CHECKSUM_MODULUS}) AS bigint) AS checksum,
    CAST(sum(CASE WHEN text = 'row ' || number || ' of ' || writer THEN 1 ELSE 0 END) AS bigint) AS texts
  FROM {{table}} WHERE fresh GROUP BY writer
"""


@dataclass
class Acknowledged:
    """The rows of one writer in one table that were acknowledged; only the last part of them has not expired."""

    rows: int = 0
    total: int = 0
    checksum: int = 0

    def add(self, first: int, count: int) -> None:
        numbers = range(first, first + count)
        self.total += sum(numbers)
        self.checksum += sum(number * number % CHECKSUM_MODULUS for number in numbers)
        # The last one, because readers look at it first.
        self.rows += count


@dataclass
class Tally:
    """What happened so far. Errors end the run."""

    acknowledged: dict[tuple[str, int], Acknowledged] = field(default_factory=dict)
    requests: int = 0
    repeats: int = 0
    retries: int = 0
    queries: list[float] = field(default_factory=list)
    maintenance: int = 0
    kills: int = 0
    errors: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def fail(self, error: str) -> None:
        self.errors.append(error)
        self.ended.set()


class Node:
    """The server, which may be killed and started again at its address."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "tidegate.yaml"
        self._file.write_text(json.dumps({"databases": [{"name": "plant", "ingest": str(folder / "plant"), "tables": TABLES}]}))
        self.address = free_address()
        self.server = self._start()

    def _start(self) -> Server:
        server = Server(TIDEGATE, "serve", "--config", self._file, "--listen", self.address, address=self.address)
        return server.__enter__()

    def restart(self, *, kill: bool) -> None:
        if kill:
            self.server.process.kill()
            self.server.process.wait()
        else:
            self.server.__exit__(None, None, None)
        self.server = self._start()

    def request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS_MAX)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def tool(self, name: str, **arguments: object) -> wire.Json:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        status, answer = self.request("POST", f"/rest/tools/{name}/call", json.dumps(arguments).encode(), headers)
        if status != HTTPStatus.OK:
            raise RuntimeError(f"{name}: {status} {answer[:1000]!r}")
        return json.loads(answer)

    def rows(self, sql: str) -> list[wire.Json]:
        headers = {"Content-Type": "application/sql", "Accept": "application/x-ndjson", "Cache-Control": "no-cache"}
        status, answer = self.request("POST", "/rest/sql", sql.encode(), headers)
        if status != HTTPStatus.OK:
            raise RuntimeError(f"{sql}: {status} {answer[:1000]!r}")
        return [json.loads(line) for line in answer.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="results are saved only for the default or more")
    parser.add_argument("--rate", type=int, default=20_000, help="rows a second of all writers")
    parser.add_argument("--kill-every", type=float, default=0, metavar="SECONDS", help="kill the server so often with SIGKILL, and start it again")
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        node = Node(Path(folder))
        try:
            results = run(node, options)
        finally:
            node.server.__exit__(None, None, None)
    if options.minutes >= MINUTES and not options.kill_every:
        report.keep("ingest-soak", results)


def run(node: Node, options: argparse.Namespace) -> wire.Json:
    tally = Tally()
    for table in TABLES:
        tally.acknowledged |= {(table, writer): Acknowledged() for writer in range(WRITERS)}
    jobs: list[Any] = [(write, writer, options.rate / WRITERS) for writer in range(WRITERS)]
    jobs += [(read, "events"), (read, "recent"), (maintain,)]
    threads = [threading.Thread(target=guarded, args=(node, tally, *job), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    memory = supervise(node, tally, options)
    tally.ended.set()
    for thread in threads:
        thread.join(SECONDS_MAX)
        if thread.is_alive():
            tally.fail("a request did not end")
    raise_errors(tally)
    for table in TABLES:
        check_rows(node, tally, table, is_last=True)
    expire(node)
    check_files(node, tally)
    node.restart(kill=False)
    for table in TABLES:
        check_rows(node, tally, table, is_last=True)
    check_files(node, tally)
    raise_errors(tally)
    return show(tally, memory, options)


def guarded(node: Node, tally: Tally, job: Any, *arguments: Any) -> None:
    """Runs a job until the end; its error ends the run."""
    try:
        job(node, tally, *arguments)
    except Exception as error:  # noqa: BLE001
        tally.fail(f"{job.__name__}: {type(error).__name__}: {error}")


def raise_errors(tally: Tally) -> None:
    if tally.errors:
        raise RuntimeError("\n".join(tally.errors))


def supervise(node: Node, tally: Tally, options: argparse.Namespace) -> list[int]:
    """Waits for the end of the time; returns the memory after a quarter of it and at the end."""
    started, memory, killed = time.monotonic(), [], time.monotonic()
    seconds = options.minutes * 60
    while time.monotonic() < started + seconds and not tally.ended.wait(RETRY_SECONDS):
        if not memory and time.monotonic() > started + seconds / 4:
            memory.append(rss_anon_bytes(node.server.pid))
        if options.kill_every and time.monotonic() > killed + options.kill_every:
            node.restart(kill=True)
            killed = time.monotonic()
            tally.kills += 1
    return [*memory, rss_anon_bytes(node.server.pid)]


def write(node: Node, tally: Tally, writer: int, rate: float) -> None:
    """Sends the numbers of a writer to both tables in turn, and to one of them also rows that have expired."""
    chance, requests = random.Random(writer), 0
    due = time.monotonic()
    while not tally.ended.is_set():
        for table in TABLES:
            known = tally.acknowledged[table, writer]
            first = known.rows
            body = lines(writer, first, table == "recent")
            key = f"{table}-{writer}-{first}"
            receipt = send(node, tally, table, key, body)
            if receipt["rows"] != len(body.splitlines()):
                raise RuntimeError(f"the receipt {receipt}")
            known.add(first, ROWS_PER_REQUEST)
            requests += 1
            tally.requests += 1
            if chance.randrange(REPEATED_EVERY) == 0:
                again = send(node, tally, table, key, body)
                if again["rows"] != receipt["rows"] or not again["repeated"]:
                    raise RuntimeError(f"the receipt of a repeat is {again}, after {receipt}")
                tally.repeats += 1
            due += ROWS_PER_REQUEST / rate
            tally.ended.wait(max(0.0, due - time.monotonic()))


def lines(writer: int, first: int, with_expired: bool) -> bytes:
    now = datetime.now(UTC)
    rows = [line(writer, number, now, True) for number in range(first, first + ROWS_PER_REQUEST)]
    if with_expired:
        rows += [line(writer, number, now - EXPIRED, False) for number in range(ROWS_PER_REQUEST)]
    return "\n".join(rows).encode()


def line(writer: int, number: int, moment: datetime, fresh: bool) -> str:
    row = {"writer": writer, "number": number, "time": moment.isoformat(), "fresh": fresh, "text": f"row {number} of {writer}"}
    return json.dumps(row)


def send(node: Node, tally: Tally, table: str, key: str, body: bytes) -> wire.Json:
    """Sends a request until it is acknowledged, always with the same key."""
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    ends = time.monotonic() + SECONDS_MAX
    while time.monotonic() < ends:
        with suppress(OSError, http.client.HTTPException):
            status, answer = node.request("POST", f"/data/plant/{table}", body, headers)
            if status == HTTPStatus.OK:
                return json.loads(answer)
            # No room at the moment, or a write with the key is still running.
            if status not in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.CONFLICT):
                raise RuntimeError(f"{table}: {status} {answer[:1000]!r}")
        tally.retries += 1
        time.sleep(RETRY_SECONDS)
    raise RuntimeError(f"{table}: not acknowledged within {SECONDS_MAX} s")


def read(node: Node, tally: Tally, table: str) -> None:
    while not tally.ended.is_set():
        # A server that was killed and starts again has no answer.
        with suppress(OSError, http.client.HTTPException):
            started = time.monotonic()
            check_rows(node, tally, table)
            tally.queries.append(time.monotonic() - started)


def check_rows(node: Node, tally: Tally, table: str, *, is_last: bool = False) -> None:
    """The rows of each writer are whole requests from its first one on, at least those acknowledged before, each once.

    With `is_last`, no request is open, so that they are just those that were acknowledged.
    """
    before = {writer: tally.acknowledged[table, writer].rows for writer in range(WRITERS)}
    found = {row["writer"]: row for row in node.rows(SUMS.format(table=table))}
    for writer, rows in before.items():
        row = found.get(writer)
        if row is None:
            if rows:
                raise RuntimeError(f"{table}: all rows of writer {writer} are missing")
            continue
        n = row["n"]
        is_whole = n % ROWS_PER_REQUEST == 0 and (row["low"], row["high"]) == (0, n - 1) and row["total"] == n * (n - 1) // 2
        if n < rows or not is_whole or row["texts"] != n:
            raise RuntimeError(f"{table}: {row}, of which {rows} were acknowledged before")
        known = tally.acknowledged[table, writer]
        if is_last and (n, row["total"], row["checksum"]) != (known.rows, known.total, known.checksum):
            raise RuntimeError(f"{table}: {row}, but the writer has {known}")


def maintain(node: Node, tally: Tally) -> None:
    rounds = 1
    while not tally.ended.wait(MAINTENANCE_PAUSE_SECONDS):
        # Verification reads all files.
        actions = ("flush", "compact", "verify") if rounds % VERIFIED_EVERY == 0 else ("flush", "compact")
        rounds += 1
        for action in actions:
            with suppress(OSError, http.client.HTTPException):
                done = node.tool("maintain_ingest", database="plant", action=action)
                damaged = [table for table in done["tables"] if table.get("intact") is False]
                if damaged:
                    raise RuntimeError(f"damaged: {damaged}")
                tally.maintenance += 1


def expire(node: Node) -> None:
    """Waits until retention has removed the expired rows; a bound for a server that does not, and no measurement."""
    node.tool("maintain_ingest", database="plant", action="flush")
    ends = time.monotonic() + RETENTION_SECONDS_MAX
    while node.rows("SELECT count(*) AS n FROM recent WHERE NOT fresh")[0]["n"]:
        if time.monotonic() > ends:
            raise RuntimeError("expired rows are not removed")
        time.sleep(1)


def check_files(node: Node, tally: Tally) -> None:
    """Files and log have the rows that were acknowledged, by checksum."""
    for table in node.tool("maintain_ingest", database="plant", action="verify")["tables"]:
        rows = sum(known.rows for (name, _), known in tally.acknowledged.items() if name == table["table"])
        if not table["intact"] or table["file_rows"] + table["log_rows"] != rows:
            raise RuntimeError(f"{rows} rows were acknowledged, and verify has {table}")


def show(tally: Tally, memory: list[int], options: argparse.Namespace) -> wire.Json:
    rows = sum(known.rows for known in tally.acknowledged.values())
    p50, p99 = statistics.median(tally.queries), statistics.quantiles(tally.queries, n=100)[98]
    lines_of = [
        ["rows acknowledged, and found by checksum", f"{rows:,}"],
        ["requests", f"{tally.requests:,}"],
        ["of them sent twice with their key", f"{tally.repeats:,}"],
        ["attempts without an acknowledgement", f"{tally.retries:,}"],
        ["queries, each with the right rows", f"{len(tally.queries):,}"],
        ["p50, p99 of a query", f"{report.milliseconds(p50)}, {report.milliseconds(p99)}"],
        ["flushes, compactions and verifications by hand", f"{tally.maintenance:,}"],
        ["kills", f"{tally.kills:,}"],
        ["memory after a quarter, at the end", ", ".join(map(report.megabytes, memory))],
    ]
    report.show(f"Ingestion: soak of {options.minutes:g} minutes", [f"{WRITERS} writers", ""], lines_of)
    return {"rows": rows, "requests": tally.requests, "repeats": tally.repeats, "retries": tally.retries,
            "queries": len(tally.queries), "query_p50_seconds": p50, "query_p99_seconds": p99, "memory_bytes": memory}  # fmt: skip


if __name__ == "__main__":
    main()
