//! One answer on its way: rows become text or bytes, these leave in pieces, and it ends at the budget.

mod batches;
mod bound;
mod progress;
mod response_sink;
mod text;

use std::ops::ControlFlow;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use tidegate_core::{BodyHead, Budget, Error, Metadata};

use self::batches::BatchAnswerWriter;
use self::bound::{AnswerBound, TruncationReason};
use self::response_sink::ResponseSink;
use self::text::TextAnswerWriter;
use crate::body::new_batch_body;
use crate::format::{AnswerForm, BatchFormat, RowWriter};
use crate::structured::StructuredRows;

pub(crate) use self::bound::{NextPage, TruncationHints};
pub(crate) use self::progress::{AnswerStage, ProgressReporter};
pub(crate) use self::response_sink::stored_result_link;

/// Answers whose budget is larger are text alone: the same rows as data would have to be gathered.
const STRUCTURED_BYTES_MAX: usize = 1024 * 1024;

/// What is known of an answer before its rows.
pub(crate) struct AnswerExpectation<'a> {
    /// Whose answer it is, where it goes, and how far it is.
    pub(crate) progress: &'a ProgressReporter<'a>,
    /// Rows that are wanted at most.
    pub(crate) rows_max: Option<u64>,
    pub(crate) answer_form: AnswerForm,
    /// Whether the values of one column are answered, without its name.
    pub(crate) is_list: bool,
    pub(crate) started: Instant,
}

/// Rows on their way into a reply.
pub(crate) enum AnswerWriter<'a> {
    Text(TextAnswerWriter<'a>),
    Batches(BatchAnswerWriter<'a>),
}

impl<'a> AnswerWriter<'a> {
    /// An answer of text from `writer`; `is_buffering` says whether it waits until all of it is there.
    pub(crate) fn new_text(
        answer_expectation: &AnswerExpectation<'a>,
        writer: Box<dyn RowWriter>,
        holding: bool,
    ) -> Self {
        let (bound, response_sink) = answer_expectation.open_sink();
        Self::Text(TextAnswerWriter::new(writer, holding, bound, response_sink, answer_expectation.started))
    }

    /// An answer of batches in `format`, with the columns of `schema`.
    ///
    /// # Errors
    /// For columns that the format has no form of.
    pub(crate) fn new_batches(
        answer_expectation: &AnswerExpectation<'a>,
        format: BatchFormat,
        schema: &SchemaRef,
    ) -> Result<Self, Error> {
        let (bound, response_sink) = answer_expectation.open_sink();
        Ok(Self::Batches(BatchAnswerWriter::new(new_batch_body(format, schema)?, bound, response_sink)))
    }

    /// Gathers the rows as data too, where the budget bounds how much that can be. A body has no place for them.
    pub(crate) fn with_structured(mut self, schema: &SchemaRef) -> Self {
        if let Self::Text(answer) = &mut self
            && !answer.sink.is_body()
            && answer.bound.bytes_max.is_some_and(|max| max <= STRUCTURED_BYTES_MAX)
        {
            answer.structured = Some(StructuredRows::new(schema));
        }
        self
    }

    /// The rows that [`AnswerWriter::inspect_rows`] wants to see first.
    pub(crate) fn lookahead_rows(&self) -> usize {
        match self {
            Self::Text(answer) => answer.lookahead_rows(),
            Self::Batches(_) => 0,
        }
    }

    /// Looks at the first rows before they are pushed.
    pub(crate) fn inspect_rows(&mut self, batches: &[RecordBatch]) {
        if let Self::Text(answer) = self {
            answer.inspect_rows(batches);
        }
    }

    /// Writes the rows of `batch`; breaks when the answer is at its end.
    pub(crate) async fn push(&mut self, batch: &RecordBatch) -> Result<ControlFlow<()>, Error> {
        match self {
            Self::Text(answer) => answer.push(batch).await,
            Self::Batches(answer) => answer.push(batch).await,
        }
    }

    /// Lets the rows leave that are there, because the next are not; not in batch mode.
    pub(crate) async fn flush_pending(&mut self) -> Result<(), Error> {
        match self {
            Self::Text(answer) => answer.flush_pending().await,
            Self::Batches(_) => Ok(()),
        }
    }

    /// Whether it ended before its rows did.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncation().is_some()
    }

    /// The rows that were shown, if there are more.
    pub(crate) fn rows_if_truncated(&self) -> Option<u64> {
        self.truncation().map(|(_, rows)| rows).filter(|rows| *rows > 0)
    }

    /// The rows that were shown, if there are more and it was not the caller who wanted no more.
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

    /// Ends the answer well: closes it, says what was not shown and where that is, gives the facts.
    pub(crate) async fn finish(self, hints: &TruncationHints, next: Option<&NextPage>) -> Result<Metadata, Error> {
        let mut metadata = match self {
            Self::Text(answer) => answer.finish(hints, next).await,
            Self::Batches(answer) => answer.finish().await,
        }?;
        metadata.extend(next.map(|next| ("dev.tidegate/cursor".to_owned(), next.cursor.clone().into())));
        Ok(metadata)
    }

    /// Ends the answer after a failure. Rows that were sent stand: their block is closed, and a body says why it is not
    /// whole where its form has a place for that.
    pub(crate) async fn abandon(self, error: &Error) -> Result<(), Error> {
        match self {
            Self::Text(answer) => answer.abandon(error).await,
            // A stream of Arrow or a Parquet file without its end is not whole.
            Self::Batches(_) => Ok(()),
        }
    }
}

impl<'a> AnswerExpectation<'a> {
    fn open_sink(&self) -> (AnswerBound, ResponseSink<'a>) {
        let bound = AnswerBound::new(self.rows_max, self.progress.job().inline_budget());
        let bounds = Budget { rows: bound.rows_max, bytes: bound.bytes_max };
        let body = self.answer_form.media_type(self.is_list);
        let body = body.map(|media_type| BodyHead { media_type, budget: bounds, stable: None, file: None });
        (bound, ResponseSink::new(self.progress, body, self.started))
    }
}
