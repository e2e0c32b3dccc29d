"""The tables of a server as files of Parquet, or of Arrow where Parquet has no such type, in the state that they have now."""

import hashlib
import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from answers import Answer, Interval, from_postgres
from server import Server, ServerError

ROWS_MAX = 200_000
# Of the rows of a table `t`: backwards, and shuffled.
SEQUENCES = ("row_number() OVER () DESC", "md5(t::text)")
NUMERIC_DIGITS_MAX = 38
# The relations that a statement can name without a schema.
RELATIONS = """SELECT relname, oid FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') AND pg_table_is_visible(oid)
    AND relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"""
COLUMNS = """SELECT attname, format_type(CASE WHEN typtype = 'd' THEN typbasetype ELSE atttypid END, CASE WHEN typtype = 'd' THEN typtypmod ELSE atttypmod END),
    CASE WHEN typtype = 'd' THEN typbasetype ELSE atttypid END
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
TIMES = {"date": pa.date32(), "timestamp without time zone": pa.timestamp("us"), "timestamp with time zone": pa.timestamp("us", "UTC")}
SIMPLE = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "character varying": pa.string(),
    "name": pa.string(),
    "time without time zone": pa.time64("us"),
    "bytea": pa.binary(),
    "json": pa.json_(pa.string()),
    "jsonb": pa.json_(pa.string()),
    "uuid": pa.uuid(),
    "interval": pa.month_day_nano_interval(),
}
OF_ELEMENTS = ("smallint", "integer", "bigint", "real", "double precision", "boolean", "text", "character varying", "name")


class Unrepresentable(Exception):
    """No file has this type or this value."""


@dataclass
class TableFile:
    path: Path | None
    # The columns that no file can have, by the reason.
    missing: dict[str, str] = field(default_factory=dict)
    reason: str = ""


class TableFiles:
    """The files of one database, below a folder: one for each state of a table."""

    def __init__(self, server: Server, folder: Path):
        self.server = server
        self.folder = folder
        self.changes = 0
        self.relations: dict[str, str] = {}
        self.relations_at = -1
        # By relation: the number of changes after which the file was made.
        self.files: dict[str, tuple[int, TableFile]] = {}
        self.by_state: dict[str, TableFile] = {}

    def mentioned(self, bare: str) -> dict[str, TableFile]:
        """The files of the tables that a statement (its texts left out) mentions, in their present state."""
        if self.relations_at != self.changes:
            self.relations = dict(self.server.rows(RELATIONS))
            self.relations_at = self.changes
        words = {word.lower() for word in re.findall(r'(?<!")\b[A-Za-z_]\w*\b(?!")', bare)} | set(re.findall(r'"([^"]+)"', bare))
        return {name: self.file_of(name) for name in sorted(words & self.relations.keys())}

    def file_of(self, name: str) -> TableFile:
        made_at, file = self.files.get(name, (-1, None))
        if made_at != self.changes:
            file = self.present_file(name)
            self.files[name] = (self.changes, file)
        return file

    def present_file(self, name: str) -> TableFile:
        try:
            with self.server.undone():
                return self.export(name)
        except (ServerError, Unrepresentable) as error:
            return TableFile(None, reason=f"{name}: {error}")

    def answer_over(self, sequence: str, sql: str, names: list[str]) -> Answer:
        """PostgreSQL's answer over the same rows in another sequence, one of SEQUENCES: copies hide the tables."""
        with self.server.undone():
            ((path,),) = self.server.rows("SELECT current_setting('search_path')")
            self.server.run("CREATE SCHEMA sequenced")
            for name in names:
                quoted = '"' + name.replace('"', '""') + '"'
                self.server.run(f"CREATE TABLE sequenced.{quoted} AS SELECT t.* FROM {quoted} t ORDER BY {sequence}")
            # Temporary tables are found first unless the path says otherwise.
            self.server.run(f"SET LOCAL search_path = sequenced, pg_temp, {path}")
            return self.server.answer(sql)

    def export(self, name: str) -> TableFile:
        quoted = '"' + name.replace('"', '""') + '"'
        ((count,),) = self.server.rows(f"SELECT count(*) FROM (SELECT FROM {quoted} LIMIT {ROWS_MAX + 1}) t")
        if int(count) > ROWS_MAX:
            raise Unrepresentable("it has too many rows")
        columns = self.server.rows(COLUMNS.format(self.relations[name]))
        ((rows,),) = self.server.rows(f"SELECT md5(string_agg(t::text, E'\\n')) FROM {quoted} t")
        state = hashlib.sha256(repr((name, columns, count, rows)).encode()).hexdigest()
        if state not in self.by_state:
            self.by_state[state] = self.written(name, quoted, columns, state)
        return self.by_state[state]

    def written(self, name: str, quoted: str, columns: list, state: str) -> TableFile:
        arrays, missing = {}, {}
        names = ", ".join(expression_of(column, of) for column, of, _ in columns)
        texts = list(zip(*self.server.rows(f"SELECT {names} FROM {quoted}"), strict=True)) or [()] * len(columns)
        for (column, of, oid), values in zip(columns, texts, strict=True):
            try:
                arrays[column] = array_of(values, of, self.server.type_of(int(oid)))
            except (Unrepresentable, ValueError, OverflowError, pa.ArrowException) as error:
                missing[column] = str(error)
        if not arrays:
            return TableFile(None, reason=f"{name}: no column of it can be in a file")
        table = pa.table(arrays)
        needs_arrow = any(field.type == SIMPLE["interval"] for field in table.schema)
        path = self.folder / f"{state}.{'arrow' if needs_arrow else 'parquet'}"
        if needs_arrow:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, path)
        return TableFile(path, missing)


