"""The sheets of workbooks, by PyPI `openpyxl` and `pyexcel-ods3`, as tables like those of the node."""

import datetime
import math
import re
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

import openpyxl
import pyexcel_ods3
from openpyxl.utils.datetime import to_excel
from readers import WHITE_SPACE, Reading, columns_of, named_columns
from values import EXACT, NULL_TEXTS, Moment, same_number

# openpyxl says which parts of a workbook it leaves out.
warnings.simplefilter("ignore")
FORMULA_ERRORS = {"#N/A", "#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#NULL!", "#NUM!", "#GETTING_DATA", "#SPILL!", "#CALC!"}
EPOCH = datetime.datetime(1970, 1, 1)
# A character that XML does not allow (ECMA-376 Part 1, 22.9.2.19).
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
# Programs write the days of a time as a float, and readers round them to a fraction of a second.
ROUNDED_NANOSECONDS_MAX = 1_000_000


def workbook_readings(path: Path, sheet: str) -> Iterator[Callable[[], Reading]]:
    """The first row that is not blank has the names of the columns, or values."""
    for has_header in (True, False):

        def read(has_header=has_header) -> Reading:
            rows = ods_rows(path, sheet) if path.suffix.lower() == ".ods" else xlsx_rows(path, sheet)
            return sheet_reading(rows, has_header)

        yield read


def xlsx_rows(path: Path, sheet: str) -> list[list]:
    rows = openpyxl.load_workbook(path, data_only=True)[sheet].iter_rows(values_only=True)
    return [[ESCAPED.sub(lambda found: chr(int(found[1], 16)), cell) if isinstance(cell, str) else cell for cell in row] for row in rows]


def ods_rows(path: Path, sheet: str) -> list[list]:
    rows = pyexcel_ods3.get_data(str(path))[sheet]
    width = max(map(len, rows), default=0)
    return [[None if cell == "" else cell for cell in row] + [None] * (width - len(row)) for row in rows]


def sheet_reading(rows: list[list], has_header: bool) -> Reading:
    rows = [row for row in rows if any(cell is not None for cell in row)]
    used = [index for index in range(max(map(len, rows), default=0)) if any(row[index] is not None for row in rows)]
    rows = [[None if cell in FORMULA_ERRORS else cell for cell in row[used[0] : used[-1] + 1]] for row in rows] if used else []
    width = len(rows[0]) if rows else 0
    names = [text_of_cell(cell).strip(WHITE_SPACE) for cell in rows[0]] if has_header and rows else [""] * width
    reader = f"workbook{'' if has_header else ', no header'}"
    return Reading(reader, named_columns(names), columns_of(rows[int(has_header) :], width), same_as_cell)


def same_as_cell(ours, cell) -> bool:
    """Whether our value is that of a cell, or its text in a column of several types."""
    if isinstance(cell, datetime.timedelta):
        return isinstance(ours, str) and ours == clock(cell)
    if isinstance(cell, datetime.time):
        return isinstance(ours, str) and ours == clock(datetime.datetime.combine(EPOCH, cell) - EPOCH)
    if isinstance(cell, datetime.date):
        return same_moment(ours, cell)
    if cell is None or ours is None:
        return ours is None and (cell is None or cell in NULL_TEXTS)
    if isinstance(cell, bool) or isinstance(ours, bool):
        return ours is cell or ours == str(cell).lower()
    if isinstance(cell, (int, float)):
        return same_number(ours, cell) if isinstance(ours, (int, float, Decimal)) else same_number_text(ours, cell)
    return ours == cell


def same_number_text(ours, cell: float) -> bool:
    try:
        return isinstance(ours, str) and EXACT.compare(Decimal(ours), Decimal(repr(cell))) == 0
    except InvalidOperation:
        return False


def same_moment(ours, cell: datetime.date) -> bool:
    if to_excel(cell) < 0:
        # openpyxl has days before the first one.
        return not isinstance(ours, Moment) and math.isclose(float(ours), to_excel(cell), abs_tol=1e-6)
    moment = cell if isinstance(cell, datetime.datetime) else datetime.datetime.combine(cell, datetime.time())
    since = moment - EPOCH
    nanoseconds = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(ours, Moment):
        return ours[0] in ("date", "timestamp") and abs(ours[1] - nanoseconds) <= ROUNDED_NANOSECONDS_MAX
    return ours in (moment.isoformat(), moment.date().isoformat())


def clock(time: datetime.timedelta) -> str:
    seconds, microseconds = divmod(abs(time) // datetime.timedelta(microseconds=1), 1_000_000)
    fraction = f".{microseconds:06}".rstrip("0").rstrip(".")
    return f"{'-' if time < datetime.timedelta() else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def text_of_cell(cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, datetime.date) else str(cell)
