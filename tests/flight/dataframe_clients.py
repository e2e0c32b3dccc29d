"""Programs that read through PyPI `adbc-driver-flightsql`: `polars.read_database`, and DuckDB over the Arrow reader of a statement.

Starts a server of TIDEGATE_BINARY with the configuration of adbc_client.py and one more table. Each check prints a line; the exit status says whether all held.
"""

import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import adbc_client
import duckdb
import polars
import pyarrow
import pyarrow.parquet

ROWS = 100_000
NAMES = ["ann", "", "Zoë 🚲", None]
DAY = date(2026, 1, 1)
TIME = datetime(2026, 1, 1)
# The names of the columns of the table `orders`, with their types here, in polars and in DuckDB.
COLUMNS = {
    "id": (pyarrow.int64(), polars.Int64, "BIGINT"),
    "name": (pyarrow.string(), polars.String, "VARCHAR"),
    "price": (pyarrow.decimal128(12, 2), polars.Decimal(12, 2), "DECIMAL(12,2)"),
    "total": (pyarrow.decimal128(38, 10), polars.Decimal(38, 10), "DECIMAL(38,10)"),
    "moment": (pyarrow.timestamp("us", "UTC"), polars.Datetime("us", "UTC"), "TIMESTAMP WITH TIME ZONE"),
    "local_time": (pyarrow.timestamp("us"), polars.Datetime("us"), "TIMESTAMP"),
    "day": (pyarrow.date32(), polars.Date, "DATE"),
    "value": (pyarrow.float64(), polars.Float64, "DOUBLE"),
    "is_paid": (pyarrow.bool_(), polars.Boolean, "BOOLEAN"),
    "data": (pyarrow.binary(), polars.Binary, "BLOB"),
}
ORDERED = "SELECT * FROM orders ORDER BY id"


def order(number: int) -> tuple:
    """The row with this number; each tenth row has only its number, and others have no name."""
    if number % 10 == 9:
        return (number, *[None] * (len(COLUMNS) - 1))
    time = TIME + timedelta(hours=number, microseconds=number)
    return (
        number,
        NAMES[number % len(NAMES)],
        Decimal(number - 50) / 4,
        Decimal(number) * Decimal("1234567890123456789.0123456789"),
        time.replace(tzinfo=UTC),
        time,
        DAY + timedelta(days=number),
        number / 8,
        number % 2 == 0,
        number.to_bytes(8, "big"),
    )


EXPECTED = [order(number) for number in range(100)]


def write_orders(folder: Path):
    values = zip(*EXPECTED, strict=True)
    columns = {name: pyarrow.array(column, types[0]) for (name, types), column in zip(COLUMNS.items(), values, strict=True)}
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "orders.parquet", row_group_size=30)


def numbers(count: int) -> str:
    return f"SELECT a.value AS n, 'row ' || a.value AS text FROM generate_series(1, {count}) AS a(value)"


def polars_reads_values(server):
    with server.connect(database="shop") as connection:
        frame = polars.read_database(ORDERED, connection)
        assert frame.schema == {name: types[1] for name, types in COLUMNS.items()}, frame.schema
        assert frame.rows() == EXPECTED, frame.rows()
        empty = polars.read_database("SELECT * FROM orders WHERE false", connection)
        assert empty.height == 0 and empty.schema == frame.schema, empty.schema


def polars_binds_values(server):
    conditions = [
        ("price >= $1", Decimal("5.25"), lambda row: row[2] >= Decimal("5.25")),
        ("moment < $1", TIME.replace(tzinfo=UTC) + timedelta(hours=5), lambda row: row[4] < TIME.replace(tzinfo=UTC) + timedelta(hours=5)),
        ("local_time > $1", TIME + timedelta(hours=80), lambda row: row[5] > TIME + timedelta(hours=80)),
        ("day = $1", DAY + timedelta(days=8), lambda row: row[6] == DAY + timedelta(days=8)),
        ("value < $1", 1.5, lambda row: row[7] < 1.5),
        ("name = $1", "Zoë 🚲", lambda row: row[1] == "Zoë 🚲"),
        ("is_paid = $1", False, lambda row: row[8] is False),
    ]
    with server.connect(database="shop") as connection:
        for condition, value, holds in conditions:
            sql = f"SELECT id FROM orders WHERE {condition} ORDER BY id"
            frame = polars.read_database(sql, connection, execute_options={"parameters": [value]})
            expected = [row[0] for row in EXPECTED if row[2] is not None and holds(row)]
            assert frame["id"].to_list() == expected, (condition, frame["id"].to_list())


