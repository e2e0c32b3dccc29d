//! `ndjson`: one JSON object per line.

use super::mcp::JsonRows;
use super::row_writer::{AnswerStatistics, RowWriter};
use super::value::{BoxedCells, write_json_string};

pub(crate) struct NdjsonWriter(pub(crate) JsonRows);

impl RowWriter for NdjsonWriter {
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, _index: u64, out: &mut String) {
        self.0.write_row(cells, row, out);
        out.push('\n');
    }

    fn write_failure(&self, _statistics: AnswerStatistics, message: &str, out: &mut String) {
        out.push_str("{\"error\":");
        write_json_string(message, out);
        out.push_str("}\n");
    }
}
