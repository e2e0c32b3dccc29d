"""Creates the 10,000,000 rows that memory.py and latency.py read, as CSV and as Parquet, once."""

from __future__ import annotations

from pathlib import Path

import duckdb

from harness.process import CACHE

ROWS = 10_000_000
COLUMNS = """
    SELECT
        i AS id,
        round((hash(i) % 100000000) / 1000.0, 3) AS value,
        'station ' || (hash(i + 1) % 5000) AS label,
        TIMESTAMP '2026-01-01' + to_seconds(i) AS seen_at
    FROM range({rows}) AS numbers(i)
"""
OPTIONS = {"csv": "FORMAT csv, HEADER", "parquet": "FORMAT parquet, COMPRESSION snappy"}


def folder_of(kind: str) -> Path:
    """The folder with the one table `rows` as files of that kind."""
    return CACHE / f"rows-{kind}"


def main() -> None:
    for kind, options in OPTIONS.items():
        file = folder_of(kind) / f"rows.{kind}"
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        duckdb.execute(f"COPY ({COLUMNS.format(rows=ROWS)}) TO '{unfinished}' ({options})")
        unfinished.rename(file)


if __name__ == "__main__":
    main()
