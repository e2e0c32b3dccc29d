//! The values of one column in formats that have no list: one value a line, without a header.

use super::Format;
use super::csv::quote;
use super::value::{BoxedCell, write_line};
use super::writer::{Facts, Writer};

pub(crate) struct Lines {
    format: Format,
}

impl Lines {
    pub(crate) fn new(format: Format) -> Self {
        Self { format }
    }
}

impl Writer for Lines {
    fn open(&self, _out: &mut String) {}

    fn row(&self, cells: &[BoxedCell<'_>], row: usize, _index: u64, out: &mut String) {
        if self.format == Format::Markdown {
            out.push_str("- ");
        }
        if let Some(cell) = cells.first() {
            if self.format != Format::Csv {
                write_line(cell.as_ref(), row, out);
            } else if !cell.is_null(row) {
                let start = out.len();
                cell.text(row, out);
                quote(start, out);
            }
        }
        out.push_str(if self.format == Format::Csv { "\r\n" } else { "\n" });
    }

    fn close(&self, _facts: Facts, _out: &mut String) {}

    fn closing_bytes_max(&self) -> usize {
        0
    }
}
