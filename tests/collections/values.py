"""Values of Arrow arrays as plain values of Python, without loss, and their comparison with those of other readers.

Times are whole nanoseconds, whatever their unit; decimals and floats of the same value are equal.
"""

import json
import math
import re
import uuid
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The texts that mean null in columns of CSV files whose type is not text (docs/reference/files.md).
NULL_TEXTS = {"", "NULL", "null", "Null", "NA", "N/A", "n/a", "#N/A", "None", "-", "\\N"}
EXACT = Context(prec=2_000)


class Moment(tuple):
    """A kind of time (date, time, timestamp, …) and nanoseconds."""


def moments(kind: str, array: pa.Array, unit: int) -> list:
    integers = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    return [None if value is None else Moment((kind, value * unit)) for value in integers]


def plain(array: pa.Array) -> list:
    """The values of an array."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        values = plain(array.storage)
        is_uuid = kind.extension_name == "arrow.uuid"
        return [str(uuid.UUID(bytes=value)) if is_uuid and value is not None else value for value in values]
    if types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array))
    if types.is_timestamp(kind):
        return moments("timestamp" if kind.tz is None else "timestamptz", array, NANOSECONDS[kind.unit])
    if types.is_date32(kind):
        return moments("date", array, 86_400 * 10**9)
    if types.is_date64(kind):
        return moments("date", array, 10**6)
    if types.is_time(kind):
        return moments("time", array, NANOSECONDS[kind.unit])
    if types.is_duration(kind):
        return moments("duration", array, NANOSECONDS[kind.unit])
    if types.is_struct(kind):
        names = [field.name for field in kind]
        columns = [plain(column) for column in array.flatten()]
        is_valid = array.is_valid().to_pylist()
        return [tuple((name, column[row]) for name, column in zip(names, columns, strict=True)) if valid else None for row, valid in enumerate(is_valid)]
    if types.is_map(kind):
        return [None if not scalar.is_valid else [tuple(value for _, value in entry) for entry in plain(scalar.values)] for scalar in array]
    if types.is_nested(kind) and not types.is_union(kind):
        return [plain(scalar.values) if scalar.is_valid else None for scalar in array]
    return array.to_pylist()


def same(ours, theirs) -> bool:
    """Whether our value is that of another reader of the same typed file."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, (int, float, Decimal)) and isinstance(theirs, (int, float, Decimal)):
        return same_number(ours, theirs)
    if isinstance(ours, str) and isinstance(theirs, bytes):
        # Enumerations and UUIDs are text.
        return ours.encode() == theirs or len(theirs) == 16 and ours == str(uuid.UUID(bytes=theirs))
    if isinstance(ours, Moment) or isinstance(theirs, Moment):
        return type(ours) is type(theirs) and ours == theirs
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def same_number(ours, theirs) -> bool:
    nans = [isinstance(value, float) and math.isnan(value) or isinstance(value, Decimal) and value.is_nan() for value in (ours, theirs)]
    if any(nans):
        return all(nans)
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
    return ours == theirs


def same_as_text(ours, text: str) -> bool:
    """Whether our value, of whatever type, is what `text` says, and converts back to it (apart from the zeros of a fraction)."""
    if isinstance(ours, str):
        return ours == text
    if ours is None:
        return text in NULL_TEXTS
    if isinstance(ours, bool):
        return text.lower() == str(ours).lower()
    if isinstance(ours, int):
        return text == str(ours) or text == f"-{ours}" and ours == 0
    if isinstance(ours, (float, Decimal)):
        return same_as_number_text(ours, text)
    if isinstance(ours, Moment):
        return ours == moment_of(ours[0], text)
    return False


def same_as_number_text(ours, text: str) -> bool:
    if isinstance(ours, float) and not math.isfinite(ours):
        return text.lower().lstrip("+-") in ("nan", "inf", "infinity") and same_number(ours, float(text))
    try:
        theirs = Decimal(text)
    except InvalidOperation:
        return False
    if not theirs.is_finite():
        return False
    if not isinstance(ours, float):
        return EXACT.compare(ours, theirs) == 0
    # Programs write the shortest text of a float, or one with a fixed number of digits, such as C with %.17g.
    digits = max(len(theirs.normalize(EXACT).as_tuple().digits), 1)
    return any(EXACT.compare(Decimal(text), theirs) == 0 for text in (repr(ours), f"{ours:.{digits - 1}e}"))


def moment_of(kind: str, text: str) -> Moment | None:
    """The moment that an ISO 8601 text names, if it has exactly the parts of this kind."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?)?", text)
    if not found:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        if kind == "date":
            days = (date.fromisoformat(day) - date(1970, 1, 1)).days
            return Moment((kind, days * 86_400 * 10**9)) if clock is None else None
        if clock is None or (zone is not None) != (kind == "timestamptz"):
            return None
        whole = datetime.fromisoformat(f"{day}T{clock}{zone or '+00:00'}") - EPOCH
    except ValueError:
        return None
    seconds = whole.days * 86_400 + whole.seconds
    return Moment((kind, seconds * 10**9 + int((fraction or "0").ljust(9, "0"))))


def same_as_json(ours, theirs) -> bool:
    """Whether our value is a value of a JSON document, whose floats are decimals."""
    if theirs is None:
        return ours is None or ours == "null"
    if isinstance(ours, str):
        # Columns with values of several types are text, and those with objects among scalars are JSON, whose strings have quotes.
        return ours == theirs or same_json_text(ours, theirs)
    if isinstance(theirs, bool):
        return ours is theirs
    if isinstance(theirs, str):
        return isinstance(ours, Moment) and ours == moment_of(ours[0], theirs)
    if isinstance(theirs, (int, Decimal)):
        return isinstance(ours, (int, float, Decimal)) and not isinstance(ours, bool) and same_json_number(ours, theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same_as_json, ours, theirs))
    if not isinstance(ours, tuple):
        return False
    members = dict(ours)
    return all(name in members for name in theirs) and all(same_as_json(value, theirs.get(name)) for name, value in ours)


def same_json_number(ours, theirs) -> bool:
    if isinstance(ours, float):
        return math.isfinite(ours) and EXACT.compare(Decimal(repr(ours)), Decimal(theirs)) == 0
    return Fraction(ours) == Fraction(theirs)


def same_json_text(text: str, value) -> bool:
    try:
        return DECODER.decode(text) == value or not isinstance(value, str) and text == str(value).lower()
    except ValueError:
        return False


def not_json(text: str):
    raise ValueError(f"{text} is not JSON")


def object_of(members: list[tuple[str, object]]) -> dict:
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a key is there twice")
    return dict(members)


DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=not_json, object_pairs_hook=object_of)
