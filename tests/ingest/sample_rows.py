"""Columns of every type that a table can declare, and random rows for them with the values that are often lost.

A value is kept as a value of Python that is exact: an integer for times and timestamps too, in the unit of the column. A float is kept as
its bits, so that each NaN is one value, and zero has a sign.
"""

import random
import struct
from decimal import Decimal

import pyarrow as pa

I64 = (-(2**63), 2**63 - 1)
DAY_US = 86_400_000_000
# Year 1 to 9999 in days since 1970.
DAYS = (-719_162, 2_932_896)
TEXTS = [
    "", " ", " leading", "trailing ", "null", "NULL", "\\N", "NaN", "true", "007", "1e5", '"', '""', '"quoted"', "a,b", "a;b\tc", "'", "line\nline",
    "line\r\nline", "\r", "\n", "back\\slash", "\\u0041", "ä", "a\u0308", "漢字", "👩‍👩‍👧", "\u202eright to left", "\ufeffmark", "\x01\x1f\x7f", "\u2028\u2029",
    "{\"a\": 1}", "[1]", "x" * 5_000, "é" * 300,
]  # fmt: skip
DOUBLES = [0.0, -0.0, 1.5, 0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e22, 123456789.123456789, 2.0**53 + 2]
SPECIAL = [float("nan"), float("inf"), float("-inf")]
FLOATS = [0.0, -0.0, 0.5, 1.1754943508222875e-38, 3.4028234663852886e38, 16777216.0, 1e-45]


def bits(value: float) -> str:
    return "nan" if value != value else struct.pack(">d", value).hex()


def single(value: float) -> float:
    """The nearest float of 32 bits."""
    return struct.unpack("f", struct.pack("f", value))[0]


class Column:
    """A column: its type in `tidegate.yaml` and in Arrow, and how to choose a value."""

    def __init__(self, name: str, declared: str, arrow: pa.DataType, choose):
        self.name, self.declared, self.arrow, self.choose = name, declared, arrow, choose

    def is_float(self) -> bool:
        return pa.types.is_floating(self.arrow)


def integers(low: int, high: int):
    edges = [low, low + 1, -1, 0, 1, high - 1, high]
    edges = [value for value in edges if low <= value <= high]
    return lambda chance: chance.choice(edges) if chance.random() < 0.6 else chance.randint(low, high)


def decimals(precision: int, scale: int):
    largest = 10**precision - 1

    def choose(chance: random.Random) -> Decimal:
        unscaled = chance.choice([0, 1, -1, largest, -largest, chance.randint(-largest, largest), 10 ** (precision // 2)])
        return Decimal(f"{unscaled}e-{scale}")

    return choose


def one_of(values):
    return lambda chance: chance.choice(values)


def floats(values, convert):
    def choose(chance: random.Random) -> str:
        value = chance.choice(values + SPECIAL) if chance.random() < 0.8 else convert(chance.uniform(-1e6, 1e6))
        return bits(convert(value))

    return choose


def text(chance: random.Random) -> str:
    return chance.choice(TEXTS) if chance.random() < 0.8 else "".join(chance.choices(TEXTS[:30], k=3))


def timestamps(low: int, high: int, per_second: int):
    edges = [0, -1, 1, low, high, per_second, per_second // 1000, 1_700_000_000 * per_second + 1, -62_135_596_800 * per_second]
    edges = [value for value in edges if low <= value <= high]
    return lambda chance: chance.choice(edges) if chance.random() < 0.5 else chance.randint(low, high)


MICROSECONDS = (DAYS[0] * DAY_US, (DAYS[1] + 1) * DAY_US - 1)
COLUMNS = [
    Column("i8", "int8", pa.int8(), integers(-(2**7), 2**7 - 1)),
    Column("i16", "int16", pa.int16(), integers(-(2**15), 2**15 - 1)),
    Column("i32", "int32", pa.int32(), integers(-(2**31), 2**31 - 1)),
    Column("i64", "int64", pa.int64(), integers(*I64)),
    Column("u8", "uint8", pa.uint8(), integers(0, 2**8 - 1)),
    Column("u16", "uint16", pa.uint16(), integers(0, 2**16 - 1)),
    Column("u32", "uint32", pa.uint32(), integers(0, 2**32 - 1)),
    Column("u64", "uint64", pa.uint64(), integers(0, 2**64 - 1)),
    Column("price", "decimal(12,2)", pa.decimal128(12, 2), decimals(12, 2)),
    Column("whole", "decimal(38,0)", pa.decimal128(38, 0), decimals(38, 0)),
    Column("exact", "decimal(38,20)", pa.decimal128(38, 20), decimals(38, 20)),
    Column("f32", "float", pa.float32(), floats(FLOATS, single)),
    Column("f64", "double", pa.float64(), floats(DOUBLES, float)),
    Column("flag", "boolean", pa.bool_(), one_of([True, False])),
    Column("label", "string", pa.string(), text),
    Column("data", "binary", pa.binary(), one_of([b"", b"\x00", b"\xff\xfe", b"text", bytes(range(256)), b"\r\n,\""])),
    Column("day", "date", pa.date32(), integers(*DAYS)),
    Column("clock", "time", pa.time64("us"), integers(0, DAY_US - 1)),
    Column("at", "timestamp", pa.timestamp("us", "UTC"), timestamps(*MICROSECONDS, 10**6)),
    Column("at_ns", "timestamp_ns", pa.timestamp("ns", "UTC"), timestamps(-(2**63) + 1, 2**63 - 1, 10**9)),
    Column("local_at", "local_timestamp", pa.timestamp("us"), timestamps(*MICROSECONDS, 10**6)),
]
DECLARED = {"row": "integer not null"} | {column.name: column.declared for column in COLUMNS}


def random_rows(seed: int, count: int) -> list[dict]:
    """Rows with a number each; one value in eight is null."""
    chance = random.Random(seed)
    return [
        {"row": row} | {column.name: None if chance.random() < 0.125 else column.choose(chance) for column in COLUMNS} for row in range(count)
    ]
