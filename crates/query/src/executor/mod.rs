//! From a question to the chunks of its answer.

mod again;
mod continuation;
mod export;
mod flow;

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use tidegate_core::event::{Event, Events};
use tidegate_core::{Error, ErrorKind, Job, Metadata, ReplySender};

use self::continuation::Keeper;
use self::flow::{Flow, Kind, or_cancelled};
use crate::answer::{Answer, Hints, Progress, Prospect, Stage};
use crate::database::{Database, Plan, Rows};
use crate::format::{Form, Format};
use crate::secrets::screened;
use crate::statement::Statement;
use crate::store::ResultStore;
use crate::structured::undescribed;
use crate::uses::Uses;

pub use self::continuation::{Page, question_of};

/// A plan that expects no more rows than these, and gives none before it has read all of its
/// input, is answered in batch mode.
const SMALL_ROWS_MAX: u64 = 1_000;

/// When rows leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// As they come.
    Streaming,
    /// When all of them are there.
    Batch,
    /// `Batch` when the whole answer is needed before its first byte, else `Streaming`.
    #[default]
    Auto,
}

impl Mode {
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
pub struct Question {
    /// Whom to ask.
    pub database: Arc<dyn Database>,
    /// What to ask.
    pub statement: Statement,
    /// Rows answered at most; whether there are more is said.
    pub max_rows: Option<u64>,
    /// The form of the answer; with [`Format::Mcp`] it is that of the call, if that names one.
    pub format: Format,
    /// The column whose unique values are wanted instead of rows.
    pub extract: Option<String>,
    /// When rows leave.
    pub mode: Mode,
    /// The columns that an output schema promises, where the rows are wanted as data too, beside their text.
    pub structured: Option<SchemaRef>,
    /// How to ask for the rest when the budget ends the answer: a sentence. Without it the caller is told of the
    /// arguments that the built-in tools have.
    pub more: Option<String>,
    /// What becomes of rows that do not fit inline.
    pub rest: Rest,
}

impl Question {
    /// Refuses an answer with `columns` that its output schema does not describe, as after a change of a table.
    fn check_promised(&self, columns: &SchemaRef) -> Result<(), Error> {
        let promised = self.structured.as_ref();
        let Some(name) = promised.and_then(|promised| undescribed(promised, columns)) else { return Ok(()) };
        let message =
            format!("the output schema does not describe the column {name:?} of the answer: a table has changed");
        Err(Error::new(ErrorKind::Unavailable, message)
            .with_hint("The owner of the node must load its configuration again; until then, ask the table itself."))
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
pub enum Rest {
    /// Nothing: the caller has to ask for them otherwise.
    #[default]
    Lost,
    /// They are stored, to be paged through with a cursor.
    Kept {
        /// Whether the caller may read the stored result as a resource, too, and is told of it.
        linked: bool,
        /// Whether an earlier answer may be given again that is still right.
        cached: bool,
    },
}

/// How rows that are there already shall look.
#[derive(Debug, Clone, Default)]
pub struct Presentation {
    /// The form of the answer.
    pub format: Format,
    /// The column whose unique values are wanted instead of rows.
    pub extract: Option<String>,
    /// How to ask for the rest, when not all rows fit: a sentence such as
    /// `Ask for less with the argument "pattern".`
    pub more: String,
}

/// Runs questions and writes their answers.
///
/// Memory has a bound whatever the answer's size: text leaves in pieces of 64 KiB, and in batch
/// mode at most 1 MiB of it is held back; an answer that outgrows that streams from there on. Parquet
/// leaves in groups of rows, of which 64 MiB are held.
#[derive(Debug, Clone)]
pub struct Executor {
    events: Events,
    /// Where answers go on that do not fit.
    store: Option<Arc<ResultStore>>,
    uses: Arc<Uses>,
}

impl Executor {
    /// An executor that tells `events` of each query.
    pub fn new(events: Events) -> Self {
        Self { events, store: None, uses: Arc::default() }
    }

    /// The same, keeping in `store` what does not fit inline.
    #[must_use]
    pub fn with_store(self, store: Option<Arc<ResultStore>>) -> Self {
        Self { store, ..self }
    }

    /// The same, counting in `uses` which names are asked for.
    #[must_use]
    pub fn with_uses(self, uses: Arc<Uses>) -> Self {
        Self { uses, ..self }
    }

    /// Which names are asked for, and by whom.
    pub fn uses(&self) -> &Arc<Uses> {
        &self.uses
    }

    /// Where answers go on that do not fit.
    pub fn store(&self) -> Option<&Arc<ResultStore>> {
        self.store.as_ref()
    }

    /// Plans and runs `question` and writes its rows into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// Whatever the database says; rows that were sent before it stand, and their block is closed.
    pub async fn answer(&self, question: Question, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let started = Instant::now();
        question.statement.check_parameters()?;
        job.asked(|| question.statement.audited(question.database.name()));
        let known = self.known(&question, job).await;
        if let Some(result) = &known.result {
            return self.answer_again(result, &question, job, reply).await;
        }
        let progress = Progress::new(job, reply);
        let plan = self.planned(&question, &progress).await?;
        let form = Form::of(question.format, job.format());
        // Refused before anything runs.
        Kind::of(question.extract.as_deref(), &plan.schema())?;
        let is_list = question.extract.is_some();
        let holding = is_list || runs_in_batch(question.mode, form, plan.as_ref());
        let prospect = Prospect { progress: &progress, rows_max: question.max_rows, form, is_list, started };
        let begin = |schema: &SchemaRef| -> Result<(Kind, Answer<'_>), Error> {
            let kind = Kind::of(question.extract.as_deref(), schema)?;
            let mut answer = kind.answer(&prospect, schema, holding)?;
            if question.structured.is_some() && matches!(form, Form::Content(_)) {
                let columns = kind.schema(schema);
                question.check_promised(&columns)?;
                answer = answer.with_structured(&columns);
            }
            Ok((kind, answer))
        };
        if question.statement.transaction().writes {
            // An answer that cannot be given is refused before anything is written.
            begin(&plan.schema())?;
        }
        let _query = RunningQuery { events: &self.events, database: question.database.name(), job, started };
        progress.enter(Stage::Running).await?;
        let Rows { schema, batches } = or_cancelled(job, progress.during(plan.run(job))).await?;
        // Not the columns of the plan: a table may have changed since it was made.
        let (kind, answer) = begin(&schema)?;
        let more = |built_in: &str| question.more.clone().unwrap_or_else(|| built_in.to_owned());
        let hints = Hints {
            noun: kind.noun(),
            limit: more("Ask for less (where, group_by, select) or a larger limit."),
            budget: more(
                "Ask for less (where, group_by, select), or for the rows after the last one (order_by, where).",
            ),
            before: 0,
        };
        let keeper = Keeper::of(self.store.as_ref(), &question, form, known.key, job);
        let batches = screened(batches, job);
        Flow { batches, kind, answer, hints, keeper, schema, progress: &progress }.deliver().await
    }

    /// The plan of `question`, whose names count as used from then on.
    async fn planned(&self, question: &Question, progress: &Progress<'_>) -> Result<Box<dyn Plan>, Error> {
        let job = progress.job();
        let planning = question.database.plan(&question.statement, job.principal());
        let plan = or_cancelled(job, progress.during(planning)).await?;
        self.uses.count(job.caller(), question.database.name(), question.statement.tables());
        // Unique values are of all rows, however many of them are wanted.
        let rows_max = question.max_rows.filter(|_| question.extract.is_none()).unwrap_or(u64::MAX);
        progress.expect(plan.estimated_rows().map(|rows| rows.min(rows_max)));
        Ok(plan)
    }

    /// Writes `rows`, which need no plan, into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// As [`Executor::answer`].
    pub async fn answer_rows(
        &self,
        rows: Rows,
        presentation: Presentation,
        job: &Job,
        reply: &ReplySender,
    ) -> Result<Metadata, Error> {
        let Presentation { format, extract, more } = presentation;
        let kind = Kind::of(extract.as_deref(), &rows.schema)?;
        let form = Form::of(format, job.format());
        let progress = Progress::new(job, reply);
        let (is_list, started) = (kind.is_list(), Instant::now());
        let prospect = Prospect { progress: &progress, rows_max: None, form, is_list, started };
        let answer = kind.answer(&prospect, &rows.schema, true)?;
        let hints = Hints { noun: kind.noun(), limit: more.clone(), budget: more, before: 0 };
        let Rows { schema, batches } = rows;
        let batches = screened(batches, reply.job());
        Flow { batches, kind, answer, hints, keeper: None, schema, progress: &progress }.deliver().await
    }
}

/// Whether an answer waits until all of it is there.
fn runs_in_batch(mode: Mode, form: Form, plan: &dyn Plan) -> bool {
    match mode {
        Mode::Streaming => false,
        Mode::Batch => true,
        Mode::Auto => {
            let is_small = plan.estimated_rows().is_some_and(|rows| rows <= SMALL_ROWS_MAX);
            matches!(form.text(), Some(Format::Table | Format::Toon)) || (plan.is_blocking() && is_small)
        }
    }
}

/// Tells of the query's end, however it comes.
struct RunningQuery<'a> {
    events: &'a Events,
    database: &'a str,
    job: &'a Job,
    started: Instant,
}

impl Drop for RunningQuery<'_> {
    fn drop(&mut self) {
        self.events.tell(Event::QueryEnded {
            database: self.database,
            elapsed: self.started.elapsed(),
            rows: self.job.rows(),
        });
    }
}
