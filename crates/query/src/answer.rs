//! Writes one answer: encodes rows as text or bytes, sends them in pieces, and ends at the budget, with a notice when
//! rows are missing.

use std::ops::ControlFlow;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use tidegate_core::{Budget, Content, DataFence, Error, ResourceLink};
use tidegate_runtime::event::QueryStep;
use tidegate_runtime::{AnswerMeta, BodyMetadata, ReplySender};

use crate::body::{RowEncoder, not_text};
use crate::format::{batch_cells, resolve_format};
use crate::progress::ProgressReporter;
use crate::request::OutputOptions;
use crate::structured::StructuredRows;

/// Answers with a larger budget have no structured content, because the rows would have to be buffered.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Encodes the rows of one answer and sends them into its reply.
pub(crate) struct AnswerWriter<'a> {
    reply: &'a ReplySender,
    progress: &'a ProgressReporter<'a>,
    output: &'a OutputOptions,
    schema: SchemaRef,
    /// The rows before a page.
    pub(crate) rows_before: u64,
    /// The header of the body; `None` for text blocks.
    body: Option<BodyMetadata>,
    encoder: RowEncoder,
    structured: Option<StructuredRows>,
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
    /// An empty answer with the columns of `schema`. With `is_buffering`, text is buffered until it is complete.
    ///
    /// # Errors
    /// For columns that a binary format cannot represent, and for a binary format where the answer is not a body.
    pub(crate) fn new(
        reply: &'a ReplySender,
        progress: &'a ProgressReporter<'a>,
        output: &'a OutputOptions,
        schema: &SchemaRef,
        is_buffering: bool,
    ) -> Result<Self, Error> {
        let job = reply.job();
        let (format, is_list) = (resolve_format(output.format, job), output.extract.is_some());
        let mut bound = AnswerBound::new(output.rows_max, job.limits().inline);
        let budget = Budget { rows: bound.rows_max, bytes: bound.bytes_max };
        let body = job.format().map(|_| BodyMetadata::new(format.content_type(is_list), budget));
        let fence = job.protection().fence().filter(|_| body.is_none());
        let encoder = RowEncoder::for_answer(format, is_list, schema, progress.started())?;
        if body.is_none() && !encoder.is_text() {
            return Err(not_text(format));
        }
        bound.note_bytes = if body.is_some() { 0 } else { encoder.missing_note_bytes() };
        // Only where the budget bounds its size. A body has no place for it.
        let is_structured = output.structured.is_some()
            && body.is_none()
            && bound.bytes_max.is_some_and(|max| max <= STRUCTURED_BYTES_MAX);
        Ok(Self {
            reply,
            progress,
            output,
            schema: schema.clone(),
            rows_before: 0,
            body,
            encoder,
            structured: is_structured.then(|| StructuredRows::new(schema)),
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

    /// The columns of the answer.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
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
    pub(crate) async fn finish(mut self, next: Option<&NextPage>) -> Result<AnswerMeta, Error> {
        let is_requested = self.truncation == Some(TruncationReason::RowLimit) && self.output.limit_hint.is_none();
        if self.is_truncated() && !is_requested {
            self.reply.job().report_step(QueryStep::Truncated { rows: self.rows });
        }
        let was_buffered = self.is_buffering && self.encoder.is_text();
        match self.encoder.is_text() {
            true => self.finish_text(next).await?,
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

    async fn push_batch(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let room = self.bound.rows_max.map_or(u64::MAX, |max| max - self.rows);
        let expected = batch.num_rows().min(usize::try_from(room).unwrap_or(usize::MAX));
        if expected < batch.num_rows() {
            self.truncation = Some(self.bound.row_truncation);
        }
        let batch = self.truncate_to_budget(batch.slice(0, expected))?;
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows() as u64;
            self.unsent_rows += batch.num_rows() as u64;
            let bytes = self.encoder.write(&batch)?;
            self.send_encoded(bytes).await?;
            if self.bound.bytes_max.is_some() {
                // The size of a part is known only after the flush.
                let bytes = self.encoder.flush()?;
                self.send_encoded(bytes).await?;
            }
        }
        self.report_progress().await?;
        Ok(if self.truncation.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    async fn finish_batches(&mut self) -> Result<(), Error> {
        let bytes = self.encoder.write_end(false)?;
        self.send_bytes(bytes, self.unsent_rows).await
    }

    /// The first rows of `batch` that fit into the budget; the number is halved until they fit.
    fn truncate_to_budget(&mut self, batch: RecordBatch) -> Result<RecordBatch, Error> {
        if self.bound.bytes_max.is_none() {
            return Ok(batch);
        }
        let mut rows = batch.num_rows();
        let mut next = 0;
        while rows > 0 {
            next = self.encoder.standalone_bytes(&batch.slice(0, rows))?;
            if self.bound.fits(self.body_bytes_max + next) {
                self.body_bytes_max += next;
                break;
            }
            rows /= 2;
        }
        if rows < batch.num_rows() {
            self.truncation = Some(TruncationReason::ByteBudget { next });
        }
        Ok(batch.slice(0, rows))
    }

    async fn send_encoded(&mut self, bytes: Bytes) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.unsent_rows);
        self.send_bytes(bytes, rows).await
    }

    /// Whether the answer is a body.
    fn is_body(&self) -> bool {
        self.body.is_some()
    }

    async fn send_text(&mut self, text: String, rows: u64) -> Result<(), Error> {
        if self.is_body() {
            return self.send_bytes(text.into(), rows).await;
        }
        self.reply.job().usage().count_rows(rows);
        let text = self.open_fence(text);
        self.send_redacted(text).await
    }

    /// `text`, preceded by the opening of the fence if it is the first piece.
    fn open_fence(&mut self, text: String) -> String {
        let Some(fence) = self.fence.filter(|_| !text.is_empty()) else { return text };
        self.is_mid_line = !text.ends_with('\n');
        if std::mem::replace(&mut self.has_begun, true) {
            return text;
        }
        let opening = fence.opening();
        self.fence_bytes -= opening.len();
        opening + &text
    }

    async fn close_fence(&mut self) -> Result<(), Error> {
        let Some(fence) = self.fence.filter(|_| self.has_begun) else { return Ok(()) };
        let closing = fence.closing(self.is_mid_line);
        self.send_redacted(closing).await
    }

    /// Sends `text`, whose rows were redacted before they were encoded.
    async fn send_redacted(&mut self, text: String) -> Result<(), Error> {
        self.sent_bytes += text.len();
        if text.len() <= PIECE_BYTES_MAX {
            return self.reply.send_redacted_text(text).await;
        }
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
            self.reply.send_redacted_text(piece.to_owned()).await?;
            rest = after;
        }
        Ok(())
    }

    async fn send_bytes(&mut self, mut bytes: Bytes, rows: u64) -> Result<(), Error> {
        self.reply.job().usage().count_rows(rows);
        self.sent_bytes += bytes.len();
        if let (Some(head), false) = (&self.body, std::mem::replace(&mut self.has_begun, true)) {
            self.reply.begin_body(head.clone()).await?;
        }
        while !bytes.is_empty() {
            self.reply.send_bytes(bytes.split_to(bytes.len().min(PIECE_BYTES_MAX))).await?;
        }
        Ok(())
    }

    /// Reports the number of rows, at most four times per second.
    async fn report_progress(&mut self) -> Result<(), Error> {
        self.progress.update(self.rows, self.sent_bytes as u64).await
    }
}

pub(crate) fn stored_result_link(uri: &str) -> Content {
    Content::Link(ResourceLink {
        uri: uri.to_owned(),
        name: "stored result".to_owned(),
        title: None,
        description: Some("The manifest of the stored rows".to_owned()),
        mime_type: Some("application/json".to_owned()),
        size_bytes: None,
    })
}

/// A piece of this size is sent. A longer row is split.
const PIECE_BYTES: usize = 60 * 1024;
/// The first piece is small, so that the first rows arrive early.
const FIRST_PIECE_BYTES: usize = 4 * 1024;
/// Maximum text that batch mode buffers. A longer answer streams from there on.
const BUFFERED_BYTES_MAX: usize = 1024 * 1024;

impl AnswerWriter<'_> {
    async fn push_text(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        let cells = batch_cells(batch);
        for row in 0..batch.num_rows() {
            if self.bound.rows_max.is_some_and(|max| self.rows >= max) {
                self.truncation = Some(self.bound.row_truncation);
                return Ok(ControlFlow::Break(()));
            }
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

    async fn finish_text(&mut self, next: Option<&NextPage>) -> Result<(), Error> {
        let (is_body, reply) = (self.is_body(), self.reply);
        let is_truncated = self.is_truncated();
        let notice = self.truncation_notice(next);
        if let Some(text) = self.encoder.text() {
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
                reply.send_item(Content::text(notice)).await?;
            }
            reply.send_missing_nodes_note().await?;
            if let Some(uri) = next.and_then(|next| next.uri.as_ref()) {
                reply.send_item(stored_result_link(uri)).await?;
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

/// Bytes of the budget that are reserved for the notice about missing rows.
const NOTICE_BYTES: usize = 400;
/// Smaller budgets reserve nothing.
const NOTICE_BUDGET_MIN_BYTES: usize = 10 * NOTICE_BYTES;

/// Why an answer ended before its rows did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TruncationReason {
    RowLimit,
    RowBudget,
    /// The next row, of `next` bytes, does not fit.
    ByteBudget {
        next: usize,
    },
}

/// Where an answer continues that did not fit.
#[derive(Debug, Clone)]
pub(crate) struct NextPage {
    pub(crate) cursor: String,
    /// The maximum number of stored rows, if the query may have more.
    pub(crate) rows_max: Option<u64>,
    /// The URI of the stored result, for callers that may read it.
    pub(crate) uri: Option<String>,
}

impl NextPage {
    fn hint(&self) -> String {
        let place = self.uri.as_ref().map(|uri| format!(" at {uri}")).unwrap_or_default();
        let stored = match self.rows_max {
            Some(max) => format!(
                " At most the first {max} rows (limit, max_rows) are stored{place}; raise the limit to store more."
            ),
            None if place.is_empty() => place,
            None => format!(" The rows are stored{place}."),
        };
        format!("To continue, repeat the call with \"cursor\": \"{}\".{stored}", self.cursor)
    }
}

#[derive(Debug, Clone, Copy)]
struct AnswerBound {
    rows_max: Option<u64>,
    /// The reason when the answer ends at `rows_max`.
    row_truncation: TruncationReason,
    bytes_max: Option<usize>,
    /// Bytes that are reserved for the note about missing nodes.
    note_bytes: usize,
}

impl AnswerBound {
    fn new(expected: Option<u64>, budget: Budget) -> Self {
        let (rows_max, row_truncation) = match (expected, budget.rows) {
            (Some(expected), Some(allowed)) if allowed < expected => (Some(allowed), TruncationReason::RowBudget),
            (Some(expected), _) => (Some(expected), TruncationReason::RowLimit),
            (None, allowed) => (allowed, TruncationReason::RowBudget),
        };
        Self { rows_max, row_truncation, bytes_max: budget.bytes, note_bytes: 0 }
    }

    /// Whether an answer of `bytes` bytes leaves space for the notice.
    fn fits(&self, bytes: usize) -> bool {
        self.bytes_max.is_none_or(|max| {
            let line = if max >= NOTICE_BUDGET_MIN_BYTES { NOTICE_BYTES + self.note_bytes.min(max / 2) } else { 0 };
            bytes + line <= max
        })
    }
}

impl AnswerWriter<'_> {
    /// The notice at the end: how many rows are included, and how to get the rest. `None` if the answer has all rows that
    /// the caller asked for.
    fn truncation_notice(&self, next: Option<&NextPage>) -> Option<String> {
        let (reason, rows, before) = (self.truncation?, self.rows, self.rows_before);
        let next_hint = next.map(NextPage::hint);
        let limit_hint = next_hint.as_deref().or(self.output.limit_hint);
        let budget_hint = next_hint.as_deref().unwrap_or(self.output.overflow_hint);
        let noun = if self.output.extract.is_some() { "value" } else { "row" };
        let bytes_max = self.bound.bytes_max.unwrap_or_default();
        let visible = match rows {
            0 => format!("no {noun}s"),
            1 if before > 0 => format!("{noun} {}", before + 1),
            _ if before > 0 => format!("{noun}s {} to {}", before + 1, before + rows),
            1 => format!("the first {noun}"),
            _ => format!("the first {rows} {noun}s"),
        };
        Some(match reason {
            TruncationReason::RowLimit => format!("Showing {visible}; more exist. {}", limit_hint?),
            TruncationReason::RowBudget => {
                format!("Showing {visible}, the maximum of an answer; more exist. {budget_hint}")
            }
            TruncationReason::ByteBudget { next } if rows == 0 => format!(
                "Showing {visible}: the first has {next} bytes, and the limit is {bytes_max}. \
                 Select fewer columns, or shorten long ones with left(column, 100)."
            ),
            TruncationReason::ByteBudget { .. } => {
                format!("Showing {visible}, as many as fit into {bytes_max} bytes; more exist. {budget_hint}")
            }
        })
    }
}
