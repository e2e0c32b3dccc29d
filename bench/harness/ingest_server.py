"""A server with tables that take rows, and the requests to it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from harness import wire
from harness.ingest_rows import COLUMNS, MEDIA_TYPES, total_of_ids
from harness.process import Server

DATABASE = "plant"
SEND_BYTES = 1 << 20
SECONDS_MAX = 3_600


@dataclass(frozen=True)
class Sent:
    """Requests that were answered."""

    seconds: float
    rows: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


class IngestServer(Server):
    """Tidegate with the declared tables, with its defaults and its default log."""

    def __init__(self, folder: Path, tables: Iterable[str], *arguments: str) -> None:
        file = folder / "tidegate.yaml"
        # JSON is valid YAML.
        declared = {table: {"columns": COLUMNS} for table in tables}
        file.write_text(json.dumps({"databases": [{"name": DATABASE, "ingest": str(folder / DATABASE), "tables": declared}]}))
        server = Server.tidegate("--config", file, *arguments)
        super().__init__(*server.command)

    def post(self, table: str, kind: str, body: bytes | Path | Iterator[bytes]) -> Sent:
        """Sends one request over a new connection, and waits for its receipt."""
        connection = self.connect()
        sent = post(connection, table, kind, body)
        connection.close()
        return sent

    def post_all(self, table: str, kind: str, bodies: Iterable[bytes], clients: int) -> Sent:
        """Sends all bodies; each client sends the next one when the receipt of its last one has arrived."""
        source, lock = iter(bodies), threading.Lock()
        rows, errors = [0] * clients, []

        def send(client: int) -> None:
            connection = self.connect()
            try:
                while True:
                    with lock:
                        body = next(source, None)
                    if body is None or errors:
                        break
                    rows[client] += post(connection, table, kind, body).rows
            except Exception as error:  # noqa: BLE001
                errors.append(error)
            connection.close()

        threads = [threading.Thread(target=send, args=(client,)) for client in range(clients)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
        if errors:
            raise errors[0]
        return Sent(seconds, sum(rows))

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.address, timeout=SECONDS_MAX, blocksize=SEND_BYTES)

    def tool(self, name: str, **arguments: object) -> wire.Json:
        """Calls a tool over REST."""
        connection = self.connect()
        body = json.dumps({"database": DATABASE, **arguments})
        connection.request("POST", f"/rest/tools/{name}/call", body, {"Content-Type": "application/json", "Accept": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status != HTTPStatus.OK:
            raise RuntimeError(f"{name}: {response.status} {answer[:1000]!r}")
        return json.loads(answer)

    def status(self, table: str) -> wire.Json:
        [status] = self.tool("ingest_status", table=table)["tables"]
        return status

    def maintain(self, table: str, action: str) -> wire.Json:
        [done] = self.tool("maintain_ingest", table=table, action=action)["tables"]
        return done

    def rows(self, sql: str) -> list[wire.Json]:
        """The rows of a statement, computed anew."""
        connection = self.connect()
        text = wire.call(connection, "sql", {"sql": sql, "format": "ndjson", "no_cache": True})
        connection.close()
        return [json.loads(line) for line in text.splitlines()]

    def require_rows(self, table: str, rows: int) -> None:
        """Raises RuntimeError unless the table has each row once."""
        found = self.rows(f"SELECT count(*) AS n, CAST(sum(id) AS bigint) AS total FROM {table}")
        if found != [{"n": rows, "total": total_of_ids(rows)}]:
            raise RuntimeError(f"{table} has {found}, and not {rows} rows")


def post(connection: http.client.HTTPConnection, table: str, kind: str, body: bytes | Path | Iterator[bytes]) -> Sent:
    """Sends one request.

    Raises RuntimeError when not all of its rows are stored.
    """
    headers = {"Content-Type": MEDIA_TYPES[kind]}
    path = f"/data/{DATABASE}/{table}"
    started = time.perf_counter()
    if isinstance(body, Path):
        with body.open("rb") as source:
            connection.request("POST", path, source, headers | {"Content-Length": str(body.stat().st_size)})
    else:
        connection.request("POST", path, body, headers, encode_chunked=not isinstance(body, bytes))
    response = connection.getresponse()
    answer = response.read()
    seconds = time.perf_counter() - started
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status} {answer[:1000]!r}")
    return Sent(seconds, json.loads(answer)["rows"])
