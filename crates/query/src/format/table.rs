//! The formats of tables as text.
//!
//! - `csv`: RFC 4180, with a header line. Null is an empty field, empty text is `""`.
//! - `markdown`: a table of GitHub's Markdown. Null is `NULL`.
//! - `table`: aligned text for people. Null is `NULL`. The widths come from the first rows; a later value that is wider
//!   shifts its line and is not cut.
//! - `toon`: Token-Oriented Object Notation, a table with its length and columns in front. The length precedes the
//!   rows, so an answer that is sent in several pieces is several tables with an empty line between them. Nested values
//!   are JSON in quotes: a TOON table contains plain values only.
//!
//! A list of the values of one column has one value per line and no header.

use arrow::datatypes::SchemaRef;
use tidegate_core::Format;
use toon_format::{escape_string, is_valid_unquoted_key, needs_quoting};
use unicode_width::UnicodeWidthStr;

use super::columns::is_number;
use super::value::{BoxedCells, write_on_one_line, write_single_line};
use super::{AnswerStatistics, FormatWriter};

const LINE_END: &str = "\r\n";

/// Has the names of the columns.
pub(crate) struct CsvWriter(pub(crate) Vec<String>);

impl FormatWriter for CsvWriter {
    fn write_header(&self, out: &mut String) {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let start = out.len();
            out.push_str(name);
            quote_field(start, out);
        }
        out.push_str(LINE_END);
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if cell.is_null(row) {
                continue;
            }
            let start = out.len();
            cell.append_text(row, out);
            if !cell.is_plain_json(row) {
                quote_field(start, out);
            }
        }
        out.push_str(LINE_END);
    }
}

/// Quotes the field that begins at `start`, if necessary.
fn quote_field(start: usize, out: &mut String) {
    let field = &out[start..];
    let must = field.is_empty()
        || field.bytes().any(|byte| matches!(byte, b'"' | b',' | b'\r' | b'\n'))
        || field.starts_with([' ', '\t'])
        || field.ends_with([' ', '\t']);
    if !must {
        return;
    }
    if field.contains('"') {
        let doubled = field.replace('"', "\"\"");
        out.truncate(start);
        out.push_str(&doubled);
    }
    out.insert(start, '"');
    out.push('"');
}

pub(crate) struct ListWriter(pub(crate) Format);

impl FormatWriter for ListWriter {
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        if self.0 == Format::Markdown {
            out.push_str("- ");
        }
        if let Some(cell) = cells.first() {
            if self.0 != Format::Csv {
                write_single_line(cell.as_ref(), row, out);
            } else if !cell.is_null(row) {
                let start = out.len();
                cell.append_text(row, out);
                quote_field(start, out);
            }
        }
        out.push_str(if self.0 == Format::Csv { "\r\n" } else { "\n" });
    }
}

pub(crate) struct MarkdownWriter {
    header: String,
}

impl MarkdownWriter {
    pub(crate) fn new(names: Vec<String>, schema: &SchemaRef) -> Self {
        let mut header = String::from("|");
        for name in &names {
            header.push(' ');
            escape_cell(name, &mut header);
            header.push_str(" |");
        }
        header.push_str("\n|");
        for field in schema.fields() {
            header.push_str(if is_number(field) { " ---: |" } else { " --- |" });
        }
        header.push('\n');
        Self { header }
    }
}

impl FormatWriter for MarkdownWriter {
    fn write_header(&self, out: &mut String) {
        out.push_str(&self.header);
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        out.push('|');
        for cell in cells {
            out.push(' ');
            if cell.is_null(row) {
                out.push_str("NULL");
            } else if cell.is_plain_json(row) {
                cell.append_text(row, out);
            } else {
                let start = out.len();
                cell.append_text(row, out);
                escape_cell_from(start, out);
            }
            out.push_str(" |");
        }
        out.push('\n');
    }

    fn write_note(&self, line: &str, out: &mut String) {
        // Without an empty line it would be one more row.
        out.push('\n');
        out.push_str(line);
        out.push('\n');
    }
}

fn escape_cell_from(start: usize, out: &mut String) {
    if out[start..].contains(['|', '\n', '\r']) {
        let raw = out.split_off(start);
        escape_cell(&raw, out);
    }
}

fn escape_cell(text: &str, out: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '|' => out.push_str("\\|"),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => out.push_str("<br>"),
            character => out.push(character),
        }
    }
}

const LOOKAHEAD_ROWS: usize = 1_000;
/// A column is padded to no more than this, so that one long value does not widen every line.
const WIDTH_MAX: usize = 60;

pub(crate) struct TableWriter {
    columns: Vec<AlignedColumn>,
}

struct AlignedColumn {
    name: String,
    width: usize,
    is_number: bool,
}

