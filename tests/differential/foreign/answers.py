"""Answers of PostgreSQL and of the node in one form, and their comparison. tests/differential/README.md has the rules."""

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext

import pyarrow as pa

DOUBLE_DIFFERENCE, REAL_DIFFERENCE = 1e-12, 1e-6
# Quotients that are cut after this number of digits may differ in the last ones.
CUT_DIGITS_MIN, CUT_DIFFERENCE = 16, Decimal("1e-15")
DAY_MICROSECONDS = 86_400_000_000
MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
# Rows that are matched one with each other where sorting does not bring them together.
MATCHED_ROWS_MAX = 2_000
CLASSES = {
    "number": ("int2", "int4", "int8", "numeric", "float4", "float8", "oid"),
    "text": ("text", "varchar", "bpchar", "name", "char", "unknown", "uuid"),
    "boolean": ("bool",),
    "date": ("date",),
    "time": ("time",),
    "timestamp": ("timestamp",),
    "instant": ("timestamptz",),
    "interval": ("interval",),
    "bytes": ("bytea",),
    "json": ("json", "jsonb"),
}
CLASS_OF = {name: kind for kind, names in CLASSES.items() for name in names}


@dataclass(frozen=True)
class Float:
    number: float
    # The relative difference that its type allows.
    difference: float

    def __repr__(self):
        return repr(self.number)


@dataclass(frozen=True)
class Interval:
    months: int
    days: int
    microseconds: int


@dataclass(frozen=True)
class Json:
    text: str

    def value(self):
        return json.loads(self.text, parse_float=Decimal)


@dataclass
class Answer:
    names: list[str]
    # A class of CLASSES, an array of one (`number[]`), another type by its name, or `nothing`.
    classes: list[str]
    rows: list[list]


# ---- PostgreSQL ----


@dataclass(frozen=True)
class ServerType:
    name: str
    # Of the elements of an array.
    element: "ServerType | None" = None

    @property
    def kind(self) -> str:
        return f"{self.element.kind}[]" if self.element else CLASS_OF.get(self.name, self.name)


def from_postgres(text: str | None, of: ServerType):
    """A value from its text."""
    if text is None:
        return None
    if of.element:
        return array_of(text, of.element)
    if of.name in ("float4", "float8"):
        return Float(float(text), REAL_DIFFERENCE if of.name == "float4" else DOUBLE_DIFFERENCE)
    kind = of.kind
    if kind == "number":
        number = Decimal(text)
        return number if number.is_finite() else Float(float(text), DOUBLE_DIFFERENCE)
    if kind == "boolean":
        return text == "t"
    if kind == "json":
        return Json(text)
    return interval_of(text) if kind == "interval" else text


def interval_of(text: str) -> Interval:
    """`1 year 2 mons -3 days +04:05:06.7`"""
    months = days = microseconds = 0
    words = text.split()
    while words:
        word = words.pop(0)
        if ":" in word:
            hours, minutes, seconds = word.lstrip("+-").split(":")
            whole = (int(hours) * 60 + int(minutes)) * 60 * 10**6 + int(Decimal(seconds) * 10**6)
            microseconds = -whole if word.startswith("-") else whole
            continue
        unit = words.pop(0)
        if unit.startswith("year"):
            months += 12 * int(word)
        elif unit.startswith("mon"):
            months += int(word)
        else:
            days += int(word)
    return Interval(months, days, microseconds)


def array_of(text: str, element: ServerType) -> list:
    # Bounds that do not start at 1: `[0:2]={…}`.
    position = text.index("{")
    delimiter = ";" if element.name == "box" else ","

    def read() -> list:
        nonlocal position
        values = []
        position += 1
        while text[position] != "}":
            if text[position] == delimiter:
                position += 1
            elif text[position] == "{":
                values.append(read())
            else:
                values.append(read_element())
        position += 1
        return values

    def read_element():
        nonlocal position
        is_quoted = text[position] == '"'
        position += is_quoted
        piece = ""
        while not (text[position] == '"' if is_quoted else text[position] in f"{delimiter}}}"):
            position += text[position] == "\\"
            piece += text[position]
            position += 1
        position += is_quoted
        return None if piece == "NULL" and not is_quoted else from_postgres(piece, element)

    return read()


# ---- The node ----


