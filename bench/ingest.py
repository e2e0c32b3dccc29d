"""Rows into a table: throughput beside other databases, many clients, queries meanwhile, visibility, and compaction.

The table is a declared one of a server with its defaults. The others write to the same disk: SQLite in one transaction, PostgreSQL with `fsync`, DuckDB with a
checkpoint.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

from harness import report, wire, wrk
from harness.ingest_peers import DuckDb, Postgres, Sqlite
from harness.ingest_rows import MEDIA_TYPES, arrow_bodies, arrow_body, arrow_pieces, file_of, ndjson_bodies, time_text
from harness.ingest_server import DATABASE, IngestServer, Sent, post
from harness.postgres import Cluster, within_cluster
from harness.process import CACHE, STOP_SECONDS_MAX, RssPeak, settle

ROWS = 2_000_000
COMPACTED_ROWS = 10_000_000
ROWS_PER_REQUEST = 10_000
CLIENTS = 4
# Of the many clients.
SMALL_REQUEST_ROWS = 100
RATE = 100_000
REQUESTS_PER_SECOND = 10
SYNCS = 200
AIMS = {"ndjson": 200_000, "arrow": 1_500_000}
GROWTH_MAX = 128e6
P99_MS_MAX = 50
BESIDE_TIMES_MAX = 1.3
VISIBLE_SECONDS_MAX = 0.020
COMPACTED_TIMES_MAX = 1.2
BESIDE_QUESTIONS = {
    "groups": "SELECT site, count(*) AS n, sum(price) AS total FROM settled GROUP BY site ORDER BY site",
    "one row": "SELECT note FROM settled WHERE id = 4711",
}
# Sums of decimals and integers are the same in any order.
COMPACTED_QUESTIONS = {
    "count": "SELECT count(*) AS n FROM {table}",
    "groups": "SELECT site, count(*) AS n, sum(price) AS total FROM {table} GROUP BY site ORDER BY site",
    "one device": "SELECT count(*) AS n, max(temperature) AS hottest FROM {table} WHERE device = 'device-7'",
    "1 % of the time": "SELECT status, count(*) AS n FROM {table} WHERE time >= '{after}' AND time < '{before}' GROUP BY status ORDER BY status",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"default: all of {', '.join(PARTS)}; results are saved only for all")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turn")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a run; results are saved only for the default number")
    parser.add_argument("--compacted-rows", type=int, default=COMPACTED_ROWS, help="of the tables that are compared; 100,000,000 for the aim")
    parser.add_argument("--seconds", type=int, default=10, help="of each load")
    options = parser.parse_args()
    if not set(options.parts) <= set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}")
    parts = options.parts or list(PARTS)
    # Starts the script again inside a cluster, before anything is measured.
    options.cluster = within_cluster() if "throughput" in parts else None
    results: wire.Json = {}
    for part in parts:
        CACHE.mkdir(parents=True, exist_ok=True)
        # On the disk of the cache; the folder for temporary files may be in memory.
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            results[part] = PARTS[part](Path(folder), options)
    if options.rows == ROWS and parts == list(PARTS):
        report.keep("ingest", results)


def throughput(folder: Path, options: argparse.Namespace) -> wire.Json:
    """The same rows into a new table of each database, in turn."""
    cluster: Cluster = options.cluster
    rows, files = options.rows, {kind: file_of(kind, options.rows) for kind in ("ndjson", "csv", "arrow")}
    peers = [Sqlite(files["csv"]), Postgres(cluster, files["csv"], rows), DuckDb(files["ndjson"], rows), DuckDb(files["csv"], rows)]
    ways: dict[str, tuple[str, Callable[[IngestServer, str], Sent]]] = {
        "Tidegate, NDJSON, one request": ("ndjson", lambda server, table: server.post(table, "ndjson", files["ndjson"])),
        "Tidegate, NDJSON, 4 clients": (
            "ndjson",
            lambda server, table: server.post_all(table, "ndjson", list(ndjson_bodies(files["ndjson"], ROWS_PER_REQUEST)), CLIENTS),
        ),
        "Tidegate, Arrow, one request": ("arrow", lambda server, table: server.post(table, "arrow", files["arrow"])),
        "Tidegate, Arrow, 4 clients": (
            "arrow",
            lambda server, table: server.post_all(table, "arrow", list(arrow_bodies(rows, ROWS_PER_REQUEST)), CLIENTS),
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in [*ways, *(peer.name for peer in peers)]}
    growths: dict[str, list[int]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, (_, way) in ways.items():
            sent, growth = measured(folder, rows, way)
            seconds[name].append(sent.seconds)
            growths[name].append(growth)
        for peer in peers:
            seconds[peer.name].append(peer.seconds(folder))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    largest = {name: max(values) for name, values in growths.items()}
    show_throughput(rows, medians, largest, {name: kind for name, (kind, _) in ways.items()})
    return {name: {"rows_per_second": rows / median, "growth_bytes": largest.get(name)} for name, median in medians.items()}


def measured(folder: Path, rows: int, way: Callable[[IngestServer, str], Sent]) -> tuple[Sent, int]:
    """A new server with an empty table that receives the rows, and how much its memory grew."""
    with tempfile.TemporaryDirectory(dir=folder) as own, IngestServer(Path(own), ["readings", "first"]) as server:
        server.post("first", "arrow", arrow_body(0, SMALL_REQUEST_ROWS))
        settle()
        with RssPeak(server.pid) as memory:
            sent = way(server, "readings")
        server.require_rows("readings", rows)
    return sent, memory.growth


def show_throughput(rows: int, medians: dict[str, float], growths: dict[str, int], kinds: dict[str, str]) -> None:
    lines = [
        [name, f"{rows / median:,.0f}", f"{median:.2f} s", report.megabytes(growths[name]) if name in growths else ""]
        for name, median in medians.items()
    ]
    report.show(f"Ingestion: {rows:,} rows of ten columns", ["into a table", "rows/s", "time", "memory growth"], lines)
    for kind, aim in AIMS.items():
        best = max(rows / medians[name] for name, of in kinds.items() if of == kind)
        print(f"{kind}: {best:,.0f} rows/s (aim: {aim:,}).")
    print(f"Memory: {report.megabytes(max(growths.values()))} more at most (aim: under {report.megabytes(GROWTH_MAX)}).", flush=True)


def clients(folder: Path, options: argparse.Namespace) -> wire.Json:
    """Many clients with small requests, and one of them alone."""
    body = next(ndjson_bodies(file_of("ndjson", options.rows), SMALL_REQUEST_ROWS)).decode()
    headers = {"Content-Type": MEDIA_TYPES["ndjson"]}
    results, lines = {}, []
    with IngestServer(folder, ["readings"]) as server:
        url = f"http://{server.address}/data/{DATABASE}/readings"
        wrk.post(url, body, headers, 1, connections=1)
        acknowledged = 0
        for connections in (1, wrk.CONNECTIONS):
            before = count(server, "readings")
            runs = [wrk.post(url, body, headers, options.seconds, connections=connections) for _ in range(min(options.rounds, 3))]
            acknowledged = sum(int(run["requests"] - run["failed"]) for run in runs) * SMALL_REQUEST_ROWS
            stored = count(server, "readings") - before
            # Requests in flight at the end of a run are stored, and their answers are not counted.
            if stored < acknowledged or stored % SMALL_REQUEST_ROWS:
                raise RuntimeError(f"{stored} rows are stored, and {acknowledged} were acknowledged")
            figures = {name: statistics.median(run[name] for run in runs) for name in ("p50_ms", "p99_ms")}
            figures["requests_per_second"] = statistics.median(run["requests"] / run["seconds"] for run in runs)
            figures["failed"] = sum(run["failed"] for run in runs)
            results[str(connections)] = figures
            lines.append(
                [
                    f"{connections} client{'s' if connections > 1 else ''}",
                    f"{figures['requests_per_second']:,.0f}",
                    f"{figures['requests_per_second'] * SMALL_REQUEST_ROWS:,.0f}",
                    f"{figures['p50_ms']:.1f} ms",
                    f"{figures['p99_ms']:.1f} ms",
                    f"{figures['failed']:,}",
                ]
            )
    results["sync_seconds"] = sync_seconds(folder, len(body))
    report.show(f"Ingestion: requests of {SMALL_REQUEST_ROWS} rows of NDJSON", ["with sync", "requests/s", "rows/s", "p50", "p99", "failed"], lines)
    print(f"Aim: p99 of {wrk.CONNECTIONS} clients under {P99_MS_MAX} ms, and none failed. Writing and syncing {len(body):,} bytes")
    print(f"to a file takes {report.milliseconds(results['sync_seconds'])} here.", flush=True)
    return results


def count(server: IngestServer, table: str) -> int:
    return int(server.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"])


def sync_seconds(folder: Path, size: int) -> float:
    """The median time to append as many bytes to a file and to sync it."""
    times, data = [], bytes(size)
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(data)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times)


def beside(folder: Path, options: argparse.Namespace) -> wire.Json:
    """Queries of a table, alone and while another table of the same server takes rows."""
    results: wire.Json = {}
    lines = []
    with IngestServer(folder, ["settled", "readings"]) as server:
        server.post("settled", "arrow", file_of("arrow", options.rows))
        settle()
        for kind in ("ndjson", "arrow"):
            for question, sql in BESIDE_QUESTIONS.items():
                alone, while_sending, rates = [], [], []
                for _ in range(min(options.rounds, 3)):
                    alone += query_seconds(server, sql, options.seconds)
                    with sending(server, kind) as rate:
                        while_sending += query_seconds(server, sql, options.seconds)
                    rates.append(rate[0])
                medians = [statistics.median(alone), statistics.median(while_sending)]
                p99 = statistics.quantiles(while_sending, n=100)[98]
                figures = {"alone_seconds": medians[0], "beside_seconds": medians[1], "beside_p99_seconds": p99}
                results[f"{question}, {kind}"] = figures | {"rows_per_second": statistics.median(rates)}
                lines.append(
                    [
                        f"{question}, beside {kind}",
                        report.milliseconds(medians[0]),
                        report.milliseconds(medians[1]),
                        f"{medians[1] / medians[0]:.2f}",
                        report.milliseconds(p99),
                        f"{statistics.median(rates):,.0f}",
                    ]
                )
    report.show(f"Ingestion: queries of {options.rows:,} rows meanwhile", ["query", "p50 alone", "p50 beside", "times", "p99 beside", "rows/s taken"], lines)
    print(f"Aim: under {BESIDE_TIMES_MAX} times, at {RATE:,} rows/s.", flush=True)
    return results


def query_seconds(server: IngestServer, sql: str, seconds: float) -> list[float]:
    """The duration of each query of one caller, one after the other, with the same answer each time."""
    connection, times, answers = server.connect(), [], set()
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        started = time.perf_counter()
        answers.add(wire.call(connection, "sql", {"sql": sql, "format": "csv", "no_cache": True}))
        times.append(time.perf_counter() - started)
    connection.close()
    if len(answers) != 1:
        raise RuntimeError(f"the answers of a table that does not change differ: {answers}")
    return times


@contextmanager
def sending(server: IngestServer, kind: str) -> Iterator[list[float]]:
    """Sends rows at a rate while the block runs. After it, the list has the rate that was reached."""
    rows = RATE // REQUESTS_PER_SECOND
    body = arrow_body(0, rows) if kind == "arrow" else next(ndjson_bodies(file_of("ndjson", rows), rows))
    # A process, because threads of this one would share its interpreter lock.
    context = multiprocessing.get_context("fork")
    ended, result = context.Event(), context.SimpleQueue()
    process = context.Process(target=send_at_rate, args=(server, kind, body, ended, result), daemon=True)
    process.start()
    settle()
    rate: list[float] = []
    try:
        yield rate
    finally:
        ended.set()
        process.join(STOP_SECONDS_MAX)
    if process.exitcode != 0:
        raise RuntimeError("the rows could not be sent")
    rate.append(result.get())


def send_at_rate(server: IngestServer, kind: str, body: bytes, ended: Event, result: multiprocessing.SimpleQueue[float]) -> None:
    connection, rows = server.connect(), 0
    started = due = time.perf_counter()
    while not ended.is_set():
        rows += post(connection, "readings", kind, body).rows
        due += 1 / REQUESTS_PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
    result.put(rows / (time.perf_counter() - started))


def visible(folder: Path, options: argparse.Namespace) -> wire.Json:
    """From the acknowledgement of a row until count(*) includes it."""
    times = []
    with IngestServer(folder, ["readings"]) as server:
        server.post("readings", "arrow", file_of("arrow", options.rows))
        body = arrow_body(0, 1)
        posting, asking = server.connect(), server.connect()
        for number in range(SYNCS):
            post(posting, "readings", "arrow", body)
            started, rows = time.perf_counter(), 0
            while rows < options.rows + number + 1:
                answer = wire.call(asking, "sql", {"sql": "SELECT count(*) AS n FROM readings", "format": "csv", "no_cache": True})
                rows = int(answer.split()[1])
            times.append(time.perf_counter() - started)
    median, last = statistics.median(times), statistics.quantiles(times, n=100)[98]
    figures = [[f"count(*) of {options.rows:,} rows has the row", report.milliseconds(median), report.milliseconds(last)]]
    report.show("Ingestion: from the acknowledgement of a row until", ["", "p50", "p99"], figures)
    print(f"Aim: within {report.milliseconds(VISIBLE_SECONDS_MAX)}.", flush=True)
    return {"p50_seconds": median, "p99_seconds": last}


def compacted(folder: Path, options: argparse.Namespace) -> wire.Json:
    """A table that came in small requests, after compaction, beside one that was written at once."""
    rows = options.compacted_rows
    with IngestServer(folder, ["batches", "whole"], "--timeout", "1h") as server:
        server.post("whole", "arrow", arrow_pieces(rows))
        server.post_all("batches", "arrow", arrow_bodies(rows, ROWS_PER_REQUEST), CLIENTS)
        tables = {}
        for table in ("batches", "whole"):
            server.maintain(table, "flush")
            before = server.status(table)["files"]
            server.maintain(table, "compact")
            tables[table] = server.status(table) | {"files_before": before}
            server.require_rows(table, rows)
        seconds = compared(server, rows, options.rounds)
    lines = [
        [question, report.milliseconds(whole), report.milliseconds(batches), f"{batches / whole:.2f}"]
        for question, (batches, whole) in seconds.items()
    ]
    title = f"Ingestion: {rows:,} rows in requests of {ROWS_PER_REQUEST:,}, after compaction"
    report.show(title, ["query", "written at once", "written in batches", "times"], lines)
    for table, status in tables.items():
        print(f"{table}: {status['files_before']:,} files before compaction by hand, {status['files']:,} after, {report.megabytes(status['bytes'])}.")
    print(f"Aim: under {COMPACTED_TIMES_MAX} times.", flush=True)
    questions = {question: {"batches_seconds": batches, "whole_seconds": whole} for question, (batches, whole) in seconds.items()}
    return {"rows": rows, "questions": questions, "files": {table: status["files"] for table, status in tables.items()}}


def compared(server: IngestServer, rows: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Medians of each question for both tables, in turn, with equal answers."""
    span = {"after": time_text(rows // 2), "before": time_text(rows // 2 + rows // 100)}
    medians = {}
    for question, sql in COMPACTED_QUESTIONS.items():
        times: dict[str, list[float]] = {"batches": [], "whole": []}
        # The first answers are not measured.
        for number in range(rounds + 1):
            answers = []
            for table, of_table in times.items():
                started = time.perf_counter()
                answers.append(json.dumps(server.rows(sql.format(table=table, **span))))
                if number:
                    of_table.append(time.perf_counter() - started)
            if len(set(answers)) != 1:
                raise RuntimeError(f"{question}: the answers differ: {answers}")
        medians[question] = (statistics.median(times["batches"]), statistics.median(times["whole"]))
    return medians


PARTS: dict[str, Callable[[Path, argparse.Namespace], wire.Json]] = {
    "throughput": throughput,
    "clients": clients,
    "beside": beside,
    "visible": visible,
    "compacted": compacted,
}

if __name__ == "__main__":
    main()