def expression_of(column: str, of: str) -> str:
    """What is selected of a column: dates and times as the numbers that Arrow has."""
    name = '"' + column.replace('"', '""') + '"'
    if of == "date":
        return f"CASE WHEN isfinite({name}) THEN ({name} - date '1970-01-01')::text ELSE 'infinite' END"
    if of in TIMES:
        return f"CASE WHEN isfinite({name}) THEN (extract(epoch FROM {name}) * 1000000)::bigint::text WHEN {name} IS NOT NULL THEN 'infinite' END"
    if of == "time without time zone":
        return f"(extract(epoch FROM {name}) * 1000000)::bigint"
    return f"encode({name}, 'hex')" if of == "bytea" else name


def array_of(texts: tuple, of: str, server_type) -> pa.Array:
    if of in TIMES:
        return pa.array([None if text is None else int(text) for text in texts], pa.int32() if of == "date" else pa.int64()).view(TIMES[of])
    if re.fullmatch(r"numeric(\(.*\))?", of):
        return decimals(texts, of)
    base = of.partition("(")[0]
    element = base.removesuffix("[]")
    if base.endswith("[]") and element in OF_ELEMENTS:
        return lists(texts, SIMPLE[element], server_type)
    if base not in SIMPLE:
        raise Unrepresentable(f"no file has the type {of}")
    return scalars(texts, base, server_type)


def scalars(texts: tuple, base: str, server_type) -> pa.Array:
    kind = SIMPLE[base]
    if base in ("json", "jsonb", "uuid"):
        if base == "uuid":
            storage = pa.array([None if text is None else bytes.fromhex(text.replace("-", "")) for text in texts], pa.binary(16))
        else:
            storage = pa.array(texts, pa.string())
        return pa.ExtensionArray.from_storage(kind, storage)
    converts = {
        "bytea": bytes.fromhex,
        "interval": lambda text: month_day_nano(from_postgres(text, server_type)),
        "boolean": lambda text: text == "t",
        "real": float,
        "double precision": float,
    }
    convert = converts.get(base, int if base in ("smallint", "integer", "bigint", "time without time zone") else str)
    values = [None if text is None else convert(text) for text in texts]
    if base == "time without time zone":
        if any(value == 86_400_000_000 for value in values):
            raise Unrepresentable("no file has the time 24:00:00")
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def month_day_nano(interval: Interval):
    return pa.MonthDayNano([interval.months, interval.days, interval.microseconds * 1_000])


def lists(texts: tuple, element: pa.DataType, server_type) -> pa.Array:
    def value(one):
        return int(one) if isinstance(one, Decimal) else one if isinstance(one, (bool, str)) or one is None else one.number

    rows = [None if text is None else from_postgres(text, server_type) for text in texts]
    if any(isinstance(one, list) for row in rows for one in row or []) or any(text and text.startswith("[") for text in texts):
        raise Unrepresentable("no file has an array of several dimensions, or with other bounds")
    return pa.array([None if row is None else [value(one) for one in row] for row in rows], pa.list_(element))


def decimals(texts: tuple, of: str) -> pa.Array:
    numbers = [None if text is None else Decimal(text) for text in texts]
    finite = [number for number in numbers if number is not None]
    if not all(number.is_finite() for number in finite):
        raise Unrepresentable("no file has a numeric that is not finite")
    if found := re.fullmatch(r"numeric\((\d+),(\d+)\)", of):
        precision, scale = int(found[1]), int(found[2])
    else:
        precision, scale = NUMERIC_DIGITS_MAX, max((-number.as_tuple().exponent for number in finite), default=0)
    if precision > NUMERIC_DIGITS_MAX:
        raise Unrepresentable("no file has so many digits")
    return pa.array(numbers, pa.decimal128(precision, scale))
