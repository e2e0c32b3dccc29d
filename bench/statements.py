"""A statement for one row of a Parquet file, different each time: the server, and engines without one.

The processor time of the server is without its client, that of the engines with the conversion of the row to Python. DuckDB opens the file for each statement. The
first round does not count.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path

import datafusion
import duckdb
import pyarrow
import pyarrow.parquet
from harness import report, wire
from harness.process import Server, cpu_seconds

# The number has no effect, and is different in each statement, so that no answer is returned again.
SQL = "SELECT name FROM {table} WHERE id = 7 AND number < {number}"
# Tidegate answers a lookup in a small table without a plan, but not one that sorts.
SORTED = SQL + " ORDER BY name"
ROWS = 25
FIRST_NUMBER = 100_000

Answer = Callable[[str], str]


@dataclass(frozen=True)
class Cost:
    """The time of one statement, in seconds."""

    wall_seconds: float
    processor_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=2000, help="of each run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each engine, in turn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder) / "places.parquet")
        with Server.tidegate(folder) as server:
            file = f"'{folder}/places.parquet'"
            in_process = {
                f"DuckDB {duckdb.__version__} in its process": (duckdb_in_process(), file),
                f"DataFusion {datafusion.__version__} in its process": (datafusion_in_process(folder), "places"),
            }
            engines = {
                "Tidegate: the tool `sql` over MCP": (over_mcp(server), SQL, "places", lambda: cpu_seconds(server.pid)),
                "Tidegate, with ORDER BY": (over_mcp(server), SORTED, "places", lambda: cpu_seconds(server.pid)),
                **{name: (answer, SQL, table, time.process_time) for name, (answer, table) in in_process.items()},
            }
            numbers = count(FIRST_NUMBER)
            rounds = [
                {name: measure(*engine, islice(numbers, options.statements)) for name, engine in engines.items()}
                for _ in range(options.rounds + 1)
            ][1:]
    costs = {name: [costs[name] for costs in rounds] for name in engines}
    report.keep("statements", {name: [asdict(cost) for cost in runs] for name, runs in costs.items()})
    show(costs)


def write_table(file: Path) -> None:
    columns = {
        "id": pyarrow.array(range(ROWS), pyarrow.int32()),
        "name": [f"place {row}" for row in range(ROWS)],
        "number": pyarrow.array(range(ROWS), pyarrow.int32()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), file)


def over_mcp(server: Server) -> Answer:
    connection = wire.connect(server.address)
    return lambda sql: wire.call(connection, "sql", {"sql": sql})


def duckdb_in_process() -> Answer:
    connection = duckdb.connect()
    return lambda sql: str(connection.execute(sql).fetchall())


def datafusion_in_process(folder: str) -> Answer:
    context = datafusion.SessionContext()
    context.register_parquet("places", f"{folder}/places.parquet")
    return lambda sql: str([batch.to_pylist() for batch in context.sql(sql).collect()])


def measure(
    answer: Answer, sql: str, table: str, processor_seconds: Callable[[], float], numbers: Iterator[int]
) -> Cost:
    statements = [sql.format(table=table, number=number) for number in numbers]
    before, started = processor_seconds(), time.perf_counter()
    answers = [answer(sql) for sql in statements]
    wall, processor = time.perf_counter() - started, processor_seconds() - before
    if wrong := [text for text in answers if "place 7" not in text]:
        raise RuntimeError(f"a wrong answer: {wrong[0]}")
    return Cost(wall / len(statements), processor / len(statements))


def show(costs: dict[str, list[Cost]]) -> None:
    rows = []
    for name, runs in costs.items():
        wall = statistics.median(cost.wall_seconds for cost in runs)
        processor = statistics.median(cost.processor_seconds for cost in runs)
        rows.append([name, f"{wall * 1e6:,.0f} µs", f"{processor * 1e6:,.0f} µs", f"{1 / processor:,.0f}"])
    header = ["one row of Parquet, one after the other", "a statement", "processor time", "a second and processor"]
    report.show("Statements for one row", header, rows)


if __name__ == "__main__":
    main()
