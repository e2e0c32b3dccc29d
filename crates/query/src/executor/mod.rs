//! From a question to the chunks of its answer.

mod cache_replay;
mod continuation;
mod export;
mod pipeline;

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use tidegate_core::event::{Event, EventDispatcher};
use tidegate_core::{Error, ErrorKind, Job, Metadata, ReplySender};

use self::continuation::AnswerRecorder;
use self::pipeline::{AnswerKind, AnswerPipeline, run_until_cancelled};
use crate::answer::{AnswerExpectation, AnswerStage, AnswerWriter, ProgressReporter, TruncationHints};
use crate::database::{Database, Plan, QueryRows};
use crate::format::{AnswerForm, OutputFormat};
use crate::secrets::redact_stream;
use crate::statement::Statement;
use crate::store::ResultStore;
use crate::structured::find_undescribed_column;
use crate::usage::UsageTracker;

pub use self::continuation::{PageOptions, compute_query_id};

/// A plan that expects no more rows than these, and gives none before it has read all of its
/// input, is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

/// When rows leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AnswerMode {
    /// As they come.
    Streaming,
    /// When all of them are there.
    Batch,
    /// `SqliteBatchBuilder` when the whole answer is needed before its first byte, else `Streaming`.
    #[default]
    Auto,
}

impl AnswerMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Streaming, Self::Batch, Self::Auto];

    /// The name that callers give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Batch => "batch",
            Self::Auto => "auto",
        }
    }

    /// The mode of that name.
    ///
    /// # Errors
    /// `InvalidArguments` with the names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no mode {name:?}"))
                .with_choices(Self::ALL.map(|mode| mode.name().to_owned()))
        })
    }
}

/// A statement for a database, and how its answer shall look.
pub struct QueryRequest {
    /// Whom to ask.
    pub database: Arc<dyn Database>,
    /// What to ask.
    pub statement: Statement,
    /// Rows answered at most; whether there are more is said.
    pub max_rows: Option<u64>,
    /// The form of the answer; with [`OutputFormat::Mcp`] it is that of the call, if that names one.
    pub format: OutputFormat,
    /// The column whose unique values are wanted instead of rows.
    pub extract: Option<String>,
    /// When rows leave.
    pub mode: AnswerMode,
    /// The columns that an output schema promises, where the rows are wanted as data too, beside their text.
    pub structured: Option<SchemaRef>,
    /// How to ask for the rest when the budget ends the answer: a sentence. Without it the caller is told of the
    /// arguments that the built-in tools have.
    pub overflow_hint: Option<String>,
    /// What becomes of rows that do not fit inline.
    pub overflow: OverflowPolicy,
}

impl QueryRequest {
    /// Refuses an answer with `columns` that its output schema does not describe, as after a change of a table.
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

/// Where the rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Into the answer, as far as they fit.
    #[default]
    Inline,
    /// Into a stored result; the answer is a preview of it.
    Blocks,
}

impl Delivery {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Inline, Self::Blocks];

    /// The name that callers give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Blocks => "blocks",
        }
    }

    /// The way of that name.
    ///
    /// # Errors
    /// `InvalidArguments` with the names.
    pub fn parse(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArguments, format!("there is no delivery {name:?}"))
                .with_choices(Self::ALL.map(|delivery| delivery.name().to_owned()))
        })
    }
}

/// What becomes of the rows of an answer that do not fit inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverflowPolicy {
    /// Nothing: the caller has to ask for them otherwise.
    #[default]
    Discard,
    /// They are stored, to be paged through with a cursor.
    Store {
        /// Whether the caller may read the stored result as a resource, too, and is told of it.
        linked: bool,
        /// Whether an earlier answer may be given again that is still right.
        cached: bool,
    },
}

/// How rows that are there already shall look.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The form of the answer.
    pub format: OutputFormat,
    /// The column whose unique values are wanted instead of rows.
    pub extract: Option<String>,
    /// How to ask for the rest, when not all rows fit: a sentence such as
    /// `Ask for less with the argument "pattern".`
    pub overflow_hint: String,
}

/// Runs questions and writes their answers.
///
/// Memory has a bound whatever the answer's size: text leaves in pieces of 64 KiB, and in batch
/// mode at most 1 MiB of it is held back; an answer that outgrows that streams from there on. Parquet
/// leaves in groups of rows, of which 64 MiB are held.
#[derive(Debug, Clone)]
pub struct Executor {
    events: EventDispatcher,
    /// Where answers go on that do not fit.
    store: Option<Arc<ResultStore>>,
    usage: Arc<UsageTracker>,
}

