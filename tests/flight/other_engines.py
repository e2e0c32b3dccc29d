"""Servers of Flight SQL that are other programs, as databases of Tidegate: Sail (PyPI `pysail`), and Ballista if its programs are given.

Starts them, fills a table, and asks through TIDEGATE_BINARY: the list of tables, columns, statements, values, a join with a file, and errors. SAIL is the
program of Sail. BALLISTA is a folder with `ballista-scheduler` (built with its feature `flight-sql`) and `ballista-executor`; without it, Ballista is left out.
Each check prints a line; the exit status says whether all held.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql

BINARY = os.environ["TIDEGATE_BINARY"]
STARTED_WITHIN = 60
ROWS = 10_000


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def running(folder: Path, *commands: list, **environment):
    """Programs that are ended at the end."""
    processes = []
    try:
        for command in commands:
            log = tempfile.TemporaryFile()
            process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment, cwd=folder)
            processes.append(process)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def execute(port: int, sql: str):
    with flight_sql.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def wait_until_ready(port: int, sql: str):
    ends = time.monotonic() + STARTED_WITHIN
    while True:
        try:
            return execute(port, sql)
        except Exception:
            if time.monotonic() > ends:
                raise
            time.sleep(0.2)


def parse(answer: str) -> list:
    """The rows of NDJSON. A warning of the answer may come after them."""
    try:
        return [json.loads(line) for line in answer.splitlines()]
    except ValueError:
        raise AssertionError(answer) from None


class Questions:
    """Tidegate with the engine as the database `lake`, and with a file."""

    def __init__(self, folder: Path, port: int):
        self.folder = folder
        (folder / "files").mkdir()
        (folder / "files" / "kinds.csv").write_text("kind,label\n0,even\n1,odd\n")
        self.configuration = folder / "tidegate.yaml"
        self.configuration.write_text(
            f"databases:\n  - {{name: lake, flight_sql: 'grpc://127.0.0.1:{port}'}}\n  - {{name: files, files: files}}\n"
            "  - {name: both, federated: [lake, files]}\n"
        )

    def call(self, tool: str, **arguments) -> str:
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
        command = [BINARY, "call", "--config", str(self.configuration), tool, *(f"{name}={value}" for name, value in texts.items())]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return ended.stdout if ended.returncode == 0 else f"error: {ended.stderr}"

    def rows(self, sql: str, database="lake"):
        answer = self.call("sql", database=database, sql=sql, format="ndjson")
        assert not answer.startswith("error"), answer
        return parse(answer)


def ask(questions: Questions):
    assert "numbers" in (listed := questions.call("list_tables", database="lake")), listed
    columns = questions.call("get_schema", database="lake", table="numbers")
    assert "bigint" in columns and "text" in columns, columns
    total = questions.rows("SELECT count(*) AS n, sum(id) AS total, max(name) AS name FROM numbers")
    assert total == [{"n": ROWS, "total": sum(range(ROWS)), "name": "row 9999"}], total
    rows = questions.rows("SELECT id, name FROM numbers WHERE id < 3 ORDER BY id DESC")
    assert rows == [{"id": 2, "name": "row 2"}, {"id": 1, "name": "row 1"}, {"id": 0, "name": "row 0"}], rows
    everything = questions.call("sql", database="lake", sql="SELECT id FROM numbers", format="csv", max_rows=ROWS)
    assert sorted(map(int, everything.split()[1:])) == list(range(ROWS)), everything[:200]
    # Built from the list of columns, which quotes names as the server reads them.
    first = questions.call("query", database="lake", table="numbers", select=["name", "id"], order_by=["id"], limit=1, format="ndjson")
    assert parse(first) == [{"name": "row 0", "id": 0}], first
    # The engines have no prepared statements, so values are literals.
    bound = questions.call("query", database="lake", table="numbers", where={"column": "name", "op": "=", "value": "row 42"}, format="ndjson")
    assert parse(bound) == [{"id": 42, "name": "row 42"}], bound
    quoted = questions.call("query", database="lake", table="numbers", where={"column": "name", "op": "=", "value": "it's"}, format="ndjson")
    assert quoted.strip() == "" or "cannot be sent" in quoted, quoted
    joined = "SELECT k.label, count(*) AS n FROM lake.numbers n JOIN files.kinds k ON n.id % 2 = k.kind WHERE n.id < 11 GROUP BY k.label ORDER BY k.label"
    assert questions.rows(joined, "both") == [{"label": "even", "n": 6}, {"label": "odd", "n": 5}]
    wrong = questions.call("sql", database="lake", sql="SELECT absent FROM numbers")
    assert wrong.startswith("error") and "absent" in wrong, wrong
    written = questions.call("sql", database="lake", sql="DROP TABLE numbers")
    assert written.startswith("error"), written


def sail(folder: Path):
    port = free_port()
    with running(folder, [os.environ["SAIL"], "flight", "server", "--port", str(port)], SAIL_MODE="local-cluster"):
        wait_until_ready(port, "SELECT 1")
        execute(port, "CREATE TABLE numbers (id BIGINT, name STRING)")
        execute(port, f"INSERT INTO numbers SELECT id, concat('row ', id) FROM range({ROWS})")
        ask(Questions(folder, port))


def ballista(folder: Path):
    programs = Path(os.environ["BALLISTA"])
    (folder / "numbers.csv").write_text("id,name\n" + "".join(f"{number},row {number}\n" for number in range(ROWS)))
    port = free_port()
    scheduler = [programs / "ballista-scheduler", "--bind-host", "127.0.0.1", "--bind-port", str(port), "--flight-sql"]
    executors = []
    for number in range(2):
        ports = [argument for name in ("port", "grpc-port", "health-port") for argument in (f"--bind-{name}", str(free_port()))]
        (folder / f"work{number}").mkdir()
        executors.append(
            [programs / "ballista-executor", *ports, "--scheduler-host", "127.0.0.1", "--scheduler-port", str(port), "--work-dir", folder / f"work{number}"]
        )
    with running(folder, scheduler, *executors):
        wait_until_ready(port, "SELECT 1")
        execute(port, f"CREATE EXTERNAL TABLE numbers (id BIGINT, name VARCHAR) STORED AS CSV LOCATION '{folder / 'numbers.csv'}' OPTIONS (has_header true)")
        ask(Questions(folder, port))


def main():
    failed = 0
    for engine, variable in [(sail, "SAIL"), (ballista, "BALLISTA")]:
        if variable not in os.environ:
            print(f"left out  {engine.__name__}: {variable} is not set")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                engine(Path(folder))
                print(f"ok        {engine.__name__}")
            except Exception as error:  # an engine that fails must not hide the other
                failed += 1
                print(f"FAILED    {engine.__name__}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
