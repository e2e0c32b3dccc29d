//! Streams rows into an answer.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::Job;
use tidegate_runtime::event::{Event, EventDispatcher};

use crate::answer::{AnswerWriter, ProgressReporter};
use crate::database::{Plan, QueryRows};

pub(super) type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// Closes `answer`, which ended with `error`.
pub(super) async fn abandon_answer(answer: AnswerWriter<'_>, error: Error) -> Result<Error, Error> {
    // When the caller is gone, nothing needs to be closed.
    if error.kind() != ErrorKind::Cancelled {
        answer.abandon(&error).await?;
    }
    Ok(error)
}

pub(super) async fn stream_rows(
    batches: &mut RecordBatchStream,
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

/// Runs `plan`, and records the missing nodes before the first row.
pub(super) async fn run_plan(plan: Box<dyn Plan>, job: &Arc<Job>) -> Result<QueryRows, Error> {
    let rows = plan.run(job).await?;
    rows.record_missing(job)?;
    Ok(rows)
}

pub(super) async fn next_batch(
    batches: &mut RecordBatchStream,
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

fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
}

/// Emits the end of the query when it is dropped.
pub(super) struct QueryEndGuard<'a> {
    pub(super) events: &'a EventDispatcher,
    pub(super) database: &'a str,
    pub(super) job: &'a Job,
    pub(super) started: Instant,
}

impl Drop for QueryEndGuard<'_> {
    fn drop(&mut self) {
        self.events.emit(Event::QueryEnded {
            job: self.job,
            database: self.database,
            elapsed: self.started.elapsed(),
            rows: self.job.usage().rows(),
        });
    }
}
