"""Small questions per second, and rows per second, over Flight SQL with PyPI `adbc-driver-flightsql`.

Prints one line per measurement; it asserts nothing. TIDEGATE_BINARY names the program, which should be a release build.
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import adbc_client

QUESTIONS = 3000
ROWS = 10_000_000


def questions_per_second(server, clients: int) -> float:
    share = QUESTIONS // clients

    def send_statements():
        with server.connect(database="shop") as connection, connection.cursor() as cursor:
            for _ in range(share):
                cursor.execute("SELECT count(*) FROM people")
                cursor.fetchall()

    threads = [threading.Thread(target=send_statements) for _ in range(clients)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return share * clients / (time.monotonic() - started)


def rows_per_second(server) -> float:
    sql = f"SELECT a.value AS n FROM generate_series(1, {ROWS}) AS a(value)"
    with server.connect(database="shop") as connection, connection.cursor() as cursor:
        started = time.monotonic()
        cursor.execute(sql)
        count = sum(batch.num_rows for batch in cursor.fetch_record_batch())
        assert count == ROWS, count
        return count / (time.monotonic() - started)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = adbc_client.Server(Path(folder))
        try:
            for clients in (1, 4):
                rate = questions_per_second(server, clients)
                print(f"small questions, {clients} client(s): {rate:,.0f} per second", flush=True)
            print(f"rows of one column: {rows_per_second(server):,.0f} per second")
            print(f"largest memory of the server: {server.memory_kib() / 1024:,.0f} MiB")
        finally:
            server.process.terminate()
            server.process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
