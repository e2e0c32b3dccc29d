"""Other implementations read a file: each reading is a table with the names of its columns and their values."""

import bz2
import csv
import gzip
import io
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from values import DECODER, plain, same, same_as_json, same_as_text

FIELD_CHARACTERS_MAX = 1 << 30
# What pyarrow's validation finds in files of older writers, and reads all the same.
HARMLESS = ("does not represent a whole number of days", "does not fit in precision of")
# The white space of JSON.
BLANK = re.compile(r"[ \t\r\n]*")
# That of Unicode; Python strips four control characters more.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
DELIMITERS = ",;\t|"
csv.field_size_limit(FIELD_CHARACTERS_MAX)


@dataclass
class Reading:
    reader: str
    names: list[str]
    columns: list[list]
    # Whether our value is the one that this reader has.
    agrees: Callable[[object, object], bool] = same
    # Whether the node has the columns, and the rows, in this order.
    has_ordered_columns: bool = True
    has_ordered_rows: bool = True

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def from_table(reader: str, table: pa.Table, has_ordered_columns: bool = True) -> Reading:
    columns = [[value for chunk in column.chunks for value in plain(chunk)] for column in table.columns]
    return Reading(reader, named_columns(table.column_names), columns, has_ordered_columns=has_ordered_columns, has_ordered_rows=False)


def columns_of(rows: list[list], width: int) -> list[list]:
    return [[row[index] for row in rows] for index in range(width)]


def parquet_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    # INT96 in nanoseconds would wrap around outside of 1677 to 2262.
    yield lambda: from_table("pyarrow", pa.parquet.ParquetFile(path, coerce_int96_timestamp_unit="us").read())
    yield lambda: from_table("duckdb", duckdb.sql("SELECT * FROM read_parquet(?, hive_partitioning=false)", params=[str(path)]).to_arrow_table())
    yield lambda: from_table("polars", polars.read_parquet(path, hive_partitioning=False).to_arrow())


def arrow_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    def stream() -> pa.Table:
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_stream(file).read_all()

    def file() -> pa.Table:
        with pa.OSFile(str(path)) as file:
            return pa.ipc.open_file(file).read_all()

    def read() -> Reading:
        with open(path, "rb") as file_:
            is_file = file_.read(6) == b"ARROW1"
        table = file() if is_file else stream()
        try:
            # Fuzzed files have offsets and indexes beyond their buffers.
            table.validate(full=True)
        except pa.ArrowInvalid as error:
            if not any(harmless in str(error) for harmless in HARMLESS):
                raise
        return from_table("pyarrow", table)

    yield read


def decoded(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".bz2":
        return bz2.decompress(content)
    if path.suffix == ".xz":
        return lzma.decompress(content)
    if path.suffix == ".zst":
        return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return content


def text_of(path: Path) -> str:
    content = decoded(path)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def csv_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    """Python's `csv` with each delimiter, with and without a header; then DuckDB."""
    has_columns = duckdb_finds_columns(path)
    for delimiter in DELIMITERS:
        for has_header in (True, False):
            # A blank line is no row, except of a single column, where it is an empty value.
            for keeps_blank in (False, True):

                def read(delimiter=delimiter, has_header=has_header, keeps_blank=keeps_blank) -> Reading:
                    rows = csv_rows(path, delimiter, keeps_blank)
                    if has_columns and len(rows[0]) == 1:
                        raise ValueError(f"{delimiter!r} is not its delimiter")
                    return csv_reading(rows, delimiter, has_header)

                yield read
    yield lambda: duckdb_csv_reading(path)


def duckdb_finds_columns(path: Path) -> bool:
    """Whether DuckDB splits the lines. A wrong delimiter would make one column of any text."""
    try:
        [(delimiter, columns)] = duckdb.sql("SELECT Delimiter, len(Columns) FROM sniff_csv(?)", params=[str(path)]).fetchall()
    except duckdb.Error:
        return False
    return columns > 1 and delimiter in DELIMITERS


def csv_rows(path: Path, delimiter: str, keeps_blank: bool) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text_of(path), newline=""), delimiter=delimiter, strict=True))
    rows = [row or [""] for row in rows if row or keeps_blank]
    uneven = next((index for index, row in enumerate(rows, 1) if len(row) != len(rows[0])), None)
    if uneven is not None:
        raise ValueError(f"row {uneven} has another length")
    return rows


def csv_reading(rows: list[list[str]], delimiter: str, has_header: bool) -> Reading:
    width = len(rows[0]) if rows else 0
    names = [name.strip(WHITE_SPACE) for name in rows[0]] if has_header and rows else [""] * width
    reader = f"csv, {delimiter!r}{'' if has_header else ', no header'}"
    return Reading(reader, named_columns(names), columns_of(rows[int(has_header) :], width), same_as_text)


def duckdb_csv_reading(path: Path) -> Reading:
    table = duckdb.sql("SELECT * FROM read_csv(?, all_varchar=true)", params=[str(path)]).to_arrow_table()
    # An empty value is null there.
    columns = [["" if value is None else value for value in column.to_pylist()] for column in table.columns]
    return Reading("duckdb", named_columns(table.column_names), columns, same_as_text)


def named_columns(given: list[str]) -> list[str]:
    """Columns without a name, and those with the same, have names of the node (docs/reference/values.md)."""
    names: list[str] = []
    for index, name in enumerate(given, 1):
        name, number = name or f"column_{index}", 2
        unique = name
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return names


def json_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    def read() -> Reading:
        # RFC 8259 is UTF-8.
        text = decoded(path).decode("utf-8-sig")
        documents = documents_of(text)
        if len(documents) == 1 and isinstance(documents[0], list):
            documents = documents[0]
        if not all(isinstance(document, dict) for document in documents):
            raise ValueError("it has other values than objects")
        names = list(dict.fromkeys(name for document in documents for name in document))
        rows = [[document.get(name) for name in names] for document in documents]
        return Reading("json", named_columns(names), columns_of(rows, len(names)), same_as_json, has_ordered_columns=False)

    yield read


def documents_of(text: str) -> list:
    """The document, or those one after the other."""
    documents, position = [], 0
    while blank := BLANK.match(text, position):
        position = blank.end()
        if position == len(text):
            break
        document, position = DECODER.raw_decode(text, position)
        documents.append(document)
    return documents


def log_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    """The lines of a log, which its entries have one after the other."""

    def read() -> Reading:
        lines = text_of(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
        return Reading("lines", ["entry_text"], [lines])

    yield read


def delta_readings(path: Path) -> Iterator[Callable[[], Reading]]:
    def by_deltalake() -> Reading:
        table = deltalake.DeltaTable(path)
        rows = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
        return from_table("deltalake", pa.table(rows), has_ordered_columns=False)

    def by_pyarrow() -> Reading:
        return from_table("deltalake with pyarrow", deltalake.DeltaTable(path).to_pyarrow_table(), has_ordered_columns=False)

    yield by_deltalake
    yield by_pyarrow


READINGS = {
    "parquet": parquet_readings,
    "arrow": arrow_readings,
    "csv": csv_readings,
    "json": json_readings,
    "log": log_readings,
    "delta": delta_readings,
}