impl TableWriter {
    pub(crate) fn new(names: Vec<String>, schema: &SchemaRef) -> Self {
        let column = |(name, field): (String, &arrow::datatypes::FieldRef)| {
            let mut visible = String::new();
            write_on_one_line(&name, &mut visible);
            AlignedColumn { width: visible.width(), name: visible, is_number: is_number(field) }
        };
        Self { columns: names.into_iter().zip(schema.fields()).map(column).collect() }
    }
}

impl FormatWriter for TableWriter {
    fn lookahead_rows(&self) -> usize {
        LOOKAHEAD_ROWS
    }

    fn inspect_rows(&mut self, cells: &[BoxedCells<'_>], rows: usize) {
        let mut text = String::new();
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            for row in 0..rows {
                text.clear();
                write_single_line(cell.as_ref(), row, &mut text);
                column.width = column.width.max(text.width().min(WIDTH_MAX));
            }
        }
    }

    fn write_header(&self, out: &mut String) {
        for (index, column) in self.columns.iter().enumerate() {
            let start = begin_cell(index, out);
            out.push_str(&column.name);
            self.pad_cell(index, start, false, out);
        }
        out.push('\n');
        for (index, column) in self.columns.iter().enumerate() {
            out.push_str(if index == 0 { "-" } else { "+-" });
            out.extend(std::iter::repeat_n('-', column.width + 1));
        }
        out.push('\n');
    }

    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let start = begin_cell(index, out);
            write_single_line(cell.as_ref(), row, out);
            self.pad_cell(index, start, column.is_number, out);
        }
        out.push('\n');
    }

    fn write_footer(&self, statistics: AnswerStatistics, out: &mut String) {
        let rows = statistics.rows;
        let noun = if rows == 1 { "row" } else { "rows" };
        out.push_str(&format!("({rows} {noun})\n"));
    }

    fn write_note(&self, line: &str, out: &mut String) {
        out.push_str(line);
        out.push('\n');
    }

    fn closing_bytes_max(&self) -> usize {
        30
    }
}

impl TableWriter {
    fn pad_cell(&self, index: usize, start: usize, to_the_right: bool, out: &mut String) {
        let missing = self.columns[index].width.saturating_sub(out[start..].width());
        if to_the_right {
            out.insert_str(start, &" ".repeat(missing));
        } else if index + 1 < self.columns.len() {
            // Nothing stands after the last column.
            out.extend(std::iter::repeat_n(' ', missing));
        }
        if index + 1 < self.columns.len() {
            out.push(' ');
        }
    }
}

fn begin_cell(index: usize, out: &mut String) -> usize {
    out.push_str(if index == 0 { " " } else { "| " });
    out.len()
}

const DELIMITER: char = ',';
const HEADER_BYTES: usize = 30;

pub(crate) struct ToonWriter {
    /// `{a,b}`; `None` for a flat list.
    pub(crate) columns: Option<String>,
}

impl ToonWriter {
    pub(crate) fn new(names: &[String]) -> Self {
        let key = |name: &String| match is_valid_unquoted_key(name) {
            true => name.clone(),
            false => format!("\"{}\"", escape_string(name)),
        };
        let keys: Vec<String> = names.iter().map(key).collect();
        Self { columns: Some(format!("{{{}}}", keys.join(","))) }
    }
}

impl FormatWriter for ToonWriter {
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        // The header is written when the number of rows is known.
        if self.columns.is_some() {
            out.push_str("  ");
        }
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.push(DELIMITER);
            }
            write_value(cell, row, out);
        }
        out.push(if self.columns.is_some() { '\n' } else { DELIMITER });
    }

    fn finish_piece(&self, before: u64, rows: u64, piece: &mut String) {
        if rows == 0 {
            return;
        }
        let between = if before > 0 { "\n" } else { "" };
        let header = match &self.columns {
            Some(columns) => format!("{between}[{rows}]{columns}:\n"),
            None => {
                // Each value was written with a delimiter after it.
                piece.pop();
                piece.push('\n');
                format!("{between}[{rows}]: ")
            }
        };
        piece.insert_str(0, &header);
    }

    fn write_footer(&self, statistics: AnswerStatistics, out: &mut String) {
        if statistics.rows == 0 {
            let columns = self.columns.as_deref().unwrap_or_default();
            out.push_str(&format!("[0]{columns}:\n"));
        }
    }

    fn closing_bytes_max(&self) -> usize {
        self.columns.as_ref().map_or(0, String::len) + HEADER_BYTES
    }
}

fn write_value(cell: &BoxedCells<'_>, row: usize, out: &mut String) {
    if cell.is_null(row) {
        out.push_str("null");
        return;
    }
    let start = out.len();
    cell.append_text(row, out);
    if !cell.is_plain_json(row) && needs_quoting(&out[start..], DELIMITER) {
        let escaped = escape_string(&out[start..]);
        out.truncate(start);
        out.push('"');
        out.push_str(&escaped);
        out.push('"');
    }
}
