//! Runs plans until the call is cancelled: also those whose rows a tool reads itself, or of which only the number of
//! changed rows is needed.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_runtime::event::{Event, EventDispatcher, QueryStep};
use tidegate_runtime::{Job, RunningCall};
use tidegate_sql::Statement;

use super::Executor;
use crate::changed_rows::read_changed_rows;
use crate::database::{Database, Plan, QueryRows};
use crate::progress::{AnswerStage, ProgressReporter};
use crate::secrets::redact_stream;

pub(super) type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// Emits the end of a query when it is dropped.
pub(super) struct QueryEnd {
    events: EventDispatcher,
    database: String,
    job: Arc<Job>,
    started: Instant,
    /// The rows that a tool has read; `None` for the rows of the answer of the job.
    rows: Option<u64>,
}

impl Executor {
    /// The end of a query for the answer of `job`.
    pub(super) fn query_end(&self, database: &dyn Database, job: &Arc<Job>, started: Instant) -> QueryEnd {
        let (events, database) = (self.events.clone(), database.name().to_owned());
        QueryEnd { events, database, job: job.clone(), started, rows: None }
    }

    /// Plans and runs `statement` in `database` for the caller of `job`. Secrets in the rows are masked. Dropping the rows
    /// stops the query. Missing nodes are recorded for the answer of `job`.
    ///
    /// # Errors
    /// The errors of the database.
    pub async fn open_rows(
        &self,
        database: &dyn Database,
        statement: &Statement,
        job: &Arc<Job>,
    ) -> Result<QueryRows, Error> {
        statement.check_parameters()?;
        job.record_database(database.name());
        job.record_statement(|| statement.to_audited_statement(database.name()));
        job.report_step(QueryStep::Planning { database: database.name() });
        let plan = run_until_cancelled(job, database.plan(statement, job.principal())).await?;
        job.report_step(QueryStep::Running { database: database.name() });
        let mut end = self.query_end(database, job, Instant::now());
        end.rows = Some(0);
        let QueryRows { schema, batches, missing } = run_until_cancelled(job, run_plan(plan, job)).await?;
        let batches = redact_stream(batches, job).inspect(move |batch| end.count(batch));
        Ok(QueryRows { schema, batches: batches.boxed(), missing })
    }

    /// Runs `statement`, whose transaction must have [`CommitRule::Never`](tidegate_sql::CommitRule::Never), and returns
    /// the number of rows that it would have changed.
    ///
    /// # Errors
    /// The errors of the database.
    pub async fn count_changed_rows(
        &self,
        database: &Arc<dyn Database>,
        statement: &Statement,
        call: &RunningCall,
    ) -> Result<u64, Error> {
        let (job, progress) = (call.job(), ProgressReporter::new(call));
        statement.check_parameters()?;
        job.record_statement(|| statement.to_audited_statement(database.name()));
        let planning = database.plan(statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        let _end = self.query_end(&**database, job, progress.started());
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { mut batches, missing, .. } =
            run_until_cancelled(job, progress.run_with_heartbeat(plan.run(job))).await?;
        if let Some(missing) = missing {
            let message = format!("the changed rows cannot be counted: nodes are missing: {}", missing.names());
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let mut changed_rows = None;
        while let Some(batch) = next_batch(&mut batches, &progress).await? {
            changed_rows = read_changed_rows(&batch);
        }
        changed_rows.ok_or_else(|| Error::internal("the database did not count the changed rows"))
    }
}

impl QueryEnd {
    fn count(&mut self, batch: &Result<RecordBatch, Error>) {
        let rows = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        self.rows = self.rows.map(|before| before + rows);
    }
}

impl Drop for QueryEnd {
    fn drop(&mut self) {
        self.events.emit(Event::QueryEnded {
            job: &self.job,
            database: &self.database,
            elapsed: self.started.elapsed(),
            rows: self.rows.unwrap_or_else(|| self.job.usage().rows()),
        });
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
    run_until_cancelled(progress.job(), progress.run_with_heartbeat(batches.try_next())).await
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
