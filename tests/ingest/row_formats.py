"""Rows as bodies of each format, and answers of each format as rows. Written here by hand where a library could lose a value."""

import base64
import gzip
import io
import json
import re
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet
from sample_rows import COLUMNS, DAY_US, bits

MEDIA_TYPES = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
CODINGS = ["", "gzip", "zstd"]
ANSWERS = ["ndjson", "csv", "arrow", "parquet"]
ROW = pa.field("row", pa.int64(), nullable=False)
SCHEMA = pa.schema([ROW, *(pa.field(column.name, column.arrow) for column in COLUMNS)])
BY_NAME = {column.name: column for column in COLUMNS}

# ---- Days and times as text, and back ----


def date_text(day: int) -> str:
    """The civil date of a day since 1970, by the algorithm of Howard Hinnant."""
    era, of_era = divmod(day + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day_of_month, month = of_year - (153 * shifted + 2) // 5 + 1, shifted + 3 if shifted < 10 else shifted - 9
    return f"{year_of_era + era * 400 + (month <= 2):04}-{month:02}-{day_of_month:02}"


def day_of(text: str) -> int:
    year, month, day = map(int, text.split("-"))
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - 719_468


def clock_text(value: int, digits: int) -> str:
    seconds, fraction = divmod(value, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def clock_of(text: str, digits: int) -> int:
    whole, _, fraction = text.partition(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    assert len(fraction) <= digits, text
    return (hours * 3600 + minutes * 60 + seconds) * 10**digits + int(fraction.ljust(digits, "0"))


def moment_text(value: int, arrow: pa.TimestampType) -> str:
    digits = {"us": 6, "ns": 9}[arrow.unit]
    day, clock = divmod(value, 86_400 * 10**digits)
    return f"{date_text(day)}T{clock_text(clock, digits)}{'Z' if arrow.tz else ''}"


def moment_of(text: str, arrow: pa.TimestampType) -> int:
    digits = {"us": 6, "ns": 9}[arrow.unit]
    assert text.endswith("Z") == bool(arrow.tz), text
    date, clock = text.removesuffix("Z").split("T")
    return day_of(date) * 86_400 * 10**digits + clock_of(clock, digits)


def float_of(value: str) -> float:
    return struct.unpack(">d", bytes.fromhex(value))[0] if value != "nan" else float("nan")


def float_text(value: str, arrow: pa.DataType) -> str:
    number = float_of(value)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)


# ---- Rows to bodies ----


def text_of(value, arrow: pa.DataType) -> str:
    """A value as text, without the quotes of JSON or CSV."""
    if pa.types.is_floating(arrow):
        return float_text(value, arrow)
    if pa.types.is_boolean(arrow):
        return "true" if value else "false"
    if pa.types.is_decimal(arrow):
        return f"{value:f}"
    if pa.types.is_binary(arrow):
        return base64.b64encode(value).decode()
    if pa.types.is_date(arrow):
        return date_text(value)
    if pa.types.is_time(arrow):
        return clock_text(value, 6)
    if pa.types.is_timestamp(arrow):
        return moment_text(value, arrow)
    return str(value)


def json_of(value, arrow: pa.DataType) -> str:
    if value is None:
        return "null"
    text = text_of(value, arrow)
    is_bare = pa.types.is_integer(arrow) or pa.types.is_decimal(arrow) or pa.types.is_boolean(arrow)
    is_bare = is_bare or pa.types.is_floating(arrow) and text[-1] not in "Ny"
    return text if is_bare else json.dumps(text, ensure_ascii="\u0308" in text)


def object_of(row: dict) -> str:
    members = [f'"row": {row["row"]}', *(f'"{column.name}": {json_of(row[column.name], column.arrow)}' for column in COLUMNS)]
    return "{" + ", ".join(members) + "}"


def csv_field(value, arrow: pa.DataType) -> str:
    """An empty field is null. All text has quotes, so that it is never null."""
    if value is None:
        return ""
    text = text_of(value, arrow)
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return '"' + text.replace('"', '""') + '"'
    return text


def csv_body(rows: list[dict]) -> bytes:
    lines = [",".join(["row", *BY_NAME])]
    lines += [",".join([str(row["row"]), *(csv_field(row[column.name], column.arrow) for column in COLUMNS)]) for row in rows]
    return ("\r\n".join(lines) + "\r\n").encode()


def arrow_table(rows: list[dict]) -> pa.Table:
    columns = [pa.array([row["row"] for row in rows], pa.int64())]
    for column in COLUMNS:
        values = [row[column.name] for row in rows]
        if column.is_float():
            values = [None if value is None else float_of(value) for value in values]
        columns.append(arrow_array(values, column.arrow))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def arrow_array(values: list, arrow: pa.DataType) -> pa.Array:
    """Times from their integers."""
    if pa.types.is_date(arrow):
        return pa.array(values, pa.int32()).view(arrow)
    if pa.types.is_time(arrow) or pa.types.is_timestamp(arrow):
        return pa.array(values, pa.int64()).view(arrow)
    return pa.array(values, arrow)


def body_of(rows: list[dict], kind: str) -> bytes:
    if kind == "json":
        return ("[" + ",\n".join(map(object_of, rows)) + "]").encode()
    if kind == "ndjson":
        return ("\n".join(map(object_of, rows)) + "\n").encode()
    if kind == "csv":
        return csv_body(rows)
    sink = io.BytesIO()
    if kind == "arrow":
        with pa.ipc.new_stream(sink, SCHEMA) as writer:
            writer.write_table(arrow_table(rows), max_chunksize=17)
    else:
        # Without `coerce_timestamps`, nanoseconds are kept.
        pa.parquet.write_table(arrow_table(rows), sink, row_group_size=40)
    return sink.getvalue()


def encoded(body: bytes, coding: str) -> bytes:
    if coding == "gzip":
        return gzip.compress(body)
    if coding == "zstd":
        return pa.compress(body, codec="zstd", asbytes=True)
    return body


# ---- Answers to rows ----


def value_of(text, arrow: pa.DataType):
    """A value from the text of JSON or CSV."""
    if text is None or pa.types.is_string(arrow):
        return text
    if pa.types.is_integer(arrow):
        assert re.fullmatch(r"-?\d+", str(text)), text
        return int(text)
    if pa.types.is_floating(arrow):
        # The digits read back the same as a float of the width of the column, and a double is read with all its digits.
        number = float(text)
        return bits(struct.unpack("f", struct.pack("f", number))[0] if arrow == pa.float32() and abs(number) < 3.5e38 else number)
    if pa.types.is_boolean(arrow):
        return {"true": True, "false": False}[str(text).lower()]
    if pa.types.is_decimal(arrow):
        return Decimal(str(text))
    if pa.types.is_binary(arrow):
        return base64.b64decode(text, validate=True)
    if pa.types.is_date(arrow):
        return day_of(text)
    if pa.types.is_time(arrow):
        return clock_of(text, 6)
    return moment_of(text, arrow)


def typed(row: dict) -> dict:
    return {name: value_of(text, SCHEMA.field(name).type) for name, text in row.items()}


def csv_records(text: str) -> list[list]:
    """The records of CSV; a field that is empty and without quotes is None."""
    records, record, position = [], [], 0
    while position < len(text):
        if text[position] == '"':
            field, position = "", position + 1
            while True:
                end = text.index('"', position)
                field += text[position:end]
                position = end + 1
                if text[position] != '"':
                    break
                field, position = field + '"', position + 1
        else:
            end = re.compile(r"[,\r]").search(text, position).start()
            field, position = text[position:end] or None, end
        record.append(field)
        if text[position] == ",":
            position += 1
            continue
        assert text[position : position + 2] == "\r\n", text[position - 20 : position + 20]
        records.append(record)
        record, position = [], position + 2
    return records


def arrow_rows(table: pa.Table) -> list[dict]:
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        kind = column.type
        if pa.types.is_date32(kind):
            column = column.view(pa.int32())
        elif pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
            column = column.view(pa.int64())
        values = column.to_pylist()
        columns[name] = [None if value is None else bits(value) for value in values] if pa.types.is_floating(kind) else values
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(answer: bytes, kind: str) -> tuple[list[dict], dict]:
    """The rows of an answer, and the types of its columns if it has any."""
    if kind == "ndjson":
        # Numbers stay text, so that no digit is lost before it is compared.
        decode = json.JSONDecoder(parse_int=str, parse_float=str).decode
        return [typed(decode(line)) for line in answer.decode().split("\n") if line], {}
    if kind == "csv":
        header, *records = csv_records(answer.decode())
        return [typed(dict(zip(header, record, strict=True))) for record in records], {}
    table = pa.ipc.open_stream(answer).read_all() if kind == "arrow" else pa.parquet.read_table(io.BytesIO(answer))
    return arrow_rows(table), {field.name: field.type for field in table.schema}
