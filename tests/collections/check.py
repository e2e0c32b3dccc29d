"""Files of other people: the node reads each file of a collection as another implementation does, or refuses it.

    check.py FOLDER    a collection, such as a copy of the repository `apache/parquet-testing`

Each file has an outcome, which tests/README.md explains; those of FAILURES fail. `known-differences.toml` has differences that stay, with their
reasons; an entry that no longer applies fails.
"""

import os
import re
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from comparison import Comparer
from items import Item, items_of
from node import Ended, Node, Refused

HERE = Path(__file__).absolute().parent
GOOD_TABLE, GOOD_FILE = "good", "id,name\n1,a\n2,b\n3,c\n"
# A node inspects all files of its folder before the first answer.
ITEMS_OF_NODE_MAX = 100
FAILURES = ("different", "crashed", "hung", "nameless")
# The outcome of a workbook is the first one of its sheets in this order.
OUTCOMES_OF_SHEETS = ("crashed", "hung", "different", "nameless", "equal", "alone", "refused")
SHEET = re.compile(r'^sheet "(.*)" of a workbook')


@dataclass
class Run:
    """The outcomes so far, by the path of the item."""

    scratch: Path
    comparer: Comparer
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)

    def record(self, item: Item, outcome: str, detail: str):
        self.outcomes[item.path] = (outcome, detail)

    def examine(self, items: list[Item]):
        """A node over these items. An item that ends the node is left out of the next one."""
        while items:
            rest = self.examine_until_end(items)
            if rest == items and len(items) > 1:
                # The node ended before the first answer: one half has the reason.
                middle = len(items) // 2
                self.examine(items[:middle])
                self.examine(items[middle:])
                return
            items = rest

    def examine_until_end(self, items: list[Item]) -> list[Item]:
        """The items that remain when the node ends early."""
        with tempfile.TemporaryDirectory(dir=self.scratch) as name:
            folder = Path(name)
            (folder / "files").mkdir()
            (folder / "files" / f"{GOOD_TABLE}.csv").write_text(GOOD_FILE)
            for item in items:
                item.place(folder / "files")
            with Node(folder) as node:
                try:
                    node.tables()
                    good = node.rows(GOOD_TABLE)
                except (Ended, Refused) as error:
                    if len(items) > 1:
                        return items
                    outcome = error.outcome if isinstance(error, Ended) else "crashed"
                    self.record(items[0], outcome, f"with the inspection of the folder: {error}")
                    return []
                for index, item in enumerate(items):
                    try:
                        self.record(item, *self.outcome_of(node, item, folder))
                        if node.rows(GOOD_TABLE) != good:
                            self.record(item, "crashed", "the rows of another table changed")
                    except Refused as refused:
                        self.record(item, "crashed", f"another table can no longer be read: {refused}")
                    except Ended as ended:
                        self.record(item, ended.outcome, str(ended))
                        return items[index + 1 :]
        return []

    def outcome_of(self, node: Node, item: Item, folder: Path) -> tuple[str, str]:
        if item.kind != "workbook":
            return self.outcome_of_table(node, item, item.table, None, folder)
        # The comment of a table names its sheet.
        sheets = {name: SHEET.search(comment) for name, comment in node.tables().items() if name == item.table or name.startswith(f"{item.table}_")}
        outcomes = [self.outcome_of_table(node, item, name, found and found[1], folder) for name, found in sheets.items()]
        return min(outcomes, key=lambda outcome: OUTCOMES_OF_SHEETS.index(outcome[0]), default=("nameless", "it has no table"))

    def outcome_of_table(self, node: Node, item: Item, table: str, sheet: str | None, folder: Path) -> tuple[str, str]:
        try:
            rows = node.rows(table)
        except Refused as refused:
            message = str(refused) if refused.__cause__ is None else node.reason(table)
            outcome = "crashed" if refused.is_internal else "refused" if table in message else "nameless"
            return outcome, message.replace(table, item.path)
        answer = folder / "answer.arrow"
        answer.write_bytes(rows)
        return self.comparer.compare(item.source, item.kind, answer, sheet)


def known_differences(collection: str) -> dict[str, str]:
    """The reasons by path."""
    entries = tomllib.loads((HERE / "known-differences.toml").read_text()).get(collection, [])
    return {path: entry["reason"] for entry in entries for path in entry["files"]}


def main() -> int:
    collection = Path(sys.argv[1])
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(Path(scratch), Comparer())
        items = items_of(collection, Path(scratch) / "unpacked")
        for start in range(0, len(items), ITEMS_OF_NODE_MAX):
            run.examine(items[start : start + ITEMS_OF_NODE_MAX])
        run.comparer.close()
    known = known_differences(collection.name)
    failed = 0
    for path, (outcome, detail) in run.outcomes.items():
        is_failure = outcome != "different" if path in known else outcome in FAILURES
        failed += is_failure
        counts["known" if path in known else outcome] += 1
        if is_failure:
            reason = "known-differences.toml lists it, which does not apply: " if path in known else ""
            print(f"FAIL {path}: {reason}{outcome}: {detail}", flush=True)
        elif "TIDEGATE_VERBOSE" in os.environ:
            print(f"ok   {path}: {outcome}: {detail}", flush=True)
    absent = sorted(known.keys() - run.outcomes.keys())
    for path in absent:
        print(f"FAIL {path}: known-differences.toml lists it, but the collection does not have it", flush=True)
    print(f"{collection.name}: {len(items)} files: " + ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())))
    print(f"{len(run.outcomes) - failed} passed, {failed + len(absent)} failed")
    return 1 if failed or absent or not run.outcomes else 0


sys.exit(main())
