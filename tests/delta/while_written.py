"""PyPI `deltalake`, `polars` and `duckdb` read a table while a server writes it, joins its files and removes partitions that have expired.

Each version that a reader finds has whole requests, each row once, and never less than a version before it. Each check prints a line; the
exit status says whether all held.
"""

import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).absolute().parents[1] / "ingest"))
from report import Report  # noqa: E402
from server import DATABASE, SECONDS_MAX, Server  # noqa: E402

# The writer goes on until each reader has read enough versions.
REQUESTS_MIN = 60
ROWS_PER_REQUEST = 50
FLUSHED_EVERY, COMPACTED_EVERY = 3, 12
# Readers are slower than the writer, and skip versions.
VERSIONS_MIN = 3
EXPIRED = timedelta(days=40)
COLUMNS = {"time": "timestamp not null", "number": "integer", "fresh": "boolean", "text": "string"}
TABLES = {"sensors": {"columns": COLUMNS, "partition_by": ["day(time)"], "retention": "30d"}}


def body_of(request: int) -> bytes:
    """Rows of two days, and as many that have expired."""
    now = datetime.now(UTC)
    rows = []
    for index in range(ROWS_PER_REQUEST):
        number = request * ROWS_PER_REQUEST + index
        moment = now - timedelta(days=index % 2)
        rows.append({"time": moment.isoformat(), "number": number, "fresh": True, "text": f"row {number}"})
        rows.append({"time": (moment - EXPIRED).isoformat(), "number": number, "fresh": False, "text": f"row {number}"})
    return "\n".join(map(json.dumps, rows)).encode()


def send(server: Server, request: int):
    server.post("sensors", body_of(request), "application/x-ndjson")


@dataclass
class Progress:
    """What the writer and the readers report to each other."""

    requests: int = 0
    has_read_enough: threading.Event = field(default_factory=threading.Event)
    has_written: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


def write(server: Server, progress: Progress):
    ends = time.monotonic() + SECONDS_MAX
    try:
        while progress.requests < REQUESTS_MIN or (not progress.has_read_enough.is_set() and time.monotonic() < ends):
            request = progress.requests
            send(server, request)
            progress.requests += 1
            if request % FLUSHED_EVERY == FLUSHED_EVERY - 1:
                server.maintain("flush")
            if request % COMPACTED_EVERY == COMPACTED_EVERY - 1:
                server.maintain("compact")
        server.maintain("flush")
    except Exception as error:
        progress.error = error
    progress.has_written.set()


def numbers_by_deltalake(table: deltalake.DeltaTable) -> list[int]:
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT number FROM t WHERE fresh").read_all()
    return pa.table(found).column("number").to_pylist()


def numbers_by_polars(table: deltalake.DeltaTable) -> list[int]:
    lazy = polars.scan_delta(table.table_uri, version=table.version())
    return lazy.filter(polars.col("fresh")).select("number").collect()["number"].to_list()


def numbers_by_duckdb(table: deltalake.DeltaTable) -> list[int]:
    files = table.file_uris()
    return [number for (number,) in duckdb.connect().execute("SELECT number FROM read_parquet(?) WHERE fresh", [files]).fetchall()]


READERS = {"deltalake": numbers_by_deltalake, "polars": numbers_by_polars, "duckdb, of deltalake's files": numbers_by_duckdb}


def read_once(folder: Path, read, before: int) -> tuple[int, int]:
    """The number of rows that are found, and the version; checks both."""
    table = deltalake.DeltaTable(folder)
    numbers = sorted(read(table))
    count = len(numbers)
    assert numbers == list(range(count)), f"version {table.version()}: {count} rows, not each number once"
    assert count % ROWS_PER_REQUEST == 0, f"version {table.version()}: {count} rows are a part of a request"
    assert count >= before, f"version {table.version()}: {count} rows after {before}"
    return count, table.version()


def read_while_written(folder: Path, progress: Progress, report: Report):
    """Each reader in turn until the writer has ended, and once more; a reader that fails is left out from then on."""
    found: dict[str, list[tuple[int, int]]] = {name: [(0, 0)] for name in READERS}
    failed: dict[str, Exception] = {}

    def versions(name: str) -> set[int]:
        return {version for _, version in found[name]}

    is_last = False
    while not is_last:
        is_last = progress.has_written.is_set()
        for name, read in READERS.items():
            if name not in failed:
                try:
                    found[name].append(read_once(folder, read, found[name][-1][0]))
                except Exception as error:
                    failed[name] = error
        if all(name in failed or len(versions(name)) > VERSIONS_MIN for name in READERS):
            progress.has_read_enough.set()
    for name in READERS:
        report.subject = name
        with report.check("each version has whole requests, each row once"):
            if name in failed:
                raise failed[name]
        with report.check("versions were read while others were written"):
            assert len(versions(name)) > VERSIONS_MIN, f"only {sorted(versions(name))}"
        with report.check("all rows are there at the end"):
            assert found[name][-1][0] == progress.requests * ROWS_PER_REQUEST, (found[name][-1], progress.requests)


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as temporary, Server(Path(temporary), TABLES) as server:
        folder = Path(temporary) / DATABASE / "sensors"
        # A table without data files has no log of Delta yet.
        send(server, 0)
        server.maintain("flush")
        progress = Progress(requests=1)
        writer = threading.Thread(target=write, args=(server, progress))
        writer.start()
        read_while_written(folder, progress, report)
        writer.join(SECONDS_MAX)
        report.subject = "server"
        with report.check("all rows are written"):
            if progress.error:
                raise progress.error
            [counts] = server.rows("SELECT count(*) AS n, count(DISTINCT number) AS numbers FROM sensors WHERE fresh")
            rows = progress.requests * ROWS_PER_REQUEST
            assert counts == {"n": rows, "numbers": rows}, (counts, rows)
        with report.check("files are intact"):
            [verified] = server.maintain("verify")
            assert verified["intact"], verified
    return report.close()


sys.exit(main())
