//! Workbooks (`.xlsx`, `.ods`): each visible sheet with cells is a table.
//!
//! A workbook is a compressed archive, and a few bytes of it may expand to terabytes. So its size is checked before it
//! is read: the unpacked bytes, and the cells of each sheet. Each sheet is read completely, and only one workbook is
//! read at a time.
//!
//! An `.xlsx` file that is encrypted with a password is no archive, but a compound file, the container of old Office
//! programs, with the archive in its stream `EncryptedPackage`. Only the marks of encryption are looked for: nothing
//! of the container is trusted.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::sync::Arc;

use calamine::{Data, DataRef, Ods, OdsError, Reader, SheetType, SheetVisible, Xlsx, XlsxError, open_workbook_from_rs};
use datafusion::arrow::array::RecordBatch;
use memchr::memmem;
use parking_lot::Mutex;
use zip::ZipArchive;

use super::file_kind::NamedFormat;
use super::sheet_columns;
use super::table_options::{TableDeclarations, TextTableOptions};

/// Maximum number of unpacked bytes of a workbook.
const WORKBOOK_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of cells in the rectangle that a sheet fills.
const SHEET_CELLS_MAX: usize = 2_000_000;
const SHEETS_MAX: usize = 200;
/// The number of rows among which the names of the columns are looked for after titles and an empty row.
const TITLE_ROWS_MAX: usize = 32;

/// What the operator can do about a workbook that is too large.
const SAVE_AS_ADVICE: &str = "save its sheets as CSV or Parquet";

/// Ensures that only one workbook is in memory at a time.
static WORKBOOK_LOCK: Mutex<()> = Mutex::new(());

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkbookSheet {
    /// The format of the workbook.
    pub(crate) format: NamedFormat,
    pub(crate) name: Arc<str>,
    /// Whether no other sheet has cells, so that the table has the name of the workbook.
    pub(crate) is_alone: bool,
}

struct SheetGrid {
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
    match compound_file_refusal(&mut file) {
        Ok(None) => {}
        Ok(Some(refusal)) => return Err(refusal.to_owned()),
        Err(error) => return Err(super::path_sandbox::io_error_reason(&error)),
    }
    check_workbook_size(&mut file, format)?;
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
        OdsError::Password => ENCRYPTED.to_owned(),
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

fn too_large_message() -> String {
    format!("the sheet has more than {SHEET_CELLS_MAX} cells; {SAVE_AS_ADVICE}")
}

fn unreadable_message(error: impl std::fmt::Display) -> String {
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
        sheet_columns::build_sheet_batch(self.rows, self.rows_above + skipped, options)
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

/// The part of an `.ods` file that contains its sheets.
const ODS_CONTENT: &str = "content.xml";

/// Unpacks the workbook without keeping the data.
fn check_workbook_size(file: &mut File, format: NamedFormat) -> Result<(), String> {
    let mut archive = ZipArchive::new(file).map_err(unreadable_message)?;
    let mut bytes_left = WORKBOOK_BYTES_MAX;
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).map_err(unreadable_message)?.take(bytes_left + 1);
        let is_content = format == NamedFormat::Ods && part.get_ref().name().is_ok_and(|name| name == ODS_CONTENT);
        let bytes = if is_content {
            let mut content = Vec::new();
            let bytes = part.read_to_end(&mut content).map_err(unreadable_message)?;
            if bytes as u64 <= bytes_left && count_ods_cells(&content) > SHEET_CELLS_MAX {
                return Err(too_large_message());
            }
            bytes as u64
        } else {
            io::copy(&mut part, &mut io::sink()).map_err(unreadable_message)?
        };
        if bytes > bytes_left {
            let mebibytes = WORKBOOK_BYTES_MAX >> 20;
            return Err(format!("it is larger than {mebibytes} MiB when unpacked; {SAVE_AS_ADVICE}"));
        }
        bytes_left -= bytes;
    }
    Ok(())
}

/// An upper bound for the number of cells of an `.ods` file: for each row, the position of its last filled cell times
/// the number of repetitions of the row.
fn count_ods_cells(content: &[u8]) -> usize {
    let (mut cells, mut row_repeats, mut column, mut last_filled) = (0_usize, 1, 0_usize, 0);
    for tag in content.split(|byte| *byte == b'<').skip(1) {
        let end = tag.iter().position(|byte| *byte == b'>').unwrap_or(tag.len());
        let tag = &tag[..end];
        if tag.starts_with(b"table:table-row") && !tag.starts_with(b"table:table-rows") {
            (row_repeats, column, last_filled) = (repeat_count(tag, b"number-rows-repeated=\""), 0, 0);
        } else if tag.starts_with(b"table:table-cell") || tag.starts_with(b"table:covered-table-cell") {
            column = column.saturating_add(repeat_count(tag, b"number-columns-repeated=\""));
            let is_filled = tag.last() != Some(&b'/') || find(tag, b"value-type=").is_some();
            if is_filled {
                last_filled = column;
            }
        } else if tag.starts_with(b"/table:table-row") {
            cells = cells.saturating_add(last_filled.saturating_mul(row_repeats));
        }
    }
    cells
}

