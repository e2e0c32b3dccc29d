"""A connection to the PostgreSQL server of TIDEGATE_TEST_POSTGRES, which returns values as the texts of its protocol."""

import contextlib
import os
import re
from pathlib import Path

from answers import Answer, ServerType, from_postgres
from psycopg import pq

STATEMENT_SECONDS_MAX = 60
# What a node has, too.
SETTINGS = f"SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; SET intervalstyle = 'postgres'; SET statement_timeout = '{STATEMENT_SECONDS_MAX}s'"
COPY_FROM_FILE = re.compile(r"""(copy\s+[^;]*?\bfrom\s+)'(/[^']*)'""", re.IGNORECASE | re.DOTALL)
ANSWERED = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


class ServerError(Exception):
    """The server does not answer this statement."""


class Server:
    """Runs as long as the block."""

    def __init__(self, database: str):
        self.database = database
        self.types: dict[int, ServerType] = {}

    def __enter__(self):
        self.connection = pq.PGconn.connect(f"{os.environ['TIDEGATE_TEST_POSTGRES']} dbname={self.database}".encode())
        if self.connection.status != pq.ConnStatus.OK:
            raise ServerError(self.connection.error_message.decode())
        # Scripts have many notices.
        self.connection.notice_handler = lambda _: None
        self.run(SETTINGS)
        return self

    def __exit__(self, *_):
        self.connection.finish()

    @property
    def is_in_transaction(self) -> bool:
        return self.connection.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)

    @contextlib.contextmanager
    def undone(self):
        """What the block does in the server is undone afterwards, whether it is in a transaction of the script or not."""
        is_nested = self.is_in_transaction
        self.run("SAVEPOINT undone" if is_nested else "BEGIN")
        try:
            yield
        finally:
            self.run("ROLLBACK TO undone; RELEASE undone" if is_nested else "ROLLBACK")

    def run(self, sql: str, rows: bytes | None = None):
        """The result of a statement. Of a COPY, `rows` is what it copies; a file that it names is sent from here."""
        if found := COPY_FROM_FILE.match(sql):
            if not Path(found[2]).is_file():
                raise ServerError(f"{found[2]} does not exist")
            sql, rows = f"{found[1]}STDIN{sql[found.end() :]}", Path(found[2]).read_bytes()
        result = self.connection.exec_(sql.encode())
        if result.status == pq.ExecStatus.COPY_IN:
            self.connection.put_copy_data(rows or b"")
            self.connection.put_copy_end()
            result = self.rest()
        elif result.status == pq.ExecStatus.COPY_OUT:
            while self.connection.get_copy_data(0)[0] > 0:
                pass
            result = self.rest()
        if result.status not in ANSWERED:
            message = result.error_message.decode(errors="replace").strip()
            raise ServerError(message or f"the server returned {result.status}")
        return result

    def rest(self):
        """The last of the results that are still to come."""
        result = last = self.connection.get_result()
        while result is not None:
            last, result = result, self.connection.get_result()
        return last

    def rows(self, sql: str) -> list[list[str | None]]:
        result = self.run(sql)
        return [[text_of(result, row, column) for column in range(result.nfields)] for row in range(result.ntuples)]

    def answer(self, sql: str) -> Answer:
        result = self.run(sql)
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise ServerError("the statement has no rows")
        types = [self.type_of(result.ftype(column)) for column in range(result.nfields)]
        names = [result.fname(column).decode(errors="replace") for column in range(result.nfields)]
        rows = [[from_postgres(text_of(result, row, column), of) for column, of in enumerate(types)] for row in range(result.ntuples)]
        return Answer(names, [of.kind for of in types], rows)

    def type_of(self, oid: int) -> ServerType:
        if oid not in self.types:
            if self.connection.transaction_status == pq.TransactionStatus.INERROR:
                raise ServerError("the transaction has failed")
            sql = f"SELECT typname, typtype, typbasetype, CASE WHEN left(typname, 1) = '_' THEN typelem ELSE 0 END FROM pg_type WHERE oid = {oid}"
            ((name, kind, base, element),) = self.rows(sql)
            if kind == "d":
                self.types[oid] = self.type_of(int(base))
            elif kind == "e":
                self.types[oid] = ServerType("text")
            else:
                self.types[oid] = ServerType(name, self.type_of(int(element)) if int(element) else None)
        return self.types[oid]


def text_of(result, row: int, column: int) -> str | None:
    value = result.get_value(row, column)
    return None if value is None else value.decode(errors="replace")
