//! Workbooks (`.xlsx`, `.ods`): each visible sheet with cells is a table.
//!
//! A workbook is a compressed archive, and a few bytes of it may expand to terabytes. So its size is checked before it
//! is read: the unpacked bytes, and the cells of each sheet. Each sheet is read completely, and only one workbook is
//! read at a time.

mod columns;
mod encrypted_workbook;
mod workbook_size;

pub(super) use columns::number_notes;

use std::fs::File;
use std::io::{BufReader, Seek};

use calamine::{Data, DataRef, Ods, OdsError, Reader, SheetType, SheetVisible, Xlsx, XlsxError, open_workbook_from_rs};
use datafusion::arrow::array::RecordBatch;
use parking_lot::Mutex;

use super::file_kind::NamedFormat;
use super::probe::WorkbookSheet;
use super::table_options::{TableDeclarations, TextTableOptions};

/// Maximum number of unpacked bytes of a workbook.
pub(super) const WORKBOOK_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of cells in the rectangle that a sheet fills.
pub(super) const SHEET_CELLS_MAX: usize = 2_000_000;
const SHEETS_MAX: usize = 200;
/// The number of rows among which the names of the columns are looked for after titles and an empty row.
const TITLE_ROWS_MAX: usize = 32;

/// What the operator can do about a workbook that is too large.
pub(super) const SAVE_AS_ADVICE: &str = "save its sheets as CSV or Parquet";

/// Ensures that only one workbook is in memory at a time.
static WORKBOOK_LOCK: Mutex<()> = Mutex::new(());

pub(super) struct SheetGrid {
    /// Rows of the sheet above the rectangle.
    rows_above: usize,
    rows: Vec<Vec<Data>>,
    /// As [`SheetTable::note`].
    note: Option<String>,
}

/// The table of a sheet.
pub(crate) struct SheetTable {
    pub(crate) rows: RecordBatch,
    /// What is odd about its cells. It quotes none of them.
    pub(crate) note: Option<String>,
}

/// The table of a sheet, or why it has none.
pub(crate) type SheetRows = Result<SheetTable, String>;

/// Reads the sheets of the workbook at `location`, or only the sheet `only`, which was found before, without its note. The
/// libraries may panic on a damaged file: callers run this in [`catch_reader_panic`](super::catch_reader_panic).
pub(crate) fn read_workbook(
    mut file: File,
    format: NamedFormat,
    location: &str,
    table_declarations: &TableDeclarations,
    only: Option<&WorkbookSheet>,
) -> Result<Vec<(String, SheetRows)>, String> {
    let _turn = WORKBOOK_LOCK.lock();
    match encrypted_workbook::compound_file_refusal(&mut file) {
        Ok(None) => {}
        Ok(Some(refusal)) => return Err(refusal.to_owned()),
        Err(error) => return Err(super::path_sandbox::io_error_reason(&error)),
    }
    workbook_size::check_workbook_size(&mut file, format)?;
    file.rewind().map_err(|error| super::path_sandbox::io_error_reason(&error))?;
    let only_name = only.map(|sheet| &*sheet.name);
    let grids = if format == NamedFormat::Ods { read_ods(file, only_name) } else { read_xlsx(file, only_name) }?;
    let has_cells = |(_, grid): &(String, Result<SheetGrid, String>)| !matches!(grid, Ok(grid) if grid.rows.is_empty());
    let grids: SheetGrids = grids.into_iter().filter(has_cells).collect();
    let is_alone = only.map_or(grids.len() == 1, |sheet| sheet.is_alone);
    let to_rows = |(name, grid): (String, Result<SheetGrid, String>)| {
        let options = table_declarations.options_for_sheet(location, &name, is_alone);
        let suggest = |option: &str| table_declarations.suggest_for_sheet(location, &name, is_alone, option);
        let table = grid.and_then(|mut grid| {
            let note = grid.note.take();
            Ok(SheetTable { rows: grid.into_batch(&options, suggest)?, note })
        });
        (name, table)
    };
    Ok(grids.into_iter().map(to_rows).collect())
}

type SheetGrids = Vec<(String, Result<SheetGrid, String>)>;

fn read_xlsx(file: File, only: Option<&str>) -> Result<SheetGrids, String> {
    let mut book: Xlsx<_> = open_workbook_from_rs(BufReader::new(file)).map_err(unreadable_message)?;
    let names = visible_sheets(&book, only).into_iter();
    let mut read_grid = |name: &str| {
        let mut grid = read_xlsx_grid(&mut book, name)?;
        if only.is_none() {
            grid.note = note_formulas(&mut book, name);
        }
        Ok(grid)
    };
    Ok(names.map(|name| (name.clone(), read_grid(&name))).collect())
}

