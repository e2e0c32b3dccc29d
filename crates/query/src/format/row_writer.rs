//! The interface of a text format.

use std::time::Duration;

use super::value::BoxedCells;

#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerStatistics {
    pub(crate) rows: u64,
    pub(crate) elapsed: Duration,
    /// Whether rows are missing, because of a limit or a failure.
    pub(crate) truncated: bool,
}

/// Writes one answer in one format. Each method appends to text that was not sent yet, so that a row that does not fit
/// can be removed.
pub(crate) trait RowWriter: Send + Sync {
    /// The number of rows to inspect before the first is written.
    fn lookahead_rows(&self) -> usize {
        0
    }

    fn inspect_rows(&mut self, _cells: &[BoxedCells<'_>], _rows: usize) {}

    fn write_header(&self, _out: &mut String) {}

    /// Writes one row; `index` counts from 0 over the whole answer.
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String);

    /// Completes `piece`, which contains `rows` rows and follows `before` rows, so that it can be sent.
    fn finish_piece(&self, _before: u64, _rows: u64, _piece: &mut String) {}

    fn write_footer(&self, _statistics: AnswerStatistics, _out: &mut String) {}

    /// Writes the text after the last row of a body that failed, where the format has a place for it. The transport
    /// also reports that the body is incomplete.
    fn write_failure(&self, _statistics: AnswerStatistics, message: &str, out: &mut String) {
        self.write_note(message, out);
    }

    /// Writes a note for people after the end of a body, where the format has a place for one.
    fn write_note(&self, _line: &str, _out: &mut String) {}

    /// The maximum number of bytes that [`RowWriter::finish_piece`] and [`RowWriter::write_footer`] add.
    fn closing_bytes_max(&self) -> usize {
        0
    }
}
