//! Executes queries and writes their answers: with the rows of a query, with those that a tool has, or with the number
//! of changed rows. A plan runs until the call is cancelled.

mod delivery;
mod export;
mod first_rows;

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tidegate_core::{Error, ErrorKind, Format};
use tidegate_results::ResultStore;
use tidegate_runtime::event::{Event, EventDispatcher, QueryStep};
use tidegate_runtime::{Answer, AnswerMeta, Job, ReplySender, RunningCall};
use tidegate_sql::Statement;

use self::delivery::{AnswerRecorder, RowAnswer, RunningQueries};
use crate::database::{Database, Plan, QueryRows};
use crate::distinct::DistinctValues;
use crate::format::resolve_format;
use crate::progress::{AnswerStage, ProgressReporter};
use crate::request::{AnswerMode, OutputOptions, QueryRequest};
use crate::result_table::{RESULTS_KIND, ResultTables};
use crate::secrets::redact_stream;
use crate::usage::UsageTracker;

pub use self::delivery::compute_query_id;
pub use self::export::result_manifest;
pub use self::first_rows::FirstRows;

/// Runs queries and writes their answers.
///
/// Memory use is bounded whatever the size of the answer: text is sent in pieces of 64 KiB, and batch mode buffers at
/// most 1 MiB; a longer answer streams from there on. Parquet is sent in row groups, of which 64 MiB are buffered.
#[derive(Debug, Clone)]
pub struct Executor {
    events: EventDispatcher,
    /// The store for rows that do not fit inline.
    store: Option<Arc<ResultStore>>,
    /// Makes tables of the results in the store.
    result_tables: Option<Arc<dyn ResultTables>>,
    usage: Arc<UsageTracker>,
    running: Arc<RunningQueries>,
}

impl Executor {
    /// An executor that reports each query to `events`.
    pub fn new(events: EventDispatcher) -> Self {
        Self { events, store: None, result_tables: None, usage: Arc::default(), running: Arc::default() }
    }

    /// Stores rows that do not fit inline in `store`.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<ResultStore>>) -> Self {
        Self { store, ..self }
    }

    /// Makes tables of stored results with `result_tables`.
    #[must_use]
    pub fn with_result_tables(self, result_tables: Option<Arc<dyn ResultTables>>) -> Self {
        Self { result_tables, ..self }
    }

    /// Counts the used names in `usage_tracker`.
    #[must_use]
    pub fn with_usage(self, usage_tracker: Arc<UsageTracker>) -> Self {
        Self { usage: usage_tracker, ..self }
    }

    /// The usage of names by caller.
    pub fn usage(&self) -> &Arc<UsageTracker> {
        &self.usage
    }

    /// The store for rows that do not fit inline.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }

    /// What makes tables of stored results.
    pub fn result_tables(&self) -> Option<&Arc<dyn ResultTables>> {
        self.result_tables.as_ref()
    }
}

/// A pipeline-breaking plan that expects at most this many rows is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

impl Executor {
    /// The rows of `request`, within the inline budget of the call. The query runs when the answer is sent.
    ///
    /// The answer fails with the errors of the database. Rows that were sent before stay, and their block is closed.
    pub fn answer(&self, request: QueryRequest) -> Answer {
        let executor = self.clone();
        Answer::written(|reply| async move { executor.write_answer(request, &reply).await })
    }

