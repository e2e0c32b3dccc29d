//! Encodes rows as text, one by one; the text is taken in pieces of any length.

use std::time::Instant;

use arrow::array::RecordBatch;

use crate::format::{AnswerStatistics, BoxedCells, RowWriter, batch_cells};

pub(crate) struct TextBody {
    writer: Box<dyn RowWriter>,
    has_inspected_rows: bool,
    has_begun: bool,
    /// Text that was not taken yet, and the rows in it.
    piece: String,
    piece_rows: u64,
    pub(crate) rows: u64,
    started: Instant,
}

impl TextBody {
    pub(crate) fn new(writer: Box<dyn RowWriter>, started: Instant) -> Self {
        let (has_inspected_rows, has_begun, piece, piece_rows, rows) = Default::default();
        Self { writer, has_inspected_rows, has_begun, piece, piece_rows, rows, started }
    }

    /// The number of bytes that were not taken yet.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece.len()
    }

    /// The number of bytes that were not taken yet, if the body were closed now.
    pub(crate) fn closed_bytes_max(&self) -> usize {
        self.piece.len() + self.writer.closing_bytes_max()
    }

    pub(crate) fn lookahead_rows(&self) -> usize {
        self.writer.lookahead_rows()
    }

    pub(crate) fn inspect_rows(&mut self, batch: &RecordBatch, rows: usize) {
        self.has_inspected_rows = true;
        self.writer.inspect_rows(&batch_cells(batch), rows);
    }

    /// Writes every row of `batch`. A writer that needs lookahead inspects the first batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) {
        if !self.has_inspected_rows {
            self.inspect_rows(batch, batch.num_rows().min(self.lookahead_rows()));
        }
        let cells = batch_cells(batch);
        for row in 0..batch.num_rows() {
            self.write_row(&cells, row);
        }
    }

    pub(crate) fn write_row(&mut self, cells: &[BoxedCells<'_>], row: usize) -> usize {
        self.ensure_started();
        let before = self.piece.len();
        self.writer.write_row(cells, row, self.rows, &mut self.piece);
        self.rows += 1;
        self.piece_rows += 1;
        self.piece.len() - before
    }

    /// Removes the last row, which has `bytes` bytes and was not taken yet.
    pub(crate) fn undo_row(&mut self, bytes: usize) {
        self.piece.truncate(self.piece.len().saturating_sub(bytes));
        self.rows -= 1;
        self.piece_rows -= 1;
    }

    /// Takes the text of the rows so far, and the number of rows in it.
    pub(crate) fn take_piece(&mut self) -> (String, u64) {
        self.finish_piece();
        self.take_rest()
    }

    /// Takes the remaining text of a closed body, and the number of rows in it.
    pub(crate) fn take_rest(&mut self) -> (String, u64) {
        (std::mem::take(&mut self.piece), std::mem::take(&mut self.piece_rows))
    }

    /// Writes the footer; `truncated` says whether more rows exist.
    pub(crate) fn write_end(&mut self, truncated: bool) {
        let statistics = self.end_rows(truncated);
        self.writer.write_footer(statistics, &mut self.piece);
    }

    pub(crate) fn write_failure(&mut self, message: &str) {
        let statistics = self.end_rows(true);
        self.writer.write_failure(statistics, message, &mut self.piece);
    }

    pub(crate) fn write_note(&mut self, line: &str) {
        self.writer.write_note(line, &mut self.piece);
    }

    fn ensure_started(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.writer.write_header(&mut self.piece);
        }
    }

    fn finish_piece(&mut self) {
        self.writer.finish_piece(self.rows - self.piece_rows, self.piece_rows, &mut self.piece);
    }

    fn end_rows(&mut self, truncated: bool) -> AnswerStatistics {
        self.ensure_started();
        self.finish_piece();
        AnswerStatistics { rows: self.rows, elapsed: self.started.elapsed(), truncated }
    }
}