fn read_ods(file: File, only: Option<&str>) -> Result<SheetGrids, String> {
    let mut book = open_workbook_from_rs::<Ods<_>, _>(BufReader::new(file)).map_err(|error| match error {
        OdsError::Password => encrypted_workbook::ENCRYPTED.to_owned(),
        other => unreadable_message(other),
    })?;
    let names = visible_sheets(&book, only);
    let mut read_grid = |name: &str| {
        let range = book.worksheet_range(name).map_err(unreadable_message)?;
        let (height, width) = range.get_size();
        check_size(height, width)?;
        let rows_above = range.start().map_or(0, |(row, _)| row as usize);
        Ok(SheetGrid { rows_above, rows: range.rows().map(<[Data]>::to_vec).collect(), note: None })
    };
    Ok(names.into_iter().map(|name| (name.clone(), read_grid(&name))).collect())
}

fn visible_sheets<RS: std::io::Read + Seek, B: Reader<RS>>(book: &B, only: Option<&str>) -> Vec<String> {
    let sheets = book.sheets_metadata().iter();
    let is_meant = |sheet: &&calamine::Sheet| {
        sheet.typ == SheetType::WorkSheet
            && sheet.visible == SheetVisible::Visible
            && only.is_none_or(|only| only == sheet.name)
    };
    sheets.filter(is_meant).take(SHEETS_MAX).map(|sheet| sheet.name.clone()).collect()
}

/// Reads the cells of a sheet one by one, because the size that a sheet declares is not reliable.
fn read_xlsx_grid(book: &mut Xlsx<BufReader<File>>, name: &str) -> Result<SheetGrid, String> {
    let mut reader = book.worksheet_cells_reader(name).map_err(unreadable_message)?;
    let mut cells: Vec<(usize, usize, Data)> = Vec::new();
    let mut last = None;
    while let Some(cell) = reader.next_cell().map_err(|error| cell_error_message(error, last))? {
        let (row, column) = cell.get_position();
        last = Some((row, column));
        let value = Data::from(cell.get_value().clone());
        if value == Data::Empty {
            continue;
        }
        if cells.len() == SHEET_CELLS_MAX {
            return Err(too_large_message());
        }
        cells.push((row as usize, column as usize, value));
    }
    let bounds = |of: fn(&(usize, usize, Data)) -> usize| {
        let values = || cells.iter().map(of);
        values().min().zip(values().max())
    };
    let (Some((top, bottom)), Some((left, right))) = (bounds(|cell| cell.0), bounds(|cell| cell.1)) else {
        return Ok(SheetGrid { rows_above: 0, rows: Vec::new(), note: None });
    };
    let (height, width) = (bottom - top + 1, right - left + 1);
    check_size(height, width)?;
    let mut rows = vec![vec![Data::Empty; width]; height];
    for (row, column, value) in cells {
        rows[row - top][column - left] = value;
    }
    Ok(SheetGrid { rows_above: top, rows, note: None })
}

/// Programs that compute no formulas write them without values. A formula that cannot be read ends the search: its value can.
fn note_formulas(book: &mut Xlsx<BufReader<File>>, name: &str) -> Option<String> {
    let mut reader = book.worksheet_cells_reader(name).ok()?;
    let (mut first, mut count) = (None, 0_usize);
    while let Ok(Some(cell)) = reader.next_cell_with_formula_metadata() {
        if cell.formula.is_some() && matches!(cell.value, DataRef::Empty) {
            first = first.or(Some(cell.pos));
            count += 1;
        }
    }
    let (row, column) = first?;
    let cell = cell_name(row, column);
    Some(format!(
        "formulas without a computed value are null: {count}, the first in {cell}; open the workbook in a spreadsheet \
         program, and save it"
    ))
}

/// The name of a cell, such as `C2`. The first row and the first column are 0.
fn cell_name(row: u32, column: u32) -> String {
    let (mut letters, mut rest) = (Vec::new(), column + 1);
    while rest > 0 {
        letters.extend(char::from_u32(u32::from(b'A') + (rest - 1) % 26));
        rest = (rest - 1) / 26;
    }
    format!("{}{}", letters.iter().rev().collect::<String>(), row + 1)
}

/// Why a cell cannot be read, without its value. The cell at `last` was read before it.
fn cell_error_message(error: XlsxError, last: Option<(u32, u32)>) -> String {
    let reason = match error {
        XlsxError::Unrecognized { typ, .. } => format!("an unrecognized {typ}"),
        XlsxError::CellError(_) => "an unsupported error value".to_owned(),
        other => return unreadable_message(other),
    };
    let place =
        last.map_or("in the first cell".to_owned(), |(row, column)| format!("after {}", cell_name(row, column)));
    unreadable_message(format!("{reason} {place}"))
}

