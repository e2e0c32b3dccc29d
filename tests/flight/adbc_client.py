"""Arrow Flight SQL with a foreign client: PyPI `adbc-driver-flightsql`.

Starts a server of TIDEGATE_BINARY with a configuration of its own. Each check prints a line; the exit status says whether all held.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pyarrow

BINARY = os.environ["TIDEGATE_BINARY"]
ROWS = 1_000_000
# The exit status of a client that ends in mid-stream.
ENDED = 9
CONFIGURATION = """
server: {listen: "127.0.0.1:0", flight: "127.0.0.1:0"}
databases:
  - name: shop
    files: data
    policies: [{table: people, rows: "region = 'north'", except_roles: [reader]}]
  - {name: other, files: other}
  - name: plant
    ingest: plant
    tables: {sensors: {columns: {time: timestamp, device: string not null, value: double, count: uint64}}}
auth: {keys: keys.json}
roles:
  - {name: reader, databases: [shop, other], toolsets: ["*"]}
  - {name: writer, databases: [plant], toolsets: ["*"], ingest: ["plant.*"]}
  - {name: north, databases: [shop], toolsets: ["*"]}
"""


class Server:
    """A running server with two keys."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("data", "other"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "data" / "people.csv").write_text("id,name,region\n1,ann,north\n2,bob,south\n3,cyd,north\n")
        (folder / "other" / "notes.csv").write_text("id,note\n1,hello\n")
        (folder / "tidegate.yaml").write_text(CONFIGURATION)
        self.keys = {role: self.add_key(role) for role in ("reader", "north", "writer")}
        self.process = subprocess.Popen(
            [BINARY, "serve", "--config", str(folder / "tidegate.yaml")], stderr=subprocess.PIPE, text=True
        )
        self.address = self.rest = None
        log = []
        for line in self.process.stderr:
            log.append(line)
            if found := re.search(r"listening on (grpc\S+)", line):
                self.address = found.group(1)
            elif found := re.search(r"listening on (http\S+)/mcp", line):
                self.rest = found.group(1)
                break
        if not self.rest or not self.address:
            sys.exit("the server did not start:\n" + "".join(log))
        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()

    def add_key(self, role: str) -> str:
        command = [BINARY, "key", "add", role, "--role", role, "--file", str(self.folder / "keys.json")]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return output.split()[-1]

    def connect(self, role="reader", **headers):
        return self.connect_with_key(self.keys[role], **headers)

    def connect_with_key(self, key, **headers):
        options = {adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {key}"}
        prefix = adbc_driver_flightsql.DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
        options |= {prefix + name: value for name, value in headers.items()}
        return flight_sql.connect(self.address, db_kwargs=options, autocommit=True)

    def memory_kib(self, field="VmHWM") -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", status).group(1))


def rows(connection, sql, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def error_of(action) -> str:
    try:
        action()
    except adbc_driver_manager.Error as error:
        return str(error)
    raise AssertionError("no error")


def selects_rows(server):
    with server.connect() as connection:
        assert rows(connection, "SELECT name FROM shop.people ORDER BY id") == [("ann",), ("bob",), ("cyd",)]
    with server.connect(database="shop") as connection:
        assert rows(connection, "SELECT count(*) FROM people") == [(3,)]
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, name FROM people WHERE false")
            table = cursor.fetch_arrow_table()
        assert table.num_rows == 0 and table.column_names == ["id", "name"], table.schema


def uses_password_as_key(server):
    options = {"username": "ann", "password": server.keys["reader"]}
    with flight_sql.connect(server.address, db_kwargs=options, autocommit=True) as connection:
        assert rows(connection, "SELECT note FROM other.notes") == [("hello",)]


def binds_parameters(server):
    with server.connect(database="shop") as connection:
        sql = "SELECT name FROM people WHERE id = $1 OR name = $2 ORDER BY id"
        assert rows(connection, sql, (1, "cyd")) == [("ann",), ("cyd",)]
        with connection.cursor() as cursor:
            cursor.adbc_prepare(sql)
            cursor.execute(sql, (2, "nobody"))
            assert cursor.fetchall() == [("bob",)]
            cursor.execute(sql, (3, "nobody"))
            assert cursor.fetchall() == [("cyd",)]


def applies_row_policies(server):
    with server.connect("north", database="shop") as connection:
        assert rows(connection, "SELECT name FROM people ORDER BY id") == [("ann",), ("cyd",)]
        message = error_of(lambda: rows(connection, "SELECT * FROM other.notes"))
        assert "other" in message, message


def refuses_unknown_keys(server):
    for key in ("nonsense", ""):
        with server.connect_with_key(key) as connection:
            message = error_of(lambda: rows(connection, "SELECT 1"))
            assert "UNAUTHENTICATED" in message.upper() and "key" in message, message


def reports_errors(server):
    with server.connect(database="shop") as connection:
        message = error_of(lambda: rows(connection, "SELECT * FROM poeple"))
        assert "people" in message, message
        message = error_of(lambda: rows(connection, "SELECT nam FROM people"))
        assert "name" in message, message
        message = error_of(lambda: rows(connection, "DELETE FROM people"))
        assert "read" in message, message
    with server.connect(database="nowhere") as connection:
        message = error_of(lambda: rows(connection, "SELECT 1"))
        assert "nowhere" in message, message


def sensors(*values, device="pump"):
    columns = {"device": [device] * len(values), "value": list(values), "count": pyarrow.array(range(len(values)), pyarrow.uint64())}
    return pyarrow.table(columns)


def stores_rows(server):
    def send(data, mode="append", table="sensors", database="plant", **headers):
        with server.connect("writer", **headers) as connection, connection.cursor() as cursor:
            return cursor.adbc_ingest(table, data, mode=mode, catalog_name=database)

    def stored(sql="SELECT count(*) AS rows, sum(value) AS total FROM sensors"):
        with server.connect("writer", database="plant") as connection:
            return rows(connection, sql)

    assert send(sensors(1.5, 2.5)) == 2
    assert stored() == [(2, 4.0)]
    large = pyarrow.table({
        "device": pyarrow.array(["pump"] * ROWS),
        "value": pyarrow.array([float(number % 1000) for number in range(ROWS)]),
        "count": pyarrow.array([2**64 - 1 - number for number in range(ROWS)], pyarrow.uint64()),
    })
    assert send(large.to_reader(max_chunksize=10_000)) == ROWS
    assert stored() == [(ROWS + 2, 4.0 + sum(number % 1000 for number in range(ROWS)))]
    assert stored("SELECT max(count) FROM sensors") == [(2**64 - 1,)]
    # A repeat with a key stores nothing.
    for _ in range(2):
        assert send(sensors(7.5), **{"idempotency-key": "first"}) == 1
    assert stored("SELECT count(*) FROM sensors WHERE value = 7.5") == [(1,)]
    assert send(sensors(9.0), mode="replace") == 1
    assert stored() == [(1, 9.0)]
    assert send(pyarrow.table({"name": ["a"]}), mode="create_append", table="notes") == 1
    assert stored("SELECT name FROM notes") == [("a",)]


def refuses_rows(server):
    def refusal(data, role="writer", **options):
        def send():
            options.setdefault("mode", "append")
            options.setdefault("catalog_name", "plant")
            with server.connect(role) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest(options.pop("table", "sensors"), data, **options)

        return error_of(send)

    with server.connect("writer", database="plant") as connection:
        before = rows(connection, "SELECT count(*) FROM sensors")
    right = sensors(1.0)
    for message, expected in [
        (refusal(right, role="reader"), "takes rows from you"),
        (refusal(right, table="absent"), "takes rows from you"),
        (refusal(right, catalog_name="shop"), "takes rows from you"),
        (refusal(right, mode="create"), "not supported"),
        (refusal(pyarrow.table({"device": ["a"], "unknown": [1]})), "unknown"),
        (refusal(pyarrow.table({"device": pyarrow.array([None], pyarrow.string())})), "device"),
        (refusal(pyarrow.table({"device": ["a"], "value": ["warm"]})), "value"),
        (refusal(pyarrow.table({"device": ["a"], "count": [-1]})), "count"),
    ]:
        assert expected in message, (expected, message)

    # A client that ends in mid-stream. (If only the source of its rows fails, the driver ends the stream as if it were complete.)
    program = [sys.executable, __file__, "--end-in-mid-stream", server.address, server.keys["writer"]]
    assert subprocess.run(program, check=False).returncode == ENDED
    with server.connect("writer", database="plant") as connection:
        assert rows(connection, "SELECT count(*) FROM sensors") == before


def end_in_mid_stream(address, key):
    def batches():
        for _ in range(1000):
            yield sensors(*range(1000)).to_batches()[0]
        os._exit(ENDED)

    options = {adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {key}"}
    with flight_sql.connect(address, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        reader = pyarrow.RecordBatchReader.from_batches(sensors(1.0).schema, batches())
        cursor.adbc_ingest("sensors", reader, mode="append", catalog_name="plant")


def refuses_writes(server):
    with server.connect(database="shop") as connection, connection.cursor() as cursor:
        message = error_of(lambda: cursor.executemany("INSERT INTO people VALUES ($1)", [(1,)]))
        assert "read" in message, message


def lists_the_catalog(server):
    with server.connect() as connection:
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        catalogs = {}
        for catalog in objects:
            for schema in catalog["catalog_db_schemas"] or []:
                for table in schema["db_schema_tables"] or []:
                    columns = [column["column_name"] for column in table["table_columns"]]
                    catalogs[catalog["catalog_name"], schema["db_schema_name"], table["table_name"]] = columns
        assert catalogs == {
            ("shop", "", "people"): ["id", "name", "region"],
            ("other", "", "notes"): ["id", "note"],
        }, catalogs
        assert connection.adbc_get_table_types() == ["TABLE"]
        assert connection.adbc_get_info()["vendor_name"] == "Tidegate"
        schema = connection.adbc_get_table_schema("people", catalog_filter="shop")
        assert schema.names == ["id", "name", "region"] and pyarrow.types.is_integer(schema.field("id").type), schema
    with server.connect("north") as connection:
        objects = connection.adbc_get_objects(depth="catalogs").read_all().to_pylist()
        assert [catalog["catalog_name"] for catalog in objects] == ["shop"], objects


def streams_large_answers(server):
    """The memory of the server does not grow with the rows."""
    sql = f"SELECT a.value AS n, 'row ' || a.value AS text FROM generate_series(1, {ROWS}) AS a(value)"
    with server.connect(database="shop") as connection:
        assert rows(connection, f"SELECT count(*) FROM ({sql.replace(str(ROWS), '1000')}) AS t") == [(1000,)]
        before = server.memory_kib()
        with connection.cursor() as cursor:
            cursor.execute(sql)
            reader = cursor.fetch_record_batch()
            count = total = 0
            for batch in reader:
                count += batch.num_rows
                total += sum(batch.column(0).to_pylist())
        assert (count, total) == (ROWS, ROWS * (ROWS + 1) // 2), (count, total)
        grown = server.memory_kib() - before
        assert grown < 96 * 1024, f"the memory grew by {grown} KiB"


def cancels_statements(server):
    """A statement that would run for long ends when its client cancels it."""
    sql = "SELECT a.value FROM generate_series(1, 2000000000) AS a(value)"
    with server.connect(database="shop") as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        reader = cursor.fetch_record_batch()
        reader.read_next_batch()
        cursor.adbc_cancel()
        cursor.close()
    with server.connect() as connection:
        for _ in range(1000):
            running = [row for row in open_jobs(server) if "sql" in row]
            if not running:
                return
    raise AssertionError(f"the statement still runs: {running}")


def open_jobs(server):
    import urllib.request

    request = urllib.request.Request(
        f"{server.rest}/rest/jobs", headers={"authorization": f"Bearer {server.keys['reader']}", "accept": "text/csv"}
    )
    with urllib.request.urlopen(request) as response:
        lines = response.read().decode().splitlines()
    return [line for line in lines[1:] if "flight" in line or ",sql," in line]


CHECKS = [
    selects_rows,
    uses_password_as_key,
    binds_parameters,
    applies_row_policies,
    refuses_unknown_keys,
    reports_errors,
    refuses_writes,
    stores_rows,
    refuses_rows,
    lists_the_catalog,
    streams_large_answers,
    cancels_statements,
]


def run_checks(checks: list, folder: Path):
    """Runs `checks`, or those that the command line names, against one server in `folder`, and ends the program."""
    chosen = sys.argv[1:]
    server = Server(folder)
    failed = 0
    try:
        for check in checks:
            if chosen and check.__name__ not in chosen:
                continue
            try:
                check(server)
                print(f"ok      {check.__name__}")
            except Exception as error:  # a check that fails must not hide the others
                failed += 1
                print(f"FAILED  {check.__name__}: {type(error).__name__}: {error}")
    finally:
        server.process.terminate()
        server.process.wait(30)
    sys.exit(1 if failed else 0)


def main():
    if sys.argv[1:2] == ["--end-in-mid-stream"]:
        return end_in_mid_stream(*sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        run_checks(CHECKS, Path(folder))


if __name__ == "__main__":
    main()
