"""A million rows of PostgreSQL and a Parquet file of ten thousand, queried as one database."""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from harness import report, wire
from harness.postgres import Cluster, within_cluster
from harness.process import RssPeak, cpu_seconds, settle

SCALE = 10
PICKED = 10_000
CONFIGURATION = """\
databases:
  - name: bank
    postgres: ${BENCH_DSN}
  - name: files
    files: picked.parquet
  - name: all
    federated: [bank, files]
"""
WARM = "SELECT p.label FROM bank.pgbench_branches b JOIN files.picked p ON p.aid = b.bid WHERE b.bid = 1"
JOIN = "FROM bank.pgbench_accounts a JOIN files.picked p ON p.aid = a.aid"
AGGREGATE = "SELECT bid, count(*) AS accounts, sum(aid) AS keys FROM {accounts} GROUP BY bid ORDER BY bid"
COPY = "COPY (SELECT aid FROM pgbench_accounts) TO STDOUT (FORMAT binary)"


@dataclass(frozen=True)
class Question:
    """A statement for one database, the expected number of rows, and a value that one of them contains."""

    name: str
    database: str
    sql: str
    rows: int
    value: int


# Sums of the keys of one branch, and of the keys with one label.
BRANCH_SUM, LABEL_SUM = 5_000_050_000, 50_500_000
FILTERED = f"SELECT a.aid, a.abalance, p.label {JOIN} WHERE a.aid BETWEEN 500001 AND 501000 ORDER BY a.aid"
QUESTIONS = [
    Question("a join filtered to 1,000 accounts", "all", FILTERED, 10, 500_100),
    Question(
        "an aggregate of PostgreSQL", "all", AGGREGATE.format(accounts="bank.pgbench_accounts"), SCALE, BRANCH_SUM
    ),
    Question("the same of `bank` itself", "bank", AGGREGATE.format(accounts="pgbench_accounts"), SCALE, BRANCH_SUM),
    Question("the whole join, counted", "all", f"SELECT count(*) AS n {JOIN}", 1, PICKED),
    Question(
        "the whole join, by label", "all", f"SELECT p.label, sum(a.aid) AS s {JOIN} GROUP BY p.label", 100, LABEL_SUM
    ),
]


@dataclass(frozen=True)
class Measurement:
    """One answer; or the medians of several, with their highest memory."""

    seconds: float
    growth_bytes: int
    cpu_seconds: float
    postgres_cpu_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers to each question, in turn")
    options = parser.parse_args()
    cluster = within_cluster()
    accounts = cluster.fill(SCALE)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tidegate.yaml")
        file.write_text(CONFIGURATION)
        make_picked(Path(folder, "picked.parquet"), accounts)
        rounds, floors = [], []
        for _ in range(options.rounds):
            rounds.append([measure(cluster, file, question) for question in QUESTIONS])
            floors.append(copy_seconds(cluster))
        queries = member_queries(cluster, file)
    medians = [median(list(runs)) for runs in zip(*rounds, strict=True)]
    floor = statistics.median(floors)
    report.keep(
        "federated",
        {
            "accounts": accounts,
            "questions": [
                {**asdict(question), **asdict(measurement), "queries": lines}
                for question, measurement, lines in zip(QUESTIONS, medians, queries, strict=True)
            ],
            "copy_of_keys_seconds": floor,
        },
    )
    show(accounts, medians, floor)
    for question, lines in zip(QUESTIONS, queries, strict=True):
        print("\n".join([f"{question.name} of {question.database}:", *lines]))


def make_picked(file: Path, accounts: int) -> None:
    """Accounts at even distances, each with one of a hundred labels."""
    step = accounts // PICKED
    rows = (
        f"SELECT (i * {step})::INTEGER AS aid, 'group ' || (i % 100) AS label FROM range(1, {PICKED} + 1) AS numbers(i)"
    )
    duckdb.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")


def measure(cluster: Cluster, file: Path, question: Question) -> Measurement:
    """Runs the question on a fresh server that has answered one small question on both databases."""
    with cluster.server(file) as server:
        connection = wire.connect(server.address)
        wire.call(connection, "sql", {"database": "all", "sql": WARM})
        settle()
        spent, postgres_spent = cpu_seconds(server.pid), cluster.cpu_seconds()
        with RssPeak(server.pid) as memory:
            started = time.perf_counter()
            params = {"name": "sql", "arguments": {"database": question.database, "sql": question.sql}}
            answer = wire.send(connection, "tools/call", params).read().decode()
            seconds = time.perf_counter() - started
        spent, postgres_spent = cpu_seconds(server.pid) - spent, cluster.cpu_seconds() - postgres_spent
        connection.close()
    expected = (f'"dev.tidegate/rows":{question.rows},', f'\\":{question.value}', '"isError":false')
    if not all(part in answer for part in expected):
        raise RuntimeError(f"{question.name}: expected {expected}, received {answer[:2000]}")
    return Measurement(seconds, memory.growth, spent, postgres_spent)


def copy_seconds(cluster: Cluster) -> float:
    """The time in which psql starts and copies the keys of all accounts from PostgreSQL."""
    started = time.perf_counter()
    command = [cluster.bin / "psql", "--no-psqlrc", "--command", COPY, cluster.target]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def member_queries(cluster: Cluster, file: Path) -> list[list[str]]:
    """The queries that each question sends to the member databases, as `explain` reports them."""
    with cluster.server(file) as server:
        connection = wire.connect(server.address)
        plans = [
            wire.call(connection, "explain", {"database": question.database, "sql": question.sql})
            for question in QUESTIONS
        ]
        connection.close()
    matches = [re.search(r"^Queries sent to the databases:\n((?:  .*\n)+)", plan, re.MULTILINE) for plan in plans]
    return [match[1].splitlines() if match else [] for match in matches]


def median(runs: list[Measurement]) -> Measurement:
    return Measurement(
        statistics.median(run.seconds for run in runs),
        max(run.growth_bytes for run in runs),
        statistics.median(run.cpu_seconds for run in runs),
        statistics.median(run.postgres_cpu_seconds for run in runs),
    )


def show(accounts: int, medians: list[Measurement], floor: float) -> None:
    rows = [
        [
            question.name,
            question.database,
            report.milliseconds(measurement.seconds),
            report.megabytes(measurement.growth_bytes),
            report.milliseconds(measurement.cpu_seconds),
            report.milliseconds(measurement.postgres_cpu_seconds),
        ]
        for question, measurement in zip(QUESTIONS, medians, strict=True)
    ]
    rows.append(["binary COPY of all keys by psql, the floor", "", report.milliseconds(floor), "", "", ""])
    header = ["question", "database", "answer", "growth", "its CPU", "PostgreSQL's CPU"]
    report.show(f"{accounts:,} accounts and {PICKED:,} rows of Parquet", header, rows)


if __name__ == "__main__":
    main()
