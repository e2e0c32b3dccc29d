"""`query_logs` over 10,000,000 entries of an access log as Parquet, compared with DuckDB for the same counts as SQL, and over
2,000,000 lines as text, compared with grep and awk for the same counts. Each answer has two facets, a histogram of 28 bars, and the newest 100 entries."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import logs
from harness import report, wire
from harness.process import CACHE, RssPeak, Server, settle

ENTRIES = 10_000_000
LINES = logs.LINES
WINDOW = {"after": "2024-03-01T00:00:00Z", "before": "2024-03-29T00:00:00Z"}
CONFIGURATION = """databases: [{name: web, files: data}]
logs: [{name: access, table: web.access, time: time, message: message}]
"""
# The same distribution as that of the text.
ROWS = f"""
COPY (
  SELECT TIMESTAMP '2024-03-01' + to_microseconds((number * (28 * 86400000000 / {{entries}}))::BIGINT) AS time,
    '10.' || (spread % 16) || '.' || (spread // 16 % 256) || '.' || (spread // 4096 % 256) AS client,
    {list(logs.STATUSES)}[1 + spread // 7 % {len(logs.STATUSES)}] AS status, spread % 50000 AS bytes,
    {list(logs.AGENTS)}[1 + spread // 11 % {len(logs.AGENTS)}] AS agent,
    'GET ' || CASE WHEN spread % {logs.SEARCHED_EVERY} = 0 THEN '/cart?state=checkout-failed' ELSE '/items/' || (spread % 10007) END
      || ' HTTP/1.1' AS message
  FROM (SELECT range AS number, range * 2654435761 % 4294967296 AS spread FROM range({{entries}}))
) TO '{{file}}' (FORMAT parquet, ROW_GROUP_SIZE 500000)
"""
# Words, and the same condition of DuckDB and of grep.
SEARCHES = {
    "everything": ("", "true", "cat {log}"),
    "a word in one of 5,000": ("checkout-failed", "message ILIKE '%checkout-failed%'", "grep -i checkout-failed {log}"),
    "a word in a tenth": ("items/1", "message ILIKE '%items/1%'", "grep -i items/1 {log}"),
}
COUNTS = """
SELECT status, agent, hour, count(*) FROM (SELECT status, agent, time_bucket(INTERVAL '1 day', time) AS hour FROM access WHERE {where})
GROUP BY GROUPING SETS ((status), (agent), (hour))
"""
AWK = """awk -F'"' '{{ split($3, s, " "); n[s[1]]++; a[$6]++; h[substr($1, index($1, "[") + 1, 11)]++ }}
  END {{ for (v in n) print v "\\t" n[v]; for (v in a) print v "\\t" a[v]; for (v in h) print "hour\\t" h[v] }}'"""
BARS = 28

Counts = dict[str, int]


@dataclass(frozen=True)
class Measurement:
    """Medians of one question."""

    question: str
    tidegate_seconds: float
    peer_seconds: float | None
    growth_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers of each, in turn")
    parser.add_argument("--entries", type=int, default=ENTRIES, help="of the Parquet file; results are saved only for the default number")
    options = parser.parse_args()
    in_parquet = search_parquet(options.entries, options.rounds)
    in_text = search_text(options.rounds)
    if options.entries == ENTRIES:
        report.keep("log-search", {"parquet": [asdict(one) for one in in_parquet], "text": [asdict(one) for one in in_text]})
    show(f"{options.entries:,} entries as Parquet: two facets and a histogram", "DuckDB", in_parquet)
    show(f"{LINES:,} lines as text: two facets and a histogram", "grep and awk", in_text)


def show(title: str, peer: str, measured: list[Measurement]) -> None:
    rows = [
        [one.question, report.milliseconds(one.tidegate_seconds), report.milliseconds(one.peer_seconds), report.megabytes(one.growth_bytes)]
        for one in measured
    ]
    report.show(title, ["question", "Tidegate", peer, "memory grows by"], rows)


def search_parquet(entries: int, rounds: int) -> list[Measurement]:
    folder = CACHE / f"log-search-{entries}"
    file = folder / "data" / "access.parquet"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = folder / "unfinished"
        duckdb.sql(ROWS.format(file=unfinished, entries=entries))
        unfinished.rename(file)
    (folder / "tidegate.yaml").write_text(CONFIGURATION)
    database = duckdb.connect()
    database.sql(f"CREATE VIEW access AS SELECT * FROM '{file}'")

    def counts_of_peer(where: str) -> Counts:
        rows = database.sql(COUNTS.format(where=where)).fetchall()
        counts = {f"{status if status is not None else agent}": n for status, agent, hour, n in rows if hour is None}
        return counts | {"hours": sum(n for _, _, hour, n in rows if hour is not None)}

    with Server.tidegate("--config", folder / "tidegate.yaml", "--inline-bytes", "unlimited") as server:
        settle()
        measured = [
            measure(server, words, ("status", "agent"), question, lambda where=where: counts_of_peer(where), rounds)
            for question, (words, where, _) in SEARCHES.items()
        ]
        pages = {"the newest 100": "", "the newest 100 with a word in one of 5,000": "checkout-failed"}
        return measured + [measure_page(server, database, question, words, rounds) for question, words in pages.items()]


def search_text(rounds: int) -> list[Measurement]:
    log = logs.log_file(LINES)

    def counts_of_peer(command: str) -> Counts:
        shell = f"export LC_ALL=C.UTF-8; {command.format(log=log)} | {AWK.format()}"
        printed = subprocess.run(["bash", "-c", shell], check=True, capture_output=True, text=True).stdout
        pairs = [line.rsplit("\t", 1) for line in printed.splitlines()]
        hours = sum(int(n) for value, n in pairs if value == "hour")
        return {value: int(n) for value, n in pairs if value != "hour"} | {"hours": hours}

    with Server.tidegate(log.parent, "--inline-bytes", "unlimited") as server:
        settle()
        return [
            measure(server, words, ("status", "user_agent"), question, lambda command=command: counts_of_peer(command), rounds)
            for question, (words, _, command) in SEARCHES.items()
        ]


def measure(
    server: Server, words: str, facets: tuple[str, str], question: str, peer: Callable[[], Counts], rounds: int
) -> Measurement:
    arguments = {"facets": list(facets), "histogram": {"bars": BARS}, "limit": 0, "query": words} | WINDOW
    runs = []
    with RssPeak(server.pid) as memory:
        for _ in range(rounds):
            answer, seconds = timed_query(server, arguments)
            started = time.perf_counter()
            expected = peer()
            peer_seconds = time.perf_counter() - started
            if counts_of(answer) != expected:
                raise RuntimeError(f"the answers differ: {question}: {counts_of(answer)}, {expected}")
            runs.append((seconds, peer_seconds))
    tidegate_seconds, peer_seconds = (statistics.median(times) for times in zip(*runs, strict=True))
    return Measurement(question, tidegate_seconds, peer_seconds, memory.growth)


def measure_page(server: Server, database: duckdb.DuckDBPyConnection, question: str, words: str, rounds: int) -> Measurement:
    sql = f"SELECT message FROM access WHERE message ILIKE '%{words}%' ORDER BY time DESC LIMIT 100"
    runs = []
    with RssPeak(server.pid) as memory:
        for _ in range(rounds):
            answer, seconds = timed_query(server, {"limit": 100, "query": words, "columns": ["message"]} | WINDOW)
            started = time.perf_counter()
            expected = sorted(message for (message,) in database.sql(sql).fetchall())
            peer_seconds = time.perf_counter() - started
            if sorted(row[answer["entries"]["columns"].index("message")] for row in answer["entries"]["rows"]) != expected:
                raise RuntimeError(f"the entries differ: {question}")
            runs.append((seconds, peer_seconds))
    tidegate_seconds, peer_seconds = (statistics.median(times) for times in zip(*runs, strict=True))
    return Measurement(question, tidegate_seconds, peer_seconds, memory.growth)


def timed_query(server: Server, arguments: dict[str, object]) -> tuple[wire.Json, float]:
    """The answer of query_logs, and the duration over a new connection."""
    connection = wire.connect(server.address)
    connection.connect()
    started = time.perf_counter()
    text = wire.call(connection, "query_logs", {"source": "access"} | arguments, server.key)
    seconds = time.perf_counter() - started
    connection.close()
    answer = json.loads(text)
    if answer["partial"]:
        raise RuntimeError(f"the answer is partial: {answer['partial']}")
    return answer, seconds


def counts_of(answer: wire.Json) -> Counts:
    """The rows of each value of a facet, and of all bars."""
    values = {value: rows for facet in answer["facets"].values() for value, rows, *_ in facet["values"]}
    return values | {"hours": sum(sum(series["rows"]) for series in answer["histogram"]["series"])}


if __name__ == "__main__":
    main()
