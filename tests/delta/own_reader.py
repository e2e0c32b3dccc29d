"""Tables of PyPI `deltalake` as folders of files: each value is that of `deltalake`, at each version when it is the newest.

`deltalake` writes no deletion vectors; those are added to its logs here, and `deltalake` reads them too. Each check prints a line; the exit
status says whether all held.
"""

import io
import json
import math
import struct
import sys
import tempfile
import uuid
import zlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).absolute().parents[1] / "ingest"))
from report import Report  # noqa: E402
from server import Server  # noqa: E402

ARROW = "application/vnd.apache.arrow.stream"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
MAGIC = 1_681_511_377
DAY = date(2021, 2, 28)
MOMENT = datetime(2021, 2, 28, 23, 59, 59, 123_456, tzinfo=UTC)


class FileServer(Server):
    """Serves the tables of a folder, in place of tables that take rows."""

    def __init__(self, folder: Path):
        self.folder = folder
        configuration = {"databases": [{"name": "lake", "files": "./tables"}]}
        (folder / "tidegate.yaml").write_text(json.dumps(configuration))


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)

    def some(values: list) -> list:
        return [None if number % 7 == 3 else value for number, value in zip(numbers, values, strict=True)]

    return pa.table({
        "row": pa.array(numbers, pa.int64()),
        "text": pa.array(some([f"text {number % 5}/ä" for number in numbers]), pa.string()),
        "ratio": pa.array(some([number / 3 for number in numbers]), pa.float64()),
        "price": pa.array(some([Decimal(number) / 100 for number in numbers]), pa.decimal128(10, 2)),
        "day": pa.array(some([DAY + timedelta(days=number % 3) for number in numbers]), pa.date32()),
        "at": pa.array(some([MOMENT + timedelta(hours=number % 4) for number in numbers]), pa.timestamp("us", "UTC")),
        "flag": pa.array(some([number % 2 == 0 for number in numbers])),
        "small": pa.array(some([number % 100 for number in numbers]), pa.int8()),
        "list": pa.array(some([[number, None] for number in numbers]), pa.list_(pa.int32())),
        "pair": pa.array(some([{"a": number, "b": str(number)} for number in numbers]), pa.struct([("a", pa.int64()), ("b", pa.string())])),
    })