    async fn write_answer(&self, request: QueryRequest, reply: &ReplySender) -> Result<AnswerMeta, Error> {
        let (job, progress, output) = (reply.job(), ProgressReporter::new(reply.call()), &request.output);
        request.statement.check_parameters()?;
        job.record_statement(|| request.statement.to_audited_statement(request.database.name()));
        let (cache_key, cached) = self.look_up_cache(&request, job).await;
        if let Some(result) = &cached {
            job.report_step(QueryStep::Cached);
            return Box::pin(self.replay_answer(result, output, reply)).await;
        }
        let query = self.running.enter();
        let plan = self.plan(&request, &progress).await?;
        // Rejected before the query runs.
        DistinctValues::for_answer(output.extract.as_deref(), &plan.schema())?;
        let is_buffering =
            output.extract.is_some() || runs_in_batch(output.mode, resolve_format(output.format, job), plan.as_ref());
        if request.statement.transaction().writes {
            // An answer that cannot be encoded is rejected before anything is written.
            RowAnswer::begin(reply, &progress, output, &plan.schema(), is_buffering)?;
        }
        let _end = self.query_end(&*request.database, job, progress.started());
        job.report_step(QueryStep::Running { database: request.database.name() });
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches, .. } =
            run_until_cancelled(job, progress.run_with_heartbeat(run_plan(plan, job))).await?;
        // Not the columns of the plan: a table may have changed since planning.
        let answer = RowAnswer::begin(reply, &progress, output, &schema, is_buffering)?;
        let recorder = AnswerRecorder::for_query(self.store.as_ref(), &request, cache_key, reply, &query);
        answer.deliver(batches, recorder).await
    }

    async fn plan(&self, request: &QueryRequest, progress: &ProgressReporter<'_>) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        job.report_step(QueryStep::Planning { database: request.database.name() });
        let planning = request.database.plan(&request.statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        self.usage.record(job.caller(), request.database.name(), request.statement.tables());
        // Distinct values are computed over all rows, whatever the limit.
        let output = &request.output;
        let rows_max = output.rows_max.filter(|_| output.extract.is_none()).unwrap_or(u64::MAX);
        progress.set_expected_rows(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// `rows`, which need no plan, within the inline budget of the call. The answer fails as [`Executor::answer`] does.
    pub fn answer_rows(&self, rows: QueryRows, output: OutputOptions) -> Answer {
        Answer::written(|reply| async move {
            let progress = ProgressReporter::new(reply.call());
            rows.record_missing(reply.job())?;
            RowAnswer::begin(&reply, &progress, &output, &rows.schema, true)?.deliver(rows.batches, None).await
        })
    }
}

/// Whether the answer is buffered until it is complete.
fn runs_in_batch(mode: AnswerMode, format: Format, plan: &dyn Plan) -> bool {
    match mode {
        AnswerMode::Streaming => false,
        AnswerMode::Batch => true,
        AnswerMode::Auto => {
            let is_small = plan.estimated_rows().is_some_and(|rows| rows <= SMALL_ROWS_MAX);
            format.needs_several_rows() || (plan.is_pipeline_breaking() == Some(true) && is_small)
        }
    }
}

type RecordBatchStream = BoxStream<'static, Result<RecordBatch, Error>>;

/// Emits the end of a query when it is dropped.
struct QueryEnd {
    events: EventDispatcher,
    database: String,
    job: Arc<Job>,
    started: Instant,
    /// The rows that a tool has read; `None` for the rows of the answer of the job.
    rows: Option<u64>,
}

impl Executor {
    /// The end of a query for the answer of `job`.
    fn query_end(&self, database: &dyn Database, job: &Arc<Job>, started: Instant) -> QueryEnd {
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
        // Stored results are no database that a caller has a right to.
        if database.kind() != RESULTS_KIND {
            job.record_database(database.name());
        }
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
async fn run_plan(plan: Box<dyn Plan>, job: &Arc<Job>) -> Result<QueryRows, Error> {
    let rows = plan.run(job).await?;
    rows.record_missing(job)?;
    Ok(rows)
}

async fn next_batch(
    batches: &mut RecordBatchStream,
    progress: &ProgressReporter<'_>,
) -> Result<Option<RecordBatch>, Error> {
    run_until_cancelled(progress.job(), progress.run_with_heartbeat(batches.try_next())).await
}

async fn run_until_cancelled<T>(job: &Job, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = job.cancelled() => Err(Error::cancelled()),
        done = work => done,
    }
}

const COLUMN: &str = "changed_rows";

/// The columns of the answer.
pub fn changed_rows_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::Int64, false)]))
}

/// The answer of a statement that changed `rows` rows.
pub fn changed_rows_batch(rows: u64) -> RecordBatch {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    RecordBatch::try_new(changed_rows_schema(), vec![Arc::new(Int64Array::from(vec![rows]))])
        .unwrap_or_else(|_| RecordBatch::new_empty(changed_rows_schema()))
}

/// The number of rows in such an answer.
fn read_changed_rows(batch: &RecordBatch) -> Option<u64> {
    let column = batch.column_by_name(COLUMN)?.as_any().downcast_ref::<Int64Array>()?;
    (!column.is_empty()).then(|| column.value(0)).and_then(|rows| u64::try_from(rows).ok())
}
