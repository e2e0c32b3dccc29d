"""Delta tables with other implementations: PyPI `deltalake`, `polars`, and `duckdb` over the former's Arrow tables.

`deltalake` writes tables for the tests of the crate `tidegate-delta`, which read them and write tables of their own, with the
rows that are to be found as JSON beside them. Each check prints a line; the exit status says whether all held. Those tests are run by
cargo-nextest, or by cargo without it.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa

ROOT = Path(__file__).absolute().parents[2]
PASSED, FAILED = [], []


def check(name: str, holds: bool, detail: str = ""):
    print(f"{'ok  ' if holds else 'FAIL'} {name} {'' if holds else detail}", flush=True)
    (PASSED if holds else FAILED).append(name)


def to_json(column) -> list:
    """The values of an Arrow column, in the form of the files with expected rows."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
    kind = column.type
    if pa.types.is_timestamp(kind):
        assert kind.unit == "us", kind
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else f"{value:f}" for value in column.to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else "nan" if value != value else struct.pack(">d", value).hex() for value in column.to_pylist()]
    if pa.types.is_map(kind):
        return [None if row is None else [{"key": key, "value": value} for key, value in row] for row in column.to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [to_json(row.values) if row.is_valid else None for row in column]
    if pa.types.is_struct(kind):
        fields = {field.name: to_json(pa.array([row[field.name].as_py() if row.is_valid else None for row in column], field.type))
                  for field in kind}
        return [{name: values[row] for name, values in fields.items()} if column[row].is_valid else None for row in range(len(column))]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or "binary_view" in str(kind):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return column.to_pylist()


def compare(name: str, table: pa.Table, expected: dict, skip=()):
    """Compares the rows, in the order of the column `row`."""
    order = sorted(range(table.num_rows), key=table.column("row").to_pylist().__getitem__)
    check(f"{name}: columns", set(table.column_names) == set(expected), f"{table.column_names}")
    for column, values in expected.items():
        if column in skip or column not in table.column_names:
            continue
        values_found = to_json(table.column(column))
        found = [values_found[row] for row in order]
        check(f"{name}: {column} ({table.schema.field(column).type})", found == values, f"\n  found    {found}\n  expected {values}")


def read_ours(folder: Path):
    for path in sorted(folder.glob("*.json")):
        expected = json.loads(path.read_text())
        source = path.with_suffix("")
        delta = deltalake.DeltaTable(source)
        arrow = pa.table(delta.scan() if not hasattr(delta, "to_pyarrow_table") else deltalake_table(delta))
        compare(f"deltalake {path.stem}", arrow, expected)
        if path.stem != "nameless_partitions":
            # polars takes values from the names of folders, which cannot have these; it reports an error.
            compare(f"polars {path.stem}", polars.scan_delta(str(source)).collect().to_arrow(), expected)
        compare(f"duckdb {path.stem}", duckdb_table(arrow), expected)
        check_statistics(path.stem, delta, arrow)
        check_query(path.stem, delta, arrow)


def deltalake_table(delta):
    """All rows by the engine of `deltalake`."""
    return deltalake.QueryBuilder().register("t", delta).execute("SELECT * FROM t").read_all()


def duckdb_table(arrow: pa.Table) -> pa.Table:
    result = duckdb.sql("SELECT * FROM arrow").arrow()
    return result if isinstance(result, pa.Table) else result.read_all()


def check_statistics(name: str, delta, arrow: pa.Table):
    """The reader accepts the statistics of every file, and they add up."""
    actions = pa.table(delta.get_add_actions(flatten=True))
    check(f"{name}: rows in the log", sum(actions.column("num_records").to_pylist()) == arrow.num_rows)
    for column in actions.column_names:
        if column.startswith("min."):
            source = column.removeprefix("min.")
            low, high = actions.column(column).to_pylist(), actions.column(f"max.{source}").to_pylist()
            check(f"{name}: bounds of {source}", all(a is None or b is None or a <= b for a, b in zip(low, high)), f"{low} {high}")


def check_query(name: str, delta, arrow: pa.Table):
    """A filter that skips files finds each row again."""
    for row in range(arrow.num_rows):
        found = deltalake.QueryBuilder().register("t", delta).execute(f"SELECT * FROM t WHERE row = {row}").read_all()
        check(f"{name}: row {row}", pa.table(found).num_rows == 1)


def write_theirs(folder: Path):
    """Tables of `deltalake`, with what the tests of the crate have to find."""
    folder.mkdir(parents=True)
    table = pa.table({
        "row": pa.array([0, 1, 2, 3], pa.int64()),
        "text": pa.array(["a/b", "", None, "ä"], pa.string()),
        "number": pa.array([1.5, float("inf"), None, -0.0], pa.float64()),
        "price": pa.array(["1.10", "-99999999.99", None, "0.00"], pa.string()).cast(pa.decimal128(10, 2)),
        "day": pa.array([0, -1, None, 20000], pa.int32()).cast(pa.date32()),
        "at": pa.array([0, 1_700_000_000_123_456, None, -1], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "data": pa.array([b"", b"\x00\xff", None, b"x"], pa.binary()),
        "flag": pa.array([True, False, None, True]),
        "list": pa.array([[1, None], [], None, [2]], pa.list_(pa.int32())),
        "pair": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": ""}, None, {"a": 2, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    })
    expected = {"columns": {name: to_json(table.column(name)) for name in table.column_names}}

    def save(name: str, expected: dict):
        (folder / f"{name}.json").write_text(json.dumps(expected))

    deltalake.write_deltalake(folder / "plain", table)
    save("plain", expected)
    deltalake.write_deltalake(folder / "partitions", table, partition_by=["day", "at", "flag"])
    save("partitions", expected)
    local = table.append_column("local", table.column("at").cast(pa.timestamp("us")))
    deltalake.write_deltalake(folder / "local", local)
    save("local", {"columns": expected["columns"] | {"local": expected["columns"]["at"]}})
    deltalake.write_deltalake(folder / "checkpoint", table.slice(0, 2))
    deltalake.write_deltalake(folder / "checkpoint", table.slice(0, 2), mode="append")
    deltalake.DeltaTable(folder / "checkpoint").delete("row < 5")
    deltalake.write_deltalake(folder / "checkpoint", table, mode="append")
    deltalake.DeltaTable(folder / "checkpoint").create_checkpoint()
    save("checkpoint", expected)
    for name, feature, configuration in [
        ("deletion", "deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("mapping", "columnMapping", {"delta.columnMapping.mode": "name"}),
    ]:
        write_with_feature(folder / name, table, feature, configuration)
        save(name, {"refused": feature})


def write_with_feature(folder: Path, table: pa.Table, feature: str, configuration: dict):
    """A table whose protocol names a feature, whether or not `deltalake` can write with it."""
    deltalake.write_deltalake(folder, table)
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}},
    ]
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(json.dumps(action) for action in actions))


def tests_of_the_crate() -> list[str]:
    """The command that runs them. Of the whole workspace, because a package alone has other features of shared dependencies."""
    if shutil.which("cargo-nextest"):
        return ["cargo", "nextest", "run", "--workspace", "-E", "package(tidegate-delta) & test(/^foreign/)"]
    return ["cargo", "test", "--package", "tidegate-delta", "--test", "it", "foreign"]


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("TIDEGATE_DELTA_FOLDER", temporary))
        write_theirs(folder / "theirs")
        run = subprocess.run(tests_of_the_crate(), cwd=ROOT, env=os.environ | {"TIDEGATE_DELTA_FOLDER": str(folder)}, check=False)
        check("the tests of the crate", run.returncode == 0)
        read_ours(folder / "ours")
    print(f"{len(PASSED)} passed, {len(FAILED)} failed")
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
