"""2,000,000 lines of an access log as text: counts by status and a search, compared with grep and awk for the same counts."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import report, wire
from harness.process import CACHE, Server, settle

LINES = 2_000_000
STATUSES = (200, 200, 200, 200, 200, 200, 301, 304, 404, 500)
AGENTS = ("curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/122.0", "kube-probe/1.29")
# One in so many lines contains the word that is searched.
SEARCHED_EVERY = 5_000
WRITTEN_AT_ONCE = 50_000
# Each question as SQL, and as a command that prints the same lines in any order. {log} is the file.
QUESTIONS = {
    "count by status": (
        "SELECT status, count(*) AS n FROM access GROUP BY status",
        "awk '{{ n[$9]++ }} END {{ for (s in n) print s \",\" n[s] }}' {log}",
    ),
    "search": (
        "SELECT count(*) AS n FROM access WHERE entry_text LIKE '%checkout-failed%'",
        "grep -c checkout-failed {log}",
    ),
    "search, count by status": (
        "SELECT status, count(*) AS n FROM access WHERE entry_text LIKE '%checkout-failed%' GROUP BY status",
        "grep checkout-failed {log} | awk '{{ n[$9]++ }} END {{ for (s in n) print s \",\" n[s] }}'",
    ),
}


@dataclass(frozen=True)
class Measurement:
    """Medians of one question."""

    question: str
    tidegate_seconds: float
    commands_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers of each, in turn")
    parser.add_argument("--lines", type=int, default=LINES, help="of the log; results are saved only for the default number")
    options = parser.parse_args()
    measured = measure(log_file(options.lines), options.rounds)
    if options.lines == LINES:
        report.keep("logs", [asdict(one) for one in measured])
    rows = [
        [one.question, report.milliseconds(one.tidegate_seconds), report.milliseconds(one.commands_seconds)]
        for one in measured
    ]
    report.show(f"{options.lines:,} lines of an access log", ["question", "Tidegate", "grep and awk"], rows)


def log_file(lines: int) -> Path:
    """The log, created once."""
    log = CACHE / f"logs-{lines}" / "access.log"
    if not log.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        unfinished = log.with_name("unfinished")
        with unfinished.open("w") as file:
            for start in range(0, lines, WRITTEN_AT_ONCE):
                file.writelines(map(line, range(start, min(start + WRITTEN_AT_ONCE, lines))))
        unfinished.rename(log)
    return log


def line(number: int) -> str:
    """A combined line. Its parts are spread by multiplication, so that they are the same in each run."""
    spread = number * 2_654_435_761 % (1 << 32)
    hour, minute, second = number // 3_600 % 24, number // 60 % 60, number % 60
    path = "/cart?state=checkout-failed" if spread % SEARCHED_EVERY == 0 else f"/items/{spread % 10_007}"
    return (
        f"10.{spread % 16}.{spread // 16 % 256}.{spread // 4_096 % 256} - - "
        f"[{1 + number // 86_400 % 28:02}/Mar/2024:{hour:02}:{minute:02}:{second:02} +0000] "
        f'"GET {path} HTTP/1.1" {STATUSES[spread // 7 % len(STATUSES)]} {spread % 50_000} "-" '
        f'"{AGENTS[spread // 11 % len(AGENTS)]}"\n'
    )


def measure(log: Path, rounds: int) -> list[Measurement]:
    measured = []
    with Server.tidegate(log.parent, "--log", "warn") as server:
        settle()
        for question, (sql, command) in QUESTIONS.items():
            runs = []
            for _ in range(rounds):
                rows, tidegate_seconds = timed_sql(server, sql)
                printed, commands_seconds = timed_command(command.format(log=log))
                if rows != printed:
                    raise RuntimeError(f"the answers differ: {question}: {rows}, {printed}")
                runs.append((tidegate_seconds, commands_seconds))
            medians = (statistics.median(times) for times in zip(*runs, strict=True))
            measured.append(Measurement(question, *medians))
    return measured


def timed_sql(server: Server, sql: str) -> tuple[list[str], float]:
    """The rows as sorted lines, and the duration over a new connection."""
    connection = wire.connect(server.address)
    connection.connect()
    started = time.perf_counter()
    text = wire.call(connection, "sql", {"sql": sql, "format": "csv", "no_cache": True}, server.key)
    seconds = time.perf_counter() - started
    connection.close()
    return sorted(text.split()[1:]), seconds


def timed_command(command: str) -> tuple[list[str], float]:
    started = time.perf_counter()
    printed = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    return sorted(printed.split()), time.perf_counter() - started


if __name__ == "__main__":
    main()
