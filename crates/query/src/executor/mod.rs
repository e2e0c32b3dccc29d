//! Executes queries and writes their answers.

mod cache_replay;
mod continuation;
mod export;
mod pipeline;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;

use self::continuation::AnswerRecorder;
use self::pipeline::{AnswerPipeline, run_until_cancelled};
use crate::answer::{AnswerExpectation, AnswerStage, ProgressReporter, TruncationHints};
use crate::database::{Database, Plan, QueryRows};
use crate::distinct::DistinctValues;
use crate::format::{AnswerForm, OutputFormat};
use crate::secrets::redact_stream;
use crate::structured::find_undescribed_column;
use crate::usage::UsageTracker;
use tidegate_core::{Error, ErrorKind};
use tidegate_results::ResultStore;
use tidegate_runtime::{
    Job, Metadata, ReplySender,
    event::{Event, EventDispatcher},
};
use tidegate_sql::Statement;

pub use self::continuation::{PageOptions, compute_query_id};

/// A blocking plan that expects at most this many rows is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

/// When rows are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AnswerMode {
    /// As they arrive.
    Streaming,
    /// When all rows are available.
    Batch,
    /// `Batch` when the format or the plan needs all rows before the first byte, else `Streaming`.
    #[default]
    Auto,
}

impl AnswerMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Streaming, Self::Batch, Self::Auto];

    /// The name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Batch => "batch",
            Self::Auto => "auto",
        }
    }

    /// Parses the name of a mode.
    ///
    /// # Errors
    /// `InvalidArguments` with the valid names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no mode {name:?}"))
                .with_choices(Self::ALL.map(|mode| mode.name().to_owned()))
        })
    }
}

/// A statement for a database, and the output options of its answer.
pub struct QueryRequest {
    /// The database.
    pub database: Arc<dyn Database>,
    /// The statement.
    pub statement: Statement,
    /// The maximum number of rows; a notice says whether more exist.
    pub max_rows: Option<u64>,
    /// The format of the answer; with [`OutputFormat::Mcp`], the format of the call applies, if it names one.
    pub format: OutputFormat,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// When rows are sent.
    pub mode: AnswerMode,
    /// The columns of the output schema, if the answer has structured content beside its text.
    pub structured: Option<SchemaRef>,
    /// A sentence that says how to get more when the budget ends the answer. By default it names the arguments of the
    /// built-in tools.
    pub overflow_hint: Option<String>,
    /// What happens to rows that do not fit inline.
    pub overflow: OverflowPolicy,
}

impl QueryRequest {
    /// Rejects an answer whose `columns` do not match its output schema, as after a change of a table.
    fn check_output_schema(&self, columns: &SchemaRef) -> Result<(), Error> {
        let promised = self.structured.as_ref();
        let Some(name) = promised.and_then(|promised| find_undescribed_column(promised, columns)) else {
            return Ok(());
        };
        let message =
            format!("the output schema does not describe the column {name:?} of the answer: a table has changed");
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("An administrator must reload the configuration; until then, query the table directly."))
    }
}

/// How the rows are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// In the answer, as far as they fit.
    #[default]
    Inline,
    /// In a stored result; the answer is a preview of it.
    Blocks,
}

impl Delivery {
    /// Every delivery.
    pub const ALL: [Self; 2] = [Self::Inline, Self::Blocks];

    /// The name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Blocks => "blocks",
        }
    }

    /// Parses the name of a delivery.
    ///
    /// # Errors
    /// `InvalidArguments` with the valid names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no delivery {name:?}"))
                .with_choices(Self::ALL.map(|delivery| delivery.name().to_owned()))
        })
    }
}

/// What happens to the rows of an answer that do not fit inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverflowPolicy {
    /// They are discarded: the caller must request them with another query.
    #[default]
    Discard,
    /// They are stored, and can be read page by page with a cursor.
    Store {
        /// Whether the answer links to the stored result, because the caller may read it.
        linked: bool,
        /// Whether an earlier answer that is still valid may be reused.
        cached: bool,
    },
}

/// The output options of rows that need no query.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The format of the answer.
    pub format: OutputFormat,
    /// The column whose distinct values are returned instead of rows.
    pub extract: Option<String>,
    /// A sentence that says how to get more when not all rows fit, such as `Ask for less with the argument "pattern".`
    pub overflow_hint: String,
}

/// Runs queries and writes their answers.
///
/// Memory use is bounded whatever the size of the answer: text is sent in pieces of 64 KiB, and batch mode buffers at
/// most 1 MiB; a longer answer streams from there on. Parquet is sent in row groups, of which 64 MiB are buffered.
#[derive(Debug, Clone)]
pub struct Executor {
    events: EventDispatcher,
    /// The store for rows that do not fit inline.
    store: Option<Arc<ResultStore>>,
    usage: Arc<UsageTracker>,
}

impl Executor {
    /// An executor that reports each query to `events`.
    pub fn new(events: EventDispatcher) -> Self {
        Self { events, store: None, usage: Arc::default() }
    }

    /// Stores rows that do not fit inline in `store`.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<ResultStore>>) -> Self {
        Self { store, ..self }
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

