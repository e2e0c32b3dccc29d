"""500,000 entries of a systemd journal: a filter, and two facets of what it finds, compared with journalctl and awk for the same counts."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import report, wire
from harness.process import CACHE, Server, settle

ENTRIES = 500_000
WRITER = "/lib/systemd/systemd-journal-remote"
UNITS = ("nginx.service", "ssh.service", "cron.service", "docker.service", "app.service")
BOOT = "0123456789abcdef0123456789abcdef"
FACETS = ("priority", "hostname")
# The same entries by journalctl, and the same counts by awk.
COUNT = """awk -F'"' '{ p = ""; h = "";
  for (i = 2; i < NF; i += 2) { if ($i == "PRIORITY") p = $(i + 2); if ($i == "_HOSTNAME") h = $(i + 2) }
  a[p]++; b[h]++ } END { for (v in a) print "priority " v " " a[v]; for (v in b) print "hostname " v " " b[v] }'"""


@dataclass(frozen=True)
class Measurement:
    """Medians of one question."""

    question: str
    tidegate_seconds: float
    journalctl_seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="answers of each, in turn")
    parser.add_argument("--entries", type=int, default=ENTRIES, help="results are saved only for the default number")
    options = parser.parse_args()
    measured = measure(journal_file(options.entries), options.rounds)
    if options.entries == ENTRIES:
        report.keep("journals", [asdict(one) for one in measured])
    rows = [
        [one.question, report.milliseconds(one.tidegate_seconds), report.milliseconds(one.journalctl_seconds)]
        for one in measured
    ]
    report.show(f"{options.entries:,} entries of a journal", ["question", "Tidegate", "journalctl and awk"], rows)


def journal_file(entries: int) -> Path:
    """The journal, created once."""
    journal = CACHE / f"journal-{entries}" / "remote.journal"
    if not journal.exists():
        journal.parent.mkdir(parents=True, exist_ok=True)
        unfinished = journal.with_name("unfinished.journal")
        unfinished.unlink(missing_ok=True)
        with subprocess.Popen([WRITER, "-o", unfinished, "-"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
            assert writer.stdin
            for number in range(entries):
                writer.stdin.write(entry(number))
        if writer.returncode != 0:
            raise RuntimeError("the journal could not be written")
        unfinished.rename(journal)
    return journal


def entry(number: int) -> bytes:
    """An entry in the export format. Its parts are spread by multiplication, so that they are the same in each run."""
    spread = number * 2_654_435_761 % (1 << 32)
    return (
        f"__REALTIME_TIMESTAMP={1_700_000_000_000_000 + number * 10_000}\n__MONOTONIC_TIMESTAMP={number * 10_000}\n"
        f"_BOOT_ID={BOOT}\n_SYSTEMD_UNIT={UNITS[spread % len(UNITS)]}\nPRIORITY={spread // 7 % 8}\n"
        f"_HOSTNAME=web{spread // 11 % 9}\n_PID={spread // 13 % 4_000}\n_TRANSPORT=journal\n"
        f"MESSAGE=request {number} took {spread // 17 % 900} ms\n\n"
    ).encode()


def measure(journal: Path, rounds: int) -> list[Measurement]:
    questions = {
        "all, two facets": ({}, ""),
        "one unit, two facets": ({"unit": [UNITS[0]]}, f"_SYSTEMD_UNIT={UNITS[0]}"),
    }
    measured = []
    with Server.tidegate(f"machine={journal.parent}", "--log", "warn") as server:
        settle()
        for question, (selections, match) in questions.items():
            command = f"journalctl --directory {journal.parent} -o json --output-fields=PRIORITY,_HOSTNAME {match} | {COUNT}"
            runs = []
            for _ in range(rounds):
                counts, tidegate_seconds = timed_facets(server, selections)
                printed, journalctl_seconds = timed_command(command)
                if counts != printed:
                    raise RuntimeError(f"the answers differ: {question}: {counts}, {printed}")
                runs.append((tidegate_seconds, journalctl_seconds))
            medians = (statistics.median(times) for times in zip(*runs, strict=True))
            measured.append(Measurement(question, *medians))
    return measured


def timed_facets(server: Server, selections: dict[str, list[str]]) -> tuple[Counter[str], float]:
    """The counts by facet and value, and the duration over a new connection."""
    arguments = {"source": "machine", "after": "2023-11-01", "fields": list(FACETS), "selections": selections, "limit": 50}
    connection = wire.connect(server.address)
    connection.connect()
    started = time.perf_counter()
    text = wire.call(connection, "list_logs_fields_values", arguments, server.key)
    seconds = time.perf_counter() - started
    connection.close()
    facets = json.loads(text)["facets"].items()
    return Counter({f"{name} {value}": rows for name, facet in facets for value, rows, *_ in facet["values"]}), seconds


def timed_command(command: str) -> tuple[Counter[str], float]:
    started = time.perf_counter()
    printed = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    seconds = time.perf_counter() - started
    return Counter({line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in printed.splitlines()}), seconds


if __name__ == "__main__":
    main()
