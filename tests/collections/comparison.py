"""Compares answers of the node with the readings of other implementations, in a process of its own: their readers may crash on a file, too.

Each line of standard input is a JSON object with `path`, `kind`, `answer`, the path of an Arrow stream, and `sheet` of a workbook. Each line of output is
`[outcome, detail]`: `equal`, `different`, or `alone` if no other implementation here reads a binary file.
"""

import json
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
from readers import READINGS, Reading, from_table
from workbooks import workbook_readings

SECONDS_MAX = 120
MEMORY_BYTES_MAX = 12 << 30
DETAIL_CHARACTERS_MAX = 300
BINARY_KINDS = ("parquet", "arrow", "delta")
# Of an error of another reader, in the detail of `alone`.
REASON_CHARACTERS_MAX = 100


class Comparer:
    """A process that compares, and is replaced when it ends or takes too long."""

    def __init__(self):
        self.process = None

    def compare(self, path: Path, kind: str, answer: Path, sheet: str | None) -> tuple[str, str]:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, __file__]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        timer = threading.Timer(SECONDS_MAX, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps({"path": str(path), "kind": kind, "answer": str(answer), "sheet": sheet}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            self.process.kill()
            return "alone", f"the other reader ended with {self.process.wait()}"
        outcome, detail = json.loads(line)
        return outcome, detail

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def compared(path: Path, kind: str, answer: Path, sheet: str | None) -> tuple[str, str]:
    with pa.OSFile(str(answer)) as file:
        table = pa.ipc.open_stream(file).read_all()
    try:
        ours = from_table("ours", table)
    except Exception as error:
        return "alone", f"Python has no values of a type: {error!r}"
    if kind == "log":
        ours = entry_lines(ours)
    differences, refusals = [], []
    for read in workbook_readings(path, sheet) if kind == "workbook" else READINGS[kind](path):
        try:
            theirs = read()
        except Exception as error:
            refusals.append(f"{type(error).__name__}: {str(error)[:REASON_CHARACTERS_MAX]}")
            continue
        difference = difference_of(ours, theirs)
        if difference is None and not (differences and kind in BINARY_KINDS):
            return "equal", theirs.reader
        # Binary formats have one reading: where other readers disagree, the first one that reads the file decides.
        differences.append(f"{theirs.reader}: {difference or 'equal'}")
    if differences:
        # Columns differ where another reader takes the first line for a row, which explains nothing.
        differences.sort(key=lambda text: "the columns are" in text)
        return "different", "; ".join(dict.fromkeys(differences))
    # Text has rules, and who breaks them is refused; of damaged binary files, one reader may read more than another.
    return ("alone" if kind in (*BINARY_KINDS, "workbook") else "different"), "others refuse it: " + "; ".join(dict.fromkeys(refusals))


def entry_lines(ours: Reading) -> Reading:
    entries = ours.columns[ours.names.index("entry_text")]
    return Reading("ours", ["entry_text"], [[line for entry in entries for line in (entry or "").replace("\r\n", "\n").split("\n")]])


def difference_of(ours: Reading, theirs: Reading) -> str | None:
    order = list(range(len(ours.names)))
    if not theirs.has_ordered_columns and sorted(ours.names) == sorted(theirs.names):
        order = [ours.names.index(name) for name in theirs.names]
    names = [ours.names[index] for index in order]
    if names != theirs.names:
        return f"the columns are {names} instead of {theirs.names}"
    if ours.rows != theirs.rows:
        return f"{ours.rows} rows instead of {theirs.rows}"
    columns = [ours.columns[index] for index in order]
    difference = first_difference(names, columns, theirs.columns, theirs.agrees)
    if difference is None or theirs.has_ordered_rows:
        return difference
    of_sorted = first_difference(names, sorted_rows(columns), sorted_rows(theirs.columns), theirs.agrees)
    return f"{difference}; sorted: {of_sorted}" if of_sorted else None


def sorted_rows(columns: list[list]) -> list[list]:
    rows = sorted(zip(*columns, strict=True), key=repr)
    return [list(column) for column in zip(*rows, strict=True)]


def first_difference(names: list[str], columns: list[list], others: list[list], agrees: Callable) -> str | None:
    for name, ours, theirs in zip(names, columns, others, strict=True):
        for row, (value, other) in enumerate(zip(ours, theirs, strict=True), 1):
            if not agrees(value, other):
                return f"row {row}, {name}: {value!r} instead of {other!r}"[:DETAIL_CHARACTERS_MAX]
    return None


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    # Readers print, too.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(compared(Path(request["path"]), request["kind"], Path(request["answer"]), request["sheet"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
