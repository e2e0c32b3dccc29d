//! An answer of text: rows are encoded one by one within the budget, and sent in pieces.

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use tidegate_core::{Content, Error};

use super::bound::{NextPage, TruncationReason};
use super::{AnswerWriter, stored_result_link};
use crate::body::RowEncoder;
use crate::format::batch_cells;

/// A piece of this size is sent. A longer row is split.
const PIECE_BYTES: usize = 60 * 1024;
/// The first piece is small, so that the first rows arrive early.
const FIRST_PIECE_BYTES: usize = 4 * 1024;
/// Maximum text that batch mode buffers. A longer answer streams from there on.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

impl AnswerWriter<'_> {
    pub(super) async fn push_text(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = batch_cells(batch);
        for row in 0..batch.num_rows() {
            if self.bound.rows_max.is_some_and(|max| self.rows >= max) {
                self.truncation = Some(self.bound.row_truncation);
                return Ok(ControlFlow::Break(()));
            }
            self.end_full_item().await?;
            let Some(text) = self.encoder.text() else { break };
            let bytes = text.write_row(&cells, row);
            // The text so far must stay within the budget when it is closed.
            if !self.bound.fits(self.sent_bytes + self.fence_bytes + text.closed_bytes_max()) {
                self.truncation = Some(TruncationReason::ByteBudget { next: bytes });
                text.undo_row(bytes);
                return Ok(ControlFlow::Break(()));
            }
            let pending_bytes = text.piece_bytes();
            self.rows += 1;
            if let Some(structured) = &mut self.structured {
                structured.write_row(&cells, row);
            }
            if pending_bytes >= self.piece_bytes() {
                self.send_pending().await?;
            }
        }
        self.report_progress().await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the open text before the next row if it has all its rows; that row begins another one.
    async fn end_full_item(&mut self) -> Result<(), Error> {
        let Some(rows_max) = self.item_rows else { return Ok(()) };
        let Some(text) = self.encoder.text().filter(|text| text.rows >= rows_max.get()) else { return Ok(()) };
        text.write_end(false);
        let (is_list, started) = (self.output.extract.is_some(), self.progress.started());
        let next = RowEncoder::for_answer(self.format, is_list, &self.schema, started)?;
        self.send_rest().await?;
        self.encoder = next;
        self.reply.end_text().await
    }

    /// Sends the buffered rows, because the next ones are not ready; not in batch mode.
    pub(crate) async fn flush_pending(&mut self) -> Result<(), Error> {
        let has_pending = self.encoder.text().is_some_and(|text| text.piece_bytes() > 0);
        if has_pending && !self.is_buffering { self.send_pending().await } else { Ok(()) }
    }

    fn piece_bytes(&self) -> usize {
        if self.is_buffering {
            BUFFERED_BYTES_MAX
        } else if self.sent_bytes == 0 {
            FIRST_PIECE_BYTES
        } else {
            PIECE_BYTES
        }
    }

    async fn send_pending(&mut self) -> Result<(), Error> {
        self.is_buffering = false;
        if let Some((text, rows)) = self.encoder.text().map(|text| text.take_piece()) {
            self.send_text(text, rows).await?;
        }
        self.report_progress().await
    }

    pub(super) async fn finish_text(&mut self, next: Option<&NextPage>) -> Result<(), Error> {
        let (is_body, reply) = (self.is_body(), self.reply);
        let is_truncated = self.is_truncated();
        let notice = self.truncation_notice(next);
        // An item whose first row did not fit is left out.
        let omits_empty = self.item_rows.is_some() && self.rows > 0;
        if let Some(text) = self.encoder.text().filter(|text| text.rows > 0 || !omits_empty) {
            text.write_end(is_truncated);
            if let (Some(notice), true) = (&notice, is_body) {
                text.write_note(notice);
            }
            if is_body {
                self.encoder.write_missing_note();
            }
            self.send_rest().await?;
        }
        self.close_fence().await?;
        if !is_body {
            if let Some(notice) = notice {
                reply.end_text().await?;
                reply.send_block(Content::text(notice)).await?;
            }
            reply.send_missing_nodes_note().await?;
            if let Some(uri) = next.and_then(|next| next.uri.as_ref()) {
                reply.send_block(stored_result_link(uri)).await?;
            }
        }
        if let Some(structured) = self.structured.take() {
            reply.send_structured_json(structured.finish(is_truncated)).await?;
        }
        Ok(())
    }

    /// Ends the answer after a failure. Rows that were sent stay: their block is closed, and a body contains the error
    /// where its format allows that.
    pub(crate) async fn abandon(mut self, error: &Error) -> Result<(), Error> {
        let is_body = self.is_body();
        // Without its end, an Arrow stream or a Parquet file is recognizably incomplete.
        let Some(text) = self.encoder.text().filter(|_| self.sent_bytes > 0) else { return Ok(()) };
        if is_body {
            text.write_failure(&error.to_string());
            return self.send_rest().await;
        }
        text.write_end(true);
        self.send_rest().await?;
        self.close_fence().await?;
        self.reply.end_text().await
    }

    async fn send_rest(&mut self) -> Result<(), Error> {
        let Some((text, rows)) = self.encoder.text().map(|text| text.take_rest()) else { return Ok(()) };
        self.send_text(text, rows).await
    }
}
