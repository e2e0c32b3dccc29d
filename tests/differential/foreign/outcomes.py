"""The outcomes of statements, their counts by area, and the list of differences that stay."""

import json
import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from answers import Answer, difference_of, named_apart
from databases_node import NodeError

KNOWN = Path(__file__).absolute().parent / "known-differences.toml"
# In the order of the table.
OUTCOMES = ("equal", "refused", "known", "different", "named", "internal")
FAILURES = ("different", "named", "internal", "stale")
# Words of the planner that no message shows.
INTERNAL_WORDS = re.compile(
    r"OuterReferenceColumn|\bField \{|Physical plan does not support|cannot be rewritten without changing its meaning|DataFusion|LogicalPlan|Internal error|__\w+__|outer_ref\("
)
PRINTED_ROWS_MAX = 12
DOCUMENT = Path(__file__).absolute().parents[3] / "docs/reference/sql.md"


@dataclass
class Judged:
    area: str
    line: int
    sql: str
    outcome: str
    detail: str
    theirs: Answer | None = None
    ours: Answer | NodeError | None = None

    @property
    def place(self) -> str:
        return f"{self.area}:{self.line}"


def judged_answer(theirs: Answer, ours: Answer | NodeError, order: list[int] | None) -> tuple[str, str]:
    """The outcome and its detail."""
    if isinstance(ours, NodeError):
        if ours.is_internal or INTERNAL_WORDS.search(ours.message):
            return "internal", f"{ours.kind}: {ours.message}"
        return "refused", ours.message + (f" [{ours.hint}]" if ours.hint else "")
    if difference := difference_of(theirs, ours, order):
        return "different", difference
    names = named_apart(theirs.names)
    return ("equal", "") if names == ours.names else ("named", f"the columns are {ours.names} instead of {names}")


def apply_known(judged: list[Judged], collection: str):
    """Marks what known-differences.toml lists. An entry that no longer applies fails."""
    entries = tomllib.loads(KNOWN.read_text()).get(collection, [])
    known = {(entry["area"], normalized(sql)): entry["reason"] for entry in entries for sql in entry["statements"]}
    for one in judged:
        reason = known.get((one.area, normalized(one.sql)))
        if reason is not None:
            applies = one.outcome in FAILURES
            one.outcome, one.detail = ("known", reason) if applies else ("stale", f"known-differences.toml lists it, but it is {one.outcome}")


def normalized(sql: str) -> str:
    return " ".join(sql.split())


def text_of(answer: Answer | NodeError | None) -> str:
    if isinstance(answer, NodeError):
        return f"{answer.kind}: {answer.message}" + (f" [hint: {answer.hint}]" if answer.hint else "")
    if answer is None:
        return "no answer"
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(answer.names, answer.classes, strict=True))
    rows = "".join(f"\n    {' | '.join('NULL' if value is None else str(value) for value in row)}" for row in answer.rows[:PRINTED_ROWS_MAX])
    return f"{len(answer.rows)} rows ({columns}){rows}" + ("\n    …" if len(answer.rows) > PRINTED_ROWS_MAX else "")


def counts_by_area(judged: list[Judged]) -> dict[str, Counter]:
    areas: dict[str, Counter] = {}
    for one in judged:
        areas.setdefault(one.area, Counter())[one.outcome] += 1
    return areas


def table_of(judged: list[Judged]) -> str:
    areas = counts_by_area(judged)
    total = sum(areas.values(), Counter())
    shown = [name for name in OUTCOMES if total[name]]
    lines = [f"| area | {' | '.join(shown)} |", f"|---|{'---:|' * len(shown)}"]
    for area, counts in [*areas.items(), ("**all**", total)]:
        lines.append(f"| {area} | {' | '.join(str(counts[name]) for name in shown)} |")
    return "\n".join(lines)


def write_document(suite: str, judged: list[Judged], skipped: Counter):
    """Replaces the row of this suite in the table of docs/reference/sql.md: passed, refused, different, not asked."""
    counts = Counter(one.outcome for one in judged)
    totals = (counts["equal"], counts["refused"], len(judged) - counts["equal"] - counts["refused"], skipped.total())
    row = f"| {suite} | {' | '.join(f'{total:,}' for total in totals)} |"
    text, rows = re.subn(rf"^\| {re.escape(suite)} \|.*$", row, DOCUMENT.read_text(), flags=re.MULTILINE)
    assert rows == 1, f"{DOCUMENT} has {rows} rows for {suite}"
    DOCUMENT.write_text(text)


def write_output(path: Path, judged: list[Judged]):
    """One JSON object for each statement that is not equal."""
    with path.open("w") as output:
        for one in judged:
            if one.outcome != "equal":
                values = {"place": one.place, "sql": one.sql, "outcome": one.outcome, "detail": one.detail}
                output.write(json.dumps(values | {"theirs": text_of(one.theirs), "ours": text_of(one.ours)}) + "\n")


def report(judged: list[Judged], skipped: Counter) -> int:
    """Prints what failed, the counts, and returns the exit status."""
    failed = [one for one in judged if one.outcome in FAILURES]
    for one in failed:
        print(f"FAIL {one.place}: {one.outcome}: {one.detail}\n  {one.sql}\n  PostgreSQL: {text_of(one.theirs)}\n  here: {text_of(one.ours)}", flush=True)
    print(table_of(judged))
    print("not asked: " + ", ".join(f"{number} {reason}" for reason, number in skipped.most_common()))
    print(f"{len(judged) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not judged else 0