    /// Plans and runs `question` and writes its rows into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// The errors of the database. Rows that were sent before stay, and their block is closed.
    pub async fn answer(&self, question: QueryRequest, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let started = Instant::now();
        question.statement.check_parameters()?;
        job.record_statement(|| question.statement.to_audited_statement(question.database.name()));
        let known = self.look_up_cache(&question, job).await;
        if let Some(result) = &known.result {
            return self.replay_answer(result, &question, job, reply).await;
        }
        let progress = ProgressReporter::new(job, reply);
        let plan = self.plan(&question, &progress).await?;
        let form = AnswerForm::resolve(question.format, job.format());
        // Rejected before the query runs.
        DistinctValues::for_answer(question.extract.as_deref(), &plan.schema())?;
        let is_list = question.extract.is_some();
        let holding = is_list || runs_in_batch(question.mode, form, plan.as_ref());
        let answer_expectation =
            AnswerExpectation { progress: &progress, rows_max: question.max_rows, answer_form: form, is_list, started };
        let begin = |schema: &SchemaRef| -> Result<_, Error> {
            let (distinct, columns) = DistinctValues::for_answer(question.extract.as_deref(), schema)?;
            let mut answer = answer_expectation.start(&columns, holding)?;
            if question.structured.is_some() && matches!(form, AnswerForm::Content(_)) {
                question.check_output_schema(&columns)?;
                answer = answer.with_structured(&columns);
            }
            Ok((distinct, columns, answer))
        };
        if question.statement.transaction().writes {
            // An answer that cannot be encoded is rejected before anything is written.
            begin(&plan.schema())?;
        }
        let _query = QueryEndGuard { events: &self.events, database: question.database.name(), job, started };
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches } =
            run_until_cancelled(job, progress.run_with_heartbeat(plan.run(job))).await?;
        // Not the columns of the plan: a table may have changed since planning.
        let (distinct, schema, answer) = begin(&schema)?;
        let more = |built_in: &str| question.overflow_hint.clone().unwrap_or_else(|| built_in.to_owned());
        let hints = TruncationHints {
            is_list,
            limit: more("Narrow the query (where, group_by, select) or raise the limit."),
            budget: more(
                "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).",
            ),
            rows_before: 0,
        };
        let answer_recorder = AnswerRecorder::for_query(self.store.as_ref(), &question, form, known.key, job);
        let batches = redact_stream(batches, job);
        AnswerPipeline { batches, distinct, answer, hints, recorder: answer_recorder, schema, progress: &progress }
            .deliver()
            .await
    }

    /// Plans `question` and records the names that it uses.
    async fn plan(&self, question: &QueryRequest, progress: &ProgressReporter<'_>) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        let planning = question.database.plan(&question.statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        self.usage.record(job.caller(), question.database.name(), question.statement.tables());
        // Distinct values are computed over all rows, whatever the limit.
        let rows_max = question.max_rows.filter(|_| question.extract.is_none()).unwrap_or(u64::MAX);
        progress.set_expected_rows(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// Writes `rows`, which need no plan, into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// As [`Executor::answer`].
    pub async fn answer_rows(
        &self,
        rows: QueryRows,
        output_options: OutputOptions,
        job: &Job,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let OutputOptions { format, extract, overflow_hint: more } = output_options;
        let (distinct, schema) = DistinctValues::for_answer(extract.as_deref(), &rows.schema)?;
        let form = AnswerForm::resolve(format, job.format());
        let progress = ProgressReporter::new(job, reply);
        let (is_list, started) = (distinct.is_some(), Instant::now());
        let answer_expectation =
            AnswerExpectation { progress: &progress, rows_max: None, answer_form: form, is_list, started };
        let answer = answer_expectation.start(&schema, true)?;
        let hints = TruncationHints { is_list, limit: more.clone(), budget: more, rows_before: 0 };
        let batches = redact_stream(rows.batches, reply.job());
        AnswerPipeline { batches, distinct, answer, hints, recorder: None, schema, progress: &progress }.deliver().await
    }
}

/// Whether the answer is buffered until it is complete.
fn runs_in_batch(mode: AnswerMode, form: AnswerForm, plan: &dyn Plan) -> bool {
    match mode {
        AnswerMode::Streaming => false,
        AnswerMode::Batch => true,
        AnswerMode::Auto => {
            let is_small = plan.estimated_rows().is_some_and(|rows| rows <= SMALL_ROWS_MAX);
            matches!(form.text_format(), Some(OutputFormat::Table | OutputFormat::Toon))
                || (plan.is_blocking() && is_small)
        }
    }
}

/// Emits the end of the query when it is dropped.
struct QueryEndGuard<'a> {
    events: &'a EventDispatcher,
    database: &'a str,
    job: &'a Job,
    started: Instant,
}

impl Drop for QueryEndGuard<'_> {
    fn drop(&mut self) {
        self.events.emit(Event::QueryEnded {
            database: self.database,
            elapsed: self.started.elapsed(),
            rows: self.job.rows(),
        });
    }
}