def class_of_arrow(of: pa.DataType) -> str:
    types = pa.types
    if isinstance(of, pa.BaseExtensionType):
        return "text" if of.extension_name in ("arrow.uuid", "arrow.json") else class_of_arrow(of.storage_type)
    if types.is_dictionary(of):
        return class_of_arrow(of.value_type)
    if types.is_list(of) or types.is_large_list(of) or types.is_fixed_size_list(of) or types.is_list_view(of):
        return f"{class_of_arrow(of.value_type)}[]"
    checks = {
        "nothing": types.is_null,
        "boolean": types.is_boolean,
        "number": lambda of: types.is_integer(of) or types.is_floating(of) or types.is_decimal(of),
        "text": lambda of: types.is_string(of) or types.is_large_string(of) or types.is_string_view(of),
        "bytes": lambda of: types.is_binary(of) or types.is_large_binary(of) or types.is_binary_view(of) or types.is_fixed_size_binary(of),
        "date": types.is_date,
        "time": types.is_time,
        "timestamp": lambda of: types.is_timestamp(of) and of.tz is None,
        "instant": types.is_timestamp,
        "interval": lambda of: types.is_interval(of) or types.is_duration(of),
    }
    return next((name for name, check in checks.items() if check(of)), str(of))


def from_arrow(table: pa.Table) -> Answer:
    columns = [[value for chunk in column.chunks for value in values_of(chunk)] for column in table.columns]
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(table.num_rows)]
    return Answer(table.column_names, [class_of_arrow(field.type) for field in table.schema], rows)


def values_of(array: pa.Array) -> list:
    of, types = array.type, pa.types
    if isinstance(of, pa.BaseExtensionType):
        if of.extension_name == "arrow.uuid":
            return [None if value is None else str(value) for value in array.to_pylist()]
        return values_of(array.storage)
    if types.is_dictionary(of):
        return values_of(array.dictionary_decode())
    kind = class_of_arrow(of)
    if kind.endswith("[]"):
        return [values_of(scalar.values) if scalar.is_valid else None for scalar in array]
    if kind in ("timestamp", "instant", "date", "time"):
        return times_of(array, kind)
    convert = {
        "number": lambda value: number_of(value, of),
        "bytes": lambda value: "\\x" + value.hex(),
        "interval": lambda value: interval_of_arrow(value, of),
    }.get(kind, lambda value: value if isinstance(value, (bool, str)) else composite_text(value))
    return [None if value is None else convert(value) for value in array.to_pylist()]


def number_of(value, of: pa.DataType):
    if isinstance(value, float):
        if of != pa.float64():
            # The shortest text of the number, not the double that is nearest to it.
            return Float(float(pa.scalar(value, pa.float32()).cast(pa.string()).as_py()), REAL_DIFFERENCE)
        return Float(value, DOUBLE_DIFFERENCE)
    return Decimal(value)


