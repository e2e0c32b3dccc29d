"""1,000 series over a day at ten seconds as Parquet: points of `query_metrics`, compared with DuckDB for the same values as SQL."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
from harness import report, wire
from harness.process import CACHE, Server, settle

HOSTS = 100
MODES = 10
SERIES = HOSTS * MODES
INTERVAL_SECONDS = 10
DAY_SECONDS = 86_400
DAY = ("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
POINTS = 96
CONFIGURATION = "databases: [{name: plant, files: data}]\nmetrics: [{name: plant, table: plant.samples}]\n"
SAMPLES = f"""
COPY (
  SELECT TIMESTAMP '2026-03-01' + to_seconds(step * {INTERVAL_SECONDS}) AS time, 'cpu_seconds_total' AS metric,
    'host-' || (series // {MODES}) AS host, 'mode-' || (series % {MODES}) AS mode,
    (step * (1 + series % 7) + hash(series, step) % 5)::DOUBLE AS value
  FROM range({DAY_SECONDS // INTERVAL_SECONDS}) AS steps(step), range({SERIES}) AS all_series(series)
  ORDER BY step, series
) TO '{{file}}' (FORMAT parquet)
"""
STEP = "time_bucket(INTERVAL '15 minutes', time)"
# Each question as the arguments of query_metrics, and as SQL whose values have the same sum.
QUESTIONS = {
    "average by mode": (
        {"aggregation": "average", "by": ["mode"], "label_aggregation": "average"},
        f"WITH points AS (SELECT {STEP} AS step, host, mode, avg(value) AS value FROM samples GROUP BY ALL) "
        "SELECT sum(value) FROM (SELECT avg(value) AS value FROM points GROUP BY step, mode)",
    ),
    "largest of each series": (
        {"aggregation": "max", "series": SERIES},
        f"SELECT sum(value) FROM (SELECT max(value) AS value FROM samples GROUP BY {STEP}, host, mode)",
    ),
    "increase, all series": (
        {"aggregation": "increase", "by": []},
        "SELECT sum(CASE WHEN value >= before THEN value - before ELSE value END) FROM (SELECT value, lag(value) OVER "
        "(PARTITION BY host, mode ORDER BY time) AS before FROM samples) WHERE before IS NOT NULL",
    ),
    "p95 of one host": (
        {"aggregation": "p95", "labels": {"host": "host-7"}},
        f"SELECT sum(value) FROM (SELECT quantile_cont(value, 0.95) AS value FROM samples WHERE host = 'host-7' "
        f"GROUP BY {STEP}, mode)",
    ),
}


@dataclass(frozen=True)
class Measurement:
    """Medians of one question."""

    question: str
    tidegate_seconds: float
    duckdb_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers of each, in turn")
    options = parser.parse_args()
    measured = measure(folder(), options.rounds)
    report.keep("metrics", [asdict(one) for one in measured])
    rows = [
        [one.question, report.milliseconds(one.tidegate_seconds), report.milliseconds(one.duckdb_seconds)]
        for one in measured
    ]
    samples = SERIES * DAY_SECONDS // INTERVAL_SECONDS
    title = f"{SERIES:,} series over a day at ten seconds ({samples:,} rows of Parquet)"
    report.show(title, ["question", "Tidegate", "DuckDB"], rows)


def folder() -> Path:
    """The folder with the samples and the configuration, created once."""
    folder = CACHE / f"metrics-{SERIES}"
    file = folder / "data" / "samples.parquet"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "unfinished"
        duckdb.sql(SAMPLES.format(file=unfinished))
        unfinished.rename(file)
    (folder / "tidegate.yaml").write_text(CONFIGURATION)
    return folder


def measure(folder: Path, rounds: int) -> list[Measurement]:
    measured = []
    database = duckdb.connect()
    database.sql(f"CREATE VIEW samples AS SELECT * FROM '{folder / 'data' / 'samples.parquet'}'")
    with Server.tidegate("--config", folder / "tidegate.yaml", "--log", "warn", "--inline-bytes", "unlimited") as server:
        settle()
        for question, (arguments, sql) in QUESTIONS.items():
            runs = []
            for _ in range(rounds):
                total, tidegate_seconds = timed_points(server, arguments)
                expected, duckdb_seconds = timed_sql(database, sql)
                if not math.isclose(total, expected, rel_tol=1e-9):
                    raise RuntimeError(f"the answers differ: {question}: {total}, {expected}")
                runs.append((tidegate_seconds, duckdb_seconds))
            medians = (statistics.median(times) for times in zip(*runs, strict=True))
            measured.append(Measurement(question, *medians))
    return measured


def timed_points(server: Server, arguments: dict[str, object]) -> tuple[float, float]:
    """The sum of all points, and the duration over a new connection."""
    window = {"metric": "cpu_seconds_total", "after": DAY[0], "before": DAY[1], "points": POINTS}
    connection = wire.connect(server.address)
    connection.connect()
    started = time.perf_counter()
    text = wire.call(connection, "query_metrics", window | arguments, server.key)
    seconds = time.perf_counter() - started
    connection.close()
    series = json.loads(text)["series"]
    return math.fsum(value for one in series for value in one["values"] if value is not None), seconds


def timed_sql(database: duckdb.DuckDBPyConnection, sql: str) -> tuple[float, float]:
    started = time.perf_counter()
    [(total,)] = database.sql(sql).fetchall()
    return total, time.perf_counter() - started


if __name__ == "__main__":
    main()
