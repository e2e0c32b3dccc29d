//! A list of the values of one column, for formats without lists: one value per line, without a header.

use super::csv::quote_field;
use super::output_format::OutputFormat;
use super::row_writer::RowWriter;
use super::value::{BoxedCells, write_single_line};

pub(crate) struct ListWriter(pub(crate) OutputFormat);

impl RowWriter for ListWriter {
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        if self.0 == OutputFormat::Markdown {
            out.push_str("- ");
        }
        if let Some(cell) = cells.first() {
            if self.0 != OutputFormat::Csv {
                write_single_line(cell.as_ref(), row, out);
            } else if !cell.is_null(row) {
                let start = out.len();
                cell.append_text(row, out);
                quote_field(start, out);
            }
        }
        out.push_str(if self.0 == OutputFormat::Csv { "\r\n" } else { "\n" });
    }
}