def interval_of_arrow(value, of: pa.DataType) -> Interval:
    if pa.types.is_duration(of):
        return Interval(0, 0, pa.scalar(value, pa.duration("us")).value)
    return Interval(value.months, value.days, value.nanoseconds // 1_000)


def times_of(array: pa.Array, kind: str) -> list:
    """Dates and times as PostgreSQL writes them, since that form is unique."""
    of = array.type
    integers = array.view(pa.int32() if of.bit_width == 32 else pa.int64()).to_pylist()

    def text(value: int) -> str:
        if kind == "date":
            return day_text(value if of.bit_width == 32 else value // 86_400_000, "", "")
        microseconds = value // 1_000 if of.unit == "ns" else value * MICROSECONDS[of.unit]
        if kind == "time":
            return clock_text(microseconds)
        days, rest = divmod(microseconds, DAY_MICROSECONDS)
        return day_text(days, " " + clock_text(rest), "+00" if kind == "instant" else "")

    return [None if value is None else text(value) for value in integers]


def clock_text(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def day_text(days: int, clock: str, zone: str) -> str:
    """Days count from 1970; the year by Howard Hinnant's `civil_from_days`, because Python has only years from 1 to 9999."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= 2)
    visible, suffix = (year, "") if year > 0 else (1 - year, " BC")
    return f"{visible:04}-{month:02}-{day_of_year - (153 * shifted + 2) // 5 + 1:02}{clock}{zone}{suffix}"


def composite_text(value) -> str:
    """A struct as PostgreSQL writes a row."""
    if not isinstance(value, dict):
        return str(value)
    fields = []
    for field in value.values():
        text = "" if field is None else ("t" if field else "f") if isinstance(field, bool) else composite_text(field)
        needs_quotes = text == "" and field is not None or re.search(r'[\s,()"\\]', text)
        fields.append('"' + text.replace("\\", "\\\\").replace('"', '""') + '"' if needs_quotes else text)
    return f"({','.join(fields)})"


# ---- Comparison ----


def classes_agree(theirs: str, ours: str) -> bool:
    if ours == "nothing" or theirs == ours:
        return True
    if theirs.endswith("[]") and ours.endswith("[]"):
        # PostgreSQL's arrays of several dimensions have the type of one-dimensional arrays.
        return classes_agree(theirs.rstrip("[]"), ours.rstrip("[]"))
    is_other = theirs not in CLASSES
    return (theirs == "json" or is_other) and (ours == "text" or ours.startswith("struct"))


def same(theirs, ours) -> bool:
    if theirs is None or ours is None:
        return theirs is None and ours is None
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    if isinstance(theirs, (Decimal, Float)) and isinstance(ours, (Decimal, Float)):
        return same_number(theirs, ours)
    if isinstance(theirs, Json):
        try:
            return isinstance(ours, str) and same_json(theirs.value(), Json(ours).value())
        except ValueError:
            return theirs.text == ours
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    return theirs == ours


def same_number(theirs, ours) -> bool:
    if isinstance(theirs, Decimal) and isinstance(ours, Decimal):
        return same_decimal(theirs, ours)
    difference = max(number.difference for number in (theirs, ours) if isinstance(number, Float))
    one, other = (number.number if isinstance(number, Float) else float(number) for number in (theirs, ours))
    return one == other or math.isnan(one) and math.isnan(other) or math.isclose(one, other, rel_tol=difference)


def same_decimal(theirs: Decimal, ours: Decimal) -> bool:
    """Equal when ours, rounded to the scale of PostgreSQL's, is the same number."""
    if theirs == ours:
        return True
    with localcontext() as exact:
        exact.prec = 2_000
        scale = max(0, -theirs.as_tuple().exponent)
        try:
            is_rounded = ours.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP") == theirs
        except InvalidOperation:
            return False
        if is_rounded and -ours.as_tuple().exponent > scale:
            return True
        is_cut = min(scale, max(0, -ours.as_tuple().exponent)) >= CUT_DIGITS_MIN
        return is_cut and abs(theirs - ours) <= CUT_DIFFERENCE * max(abs(theirs), abs(ours))


def same_json(theirs, ours) -> bool:
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    if isinstance(theirs, (int, Decimal)) and isinstance(ours, (int, Decimal)):
        return theirs == ours or math.isclose(theirs, ours, rel_tol=DOUBLE_DIFFERENCE)
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(same_json, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(same_json(value, ours[name]) for name, value in theirs.items())
    return type(theirs) is type(ours) and theirs == ours


def sorting_key(value) -> str:
    """The same for equal values, but for floating point that is rounded apart."""
    if isinstance(value, Decimal):
        return f"{float(value) + 0.0:.8e}"
    if isinstance(value, Float):
        return f"{value.number + 0.0:.8e}"
    if isinstance(value, list):
        return ",".join(map(sorting_key, value))
    if isinstance(value, Json):
        value = value.text
    return re.sub(r"\s", "", value) if isinstance(value, str) else repr(value)


def rows_same(theirs: list, ours: list) -> bool:
    return all(map(same, theirs, ours))


def as_multiset(theirs: list[list], ours: list[list]) -> bool:
    def ordered(rows):
        return sorted(rows, key=lambda row: [sorting_key(value) for value in row])

    if all(map(rows_same, ordered(theirs), ordered(ours))):
        return True
    if len(theirs) > MATCHED_ROWS_MAX:
        return False
    rest = list(ours)
    for row in theirs:
        place = next((index for index, other in enumerate(rest) if rows_same(row, other)), None)
        if place is None:
            return False
        rest.pop(place)
    return True


def difference_of(theirs: Answer, ours: Answer, order: list[int] | None) -> str | None:
    """Why two answers differ. `order`: the columns whose sequence the statement fixes."""
    if len(theirs.names) != len(ours.names):
        return f"{len(ours.names)} columns instead of {len(theirs.names)}"
    for number, (one, other) in enumerate(zip(theirs.classes, ours.classes, strict=True), 1):
        if not classes_agree(one, other):
            return f"column {number} is {other} instead of {one}"
    if len(theirs.rows) != len(ours.rows):
        return f"{len(ours.rows)} rows instead of {len(theirs.rows)}"
    if not as_multiset(theirs.rows, ours.rows):
        return "other values"
    for column in order or []:
        if not all(same(one[column], other[column]) for one, other in zip(theirs.rows, ours.rows, strict=True)):
            return f"another order by column {column + 1}"
    return None


def named_apart(names: list[str]) -> list[str]:
    """The names of columns as docs/reference/values.md makes them unique."""
    seen: set[str] = set()
    result = []
    for name in names:
        unique, number = name, 2
        while unique in seen:
            unique, number = f"{name}_{number}", number + 1
        seen.add(unique)
        result.append(unique)
    return result