impl Executor {
    /// An executor that tells `events` of each query.
    pub fn new(events: EventDispatcher) -> Self {
        Self { events, store: None, usage: Arc::default() }
    }

    /// The same, keeping in `store` what does not fit inline.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<ResultStore>>) -> Self {
        Self { store, ..self }
    }

    /// The same, counting in `usage` which names are asked for.
    #[must_use]
    pub fn with_usage(self, usage_tracker: Arc<UsageTracker>) -> Self {
        Self { usage: usage_tracker, ..self }
    }

    /// Which names are asked for, and by whom.
    pub fn usage(&self) -> &Arc<UsageTracker> {
        &self.usage
    }

    /// Where answers go on that do not fit.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }

    /// Plans and runs `question` and writes its rows into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// Whatever the database says; rows that were sent before it stand, and their block is closed.
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
        // Refused before anything runs.
        AnswerKind::new(question.extract.as_deref(), &plan.schema())?;
        let is_list = question.extract.is_some();
        let holding = is_list || runs_in_batch(question.mode, form, plan.as_ref());
        let answer_expectation =
            AnswerExpectation { progress: &progress, rows_max: question.max_rows, answer_form: form, is_list, started };
        let begin = |schema: &SchemaRef| -> Result<(AnswerKind, AnswerWriter<'_>), Error> {
            let kind = AnswerKind::new(question.extract.as_deref(), schema)?;
            let mut answer = kind.start_answer(&answer_expectation, schema, holding)?;
            if question.structured.is_some() && matches!(form, AnswerForm::Content(_)) {
                let columns = kind.schema(schema);
                question.check_output_schema(&columns)?;
                answer = answer.with_structured(&columns);
            }
            Ok((kind, answer))
        };
        if question.statement.transaction().writes {
            // An answer that cannot be given is refused before anything is written.
            begin(&plan.schema())?;
        }
        let _query = QueryEndGuard { events: &self.events, database: question.database.name(), job, started };
        progress.enter_stage(AnswerStage::Running).await?;
        let QueryRows { schema, batches } =
            run_until_cancelled(job, progress.run_with_heartbeat(plan.run(job))).await?;
        // Not the columns of the plan: a table may have changed since it was made.
        let (kind, answer) = begin(&schema)?;
        let more = |built_in: &str| question.overflow_hint.clone().unwrap_or_else(|| built_in.to_owned());
        let hints = TruncationHints {
            noun: kind.noun(),
            limit: more("Narrow the query (where, group_by, select) or raise the limit."),
            budget: more(
                "Narrow the query (where, group_by, select), or request the rows after the last one (order_by, where).",
            ),
            rows_before: 0,
        };
        let answer_recorder = AnswerRecorder::for_query(self.store.as_ref(), &question, form, known.key, job);
        let batches = redact_stream(batches, job);
        AnswerPipeline { batches, kind, answer, hints, recorder: answer_recorder, schema, progress: &progress }
            .deliver()
            .await
    }

    /// The plan of `question`, whose names count as used from then on.
    async fn plan(&self, question: &QueryRequest, progress: &ProgressReporter<'_>) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        let planning = question.database.plan(&question.statement, job.principal());
        let plan = run_until_cancelled(job, progress.run_with_heartbeat(planning)).await?;
        self.usage.record(job.caller(), question.database.name(), question.statement.tables());
        // Unique values are of all rows, however many of them are wanted.
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
        presentation: OutputOptions,
        job: &Job,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let OutputOptions { format, extract, overflow_hint: more } = presentation;
        let kind = AnswerKind::new(extract.as_deref(), &rows.schema)?;
        let form = AnswerForm::resolve(format, job.format());
        let progress = ProgressReporter::new(job, reply);
        let (is_list, started) = (kind.is_list(), Instant::now());
        let answer_expectation =
            AnswerExpectation { progress: &progress, rows_max: None, answer_form: form, is_list, started };
        let answer = kind.start_answer(&answer_expectation, &rows.schema, true)?;
        let hints = TruncationHints { noun: kind.noun(), limit: more.clone(), budget: more, rows_before: 0 };
        let QueryRows { schema, batches } = rows;
        let batches = redact_stream(batches, reply.job());
        AnswerPipeline { batches, kind, answer, hints, recorder: None, schema, progress: &progress }.deliver().await
    }
}

/// Whether an answer waits until all of it is there.
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

/// Tells of the query's end, however it comes.
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
