"""Starts TIDEGATE_BINARY with what each release wrote: configuration, keys, stored results, tables that take rows, audit log.

Each folder beside this file with the name of a version is copied, because the program changes it. Each check prints a line; the exit status says whether all held.

    check.py                     all folders
    check.py --rollback OLDER    the files of the newest folder go to TIDEGATE_BINARY first, and then back to OLDER, the program of an earlier release
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from node import EXPECTED, Node, run
from report import Report

HERE = Path(__file__).resolve().parent
BINARY = Path(os.environ["TIDEGATE_BINARY"]).resolve()
# The rows that each start adds to a table.
ADDED = 3


def releases() -> list[Path]:
    folders = [path.parent for path in HERE.glob(f"*/{EXPECTED}")]
    return sorted(folders, key=lambda folder: [int(part) for part in folder.name.split(".")])


class Fixture:
    """A copy of a folder, and what it has to contain."""

    def __init__(self, release: Path, folder: Path, report: Report):
        self.folder = folder
        self.report = report
        shutil.copytree(release, folder, dirs_exist_ok=True)
        self.expected = json.loads((folder / EXPECTED).read_text())
        self.added = 0

    @property
    def rows(self) -> int:
        return self.expected["stored_rows"] + self.expected["waiting_rows"] + self.added

    def check(self, binary: Path, subject: str) -> None:
        """Everything that one program does with the folder, from its start to its end."""
        self.report.subject = subject
        with self.report.check("the configuration has no errors"):
            run(binary, self.folder, "config", "check")
        lines = self.audit_lines()
        with self.report.check("the audit log is intact before the start"):
            run(binary, self.folder, "audit", "verify")
        node = None
        with self.report.check("the server starts"):
            node = Node(binary, self.folder, self.expected["key"])
        if not node:
            return
        try:
            self.check_databases(node)
            self.check_result(node)
            self.check_tables(node, "after the start")
            self.add_rows(node)
            with self.report.check("rows move from the log to files"):
                node.call("maintain_ingest", {"database": "plant", "action": "flush"})
            self.check_tables(node, "after new rows")
            with self.report.check("the data files are intact"):
                verified = node.call("maintain_ingest", {"database": "plant", "action": "verify"})["tables"]
                assert all(table["intact"] for table in verified), verified
        finally:
            with self.report.check("the server ends"):
                node.stop()
        with self.report.check("the audit log is continued, and intact"):
            assert self.audit_lines() > lines, f"{self.audit_lines()} lines, {lines} before"
            run(binary, self.folder, "audit", "verify")

    def audit_lines(self) -> int:
        return len((self.folder / "audit.jsonl").read_text().splitlines())

    def check_databases(self, node: Node) -> None:
        with self.report.check("declared tools, policies and databases answer"):
            orders = node.call("orders_of_customer", {"customer": 3})
            assert orders, orders
            assert len(node.rows("SELECT * FROM customers", "shop")) == 7
            assert node.rows("SELECT value FROM settings WHERE name = 'size'", "app") == [{"value": "12"}]
            counted = node.rows("SELECT count(*) AS n FROM shop.orders, app.settings", "joined")
            assert counted == [{"n": 400}], counted

    def check_result(self, node: Node) -> None:
        with self.report.check("the stored result has its rows"):
            expected = node.rows(f"SELECT id, customer, amount FROM orders ORDER BY id LIMIT {self.expected['result_rows']}", "shop")
            answer = node.request("GET", f"/results/{self.expected['result']}/data?format=ndjson")
            rows = [json.loads(line) for line in answer.splitlines()]
            assert len(rows) == self.expected["result_rows"] and rows == expected, f"{len(rows)} rows: {rows[:2]}"

    def check_tables(self, node: Node, when: str) -> None:
        for table in ("sensors", "events", "created"):
            with self.report.check(f"{table} has each row once {when}"):
                rows = node.rows(f"SELECT id FROM {table} ORDER BY id", "plant")
                assert [row["id"] for row in rows] == list(range(self.rows)), f"{len(rows)} rows instead of {self.rows}"
        with self.report.check(f"values are the same {when}"):
            number = self.expected["stored_rows"] + 1
            row = node.rows(f"SELECT value, device, CAST(at AS text) AS at FROM sensors WHERE id = {number}", "plant")[0]
            assert (row["value"], row["device"]) == (number / 4, f"d{number % 5}"), row
            assert row["at"].startswith(f"2026-01-{number % 3 + 1:02}"), row

    def add_rows(self, node: Node) -> None:
        with self.report.check("tables take rows"):
            numbers = range(self.rows, self.rows + ADDED)
            node.request("POST", "/data/plant/sensors", [{"id": number, "at": "2026-01-02T00:00:00Z", "device": "d0", "value": 0.5} for number in numbers])
            node.request("POST", "/data/plant/events", [{"id": number, "text": "later"} for number in numbers])
            node.request("POST", "/data/plant/created", [{"id": number} for number in numbers])
            self.added += ADDED


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rollback", type=Path, metavar="OLDER")
    arguments = parser.parse_args()
    report = Report()
    folders = releases() if not arguments.rollback else releases()[-1:]
    for release in folders:
        with tempfile.TemporaryDirectory(prefix="tidegate-compatibility-") as temporary:
            fixture = Fixture(release, Path(temporary), report)
            fixture.check(BINARY, release.name)
            # The second start reads what the first one has written.
            fixture.check(BINARY, f"{release.name}, again")
            if arguments.rollback:
                fixture.check(arguments.rollback.resolve(), f"{release.name}, rollback")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