def plain(value):
    """A value in the form of both sides."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def of_deltalake(folder: Path) -> dict[int, dict]:
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(folder)).execute("SELECT * FROM t").read_all()
    return by_row(pa.table(found))


def by_row(table: pa.Table) -> dict[int, dict]:
    found = {}
    for row in table.to_pylist():
        assert row["row"] not in found, f"row {row['row']} occurs twice"
        found[row["row"]] = plain(row)
    return found


def compare(server: Server, report: Report, name: str, step: str):
    report.subject = name
    expected = of_deltalake(server.folder / "tables" / name)
    with report.check(f"rows {step}"):
        found = by_row(pa.ipc.open_stream(io.BytesIO(server.answer(f"SELECT * FROM {name}", ARROW))).read_all())
        assert len(found) == len(expected), f"{len(found)} rows instead of {len(expected)}"
        for number, row in expected.items():
            assert found.get(number) == row, f"row {number}: {found.get(number)} instead of {row}"
    with report.check(f"counts and filters {step}"):
        [counts] = server.rows(f"SELECT count(*) AS n, min(row) AS low, max(row) AS high FROM {name}")
        numbers = sorted(expected)
        assert counts == {"n": len(numbers), "low": numbers[0], "high": numbers[-1]}, counts
        for number in (numbers[0], numbers[len(numbers) // 2], numbers[-1] + 1):
            [count] = server.rows(f"SELECT count(*) AS n FROM {name} WHERE row = {number}")
            assert count == {"n": int(number in expected)}, (number, count)


def encode_base_85(data: bytes) -> str:
    data += bytes(-len(data) % 4)
    text = ""
    for (number,) in struct.iter_unpack(">I", data):
        text += "".join(DIGITS[number // 85**place % 85] for place in range(4, -1, -1))
    return text


def bitmap(deleted: list[int]) -> bytes:
    """One container of single values, as all positions are small."""
    header = struct.pack("<IQIIIHHI", MAGIC, 1, 0, 12_346, 1, 0, len(deleted) - 1, 16)
    return header + struct.pack(f"<{len(deleted)}H", *deleted)


def delete_rows(folder: Path, deleted: list[int], in_file: bool):
    """A commit that deletes these rows of the only file."""
    log = folder / "_delta_log"
    entries = sorted(log.glob("*.json"))
    actions = [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]
    [add] = [action["add"] for action in actions if "add" in action and action["add"]["path"] in live_paths(folder)][-1:]
    data = bitmap(deleted)
    vector = {"storageType": "i", "pathOrInlineDv": encode_base_85(data), "sizeInBytes": len(data), "cardinality": len(deleted)}
    if in_file:
        name = uuid.uuid4()
        content = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        (folder / f"deletion_vector_{name}.bin").write_bytes(content)
        vector |= {"storageType": "u", "pathOrInlineDv": encode_base_85(name.bytes), "offset": 1}
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 0, "deletionVector": add.get("deletionVector")}
    changes = [{"remove": {name: value for name, value in remove.items() if value is not None}}, {"add": add | {"deletionVector": vector}}]
    (log / f"{len(entries):020}.json").write_text("\n".join(json.dumps(change) for change in changes))


def live_paths(folder: Path) -> set[str]:
    return {Path(uri).relative_to(folder).as_posix() for uri in deltalake.DeltaTable(folder).file_uris()}


# The tables and how they are written. The server knows their folders when it starts.
TABLES = {
    "plain": {},
    "partitions": {"partition_by": ["day", "flag"]},
    "times": {"partition_by": ["at", "price"]},
    "mapped": {"configuration": {"delta.columnMapping.mode": "name"}},
    "deleted_in_log": {"configuration": {"delta.enableDeletionVectors": "true"}},
    "deleted_in_file": {"configuration": {"delta.enableDeletionVectors": "true"}},
    "evolved": {},
}


def check_writes(server: Server, report: Report, name: str):
    """A table that is appended to, changed, cleaned up and overwritten."""
    folder, options = server.folder / "tables" / name, TABLES[name]

    def table() -> deltalake.DeltaTable:
        return deltalake.DeltaTable(folder)

    deltalake.write_deltalake(folder, rows(40, 30), mode="append", **options)
    compare(server, report, name, "after more were added")
    table().delete("row % 5 = 1")
    compare(server, report, name, "after some were deleted")
    table().create_checkpoint()
    deltalake.write_deltalake(folder, rows(100, 5), mode="append", **options)
    compare(server, report, name, "after a checkpoint")
    # `deltalake` does not change and join files whose columns have other names.
    if name != "mapped":
        table().update(updates={"text": "'changed'"}, predicate="row > 60")
        compare(server, report, name, "after some were changed")
        table().optimize.compact()
        compare(server, report, name, "after files were joined")
        table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        compare(server, report, name, "after old files were removed")
    deltalake.write_deltalake(folder, rows(7, 3), mode="overwrite", **options)
    compare(server, report, name, "after all were replaced")


def check_deletion_vectors(server: Server, report: Report, name: str, in_file: bool):
    folder = server.folder / "tables" / name
    delete_rows(folder, [0, 1, 2, 20, 39], in_file)
    compare(server, report, name, "after some are deleted")
    delete_rows(folder, [0, 1, 2, *range(10, 30), 39], in_file)
    compare(server, report, name, "after more are deleted")


def check_evolution(server: Server, report: Report, name: str):
    """A column that old files lack."""
    more = rows(40, 10)
    more = more.append_column("later", more["row"])
    deltalake.write_deltalake(server.folder / "tables" / name, more, mode="append", schema_mode="merge")
    compare(server, report, name, "after a column was added")


def main() -> int:
    report = Report()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, options in TABLES.items():
            (folder / "tables" / name).mkdir(parents=True)
            deltalake.write_deltalake(folder / "tables" / name, rows(0, 40), **options)
        with FileServer(folder) as server:
            for name in TABLES:
                compare(server, report, name, "of the first version")
            for name in ("plain", "partitions", "times", "mapped"):
                check_writes(server, report, name)
            check_deletion_vectors(server, report, "deleted_in_log", in_file=False)
            check_deletion_vectors(server, report, "deleted_in_file", in_file=True)
            check_evolution(server, report, "evolved")
    return report.close()


sys.exit(main())
