//! Writes one answer: encodes rows as text or bytes, sends them in pieces, and ends at the budget.

mod batches;
mod bound;
mod items;
mod progress;
mod send;
mod text;

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidegate_core::{Budget, DataFence, Error, Format};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{AnswerMeta, BodyMetadata, ReplySender};

use self::bound::{AnswerBound, TruncationReason};
use self::items::TextItems;
use crate::body::{RowEncoder, not_text};
use crate::structured::StructuredRows;

pub(crate) use self::bound::{NextPage, TruncationHints};
pub(crate) use self::progress::{AnswerStage, ProgressReporter};
pub(crate) use self::send::stored_result_link;

/// Answers with a larger budget have no structured content, because the rows would have to be buffered.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

/// Encodes the rows of one answer and sends them into its reply.
pub(crate) struct AnswerWriter<'a> {
    reply: &'a ReplySender,
    progress: &'a ProgressReporter<'a>,
    /// The header of the body; `None` for text blocks.
    body: Option<BodyMetadata>,
    encoder: RowEncoder,
    structured: Option<StructuredRows>,
    /// Divides the rows into several texts.
    items: Option<TextItems>,
    bound: AnswerBound,
    truncation: Option<TruncationReason>,
    /// Whether text is buffered until the answer is complete.
    is_buffering: bool,
    has_begun: bool,
    /// The delimiters around the text of rows.
    fence: Option<&'a DataFence>,
    /// Bytes of the fence that were not sent.
    fence_bytes: usize,
    is_mid_line: bool,
    sent_bytes: usize,
    rows: u64,
    /// Rows of batches that were written and not sent.
    unsent_rows: u64,
    /// An upper bound of the bytes of batches in the body; counted only where bytes are limited.
    body_bytes_max: usize,
}

impl<'a> AnswerWriter<'a> {
    /// An empty answer with the columns of `schema` and at most `rows_max` rows. With `is_list`, it is a list of the
    /// values of one column, without its name. With `is_buffering`, text is buffered until it is complete.
    ///
    /// # Errors
    /// For columns that a binary format cannot represent, and for a binary format where the answer is not a body.
    pub(crate) fn new(
        reply: &'a ReplySender,
        progress: &'a ProgressReporter<'a>,
        format: Format,
        is_list: bool,
        rows_max: Option<u64>,
        schema: &SchemaRef,
        is_buffering: bool,
    ) -> Result<Self, Error> {
        let job = reply.job();
        let mut bound = AnswerBound::new(rows_max, job.limits().inline);
        let budget = Budget { rows: bound.rows_max, bytes: bound.bytes_max };
        let body = job.format().map(|_| BodyMetadata::new(format.content_type(is_list), budget));
        let fence = job.protection().fence().filter(|_| body.is_none());
        let encoder = RowEncoder::for_answer(format, is_list, schema, progress.started())?;
        if body.is_none() && !encoder.is_text() {
            return Err(not_text(format));
        }
        bound.note_bytes = if body.is_some() { 0 } else { encoder.missing_note_bytes() };
        // A format that inspects rows needs all of them.
        let batch_rows = job.limits().batch_rows.filter(|_| body.is_none() && encoder.lookahead_rows() == 0);
        let items = batch_rows.map(|rows_max| TextItems { rows_max, format, is_list, schema: schema.clone() });
        let is_buffering = is_buffering && items.is_none();
        Ok(Self {
            reply,
            progress,
            body,
            encoder,
            structured: None,
            items,
            bound,
            truncation: None,
            is_buffering,
            has_begun: false,
            fence,
            fence_bytes: fence.map_or(0, DataFence::bytes_max),
            is_mid_line: false,
            sent_bytes: 0,
            rows: 0,
            unsent_rows: 0,
            body_bytes_max: 0,
        })
    }

    /// Also collects the rows as structured content, where the budget bounds its size. A body has no place for it.
    pub(crate) fn with_structured(mut self, schema: &SchemaRef) -> Self {
        let is_bounded = self.bound.bytes_max.is_some_and(|max| max <= STRUCTURED_BYTES_MAX);
        self.structured = (is_bounded && !self.is_body()).then(|| StructuredRows::new(schema));
        self
    }

    /// The number of rows that [`AnswerWriter::inspect_rows`] needs before the first push.
    pub(crate) fn lookahead_rows(&self) -> usize {
        let rows_max = self.bound.rows_max.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        self.encoder.lookahead_rows().min(rows_max)
    }

    pub(crate) fn inspect_rows(&mut self, batches: &[RecordBatch]) {
        let mut left = self.lookahead_rows();
        let Some(text) = self.encoder.text() else { return };
        for batch in batches {
            let rows = batch.num_rows().min(left);
            text.inspect_rows(batch, rows);
            left -= rows;
        }
    }

    pub(crate) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        if self.encoder.is_text() { self.push_text(batch).await } else { self.push_batch(batch).await }
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncation.is_some()
    }

    /// The number of rows sent, if more exist.
    pub(crate) fn rows_if_truncated(&self) -> Option<u64> {
        Some(self.rows).filter(|rows| self.is_truncated() && *rows > 0)
    }

    /// The number of rows sent, if more exist because of the budget and not because of the row limit of the caller.
    pub(crate) fn rows_if_over_budget(&self) -> Option<u64> {
        self.rows_if_truncated().filter(|_| self.truncation != Some(TruncationReason::RowLimit))
    }

    /// Ends the answer: closes it, adds the notice about missing rows, and returns the metadata.
    pub(crate) async fn finish(
        mut self,
        hints: &TruncationHints,
        next: Option<&NextPage>,
    ) -> Result<AnswerMeta, Error> {
        let is_requested = self.truncation == Some(TruncationReason::RowLimit) && hints.limit.is_none();
        if self.is_truncated() && !is_requested {
            self.reply.job().report_step(QueryStep::Truncated { rows: self.rows });
        }
        let was_buffered = self.is_buffering && self.encoder.is_text();
        match self.encoder.is_text() {
            true => self.finish_text(hints, next).await?,
            false => self.finish_batches().await?,
        }
        Ok(AnswerMeta {
            was_buffered: Some(was_buffered),
            rows: Some(self.rows),
            bytes: Some(self.sent_bytes as u64),
            elapsed: Some(self.progress.started().elapsed()),
            is_truncated: Some(self.is_truncated()),
            cursor: next.map(|next| next.cursor.clone()),
            ..AnswerMeta::default()
        })
    }
}
