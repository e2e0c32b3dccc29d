"""Parts of nodes.py: the cost of a network of one node, and the rows of a node over REST and over Flight."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

import duckdb
import pyarrow
from pyarrow import flight

from harness import report, wire
from harness.process import CACHE, TIDEGATE, RssPeak, Server, free_address, rss_anon_bytes, settle
from rows import COLUMNS, ROWS, folder_of

HOP_ROWS = 1_000
WARM_UPS = 20
ARROW = "application/vnd.apache.arrow.stream"
ALL_ROWS = "SELECT * FROM rows"
# Of Flight SQL: https://arrow.apache.org/docs/format/FlightSql.html
COMMAND = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"

Seconds = float


def serve(folder: Path, configuration: wire.Json) -> Server:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "tidegate.yaml"
    # JSON is valid YAML.
    file.write_text(json.dumps(configuration))
    # A node prints its address for Flight first, so its output is not read.
    address = free_address()
    return Server(TIDEGATE, "serve", "--listen", address, "--config", file, address=address)


def measure_hop(calls: int) -> wire.Json:
    """The medians of a statement for one row, over MCP to the node itself and to a server with a network of it."""
    results = {}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, ExitStack() as running:
        data = Path(folder, "node", "data")
        data.mkdir(parents=True)
        points = f"SELECT i AS id, i * 3 AS value FROM range({HOP_ROWS}) AS numbers(i)"
        for kind in ("csv", "parquet"):
            duckdb.execute(f"COPY ({points}) TO '{data}/points_{kind}.{kind}' (FORMAT {kind})")
        address = free_address()
        files: wire.Json = {"name": "plant", "files": str(data)}
        node = running.enter_context(serve(data.parent, {"server": {"flight": address}, "databases": [files]}))
        nodes = [{"name": "node", "url": f"grpc://{address}", "database": "plant"}]
        united: wire.Json = {"name": "plant", "network": {"nodes": nodes}}
        network = running.enter_context(serve(Path(folder, "network"), {"databases": [united]}))
        connections = {"node": wire.connect(node.address), "network": wire.connect(network.address)}
        for table in ("points_csv", "points_parquet"):
            taken = row_seconds(connections, table, calls)
            medians = {name: statistics.median(times) for name, times in taken.items()}
            results[table] = {**medians, "difference": medians["network"] - medians["node"]}
        for connection in connections.values():
            connection.close()
    return {"calls": calls, "seconds": results}


def row_seconds(connections: dict[str, HTTPConnection], table: str, calls: int) -> dict[str, list[Seconds]]:
    """The duration of each call; the servers take turns."""
    taken: dict[str, list[Seconds]] = {name: [] for name in connections}
    for number in range(WARM_UPS + calls):
        row = number % HOP_ROWS
        arguments = {"database": "plant", "sql": f"SELECT value FROM {table} WHERE id = {row}", "no_cache": True}
        for name, connection in connections.items():
            started = time.perf_counter()
            answer = wire.call(connection, "sql", arguments)
            seconds = time.perf_counter() - started
            if f'"value":{row * 3}}}' not in answer:
                raise RuntimeError(f"{name}: {arguments} returned {answer[:1000]}")
            if number >= WARM_UPS:
                taken[name].append(seconds)
    return taken


def show_hop(results: wire.Json) -> None:
    lines = [
        [table, *(report.milliseconds(times[name]) for name in ("node", "network", "difference"))]
        for table, times in results["seconds"].items()
    ]
    header = ["one row of", "the node itself", "a network of one node", "difference"]
    report.show(f"A hop: medians of {results['calls']:,} calls", header, lines)


@dataclass(frozen=True)
class Reading:
    """One answer with all rows, and the memory of the server."""

    seconds: Seconds
    growth_bytes: int
    peak_bytes: int


def measure_reads(rows: int, rounds: int) -> wire.Json:
    """The medians of reading all rows of a Parquet table, in each way in turn, with the highest memory."""
    source = rows_folder(rows)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        address = free_address()
        spool = {"folder": str(Path(folder, "spool")), "timeout": "1h", "per_principal": "100GiB", "total": "100GiB"}
        databases = [{"name": "files", "files": str(source)}]
        configuration = {"server": {"flight": address}, "databases": databases, "results": spool}
        with serve(Path(folder, "node"), configuration) as server:
            ways: dict[str, Callable[[], int]] = {
                "REST, Arrow stream": lambda: count_rest(server.address),
                "REST, stored result, /data": lambda: count_stored(server.address),
                "Flight": lambda: count_flight(address),
            }
            for count in ways.values():
                count()
            settle()
            taken: dict[str, list[Reading]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, count in ways.items():
                    taken[name].append(read(server.pid, count, rows))
            memory = rss_anon_bytes(server.pid)
    answers = {
        name: {
            "seconds": statistics.median(reading.seconds for reading in readings),
            "growth_bytes": max(reading.growth_bytes for reading in readings),
            "peak_bytes": max(reading.peak_bytes for reading in readings),
        }
        for name, readings in taken.items()
    }
    return {"rows": rows, "rounds": rounds, "memory_bytes_at_end": memory, "answers": answers}


def rows_folder(rows: int) -> Path:
    """The folder with the table `rows`, which has as many rows; made once."""
    folder = folder_of("parquet") if rows == ROWS else CACHE / f"rows-parquet-{rows}"
    file = folder / "rows.parquet"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        duckdb.execute(f"COPY ({COLUMNS.format(rows=rows)}) TO '{unfinished}' (FORMAT parquet, COMPRESSION snappy)")
        unfinished.rename(file)
    return folder


def read(pid: int, count: Callable[[], int], rows: int) -> Reading:
    with RssPeak(pid) as memory:
        started = time.perf_counter()
        counted = count()
        seconds = time.perf_counter() - started
    if counted != rows:
        raise RuntimeError(f"{counted} rows arrived instead of {rows}")
    return Reading(seconds, memory.growth, memory.peak)


def count_rest(address: str) -> int:
    connection = wire.connect(address)
    arguments = {**wire.sql_arguments(ALL_ROWS), "no_cache": True}
    return count_stream(connection, "POST", "/rest/sql", arguments)


def count_stored(address: str) -> int:
    """Reads the result while the server stores it."""
    connection = wire.connect(address)
    body = json.dumps({"sql": ALL_ROWS, "delivery": "blocks", "no_cache": True})
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    connection.request("POST", "/rest/sql", body, headers)
    response = connection.getresponse()
    answer = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"the result is not stored: {answer[:1000]!r}")
    return count_stream(connection, "GET", f"/results/{json.loads(answer)['structured']['id']}/data")


def count_stream(connection: HTTPConnection, method: str, path: str, arguments: wire.Json | None = None) -> int:
    """The rows of an Arrow stream, which are read and dropped as they arrive."""
    body = json.dumps(arguments) if arguments else None
    connection.request(method, path, body, {"Content-Type": "application/json", "Accept": ARROW})
    response = connection.getresponse()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status} {response.read()[:1000]!r}")
    with pyarrow.ipc.open_stream(response) as batches:
        rows = sum(batch.num_rows for batch in batches)
    connection.close()
    return rows


def count_flight(address: str) -> int:
    with flight.FlightClient(f"grpc://{address}") as client:
        information = client.get_flight_info(flight.FlightDescriptor.for_command(statement_command(ALL_ROWS)))
        return sum(
            chunk.data.num_rows for endpoint in information.endpoints for chunk in client.do_get(endpoint.ticket)
        )


def statement_command(sql: str) -> bytes:
    """The protobuf message `Any` with a `CommandStatementQuery`, whose first field is the statement."""
    return bytes_field(1, COMMAND) + bytes_field(2, bytes_field(1, sql.encode()))


def bytes_field(number: int, value: bytes) -> bytes:
    length, encoded = len(value), bytearray([number << 3 | 2])
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded) + value


def show_reads(results: wire.Json) -> None:
    lines = [
        [
            way,
            report.milliseconds(answer["seconds"]),
            f"{results['rows'] / answer['seconds'] / 1e6:,.1f} M",
            report.megabytes(answer["growth_bytes"]),
            report.megabytes(answer["peak_bytes"]),
        ]
        for way, answer in results["answers"].items()
    ]
    header = ["way", "answer", "rows/s", "memory grows by", "highest memory"]
    report.show(f"{results['rows']:,} rows of Parquet, medians of {results['rounds']}", header, lines)
