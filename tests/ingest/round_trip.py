"""Any rows that go in through any format come out equal through any format, from the log and from data files.

Random rows with a seed: TIDEGATE_SEED repeats a run. Each check prints a line; the exit status says whether all held.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

from report import Report
from row_formats import ANSWERS, CODINGS, MEDIA_TYPES, SCHEMA, body_of, encoded, rows_of
from sample_rows import COLUMNS, DECLARED, random_rows
from server import Server

ROWS = 150
# Parquet has no coding.
WAYS_IN = [(kind, coding) for kind in MEDIA_TYPES for coding in CODINGS if kind != "parquet" or not coding]


def table_of(kind: str, coding: str) -> str:
    return f"rows_{kind}_{coding or 'plain'}"


def compare(rows: list[dict], found: list[dict]):
    assert len(found) == len(rows), f"{len(found)} rows instead of {len(rows)}"
    assert list(found[0]) == list(rows[0]), f"the columns are {list(found[0])}"
    for expected, row in zip(rows, found, strict=True):
        for name, value in expected.items():
            assert type(row[name]) is type(value) and row[name] == value, f"row {expected['row']}, {name}: {row[name]!r} instead of {value!r}"


def check_types(types: dict):
    """Arrow and Parquet have the declared types. Text and bytes may have another layout."""
    for column in COLUMNS:
        found = types[column.name]
        same = found == column.arrow or str(found) in (f"{column.arrow}_view", f"large_{column.arrow}")
        assert same, f"{column.name} is {found} instead of {column.arrow}"


def check_answers(server: Server, report: Report, rows: list[dict], table: str, source: str):
    for kind in ANSWERS:
        with report.check(f"{kind} has the rows of {table}, from {source}"):
            answer = server.answer(f"SELECT * FROM {table} ORDER BY row", MEDIA_TYPES[kind])
            found, types = rows_of(answer, kind)
            compare(rows, found)
            if types:
                check_types(types)


def check_encoders(report: Report, rows: list[dict]):
    """The encoders of this test and its decoders agree without a server, for a fault of the test itself."""
    report.subject = "test"
    for kind in ("arrow", "parquet", "csv", "ndjson"):
        with report.check(f"{kind} as it is sent"):
            found, types = rows_of(body_of(rows, kind), kind)
            compare(rows, found)
            assert not types or types == {field.name: field.type for field in SCHEMA}, types


def main() -> int:
    seed = int(os.environ.get("TIDEGATE_SEED", time.time_ns() % 2**32))
    print(f"TIDEGATE_SEED={seed}", flush=True)
    report = Report()
    rows = random_rows(seed, ROWS)
    check_encoders(report, rows)
    tables = {table_of(*way): {"columns": DECLARED} for way in WAYS_IN}
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder), tables) as server:
        for kind, coding in WAYS_IN:
            report.subject = f"{kind}{f', {coding}' if coding else ''}"
            with report.check("all rows are stored"):
                receipt = server.post(table_of(kind, coding), encoded(body_of(rows, kind), coding), MEDIA_TYPES[kind], coding)
                assert (receipt["rows"], receipt["rejected"]) == (ROWS, 0), receipt
            check_answers(server, report, rows, table_of(kind, coding), "the log")
        report.subject = "files"
        with report.check("all rows move to files"):
            assert {table["table"]: table["flushed_rows"] for table in server.maintain("flush")} == dict.fromkeys(tables, ROWS)
            assert all(table["intact"] for table in server.maintain("verify"))
        for kind, coding in WAYS_IN:
            report.subject = f"{kind}{f', {coding}' if coding else ''}"
            check_answers(server, report, rows, table_of(kind, coding), "files")
        report.subject = "again"
        for kind in ("ndjson", "csv", "arrow", "parquet"):
            with report.check(f"an answer as {kind} is a body as it is"):
                target = table_of(kind, "")
                answer = server.answer(f"SELECT * FROM {table_of('arrow', 'zstd')} ORDER BY row", MEDIA_TYPES[kind])
                assert server.post(target, answer, MEDIA_TYPES[kind])["rows"] == ROWS
                [counts] = server.rows(f"SELECT count(*) AS n, count(DISTINCT row) AS numbers FROM {target}")
                assert counts == {"n": 2 * ROWS, "numbers": ROWS}, counts
                [distinct] = server.rows(f"SELECT count(*) AS n FROM (SELECT DISTINCT * FROM {target}) AS d")
                assert distinct == {"n": ROWS}, distinct
    return report.close()


sys.exit(main())
