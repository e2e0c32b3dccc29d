//! `table`: aligned text for people.
//!
//! Null is `NULL`. The widths come from the first rows; a later value that is wider shifts its line and is not cut.

use arrow::datatypes::SchemaRef;
use unicode_width::UnicodeWidthStr;

use super::columns::is_number;
use super::row_writer::{AnswerStatistics, RowWriter};
use super::value::{BoxedCells, write_on_one_line, write_single_line};

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

impl RowWriter for TableWriter {
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
