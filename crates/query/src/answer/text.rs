//! An answer of text: rows are encoded one by one within the budget, and sent in pieces.

use std::ops::ControlFlow;
use std::time::Instant;

use arrow::array::RecordBatch;
use tidegate_core::Error;
use tidegate_runtime::Metadata;

use super::bound::{AnswerBound, NextPage, TruncationHints, TruncationReason};
use super::response_sink::ResponseSink;
use crate::body::TextBody;
use crate::format::{RowWriter, batch_cells};
use crate::structured::StructuredRows;

/// A piece of this size is sent. A longer row is split.
const PIECE_BYTES: usize = 60 * 1024;
/// The first piece is small, so that the first rows arrive early.
const FIRST_PIECE_BYTES: usize = 4 * 1024;
/// Maximum text that batch mode buffers. A longer answer streams from there on.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct TextAnswerWriter<'a> {
    pub(super) sink: ResponseSink<'a>,
    body: TextBody,
    pub(super) structured: Option<StructuredRows>,
    pub(super) bound: AnswerBound,
    is_buffering: bool,
    truncation: Option<TruncationReason>,
}

impl<'a> TextAnswerWriter<'a> {
    pub(super) fn new(
        writer: Box<dyn RowWriter>,
        is_buffering: bool,
        bound: AnswerBound,
        sink: ResponseSink<'a>,
        started: Instant,
    ) -> Self {
        Self { sink, body: TextBody::new(writer, started), structured: None, bound, is_buffering, truncation: None }
    }

    pub(super) fn lookahead_rows(&self) -> usize {
        let expected = self.bound.rows_max.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        self.body.lookahead_rows().min(expected)
    }

    pub(super) fn inspect_rows(&mut self, batches: &[RecordBatch]) {
        let mut left = self.lookahead_rows();
        for batch in batches {
            let rows = batch.num_rows().min(left);
            self.body.inspect_rows(batch, rows);
            left -= rows;
        }
    }

    pub(super) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = batch_cells(batch);
        for row in 0..batch.num_rows() {
            if self.bound.rows_max.is_some_and(|max| self.body.rows() >= max) {
                self.truncation = Some(self.bound.row_truncation);
                return Ok(ControlFlow::Break(()));
            }
            let bytes = self.body.write_row(&cells, row);
            // The text so far must stay within the budget when it is closed.
            let further = self.sink.fence_bytes_left() + self.body.closed_bytes_max();
            if !self.bound.fits(self.sink.sent_bytes + further) {
                self.truncation = Some(TruncationReason::ByteBudget { next: bytes });
                self.body.undo_row(bytes);
                return Ok(ControlFlow::Break(()));
            }
            if let Some(structured) = &mut self.structured {
                structured.write_row(&cells, row);
            }
            if self.body.piece_bytes() >= self.piece_bytes() {
                self.send_pending().await?;
            }
        }
        self.report_progress().await?;
        Ok(ControlFlow::Continue(()))
    }

    pub(super) async fn flush_pending(&mut self) -> Result<(), Error> {
        if self.is_buffering || self.body.piece_bytes() == 0 { Ok(()) } else { self.send_pending().await }
    }

    async fn report_progress(&mut self) -> Result<(), Error> {
        self.sink.report_progress(self.body.rows()).await
    }

    fn piece_bytes(&self) -> usize {
        if self.is_buffering {
            BUFFERED_BYTES_MAX
        } else if self.sink.sent_bytes == 0 {
            FIRST_PIECE_BYTES
        } else {
            PIECE_BYTES
        }
    }

    async fn send_pending(&mut self) -> Result<(), Error> {
        self.is_buffering = false;
        let (text, rows) = self.body.take_piece();
        self.sink.send_text(text, rows).await?;
        self.report_progress().await
    }

    pub(super) async fn finish(mut self, hints: &TruncationHints, next: Option<&NextPage>) -> Result<Metadata, Error> {
        let held = self.is_buffering;
        let line = self.truncation.map(|cut| self.bound.truncation_notice(cut, self.body.rows(), hints));
        let is_cut = line.is_some();
        self.body.write_end(is_cut);
        if let (Some(line), true) = (&line, self.sink.is_body()) {
            self.body.write_note(line);
        }
        self.send_rest().await?;
        self.sink.close_fence().await?;
        if let (Some(line), false) = (line, self.sink.is_body()) {
            self.sink.send_notice_block(line).await?;
            if let Some(uri) = next.and_then(|next| next.uri.as_ref()) {
                self.sink.send_result_link(uri).await?;
            }
        }
        if let Some(structured) = self.structured.take() {
            self.sink.send_structured(structured.finish(is_cut)).await?;
        }
        Ok(self.sink.metadata(held, self.body.rows(), is_cut))
    }

    pub(super) async fn abandon(mut self, error: &Error) -> Result<(), Error> {
        if self.sink.sent_bytes == 0 {
            return Ok(());
        }
        if self.sink.is_body() {
            self.body.write_failure(&error.to_string());
            return self.send_rest().await;
        }
        self.body.write_end(true);
        self.send_rest().await?;
        self.sink.close_fence().await?;
        self.sink.end_text().await
    }

    pub(super) fn truncation(&self) -> Option<(TruncationReason, u64)> {
        self.truncation.map(|cut| (cut, self.body.rows()))
    }

    async fn send_rest(&mut self) -> Result<(), Error> {
        let (text, rows) = self.body.take_rest();
        self.sink.send_text(text, rows).await
    }
}
