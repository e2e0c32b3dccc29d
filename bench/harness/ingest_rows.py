"""Rows with ten columns, as files and as bodies of requests. They are the same in each run."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from harness.process import CACHE

# The types as `tidegate.yaml` has them.
COLUMNS = {
    "id": "integer",
    "time": "timestamp",
    "device": "string",
    "site": "string",
    "status": "integer",
    "healthy": "boolean",
    "temperature": "double",
    "load": "double",
    "price": "decimal(12,2)",
    "note": "string",
}
SITES = 20
DEVICES = 1_000
FIRST_TIME = "2026-01-01"
MILLISECONDS_PER_ROW = 10
# Times as text end with Z, as senders write them; PostgreSQL and DuckDB read them too.
ROWS = """
  SELECT
    i AS id, {time} AS time, 'device-' || (hash(i) % {devices}) AS device, 'site-' || (hash(i + 1) % {sites}) AS site,
    200 + (hash(i + 2) % 5) * 100 AS status, hash(i + 3) % 100 <> 0 AS healthy,
    round((hash(i + 4) % 100000) / 1000.0, 3) AS temperature, round((hash(i + 5) % 10000) / 10000.0, 4) AS load,
    ((hash(i + 6) % 1000000) / 100.0)::DECIMAL(12, 2) AS price,
    'reading ' || i || ' of sensor ' || (hash(i + 7) % 10000) || ' is stored' AS note
  FROM range({first}, {end}) AS numbers(i)
"""
TIME = f"(TIMESTAMP '{FIRST_TIME}' + to_milliseconds(i * {MILLISECONDS_PER_ROW}))"
TIME_TEXT = f"strftime({TIME}, '%Y-%m-%dT%H:%M:%S.%gZ')"
ARROW_TYPES = {"time": pa.timestamp("us", "UTC"), "status": pa.int64(), "id": pa.int64()}
ROWS_PER_ARROW_BATCH = 65_536
MEDIA_TYPES = {"ndjson": "application/x-ndjson", "arrow": "application/vnd.apache.arrow.stream"}


def select(first: int, count: int, time: str) -> str:
    return ROWS.format(time=time, devices=DEVICES, sites=SITES, first=first, end=first + count)


def time_text(row: int) -> str:
    """The time of a row."""
    moment = datetime.fromisoformat(FIRST_TIME) + timedelta(milliseconds=row * MILLISECONDS_PER_ROW)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def file_of(kind: str, rows: int) -> Path:
    """The file with that number of rows as `ndjson`, `csv` or `arrow`, created once."""
    file = CACHE / f"ingest-{rows}" / f"rows.{kind}"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        if kind == "arrow":
            with unfinished.open("wb") as sink:
                write_stream(sink, batches(0, rows, ROWS_PER_ARROW_BATCH))
        else:
            options = {"ndjson": "FORMAT json", "csv": "FORMAT csv, HEADER"}[kind]
            duckdb.execute(f"COPY ({select(0, rows, TIME_TEXT)}) TO '{unfinished}' ({options})")
        unfinished.rename(file)
    return file


def batches(first: int, count: int, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
    """The rows from `first` on, in order, as Arrow batches."""
    # A connection of its own, because several threads make rows.
    reader = duckdb.connect().sql(select(first, count, TIME)).to_arrow_reader(rows_per_batch)
    for batch in reader:
        columns = [column.cast(ARROW_TYPES.get(name, column.type)) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def write_stream(sink: io.RawIOBase | io.BufferedIOBase, of: Iterator[pa.RecordBatch]) -> None:
    """Writes the stream of Arrow IPC."""
    first = next(of)
    with pa.ipc.new_stream(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in of:
            writer.write_batch(batch)


def arrow_body(first: int, count: int) -> bytes:
    """The rows from `first` on as the body of a request."""
    body = io.BytesIO()
    write_stream(body, batches(first, count, count))
    return body.getvalue()


def arrow_bodies(rows: int, rows_per_body: int) -> Iterator[bytes]:
    """All rows as bodies of that many rows each."""
    for batch in batches(0, rows, rows_per_body):
        body = io.BytesIO()
        write_stream(body, iter([batch]))
        yield body.getvalue()


def arrow_pieces(rows: int) -> Iterator[bytes]:
    """All rows as one body, in pieces."""
    body, writer = io.BytesIO(), None
    for batch in batches(0, rows, ROWS_PER_ARROW_BATCH):
        writer = writer or pa.ipc.new_stream(body, batch.schema)
        writer.write_batch(batch)
        yield body.getvalue()
        body.seek(0)
        body.truncate()
    if writer:
        writer.close()
        yield body.getvalue()


def ndjson_bodies(file: Path, rows_per_body: int) -> Iterator[bytes]:
    """The lines of a file as bodies of that many rows each."""
    lines: list[bytes] = []
    with file.open("rb") as source:
        for line in source:
            lines.append(line)
            if len(lines) == rows_per_body:
                yield b"".join(lines)
                lines = []
    if lines:
        yield b"".join(lines)


def total_of_ids(rows: int) -> int:
    """The sum of the column `id`, which shows that each row is there once."""
    return rows * (rows - 1) // 2
