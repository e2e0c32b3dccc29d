"""Networks of random tables, nodes and replicas: each answer to a random statement is that of DuckDB over all rows in one table.

The rows of `readings` are divided over one to five nodes, and `sites` is on one of them. Nodes may declare the rows that they hold, lack a column,
or have it in another type. The first address of a node may be a closed port, or its process is killed between two statements; one address of each
node always answers. DuckDB is PyPI `duckdb`, in this process. TIDEGATE_BINARY names the program, which has the feature `network`. Each network
prints a line; the exit status says whether all answers were right.

    generated_network.py [--networks N] [--statements N] [--seed NUMBER]

The networks have the seeds NUMBER, NUMBER + 1 and so on, so that one of them can be repeated alone.
"""

import argparse
import http.client
import json
import math
import random
import signal
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from disturbed_nodes import Server
from generated_statements import COLUMNS, DAY, KINDS, LABELS, NODES, SITES_TYPES, TYPES, Generator, Statement

# Rows of `readings`. Tables of more than 1,000 are joined with a small side by its keys.
SIZES = (0, 60, 400, 400, 1_500, 2_500)
ROWS_MAX, PRINTED_ROWS = 1_000_000, 5

# What a node may declare to hold.
HOLDS = [
    lambda choice: {"small": choice.sample(range(-4, 7), 6)},
    lambda choice: {"label": choice.sample(LABELS, 5)},
    lambda choice: {"day": {"from": str(DAY + timedelta(days=choice.randint(0, 15)))}},
    lambda choice: {"day": {"before": str(DAY + timedelta(days=choice.randint(5, 40)))}},
]


def admits(declared: list | dict, value) -> bool:
    if value is None or isinstance(declared, list):
        return value is not None and value in declared
    return declared.get("from", "") <= str(value) < declared.get("before", "9999")


@dataclass
class Node:
    """A node with its rows and the servers of its addresses; with the fault `closed`, the first address has none."""

    name: str
    types: dict[str, pyarrow.DataType]
    holds: dict
    replicas: int
    fault: str
    # The number of the statement before which the first server is killed, if that is the fault.
    killed_before: int
    rows: list[dict] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)

    def admitted(self, rows: list[dict]) -> list[dict]:
        """Those of `rows` on this node that are part of the network."""
        fitting = [row for row in rows if all(admits(declared, row[name]) for name, declared in self.holds.items() if name in row)]
        return [{"_node": self.name, **row} for row in fitting]


