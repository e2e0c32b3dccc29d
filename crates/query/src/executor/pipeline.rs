//! Streams rows into an answer, and beyond its end into the store.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::{Job, Metadata};

use super::continuation::AnswerRecorder;
use crate::answer::{AnswerWriter, ProgressReporter, TruncationHints};
use crate::distinct::DistinctValues;

pub(super) type RecordBatches = BoxStream<'static, Result<RecordBatch, Error>>;

/// One answer with everything that it needs.
pub(super) struct AnswerPipeline<'a> {
    pub(super) batches: RecordBatches,
    /// Collects the distinct values of one column, if they are the answer instead of the rows.
    pub(super) distinct: Option<DistinctValues>,
    pub(super) answer: AnswerWriter<'a>,
    pub(super) hints: TruncationHints,
    /// Stores the rows that do not fit, if they are to be stored.
    pub(super) recorder: Option<AnswerRecorder<'a>>,
    /// The columns of the answer.
    pub(super) schema: SchemaRef,
    pub(super) progress: &'a ProgressReporter<'a>,
}

impl AnswerPipeline<'_> {
    /// Streams the rows into the answer and ends it. Then stores the rows that did not fit.
    pub(super) async fn deliver(self) -> Result<Metadata, Error> {
        let Self { mut batches, distinct, mut answer, hints, recorder: answer_recorder, schema, progress } = self;
        let reply = progress.reply();
        let mut kept = answer_recorder.is_some().then(Vec::new);
        let values = match distinct {
            None => Ok(None),
            Some(distinct) => collect_distinct_values(&mut batches, distinct, progress).await.map(Some),
        };
        let delivered = match values {
            Ok(values) => {
                if let Some(values) = values {
                    batches = futures::stream::iter(values.into_iter().map(Ok)).boxed();
                }
                stream_rows(&mut batches, &mut answer, progress, kept.as_mut()).await
            }
            Err(error) => Err(error),
        };
        match delivered {
            Ok(()) => match (answer_recorder, answer.rows_if_over_budget()) {
                (Some(answer_recorder), Some(rows)) => {
                    let kept = futures::stream::iter(kept.unwrap_or_default().into_iter().map(Ok));
                    answer_recorder
                        .continue_in_store(kept.chain(batches).boxed(), &schema, rows, answer, hints, reply)
                        .await
                }
                (answer_recorder, _) => {
                    // Stops the query before the footer is sent.
                    drop(batches);
                    match answer_recorder {
                        Some(answer_recorder) => {
                            answer_recorder
                                .store_if_cacheable(kept.unwrap_or_default(), &schema, answer, hints, reply)
                                .await
                        }
                        None => answer.finish(&hints, None).await,
                    }
                }
            },
            Err(error) => {
                drop(batches);
                Err(abandon_answer(answer, error).await?)
            }
        }
    }
}

/// Closes `answer`, which ended with `error`.
pub(super) async fn abandon_answer(answer: AnswerWriter<'_>, error: Error) -> Result<Error, Error> {
    // When the caller is gone, nothing needs to be closed.
    if error.kind() != ErrorKind::Cancelled {
        answer.abandon(&error).await?;
    }
    Ok(error)
}

/// Streams rows until they end or the answer reaches a limit.
pub(super) async fn stream_rows(
    batches: &mut RecordBatches,
    answer: &mut AnswerWriter<'_>,
    progress: &ProgressReporter<'_>,
    mut kept: Option<&mut Vec<RecordBatch>>,
) -> Result<(), Error> {
    let (mut first, mut rows, mut has_ended) = (Vec::new(), 0, false);
    while rows < answer.lookahead_rows() && !has_ended {
        match next_batch(batches, progress).await? {
            Some(batch) => {
                rows += batch.num_rows();
                first.push(batch);
            }
            None => has_ended = true,
        }
    }
    answer.inspect_rows(&first);
    let mut keep = |batch: &RecordBatch| {
        if let Some(kept) = kept.as_mut() {
            kept.push(batch.clone());
        }
    };
    // Inspected rows that are not sent are kept too.
    first.iter().for_each(&mut keep);
    for batch in first {
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
    }
    if has_ended {
        // A stream must not be polled after its end.
        return Ok(());
    }
    loop {
        let batch = match batches.next().now_or_never() {
            Some(batch) => batch.transpose()?,
            None => {
                answer.flush_pending().await?;
                next_batch(batches, progress).await?
            }
        };
        let Some(batch) = batch else { return Ok(()) };
        keep(&batch);
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
        if progress.job().is_cancelled() {
            return Err(cancelled_error());
        }
    }
}

/// Reads all rows and keeps the distinct values of one column.
async fn collect_distinct_values(
    batches: &mut RecordBatches,
    mut distinct: DistinctValues,
    progress: &ProgressReporter<'_>,
) -> Result<Vec<RecordBatch>, Error> {
    let mut rows = 0;
    while let Some(batch) = next_batch(batches, progress).await? {
        distinct.add(&batch)?;
        rows += batch.num_rows() as u64;
        progress.update(rows, 0).await?;
    }
    distinct.into_batches()
}

async fn next_batch(
    batches: &mut RecordBatches,
    progress: &ProgressReporter<'_>,
) -> Result<Option<RecordBatch>, Error> {
    run_until_cancelled(progress.job(), progress.run_with_heartbeat(batches.next().map(Option::transpose))).await
}

pub(super) async fn run_until_cancelled<T>(
    job: &Job,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = job.cancelled() => Err(cancelled_error()),
        done = work => done,
    }
}

pub(super) fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}