fn check_size(height: usize, width: usize) -> Result<(), String> {
    if height.saturating_mul(width) > SHEET_CELLS_MAX { Err(too_large_message()) } else { Ok(()) }
}

pub(super) fn too_large_message() -> String {
    format!("the sheet has more than {SHEET_CELLS_MAX} cells; {SAVE_AS_ADVICE}")
}

pub(super) fn unreadable_message(error: impl std::fmt::Display) -> String {
    format!("it is not a readable workbook: {error}")
}

impl SheetGrid {
    /// The table of the sheet. `suggest` writes where an option of it is declared.
    fn into_batch(
        mut self,
        options: &TextTableOptions,
        suggest: impl Fn(&str) -> String,
    ) -> Result<RecordBatch, String> {
        let skipped = options.skip.unwrap_or_default().saturating_sub(self.rows_above).min(self.rows.len());
        self.rows.drain(..skipped);
        let begin = count_rows_before_header(&self.rows);
        if options.skip.is_none() && begin > 0 {
            let rows = self.rows_above + begin;
            let option = suggest(&format!("skip: {rows}"));
            return Err(format!("the table starts after row {rows}; to skip the rows before it, write {option}"));
        }
        columns::build_sheet_batch(self.rows, self.rows_above + skipped, options)
    }
}

/// The number of rows above the names of the columns: of titles, which may have several cells if an empty row follows them.
fn count_rows_before_header(rows: &[Vec<Data>]) -> usize {
    let filled = |row: &Vec<Data>| row.iter().filter(|cell| **cell != Data::Empty).count();
    let widest = rows.iter().map(filled).max().unwrap_or_default();
    if widest < 2 {
        return 0;
    }
    let is_wide = |row: &Vec<Data>| filled(row) * 2 >= widest && filled(row) >= 2;
    let is_title = |row: &Vec<Data>| filled(row) < 2 || filled(row) * 2 <= widest;
    let is_name = |cell: &Data| matches!(cell, Data::String(_));
    let is_header_after_blank = |three: &[Vec<Data>]| {
        matches!(three, [blank, header, row] if filled(blank) == 0
            && filled(row) > 0
            && filled(header) == widest
            && header.iter().filter(|cell| **cell != Data::Empty).all(is_name))
    };
    let after_blank = rows.windows(3).take(TITLE_ROWS_MAX).position(is_header_after_blank);
    match after_blank.filter(|_| rows.first().is_some_and(is_title)) {
        Some(blank) => blank + 1,
        None => rows.iter().position(is_wide).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_names_of_spreadsheets() {
        let places = [(0, 0), (1, 25), (8, 26), (9, 701), (0, 702), (1_048_575, 16_383)];
        let names = places.map(|(row, column)| cell_name(row, column));
        assert_eq!(names, ["A1", "Z2", "AA9", "ZZ10", "AAA1", "XFD1048576"]);
    }

    #[test]
    fn reasons_have_the_place_of_a_cell_and_not_its_value() {
        let error = || XlsxError::Unrecognized { typ: "boolean cell value", val: "secret".to_owned() };
        let reason = cell_error_message(error(), Some((1, 2)));
        assert_eq!(reason, "it is not a readable workbook: an unrecognized boolean cell value after C2");
        assert!(cell_error_message(error(), None).ends_with(" in the first cell"));
    }

    #[test]
    fn titles_before_an_empty_row_are_not_the_header() {
        let count = |lines: &[&str]| {
            let cell = |text: &str| match (text, text.parse()) {
                ("", _) => Data::Empty,
                (_, Ok(number)) => Data::Float(number),
                (text, Err(_)) => Data::String(text.to_owned()),
            };
            let rows: Vec<Vec<Data>> = lines.iter().map(|line| line.split(';').map(cell).collect()).collect();
            count_rows_before_header(&rows)
        };
        let table = ["name;day;kw", "Ann;1;2", "Bob;3;4"];
        assert_eq!(count(&table), 0);
        assert_eq!(count(&[&["Export;;", ";;"][..], &table].concat()), 2);
        assert_eq!(count(&[&["Export;;", "Created;June;", ";;"][..], &table].concat()), 3);
        assert_eq!(count(&["name;day;", ";;", "Ann;x;y", "Bob;x;y"]), 0);
        assert_eq!(count(&["only", "one"]), 0);
    }
}
