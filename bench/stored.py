"""10,000,000 rows into stored results: memory and first block; blocks compared with one download; files compared with other programs.

Exports are calls of `sql` over REST with `delivery: "blocks"`. The other programs are DuckDB's COPY with zstd, and psql's.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path

import duckdb

from harness import report, wire
from harness.postgres import Cluster, within_cluster
from harness.process import TIDEGATE, RssPeak, cpu_seconds, settle
from rows import ROWS, folder_of

SCALE = 100
POLL_SECONDS = 0.02
PARALLEL = 4
ARROW = "application/vnd.apache.arrow.stream"
CONFIGURATION = """\
databases:
  - name: files
    files: {files}
  - name: bank
    postgres: ${{BENCH_DSN}}
results:
  folder: {folder}
  timeout: 1h
  per_principal: 100GiB
  total: 100GiB
"""
QUESTIONS = {
    "Parquet": ("files", "SELECT * FROM rows"),
    "PostgreSQL": ("bank", "SELECT * FROM pgbench_accounts"),
}


@dataclass(frozen=True)
class Export:
    """One export: the time until the first block is readable and until the last one is written."""

    first_block_seconds: float
    total_seconds: float
    rows: int
    stored_bytes: int
    growth_bytes: int
    cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    options = parser.parse_args()
    cluster = within_cluster()
    cluster.fill(SCALE)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tidegate.yaml")
        file.write_text(CONFIGURATION.format(files=folder_of("parquet"), folder=Path(folder, "spool")))
        exports: dict[str, list[Export]] = {name: [] for name in QUESTIONS}
        fetches: dict[str, list[float]] = {}
        for _ in range(options.rounds):
            for name in QUESTIONS:
                exports[name].append(export(cluster, file, name))
            for name, seconds in download_seconds(cluster, file).items():
                fetches.setdefault(name, []).append(seconds)
        files = export_seconds(cluster, Path(folder), file, options.rounds)
    medians = {name: median(runs) for name, runs in exports.items()}
    downloads = {name: statistics.median(runs) for name, runs in fetches.items()}
    report.keep(
        "stored",
        {"exports": {name: asdict(run) for name, run in medians.items()}, "downloads": downloads, "files": files},
    )
    show(medians, downloads, files)


def begin(connection: http.client.HTTPConnection, database: str, sql: str) -> str:
    """Starts an export and returns the id of its result."""
    body = json.dumps({"sql": sql, "database": database, "delivery": "blocks", "no_cache": True})
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    connection.request("POST", "/rest/sql", body, headers)
    response = connection.getresponse()
    answer = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"the export failed: {answer[:2000]!r}")
    return json.loads(answer)["structured"]["id"]


def get(connection: http.client.HTTPConnection, path: str, accept: str) -> bytes:
    connection.request("GET", path, headers={"Accept": accept})
    response = connection.getresponse()
    body = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status} {body[:1000]!r}")
    return body


def wait_for_result(connection: http.client.HTTPConnection, result: str) -> dict:
    """Waits until the result is complete and returns its manifest."""
    while True:
        manifest = json.loads(get(connection, f"/results/{result}", "application/json"))
        if manifest["status"] != "running":
            if manifest["status"] != "complete":
                raise RuntimeError(f"the result is incomplete: {manifest.get('reason')}")
            return manifest
        time.sleep(POLL_SECONDS)


def export(cluster: Cluster, file: Path, name: str) -> Export:
    database, sql = QUESTIONS[name]
    with cluster.server(file) as server:
        connection = wire.connect(server.address)
        wire.call(connection, "sql", {"database": database, "sql": f"{sql} LIMIT 1"})
        settle()
        spent = cpu_seconds(server.pid)
        with RssPeak(server.pid) as memory:
            started = time.perf_counter()
            result = begin(connection, database, sql)
            get(connection, f"/results/{result}/blocks/0", ARROW)
            first = time.perf_counter() - started
            manifest = wait_for_result(connection, result)
            total = time.perf_counter() - started
        spent = cpu_seconds(server.pid) - spent
        connection.close()
    if manifest["rows"] != ROWS:
        raise RuntimeError(f"{manifest['rows']} rows were stored instead of {ROWS}")
    return Export(first, total, manifest["rows"], manifest["bytes"], memory.growth, spent)


def download_seconds(cluster: Cluster, file: Path) -> dict[str, float]:
    """The duration of downloading the same rows as one body, block by block, and four blocks at once."""
    database, sql = QUESTIONS["Parquet"]
    with cluster.server(file) as server:
        connection = wire.connect(server.address)
        result = begin(connection, database, sql)
        blocks = len(wait_for_result(connection, result)["blocks"])
        paths = [f"/results/{result}/blocks/{index}" for index in range(blocks)]

        def whole() -> None:
            drain(connection, f"/results/{result}/data")

        def one_by_one() -> None:
            for path in paths:
                drain(connection, path)

        def at_once() -> None:
            shares = [paths[share::PARALLEL] for share in range(PARALLEL)]
            with ThreadPoolExecutor(PARALLEL) as pool:
                list(pool.map(lambda share: drain_all(server.address, share), shares))

        ways: dict[str, Callable[[], None]] = {
            "one download of /data": whole,
            "the blocks, one after the other": one_by_one,
            f"the blocks, {PARALLEL} at once": at_once,
        }
        measured = {}
        for name, way in ways.items():
            runs = []
            for _ in range(3):
                started = time.perf_counter()
                way()
                runs.append(time.perf_counter() - started)
            measured[name] = statistics.median(runs)
        connection.close()
    return measured


def drain_all(address: str, paths: list[str]) -> None:
    connection = wire.connect(address)
    for path in paths:
        drain(connection, path)
    connection.close()


def drain(connection: http.client.HTTPConnection, path: str) -> None:
    """Reads and drops a body as it arrives."""
    connection.request("GET", path, headers={"Accept": ARROW})
    response = connection.getresponse()
    while response.read1(wire.READ_BYTES):
        pass
    # `read1` does not close the response of a body of known length.
    response.close()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"{path}: {response.status}")


def export_seconds(cluster: Cluster, folder: Path, file: Path, rounds: int) -> dict[str, float]:
    """The duration of writing files of all rows, by Tidegate and by other programs, including their start."""
    source = folder_of("parquet") / "rows.parquet"
    rows, accounts = QUESTIONS["Parquet"][1], QUESTIONS["PostgreSQL"][1]
    tidegate = [str(TIDEGATE), "export", "--force", "--quiet", "--timeout", "1h"]

    def ours(sql: str, target: str, *flags: str) -> list[str]:
        return [*tidegate, sql, "-o", str(folder / target), *flags]

    with cluster.server(file) as server:
        connect = ("--connect", f"http://{server.address}")
        command = {
            "Parquet to Parquet: tidegate export": [
                *tidegate, rows, str(folder_of("parquet")), "-o", str(folder / "rows.parquet")
            ],
            "Parquet to Parquet: tidegate export --connect": ours(rows, "rows.parquet", "--database", "files", *connect),
            "Parquet to Arrow: tidegate export --connect": ours(rows, "rows.arrow", "--database", "files", *connect),
            "PostgreSQL to CSV: tidegate export --connect": ours(accounts, "bank.csv", "--database", "bank", *connect),
            "PostgreSQL to CSV: COPY … TO STDOUT by psql": [
                str(cluster.bin / "psql"), "--no-psqlrc", "--output", str(folder / "copy.csv"), "--command",
                f"COPY ({accounts}) TO STDOUT (FORMAT csv, HEADER)", cluster.target,
            ],
        }
        measured: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, arguments in command.items():
                started = time.perf_counter()
                subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
                measured.setdefault(name, []).append(time.perf_counter() - started)
            started = time.perf_counter()
            duckdb.execute(f"COPY (SELECT * FROM '{source}') TO '{folder}/duck.parquet' (FORMAT parquet, COMPRESSION zstd)")
            measured.setdefault("Parquet to Parquet: DuckDB's COPY", []).append(time.perf_counter() - started)
    return {name: statistics.median(runs) for name, runs in measured.items()}


def median(runs: list[Export]) -> Export:
    return Export(
        statistics.median(run.first_block_seconds for run in runs),
        statistics.median(run.total_seconds for run in runs),
        runs[0].rows,
        runs[0].stored_bytes,
        max(run.growth_bytes for run in runs),
        statistics.median(run.cpu_seconds for run in runs),
    )


def show(exports: dict[str, Export], downloads: dict[str, float], files: dict[str, float]) -> None:
    rows = [
        [
            f"{ROWS:,} rows of {name}",
            report.milliseconds(run.first_block_seconds),
            f"{run.total_seconds:.1f} s",
            report.megabytes(run.stored_bytes),
            report.megabytes(run.growth_bytes),
            f"{run.cpu_seconds:.1f} s",
        ]
        for name, run in exports.items()
    ]
    report.show("Exports", ["export", "first block", "whole", "stored", "growth", "its CPU"], rows)
    base = next(iter(downloads.values()))
    rows = [[name, report.milliseconds(seconds), f"{seconds / base:.3f}"] for name, seconds in downloads.items()]
    report.show("Downloads of a stored result", ["download", "time", "against /data"], rows)
    rows = [[name, f"{seconds:.2f} s"] for name, seconds in files.items()]
    report.show("Files of all rows", ["file", "time"], rows)


if __name__ == "__main__":
    main()
