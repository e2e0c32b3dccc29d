//! Writes one answer: encodes rows as text or bytes, sends them in pieces, and ends at the budget.

mod batches;
mod bound;
mod progress;
mod response_sink;
mod text;

use std::ops::ControlFlow;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidegate_core::{Budget, Error};
use tidegate_runtime::{BodyHead, Metadata};

use self::batches::BatchAnswerWriter;
use self::bound::{AnswerBound, TruncationReason};
use self::response_sink::ResponseSink;
use self::text::TextAnswerWriter;
use crate::body::new_batch_body;
use crate::format::{AnswerForm, new_list_writer, new_row_writer};
use crate::structured::StructuredRows;

pub(crate) use self::bound::{NextPage, TruncationHints};
pub(crate) use self::progress::{AnswerStage, ProgressReporter};
pub(crate) use self::response_sink::stored_result_link;

/// Answers with a larger budget have no structured content, because the rows would have to be buffered.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct AnswerExpectation<'a> {
    /// Reports the progress of the answer; also has its job and reply.
    pub(crate) progress: &'a ProgressReporter<'a>,
    pub(crate) rows_max: Option<u64>,
    pub(crate) answer_form: AnswerForm,
    /// Whether the answer is a list of the values of one column, without its name.
    pub(crate) is_list: bool,
    pub(crate) started: Instant,
}

pub(crate) enum AnswerWriter<'a> {
    Text(TextAnswerWriter<'a>),
    Batches(BatchAnswerWriter<'a>),
}

impl<'a> AnswerWriter<'a> {
    /// Also collects the rows as structured content, where the budget bounds its size. A body has no place for it.
    pub(crate) fn with_structured(mut self, schema: &SchemaRef) -> Self {
        if let Self::Text(answer) = &mut self
            && !answer.sink.is_body()
            && answer.bound.bytes_max.is_some_and(|max| max <= STRUCTURED_BYTES_MAX)
        {
            answer.structured = Some(StructuredRows::new(schema));
        }
        self
    }

    /// The number of rows that [`AnswerWriter::inspect_rows`] needs before the first push.
    pub(crate) fn lookahead_rows(&self) -> usize {
        match self {
            Self::Text(answer) => answer.lookahead_rows(),
            Self::Batches(_) => 0,
        }
    }

    pub(crate) fn inspect_rows(&mut self, batches: &[RecordBatch]) {
        if let Self::Text(answer) = self {
            answer.inspect_rows(batches);
        }
    }

    pub(crate) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        match self {
            Self::Text(answer) => answer.push(batch).await,
            Self::Batches(answer) => answer.push(batch).await,
        }
    }

    /// Sends the buffered rows, because the next ones are not ready; not in batch mode.
    pub(crate) async fn flush_pending(&mut self) -> Result<(), Error> {
        match self {
            Self::Text(answer) => answer.flush_pending().await,
            Self::Batches(_) => Ok(()),
        }
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncation().is_some()
    }

    /// The number of rows sent, if more exist.
    pub(crate) fn rows_if_truncated(&self) -> Option<u64> {
        self.truncation().map(|(_, rows)| rows).filter(|rows| *rows > 0)
    }

    /// The number of rows sent, if more exist because of the budget and not because of the row limit of the caller.
    pub(crate) fn rows_if_over_budget(&self) -> Option<u64> {
        self.truncation()
            .filter(|(cut, _)| *cut != TruncationReason::RowLimit)
            .map(|(_, rows)| rows)
            .filter(|rows| *rows > 0)
    }

    fn truncation(&self) -> Option<(TruncationReason, u64)> {
        match self {
            Self::Text(answer) => answer.truncation(),
            Self::Batches(answer) => answer.truncation(),
        }
    }

    /// Ends the answer: closes it, adds the notice about missing rows, and returns the metadata.
    pub(crate) async fn finish(self, hints: &TruncationHints, next: Option<&NextPage>) -> Result<Metadata, Error> {
        let mut metadata = match self {
            Self::Text(answer) => answer.finish(hints, next).await,
            Self::Batches(answer) => answer.finish().await,
        }?;
        metadata.extend(next.map(|next| ("dev.tidegate/cursor".to_owned(), next.cursor.clone().into())));
        Ok(metadata)
    }

    /// Ends the answer after a failure. Rows that were sent stay: their block is closed, and a body contains the error
    /// where its format allows that.
    pub(crate) async fn abandon(self, error: &Error) -> Result<(), Error> {
        match self {
            Self::Text(answer) => answer.abandon(error).await,
            // Without its end, an Arrow stream or a Parquet file is recognizably incomplete.
            Self::Batches(_) => Ok(()),
        }
    }
}

impl<'a> AnswerExpectation<'a> {
    /// Starts an answer with the columns of `schema`; `holding` says whether text is buffered until it is complete.
    pub(crate) fn start(&self, schema: &SchemaRef, holding: bool) -> Result<AnswerWriter<'a>, Error> {
        let bound = AnswerBound::new(self.rows_max, self.progress.job().inline_budget());
        let bounds = Budget { rows: bound.rows_max, bytes: bound.bytes_max };
        let body = self.answer_form.media_type(self.is_list);
        let body = body.map(|media_type| BodyHead { media_type, budget: bounds, stable: None, file: None });
        let sink = ResponseSink::new(self.progress, body, self.started);
        let format = match self.answer_form {
            AnswerForm::Batches(format) => {
                let body = new_batch_body(format, schema)?;
                return Ok(AnswerWriter::Batches(BatchAnswerWriter::new(body, bound, sink)));
            }
            AnswerForm::Content(format) | AnswerForm::Body(format) => format,
        };
        let writer = if self.is_list { new_list_writer(format, schema) } else { new_row_writer(format, schema) };
        Ok(AnswerWriter::Text(TextAnswerWriter::new(writer, holding, bound, sink, self.started)))
    }
}