class Data:
    """Random nodes with rows of `readings` on each, and of `sites` on one of them."""

    def __init__(self, choice: random.Random, statements: int):
        count, declares = choice.choice(SIZES), choice.random() < 0.4
        nodes = [self._draw_node(choice, name, declares, statements) for name in NODES[: choice.randint(1, len(NODES))]]
        weights = [choice.choice([0.01, 1, 1, 5]) for _ in nodes]
        null_shares = {name: choice.choice([0, 0.1, 0.5]) for name in COLUMNS}
        for number in choice.sample(range(count * 2), count):
            node = choice.choices(nodes, weights)[0]
            row = {name: None if choice.random() < share else COLUMNS[name].draw(choice, count) for name, share in null_shares.items()}
            node.rows.append({"id": number, **{name: value if name in node.types else None for name, value in row.items()}})
        self.nodes, self.sites_node = nodes, choice.choice(nodes)
        self.sites = [{"label": label, "kind": kind} for label in (*LABELS[:6], "none", None) for kind in KINDS if choice.random() < 0.4]
        self.readings = [row for node in nodes for row in node.admitted(node.rows)]

    @staticmethod
    def _draw_node(choice: random.Random, name: str, declares: bool, statements: int) -> Node:
        holds = choice.choice(HOLDS)(choice) if declares and choice.random() < 0.7 else {}
        types = {name: choice.choice([column.types[0], *column.types]) for name, column in COLUMNS.items()}
        # The first node has all columns, so that the network has them.
        if choice.random() < 0.2 and name != NODES[0]:
            del types[choice.choice([column for column in COLUMNS if column not in holds])]
        replicas = choice.choice([0, 0, 1, 2])
        fault = choice.choice(["none", "closed", "killed"]) if replicas else "none"
        return Node(name, {"id": pyarrow.int64(), **types}, holds, replicas, fault, choice.randrange(statements))

    def write(self, node: Node, folder: Path):
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(arrow_table(node.rows, node.types), folder / "readings.parquet", row_group_size=500)
        if node is self.sites_node:
            pyarrow.parquet.write_table(arrow_table(self.sites, SITES_TYPES), folder / "sites.parquet")

    def reference(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with all rows of the network."""
        reference = duckdb.connect()
        for name, rows, types in [("readings", self.readings, TYPES), ("sites", self.sites_node.admitted(self.sites), SITES_TYPES)]:
            reference.register("rows", arrow_table(rows, {"_node": pyarrow.string(), **types}))
            reference.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        return reference


def arrow_table(rows: list[dict], types: dict[str, pyarrow.DataType]) -> pyarrow.Table:
    return pyarrow.table({name: pyarrow.array([row[name] for row in rows], of_type) for name, of_type in types.items()})


def bind(bound: ExitStack) -> str:
    """The address of a free port, which refuses connections and is given to no other program as long as `bound`."""
    port = bound.enter_context(socket.socket())
    port.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{port.getsockname()[1]}"


def start_network(folder: Path, data: Data, running: ExitStack) -> Server:
    """Starts the servers of all nodes, and one whose database `plants` is their network, which is returned."""

    def start(folder: Path, configuration: dict) -> Server:
        server = Server(folder, configuration)
        running.callback(server.end)
        return server

    starts, listed = [], []
    with ExitStack() as reserved:
        for node in data.nodes:
            files = folder / node.name / "data"
            data.write(node, files)
            closed = [bind(running)] if node.fault == "closed" else []
            addresses = [bind(reserved) for _ in range(1 + node.replicas - len(closed))]
            for address in addresses:
                server = {"listen": bind(reserved), "flight": address}
                starts.append((node, folder / address, {"server": server, "databases": [{"name": "plant", "files": str(files)}]}))
            url, *replicas = (f"grpc://{address}" for address in closed + addresses)
            listed.append({"name": node.name, "url": url, "replicas": replicas, **({"holds": node.holds} if node.holds else {})})
        databases = [{"name": "plants", "network": {"nodes": listed, "partial": "forbid"}}]
        configuration = {"server": {"listen": bind(reserved)}, "databases": databases}
    with ThreadPoolExecutor() as threads:
        for node, server in threads.map(lambda entry: (entry[0], start(*entry[1:])), starts):
            node.servers.append(server)
    return start(folder / "asker", configuration)


@dataclass(frozen=True)
class Answer:
    """The names of the columns and the rows, or an error."""

    names: list[str]
    rows: list[tuple]
    error: str = ""

    def difference(self, expected: "Answer", statement: Statement) -> str:
        """What is wrong, with the first rows; empty if nothing is."""
        if self.error or expected.error or self.names != expected.names or len(self.rows) != len(expected.rows):
            return f"  Tidegate: {self}\n  DuckDB: {expected}"
        pairs = zip(self._sorted(statement), expected._sorted(statement), strict=True)
        wrong = [(row, right) for row, right in pairs if not all(map(is_same, row, right))]
        return "\n".join(f"  Tidegate: {row}\n  DuckDB:   {right}" for row, right in wrong[:PRINTED_ROWS])

    def _sorted(self, statement: Statement) -> list[tuple]:
        if statement.is_ordered:
            return self.rows
        return sorted(self.rows, key=lambda row: [(value is not None, 0 if value is None else value) for value in row[: statement.keys]])

    def __str__(self):
        return self.error or f"{len(self.rows)} rows of {self.names}:" + "".join(f"\n    {row}" for row in self.rows[:PRINTED_ROWS])


def is_same(value, expected) -> bool:
    if isinstance(expected, float) and isinstance(value, float | Decimal):
        return math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-9)
    return value == expected and isinstance(value, bool) == isinstance(expected, bool)


class CallError(Exception):
    """The problem that answers a call."""


def call(server: Server, tool: str, form: str, sql: str, **arguments) -> bytes:
    body = json.dumps({"database": "plants", "sql": sql, **arguments}).encode()
    request = urllib.request.Request(f"{server.url}/rest/tools/{tool}/call", body, {"Content-Type": "application/json", "Accept": form})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            if nodes := response.headers.get("Tidegate-Partial"):
                raise CallError(f"the answer lacks {nodes}")
            return response.read()
    except urllib.error.HTTPError as error:
        raise CallError(error.read().decode()) from None
    except (OSError, http.client.HTTPException) as error:
        raise CallError(f"broken: {error}") from None


def answer_of_network(asker: Server, sql: str) -> Answer:
    try:
        stream = call(asker, "sql", "application/vnd.apache.arrow.stream", sql, max_rows=ROWS_MAX, no_cache=True)
        table = pyarrow.ipc.open_stream(stream).read_all()
    except (CallError, pyarrow.ArrowException) as error:
        return Answer([], [], str(error))
    return Answer(table.column_names, list(zip(*(column.to_pylist() for column in table.columns), strict=True)))


def explain(asker: Server, sql: str) -> str:
    try:
        return call(asker, "explain", "text/plain", sql).decode()
    except CallError as error:
        return str(error)


def answer_of_duckdb(reference: duckdb.DuckDBPyConnection, sql: str) -> Answer:
    try:
        rows = reference.execute(sql).fetchall()
    except duckdb.Error as error:
        return Answer([], [], f"DuckDB: {error}")
    # PostgreSQL's correlation of equal values is NULL.
    without_nan = [tuple(None if isinstance(value, float) and math.isnan(value) else value for value in row) for row in rows]
    return Answer([column[0] for column in reference.description], without_nan)


def check_network(seed: int, statements: int) -> bool:
    """Whether all answers of a random network are right. Prints a line, and those that are wrong."""
    choice = random.Random(seed)
    data = Data(choice, statements)
    generator, reference, failed = Generator(choice, data.readings), data.reference(), 0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        asker = start_network(Path(folder), data, running)
        for number in range(statements):
            for node in data.nodes:
                if node.fault == "killed" and node.killed_before == number:
                    node.servers[0].end()
            statement = generator.statement()
            expected = answer_of_duckdb(reference, statement.sql)
            if difference := answer_of_network(asker, statement.sql).difference(expected, statement):
                failed += 1
                print(f"FAILED  seed {seed}, statement {number + 1}: {statement.sql}\n{difference}\n{explain(asker, statement.sql)}", flush=True)
    faults = [node.fault for node in data.nodes]
    counts = f"{len(faults)} nodes, {sum(node.replicas for node in data.nodes)} replicas, {faults.count('closed')} closed"
    line = f"{counts}, {faults.count('killed')} killed: {statements} statements"
    print(f"FAILED  seed {seed}, {line}, {failed} wrong" if failed else f"ok  {line}", flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=3)
    parser.add_argument("--statements", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    # The servers are ended on SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    print(f"seed {options.seed}", flush=True)
    passed = [check_network(options.seed + number, options.statements) for number in range(options.networks)]
    print(f"{passed.count(True)} passed, {passed.count(False)} failed")
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
