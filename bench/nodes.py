"""A question to four nodes with a quarter of the rows each, beside one node with all rows, and beside postgres_fdw.

All run on the same machine; postgres_fdw has four databases and a quarter of the rows. The parts of one_node.py are `hop` and `reads`.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import duckdb

from harness import report, wire
from harness.forwarder import Forwarder
from harness.postgres import LOGIN, Cluster, within_cluster
from harness.process import CACHE
from one_node import measure_hop, measure_reads, serve, show_hop, show_reads
from rows import ROWS as READ_ROWS

NODES = ("bergen", "milan", "oslo", "rome")
GROUPS = 100
# Rows of one node. PostgreSQL gets a quarter of them, because it takes long to fill.
ROWS, POSTGRES_SHARE = 25_000_000, 4
QUESTION = (
    "SELECT site, COUNT(*) AS n, SUM(value) AS total, AVG(value) AS mean, MIN(time) AS first FROM readings "
    "GROUP BY site ORDER BY site"
)
SMALL = "SELECT MAX(id) AS id FROM readings WHERE id = 7"
WARM_UPS = 2
PARTS = ("united", "hop", "reads")

Seconds = float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each node")
    parser.add_argument("--rounds", type=int, default=5, help="answers to each question, in turn")
    parser.add_argument("--without-postgres", action="store_true")
    parser.add_argument("--calls", type=int, default=1_000, help="of the part hop, for each table and server")
    parser.add_argument("--read-rows", type=int, default=READ_ROWS, help="of the table of the part reads")
    options = parser.parse_args()
    parts = options.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(unknown)}; the parts are: {', '.join(PARTS)}")
    # Before all measurements, because it may run the program again inside of a new cluster.
    cluster = within_cluster() if "united" in parts and not options.without_postgres else None
    if "united" in parts:
        results = measure_united(options.rows, options.rounds, cluster)
        report.keep("nodes", results)
        show_united(results)
    if "hop" in parts:
        results = measure_hop(options.calls)
        report.keep("nodes-hop", results)
        show_hop(results)
    if "reads" in parts:
        results = measure_reads(options.read_rows, options.rounds)
        report.keep("nodes-reads", results)
        show_reads(results)


def measure_united(rows: int, rounds: int, cluster: Cluster | None) -> wire.Json:
    """The questions to four nodes, and the same to PostgreSQL."""
    files = make_files(rows)
    results: wire.Json = {"rows_per_node": rows}
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, ExitStack() as running:
        network = Network(Path(folder), files, running)
        results |= network.measure(rounds)
    if cluster:
        results |= measure_postgres(cluster, rows // POSTGRES_SHARE, rounds)
    return results


def make_files(rows: int) -> list[Path]:
    """A Parquet file for each node, made once."""
    folder = CACHE / f"nodes-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for index, node in enumerate(NODES):
        file = folder / f"{node}.parquet"
        if not file.exists():
            numbers = f"range({index * rows}, {(index + 1) * rows}) AS numbers(i)"
            columns = (
                f"i AS id, 'site ' || (hash(i) % {GROUPS}) AS site, (hash(i + 1) % 100000) / 100.0::DOUBLE AS value, "
                "TIMESTAMP '2026-01-01' + to_seconds(i::BIGINT) AS time"
            )
            unfinished = file.with_suffix(".unfinished")
            duckdb.execute(f"COPY (SELECT {columns} FROM {numbers}) TO '{unfinished}' (FORMAT parquet)")
            unfinished.rename(file)
        files.append(file)
    return files


def link(file: Path, name: Path) -> None:
    """Files of a database are in its folder. The folders are in the cache, so that nothing is copied."""
    name.hardlink_to(file)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Network:
    """Four nodes, and a server that unites them and has the files of all."""

    def __init__(self, folder: Path, files: list[Path], running: ExitStack) -> None:
        self._forwarders = []
        listed = []
        for node, file in zip(NODES, files, strict=True):
            port = free_port()
            data = folder / node / "data"
            data.mkdir(parents=True)
            link(file, data / "readings.parquet")
            configuration = {
                "server": {"flight": f"127.0.0.1:{port}"},
                "databases": [{"name": "plant", "files": str(data)}],
            }
            running.enter_context(serve(folder / node, configuration))
            forwarder = running.enter_context(Forwarder(port))
            self._forwarders.append(forwarder)
            listed.append({"name": node, "url": f"grpc://127.0.0.1:{forwarder.port}", "database": "plant"})
        single = folder / "single" / "readings"
        single.mkdir(parents=True)
        for node, file in zip(NODES, files, strict=True):
            link(file, single / f"{node}.parquet")
        uniting = {
            "databases": [
                {"name": "sites", "network": {"nodes": listed}},
                {"name": "one", "network": {"nodes": listed[:1]}},
                {"name": "single", "files": str(single.parent)},
            ]
        }
        self._uniting = running.enter_context(serve(folder / "uniting", uniting))

    def call(self, database: str, sql: str) -> tuple[Seconds, str]:
        """The time of a call, and its answer."""
        connection = wire.connect(self._uniting.address)
        started = time.perf_counter()
        answer = wire.call(connection, "sql", {"database": database, "sql": sql, "no_cache": True})
        seconds = time.perf_counter() - started
        connection.close()
        return seconds, answer

    def measure(self, rounds: int) -> wire.Json:
        questions: dict[str, Callable[[], tuple[Seconds, str]]] = {
            "four nodes": lambda: self.call("sites", QUESTION),
            "one node with all rows": lambda: self.call("single", QUESTION),
            "one node with its quarter": lambda: self.call("one", QUESTION),
            "a small question to four nodes": lambda: self.call("sites", SMALL),
            "a small question to one node": lambda: self.call("one", SMALL),
        }
        for _ in range(WARM_UPS):
            answers = {name: call()[1] for name, call in questions.items()}
        if rows_of(answers["four nodes"]) != rows_of(answers["one node with all rows"]):
            raise RuntimeError(f"the answers differ: {answers}")
        travelled = sum(forwarder.bytes for forwarder in self._forwarders)
        self.call("sites", QUESTION)
        travelled = sum(forwarder.bytes for forwarder in self._forwarders) - travelled
        taken: dict[str, list[Seconds]] = {name: [] for name in questions}
        for _ in range(rounds):
            for name, call in questions.items():
                taken[name].append(call()[0])
        medians = {name: statistics.median(times) for name, times in taken.items()}
        return {"seconds": medians, "bytes_between_nodes": travelled}


def rows_of(answer: str) -> list[str]:
    """The rows of an answer; sums of doubles are rounded, because their order differs."""
    return [line[:40] for line in answer.splitlines()]


def measure_postgres(cluster: Cluster, rows: int, rounds: int) -> wire.Json:
    """The same question through postgres_fdw over four databases, beside one table with all of their rows."""
    columns = (
        f"i AS id, 'site ' || (i * 7919 % {GROUPS}) AS site, (i * 104729 % 100000) / 100.0::float8 AS value, "
        "timestamp '2026-01-01' + i * interval '1 second' AS time"
    )
    types = "id bigint, site text, value float8, time timestamp"
    cluster.query("CREATE EXTENSION postgres_fdw")
    cluster.query(f"CREATE TABLE parts ({types}) PARTITION BY RANGE (id)")
    cluster.query(f"CREATE TABLE single AS SELECT {columns} FROM generate_series(0::bigint, {len(NODES) * rows - 1}) AS i")
    superuser = cluster.superuser
    for index, node in enumerate(NODES):
        first, last = index * rows, (index + 1) * rows
        source = f"SELECT {columns} FROM generate_series({first}::bigint, {last - 1}) AS i"
        cluster.query(f"CREATE DATABASE {node}")
        in_node = Cluster(f"{superuser} dbname={node}", cluster.port, cluster.folder, cluster.bin)
        in_node.query(f"CREATE TABLE readings AS {source}")
        in_node.query(f"ANALYZE readings; GRANT SELECT ON readings TO {LOGIN}")
        cluster.query(
            f"CREATE SERVER {node} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{cluster.port}', "
            f"dbname '{node}', async_capable 'true', fetch_size '50000')"
        )
        cluster.query(
            f"CREATE USER MAPPING FOR CURRENT_USER SERVER {node} OPTIONS (user '{LOGIN}', password '{LOGIN}')"
        )
        cluster.query(
            f"CREATE FOREIGN TABLE part_{node} PARTITION OF parts FOR VALUES FROM ({first}) TO ({last}) SERVER {node} "
            "OPTIONS (table_name 'readings')"
        )
    cluster.query("ANALYZE single")
    settings = "SET enable_partitionwise_aggregate = on; "
    question = QUESTION.replace("FROM readings", "FROM {table}")
    taken: dict[str, list[Seconds]] = {"postgres_fdw over four databases": [], "one table of PostgreSQL": []}
    for _ in range(rounds):
        for name, table in zip(taken, ("parts", "single"), strict=True):
            started = time.perf_counter()
            cluster.query(settings + question.format(table=table))
            taken[name].append(time.perf_counter() - started)
    return {
        "postgres_rows_per_node": rows,
        "postgres_seconds": {name: statistics.median(times) for name, times in taken.items()},
    }


def show_united(results: wire.Json) -> None:
    rows = f"{results['rows_per_node']:,}"
    lines = [[name, rows, report.milliseconds(taken)] for name, taken in results["seconds"].items()]
    for name, taken in results.get("postgres_seconds", {}).items():
        lines.append([name, f"{results['postgres_rows_per_node']:,}", report.milliseconds(taken)])
    report.show(f"{GROUPS} groups over {len(NODES)} nodes", ["question", "rows a node", "answer"], lines)
    print(f"Between the nodes, the question takes {results['bytes_between_nodes']:,} bytes.")


if __name__ == "__main__":
    main()