def polars_reads_batches(server):
    with server.connect(database="shop") as connection:
        batches = polars.read_database(numbers(ROWS), connection, iter_batches=True, batch_size=1000)
        heights, total, last = [], 0, None
        for batch in batches:
            heights.append(batch.height)
            total += batch["n"].sum()
            last = batch["text"][-1]
    assert len(heights) > 1 and sum(heights) == ROWS, heights
    assert (total, last) == (ROWS * (ROWS + 1) // 2, f"row {ROWS}"), (total, last)


def polars_writes_rows(server):
    types = {"device": polars.String, "value": polars.Float64, "count": polars.UInt64}
    frame = polars.DataFrame({"device": ["pump", "fan"], "value": [1.5, None], "count": [2**64 - 1, 0]}, types)
    # The name has a database and no schema; or the connection names the database.
    for name, headers in [("plant..sensors", {}), ("sensors", {"database": "plant"})]:
        with server.connect("writer", **headers) as connection:
            assert frame.write_database(name, connection, if_table_exists="append") == 2
    with server.connect("writer", database="plant") as connection:
        stored = polars.read_database("SELECT device, value, count FROM sensors ORDER BY device", connection)
    assert stored.rows() == sorted(frame.rows() * 2), stored.rows()
    assert stored.schema == frame.schema, stored.schema


def polars_sees_the_rows_of_its_caller(server):
    with server.connect("north", database="shop") as connection:
        frame = polars.read_database("SELECT name FROM people ORDER BY name", connection)
        assert frame["name"].to_list() == ["ann", "cyd"], frame
        message = adbc_client.error_of(lambda: polars.read_database("SELECT * FROM other.notes", connection))
        assert "other" in message, message


def duckdb_reads_values(server):
    with server.connect(database="shop") as connection, connection.cursor() as cursor, duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        cursor.execute(ORDERED)
        # DuckDB finds the reader by the name of this variable.
        reader = cursor.fetch_record_batch()  # noqa: F841
        result = database.sql("SELECT * FROM reader")
        assert [str(kind) for kind in result.types] == [types[2] for types in COLUMNS.values()], result.types
        assert result.fetchall() == EXPECTED


def duckdb_joins_rows(server):
    with server.connect(database="shop") as connection, connection.cursor() as cursor, duckdb.connect() as database:
        database.execute("CREATE TABLE discounts AS SELECT 'ann' AS name, 0.5::DECIMAL(3,2) AS share")
        cursor.execute("SELECT name, price FROM orders WHERE price > 0")
        reader = cursor.fetch_record_batch()  # noqa: F841
        joined = "SELECT name, count(*), sum(price * share) FROM reader JOIN discounts USING (name) GROUP BY name"
        prices = [row[2] for row in EXPECTED if row[1] == "ann" and row[2] > 0]
        assert database.sql(joined).fetchall() == [("ann", len(prices), sum(prices) / 2)]


def duckdb_reads_many_rows(server):
    with server.connect(database="shop") as connection, connection.cursor() as cursor, duckdb.connect() as database:
        cursor.execute(numbers(ROWS))
        reader = cursor.fetch_record_batch()  # noqa: F841
        found = database.sql("SELECT count(*), sum(n), count(DISTINCT text) FROM reader").fetchall()
        assert found == [(ROWS, ROWS * (ROWS + 1) // 2, ROWS)], found


CHECKS = [
    polars_reads_values,
    polars_binds_values,
    polars_reads_batches,
    polars_writes_rows,
    polars_sees_the_rows_of_its_caller,
    duckdb_reads_values,
    duckdb_joins_rows,
    duckdb_reads_many_rows,
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_orders(Path(folder) / "data")
        adbc_client.run_checks(CHECKS, Path(folder))


if __name__ == "__main__":
    main()
