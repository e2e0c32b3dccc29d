//! `toon`: Token-Oriented Object Notation, a table with its length and columns in front.
//!
//! The length precedes the rows, so an answer that is sent in several pieces is several tables with an empty line
//! between them. Nested values are JSON in quotes: a TOON table contains plain values only.

use toon_format::{escape_string, is_valid_unquoted_key, needs_quoting};

use super::row_writer::{AnswerStatistics, RowWriter};
use super::value::BoxedCells;

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

impl RowWriter for ToonWriter {
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