/// The number after `attribute`; one if the attribute is missing.
fn repeat_count(tag: &[u8], attribute: &[u8]) -> usize {
    let Some(position) = find(tag, attribute) else { return 1 };
    let digits = tag[position + attribute.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_usize, |number, digit| number.saturating_mul(10).saturating_add(usize::from(digit - b'0')))
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

const COMPOUND_FILE_MAGIC: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
/// The name of the stream in UTF-16, as the directory of a compound file has it.
const ENCRYPTED_PACKAGE: &[u8] = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0";
/// The beginning of the record BOF of the globals of a workbook (MS-XLS 2.4.21).
const WORKBOOK_BEGIN: &[u8] = b"\x09\x08\x10\0\0\x06\x05\0";
/// The bytes of that record.
const WORKBOOK_BEGIN_BYTES: usize = 20;
/// An empty record WriteProtect, which may stand before the next one (MS-XLS 2.4.349).
const WRITE_PROTECT: &[u8] = b"\x86\0\0\0";
/// The type of the record FilePass (MS-XLS 2.4.117).
const FILE_PASS: &[u8] = b"\x2F\0";

const PIECE_BYTES: usize = 1 << 20;
/// No mark is longer.
const OVERLAP_BYTES: usize = 64;

/// The refusal of a workbook that is encrypted.
const ENCRYPTED: &str =
    "it is encrypted with a password; open it in a spreadsheet program, and save it without a password";

/// Why a workbook in a compound file is not read. Nothing if `file` is none.
fn compound_file_refusal(file: &mut File) -> io::Result<Option<&'static str>> {
    let mut piece = Vec::new();
    file.by_ref().take(COMPOUND_FILE_MAGIC.len() as u64).read_to_end(&mut piece)?;
    if piece != COMPOUND_FILE_MAGIC {
        file.rewind()?;
        return Ok(None);
    }
    loop {
        piece = piece.split_off(piece.len().saturating_sub(OVERLAP_BYTES));
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if is_marked_as_encrypted(&piece) {
            return Ok(Some(ENCRYPTED));
        }
        if read == 0 {
            return Ok(Some(
                "it has the format of workbooks before Excel 2007 (.xls), whatever its name is; save it as .xlsx, .ods or \
                 .csv",
            ));
        }
    }
}

fn is_marked_as_encrypted(piece: &[u8]) -> bool {
    let has_file_pass = |begin: usize| {
        let records = piece.get(begin + WORKBOOK_BEGIN_BYTES..).unwrap_or_default();
        records.strip_prefix(WRITE_PROTECT).unwrap_or(records).starts_with(FILE_PASS)
    };
    memmem::find(piece, ENCRYPTED_PACKAGE).is_some() || memmem::find_iter(piece, WORKBOOK_BEGIN).any(has_file_pass)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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

    #[test]
    fn repeated_cells_are_counted() {
        let row = |rows: &str, cells: &str| format!("<table:table-row {rows}>{cells}</table:table-row>");
        let filled =
            r#"<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>"#;
        let empty = r#"<table:table-cell table:number-columns-repeated="16384"/>"#;
        let text = row("", &format!("{filled}{filled}{empty}"));
        assert_eq!(count_ods_cells(text.as_bytes()), 2);
        assert_eq!(count_ods_cells(row(r#"table:number-rows-repeated="1048576""#, empty).as_bytes()), 0);
        let bomb = filled.replace("<table:table-cell", r#"<table:table-cell table:number-columns-repeated="16384""#);
        let bomb = row(r#"table:number-rows-repeated="1048576""#, &bomb);
        assert!(count_ods_cells(bomb.as_bytes()) > SHEET_CELLS_MAX);
    }

    fn refusal(bytes: &[u8]) -> Option<&'static str> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        compound_file_refusal(&mut file).unwrap()
    }

    #[test]
    fn marks_of_encryption_are_found_wherever_they_are() {
        let compound = |gap: usize, mark: &[u8]| {
            [COMPOUND_FILE_MAGIC, vec![7_u8; gap].as_slice(), mark, b".....".as_slice()].concat()
        };
        let begin = |next: &[u8]| [WORKBOOK_BEGIN, vec![0_u8; WORKBOOK_BEGIN_BYTES - 8].as_slice(), next].concat();
        let (pass, protected) = (begin(b"\x2F\0\x36\0"), begin(b"\x86\0\0\0\x2F\0"));
        for gap in [0, 504, PIECE_BYTES - 50, PIECE_BYTES - 10] {
            for mark in [ENCRYPTED_PACKAGE, pass.as_slice(), protected.as_slice()] {
                assert_eq!(refusal(&compound(gap, mark)), Some(ENCRYPTED), "{gap}");
            }
        }
        assert!(refusal(&compound(504, &begin(b"\xE1\0\x02\0"))).unwrap().contains("before Excel 2007"));
        assert_eq!(refusal(b"PK\x03\x04"), None);
        assert_eq!(refusal(b""), None);
    }
}
