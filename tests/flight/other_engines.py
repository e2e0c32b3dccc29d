"""Servers of Flight SQL that are other programs, as databases of Tidegate: Sail (PyPI `pysail`), and Ballista if its programs are given.

Starts them, fills two tables, and sends calls to TIDEGATE_BINARY: the list of tables, columns, statements, values, a join with a file, errors, and conditions
and groups on timestamps, decimals, dates and floats, with the statements that the engine receives. SAIL is the program of Sail. BALLISTA is a folder with
`ballista-scheduler` (built with its feature `flight-sql`) and `ballista-executor`; without it, Ballista is left out. Each check prints a line; the exit status
says whether all held.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow
import pyarrow.parquet

BINARY = os.environ["TIDEGATE_BINARY"]
STARTED_WITHIN = 60
STARTS_MAX = 3
ROWS = 10_000
READINGS = 100
BEGINNING = datetime(2026, 1, 1)
# Nanoseconds since 1970 in 64 bits do not reach this year.
LATE = datetime(9999, 12, 31, 23)


@dataclass(frozen=True)
class Reading:
    """A row of the table `readings`."""

    id: int
    moment: datetime | None
    local_time: datetime | None
    price: Decimal | None
    day: date | None
    value: float | None


@dataclass(frozen=True)
class Condition:
    """A condition on `readings`, with a literal and with the same value bound."""

    column: str
    operator: str
    literal: str
    bound: str | float
    holds: Callable[..., bool]
    # What the engine receives of it; `None` if Tidegate evaluates it.
    sent: str | None


def readings() -> list[Reading]:
    rows = []
    for number in range(READINGS):
        time = BEGINNING + timedelta(hours=number, microseconds=number)
        day = BEGINNING.date() + timedelta(days=number)
        rows.append(Reading(number, time.replace(tzinfo=UTC), time, Decimal(number - 10) / 4, day, number / 8))
    rows.append(Reading(READINGS, LATE.replace(tzinfo=UTC), LATE, Decimal("9999999999.99"), LATE.date(), 1e300))
    rows.append(Reading(READINGS + 1, None, None, None, None, None))
    return rows


MOMENT = r"CAST\(\$1 AS TIMESTAMP(\(6\))?( WITH TIME ZONE)?\)"
LOCAL_TIME = r"CAST\(\$1 AS TIMESTAMP(\(6\))?( WITHOUT TIME ZONE)?\)"
PRICE = r"CAST\(\$1 AS (DECIMAL|NUMERIC)\(12, ?2\)\)"
DAY = r"CAST\(\$1 AS DATE\)"
FIVE = BEGINNING + timedelta(hours=5, microseconds=5)
FIVE_UTC = FIVE.replace(tzinfo=UTC)
CONDITIONS = [
    Condition("moment", ">=", "TIMESTAMPTZ '2026-01-01 05:00:00.000005+00'", "2026-01-01T05:00:00.000005Z", lambda moment: moment >= FIVE_UTC, MOMENT),
    Condition("moment", "=", "TIMESTAMPTZ '2026-01-01 07:00:00.000005+02'", "2026-01-01T07:00:00.000005+02:00", lambda moment: moment == FIVE_UTC, MOMENT),
    Condition("moment", "<", "TIMESTAMPTZ '9999-01-01 00:00:00+00'", "9999-01-01T00:00:00Z", lambda moment: moment.year < 9999, MOMENT),
    Condition("local_time", "<", "TIMESTAMP '2026-01-01 05:00:00.000005'", "2026-01-01T05:00:00.000005", lambda time: time < FIVE, LOCAL_TIME),
    Condition("local_time", "<>", "TIMESTAMP '2026-01-01 05:00:00.000005'", "2026-01-01T05:00:00.000005", lambda time: time != FIVE, LOCAL_TIME),
    Condition("local_time", ">", "TIMESTAMP '9999-01-01 00:00:00'", "9999-01-01T00:00:00", lambda time: time.year == 9999, LOCAL_TIME),
    Condition("price", ">=", "5.25", 5.25, lambda price: price >= Decimal("5.25"), PRICE),
    Condition("price", "=", "-1.25", -1.25, lambda price: price == Decimal("-1.25"), PRICE),
    Condition("price", "=", "9999999999.99", "9999999999.99", lambda price: price > 1000, PRICE),
    Condition("day", ">=", "DATE '2026-01-11'", "2026-01-11", lambda day: day >= date(2026, 1, 11), DAY),
    Condition("day", "=", "DATE '9999-12-31'", "9999-12-31", lambda day: day.year == 9999, DAY),
    # Engines differ in whether floats are equal by their bits or by their values.
    Condition("value", ">=", "5.25", 5.25, lambda value: value >= 5.25, None),
    Condition("value", "=", "0.375", 0.375, lambda value: value == 0.375, None),
]
# Each has the same answer from the engine as from a file with the same rows.
STATEMENTS = [
    "SELECT id FROM {table} WHERE price BETWEEN 1 AND 2 OR day IN (DATE '2026-01-03', DATE '2026-01-04') ORDER BY id",
    "SELECT id FROM {table} WHERE local_time BETWEEN '2026-01-02' AND '2026-01-02 12:00' OR moment IS NULL ORDER BY id",
    "SELECT count(*) FILTER (WHERE price < 7) AS low, count(*) FILTER (WHERE moment < '2026-01-02Z') AS early FROM {table}",
    "SELECT max(moment) AS moment, min(local_time) AS local_time, sum(price) AS price, avg(price) AS mean, max(day) AS day FROM {table}",
    "SELECT sum(value) AS value, avg(value) AS mean, min(value) AS least FROM {table} WHERE day < DATE '2027-01-01'",
    "SELECT day, price FROM {table} ORDER BY price DESC NULLS LAST LIMIT 3",
    "SELECT id, moment, local_time, price, day, value FROM {table} WHERE id IN (0, 1, 101) ORDER BY id",
    "SELECT round(corr(id, value)::numeric, 9) AS corr FROM {table} WHERE id < 100",
    "SELECT var_samp(id) AS exact, round(stddev_pop(value)::numeric, 9) AS float FROM {table} WHERE id < 100",
    "SELECT var_samp(price) AS exact FROM {table} WHERE id < 100",
    "SELECT date_bin('6 hours', local_time, TIMESTAMP '2026-01-01') AS bin, count(*) AS n FROM {table} GROUP BY bin ORDER BY bin",
    "SELECT date_trunc('day', moment) AS beginning, count(*) AS n FROM {table} WHERE id >= 99 GROUP BY beginning ORDER BY beginning",
    *(
        f"SELECT date_trunc('{unit}', {column}) AS beginning, count(*) AS n FROM {{table}} WHERE id < 100 GROUP BY beginning ORDER BY beginning"
        for unit in ("hour", "week", "quarter", "decade", "century", "millennium")
        for column in ("moment", "local_time")
    ),
    *(
        f"SELECT extract({field} FROM {column}) AS part, count(*) AS n FROM {{table}} GROUP BY part ORDER BY part"
        for column, fields in [
            ("local_time", ("hour", "dow", "second", "milliseconds", "epoch", "decade", "century", "millennium", "julian")),
            ("moment", ("hour", "microseconds", "epoch")),
            ("day", ("dow", "isodow", "week", "isoyear", "doy", "quarter", "epoch")),
        ]
        for field in fields
    ),
]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class AddressInUse(Exception):
    """Another program took the port of one of these programs first."""


@contextmanager
def running(folder: Path, *commands: list, **environment):
    """Programs that are ended at the end. Yields a function that fails if one of them has ended because its port was taken."""
    processes = []

    def check():
        for process, log in processes:
            if process.poll() is not None:
                log.seek(0)
                if b"address already in use" in log.read().lower():
                    raise AddressInUse(process.args)

    try:
        for command in commands:
            log = tempfile.TemporaryFile()
            process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment, cwd=folder)
            processes.append((process, log))
        yield check
    finally:
        for process, _ in processes:
            process.kill()
            process.wait()


def execute(port: int, sql: str):
    with flight_sql.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetch_arrow_table()


def wait_until_ready(check: Callable[[], None], port: int, sql: str):
    ends = time.monotonic() + STARTED_WITHIN
    while True:
        check()
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


def on_one_line(answer: str) -> str:
    return " ".join(answer.split())[:300] or "no rows"


def write_readings(folder: Path) -> Path:
    """A folder with the table `readings` as a file."""
    rows = readings()
    types = {
        "id": pyarrow.int64(),
        "moment": pyarrow.timestamp("us", "UTC"),
        "local_time": pyarrow.timestamp("us"),
        "price": pyarrow.decimal128(12, 2),
        "day": pyarrow.date32(),
        "value": pyarrow.float64(),
    }
    columns = {name: pyarrow.array([getattr(row, name) for row in rows], of_type) for name, of_type in types.items()}
    (folder / "readings").mkdir()
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "readings" / "rows.parquet")
    return folder / "readings"


class Tidegate:
    """The program with the engine as the database `lake`, and with files."""

    def __init__(self, folder: Path, port: int):
        self.folder = folder
        (folder / "files").mkdir()
        (folder / "files" / "kinds.csv").write_text("kind,label\n0,even\n1,odd\n")
        (folder / "files" / "readings.parquet").hardlink_to(folder / "readings" / "rows.parquet")
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

    def rows(self, sql: str, database="lake", **arguments):
        answer = self.call("sql", database=database, sql=sql, format="ndjson", **arguments)
        assert not answer.startswith("error"), answer
        return parse(answer)

    def sent(self, sql: str, **arguments) -> str:
        """The statement that the engine receives for a federated one."""
        plan = self.call("explain", database="both", sql=sql, **arguments)
        found = re.search(r"^  lake: (.*)$", plan, re.MULTILINE)
        return found[1] if found else f"no statement: {on_one_line(plan)}"


def check_numbers(tidegate: Tidegate):
    assert "numbers" in (listed := tidegate.call("list_tables", database="lake")), listed
    columns = tidegate.call("get_schema", database="lake", table="numbers")
    assert "bigint" in columns and "text" in columns, columns
    total = tidegate.rows("SELECT count(*) AS n, sum(id) AS total, max(name) AS name FROM numbers")
    assert total == [{"n": ROWS, "total": sum(range(ROWS)), "name": "row 9999"}], total
    rows = tidegate.rows("SELECT id, name FROM numbers WHERE id < 3 ORDER BY id DESC")
    assert rows == [{"id": 2, "name": "row 2"}, {"id": 1, "name": "row 1"}, {"id": 0, "name": "row 0"}], rows
    everything = tidegate.call("sql", database="lake", sql="SELECT id FROM numbers", format="csv", max_rows=ROWS)
    assert sorted(map(int, everything.split()[1:])) == list(range(ROWS)), everything[:200]
    # Built from the list of columns, which quotes names as the server reads them.
    first = tidegate.call("query", database="lake", table="numbers", select=["name", "id"], order_by=["id"], limit=1, format="ndjson")
    assert parse(first) == [{"name": "row 0", "id": 0}], first
    # The engines have no prepared statements, so values are literals.
    bound = tidegate.call("query", database="lake", table="numbers", where={"column": "name", "op": "=", "value": "row 42"}, format="ndjson")
    assert parse(bound) == [{"id": 42, "name": "row 42"}], bound
    quoted = tidegate.call("query", database="lake", table="numbers", where={"column": "name", "op": "=", "value": "it's"}, format="ndjson")
    assert quoted.strip() == "" or "cannot be sent" in quoted, quoted
    joined = "SELECT k.label, count(*) AS n FROM lake.numbers n JOIN files.kinds k ON n.id % 2 = k.kind WHERE n.id < 11 GROUP BY k.label ORDER BY k.label"
    assert tidegate.rows(joined, "both") == [{"label": "even", "n": 6}, {"label": "odd", "n": 5}]
    wrong = tidegate.call("sql", database="lake", sql="SELECT absent FROM numbers")
    assert wrong.startswith("error") and "absent" in wrong, wrong
    written = tidegate.call("sql", database="lake", sql="DROP TABLE numbers")
    assert written.startswith("error"), written


def check_types(tidegate: Tidegate):
    schema = json.loads(tidegate.call("get_schema", database="lake", table="readings"))
    types = {column["name"]: column["type"] for column in schema}
    assert types == {
        "id": "bigint",
        "moment": "timestamp with time zone",
        "local_time": "timestamp",
        "price": "decimal(12,2)",
        "day": "date",
        "value": "double",
    }, types


def check_conditions(tidegate: Tidegate):
    """The rows are right in each form of a condition, and the engine evaluates what it evaluates in the same way."""
    problems = []
    for condition in CONDITIONS:
        expected = [row.id for row in readings() if (value := getattr(row, condition.column)) is not None and condition.holds(value)]
        written = f"{condition.column} {condition.operator} {condition.literal}"
        sql = "SELECT id FROM lake.readings WHERE {column} {operator} {value} ORDER BY id"
        fields = {"column": condition.column, "operator": condition.operator}
        literal, bound = sql.format(**fields, value=condition.literal), sql.format(**fields, value="$1")
        parameters = {"parameters": [condition.bound]}
        where = {"column": condition.column, "op": condition.operator, "value": condition.bound}
        of_query = {"select": ["id"], "where": where, "order_by": ["id"], "format": "ndjson", "limit": READINGS * 2}
        answers = {
            f"WHERE {written}": tidegate.call("sql", database="both", sql=literal, format="ndjson"),
            f"WHERE {written}, bound": tidegate.call("sql", database="both", sql=bound, format="ndjson", **parameters),
            f"WHERE {written}, federated query": tidegate.call("query", database="both", table="lake.readings", **of_query),
            f"WHERE {written}, query": tidegate.call("query", database="lake", table="readings", **of_query),
        }
        problems += [
            f"{form}: {on_one_line(answer)}"
            for form, answer in answers.items()
            if answer.startswith("error") or [row["id"] for row in parse(answer)] != expected
        ]
        for form, sent in [(written, tidegate.sent(literal)), (f"{written}, bound", tidegate.sent(bound, **parameters))]:
            pattern = rf'WHERE .*"{condition.column}" {condition.operator} {condition.sent}' if condition.sent else r'FROM "readings" AS \w+$'
            if not re.search(pattern, sent):
                problems.append(f"WHERE {form}: the engine receives {sent}")
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)


def check_statements(tidegate: Tidegate):
    problems = []
    for statement in STATEMENTS:
        # As text, because JSON's numbers would be compared as floats.
        expected, answer = (
            tidegate.call("sql", database="both", sql=statement.format(table=table), format="ndjson") for table in ("files.readings", "lake.readings")
        )
        if answer != expected or answer.startswith("error"):
            problems.append(f"{statement}: {on_one_line(answer)}; from the file: {on_one_line(expected)}")
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)


CHECKS = [check_numbers, check_types, check_conditions, check_statements]


def run_checks(engine: str, tidegate: Tidegate) -> int:
    """The number of checks that failed."""
    failed = 0
    for check in CHECKS:
        try:
            check(tidegate)
            print(f"ok        {engine}: {check.__name__}", flush=True)
        except Exception as error:  # a check that fails must not hide the others
            failed += 1
            print(f"FAILED    {engine}: {check.__name__}: {type(error).__name__}: {error}", flush=True)
    return failed


def sail(folder: Path) -> int:
    port = free_port()
    with running(folder, [os.environ["SAIL"], "flight", "server", "--port", str(port)], SAIL_MODE="local-cluster") as check:
        wait_until_ready(check, port, "SELECT 1")
        execute(port, "CREATE TABLE numbers (id BIGINT, name STRING)")
        execute(port, f"INSERT INTO numbers SELECT id, concat('row ', id) FROM range({ROWS})")
        execute(port, f"CREATE TABLE readings USING parquet LOCATION '{write_readings(folder)}'")
        return run_checks("sail", Tidegate(folder, port))


def ballista(folder: Path) -> int:
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
    with running(folder, scheduler, *executors) as check:
        wait_until_ready(check, port, "SELECT 1")
        execute(port, f"CREATE EXTERNAL TABLE numbers (id BIGINT, name VARCHAR) STORED AS CSV LOCATION '{folder / 'numbers.csv'}' OPTIONS (has_header true)")
        execute(port, f"CREATE EXTERNAL TABLE readings STORED AS PARQUET LOCATION '{write_readings(folder)}'")
        return run_checks("ballista", Tidegate(folder, port))


def run_with_free_ports(engine: Callable[[Path], int]) -> int:
    """The number of checks that failed. If a port is taken before the engine has it, other ports are tried."""
    starts = 1
    while True:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return engine(Path(folder))
            except AddressInUse:
                if starts == STARTS_MAX:
                    raise
                starts += 1


def main():
    failed = 0
    for engine, variable in [(sail, "SAIL"), (ballista, "BALLISTA")]:
        if variable not in os.environ:
            print(f"left out  {engine.__name__}: {variable} is not set")
            continue
        try:
            failed += run_with_free_ports(engine)
        except Exception as error:  # an engine that fails must not hide the other
            failed += 1
            print(f"FAILED    {engine.__name__}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
