//! A list of the values of one column, for formats without lists: one value per line, without a header.

use tidegate_core::Format;

use super::csv::quote_field;
use super::row_writer::RowWriter;
use super::value::{BoxedCells, write_single_line};

pub(crate) struct ListWriter(pub(crate) Format);

impl RowWriter for ListWriter {
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
