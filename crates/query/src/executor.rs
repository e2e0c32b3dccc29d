//! From a question to the chunks of its answer.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tidegate_core::event::{Event, Events};
use tidegate_core::{Error, ErrorKind, Job, Metadata, ReplySender};

use crate::answer::{Answer, Hints, Progress, Prospect};
use crate::database::{Database, Plan, Rows};
use crate::distinct::Distinct;
use crate::format::{Form, Format, list_writer, writer};
use crate::statement::Statement;

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
    /// Whether the rows are wanted as data too, beside their text.
    pub structured: bool,
    /// How to ask for the rest when the budget ends the answer: a sentence. Without it the caller is told of the
    /// arguments that the built-in tools have.
    pub more: Option<String>,
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
}

impl Executor {
    /// An executor that tells `events` of each query.
    pub fn new(events: Events) -> Self {
        Self { events }
    }

    /// Plans and runs `question` and writes its rows into `reply`, within the inline budget of `job`.
    ///
    /// # Errors
    /// Whatever the database says; rows that were sent before it stand, and their block is closed.
    pub async fn answer(&self, question: Question, job: &Arc<Job>, reply: &ReplySender) -> Result<Metadata, Error> {
        let started = Instant::now();
        question.statement.check_parameters()?;
        let plan = or_cancelled(job, question.database.plan(&question.statement, job.principal())).await?;
        let schema = plan.schema();
        let form = Form::of(question.format, job.format());
        let batch = runs_in_batch(question.mode, form, plan.as_ref());
        let kind = Kind::of(question.extract.as_deref(), &schema)?;
        let is_list = kind.is_list();
        let prospect = Prospect { job, reply, rows_max: question.max_rows, form, is_list, started };
        let mut answer = kind.answer(&prospect, &schema, batch || is_list)?;
        if question.structured {
            answer = answer.with_structured(&kind.schema(&schema));
        }
        let _query = RunningQuery { events: &self.events, database: question.database.name(), job, started };
        reply.progress(0.0, None, Some("the query runs".to_owned())).await?;
        let rows = or_cancelled(job, plan.run(job)).await?;
        let more = |built_in: &str| question.more.clone().unwrap_or_else(|| built_in.to_owned());
        let hints = Hints {
            noun: kind.noun(),
            limit: more("Ask for less (where, group_by, select) or a larger limit."),
            budget: more(
                "Ask for less (where, group_by, select), or for the rows after the last one (order_by, where).",
            ),
        };
        deliver(rows.batches, kind, answer, &hints, job, reply).await
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
        let prospect = Prospect { job, reply, rows_max: None, form, is_list: kind.is_list(), started: Instant::now() };
        let answer = kind.answer(&prospect, &rows.schema, true)?;
        let hints = Hints { noun: kind.noun(), limit: more.clone(), budget: more };
        deliver(rows.batches, kind, answer, &hints, job, reply).await
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

/// What is answered: the rows, or the unique values of one column.
enum Kind {
    Rows,
    Values(Box<Distinct>),
}

impl Kind {
    fn of(extract: Option<&str>, schema: &SchemaRef) -> Result<Self, Error> {
        match extract {
            None => Ok(Self::Rows),
            Some(column) => Ok(Self::Values(Box::new(Distinct::new(column, schema)?))),
        }
    }

    /// The columns of what is answered.
    fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        match self {
            Self::Rows => schema.clone(),
            Self::Values(distinct) => distinct.schema(schema),
        }
    }

    fn noun(&self) -> &'static str {
        match self {
            Self::Rows => "row",
            Self::Values(_) => "value",
        }
    }

    fn is_list(&self) -> bool {
        matches!(self, Self::Values(_))
    }

    /// An answer of nothing yet from rows of `schema`; `holding` says whether its text waits until all of it is there.
    fn answer<'a>(&self, prospect: &Prospect<'a>, schema: &SchemaRef, holding: bool) -> Result<Answer<'a>, Error> {
        let columns = self.schema(schema);
        let format = match prospect.form {
            Form::Batches(format) => return Answer::of_batches(prospect, format, &columns),
            Form::Content(format) | Form::Body(format) => format,
        };
        let writer = if self.is_list() { list_writer(format, &columns) } else { writer(format, &columns) };
        Ok(Answer::of_text(prospect, writer, holding))
    }
}

type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

async fn deliver(
    mut batches: Batches,
    kind: Kind,
    mut answer: Answer<'_>,
    hints: &Hints,
    job: &Job,
    reply: &ReplySender,
) -> Result<Metadata, Error> {
    let delivered = match kind {
        Kind::Rows => stream(&mut batches, &mut answer, job).await,
        Kind::Values(distinct) => match gather(&mut batches, *distinct, job, reply).await {
            Ok(values) => {
                let values = futures::stream::iter(values.into_iter().map(Ok));
                stream(&mut values.boxed(), &mut answer, job).await
            }
            Err(error) => Err(error),
        },
    };
    // Stops the query before the last words are sent.
    drop(batches);
    match delivered {
        Ok(()) => answer.finish(hints).await,
        Err(error) => {
            // When the caller is gone there is nothing to close.
            if error.kind() != ErrorKind::Cancelled {
                answer.abandon(&error).await?;
            }
            Err(error)
        }
    }
}

/// Lets the rows flow until they end or the answer does.
async fn stream(batches: &mut Batches, answer: &mut Answer<'_>, job: &Job) -> Result<(), Error> {
    let (mut first, mut rows, mut has_ended) = (Vec::new(), 0, false);
    while rows < answer.lookahead_rows() && !has_ended {
        match next(batches, job).await? {
            Some(batch) => {
                rows += batch.num_rows();
                first.push(batch);
            }
            None => has_ended = true,
        }
    }
    answer.look_at(&first);
    for batch in first {
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
    }
    if has_ended {
        // A stream that has ended may not be asked again.
        return Ok(());
    }
    loop {
        let batch = match batches.next().now_or_never() {
            Some(batch) => batch.transpose()?,
            None => {
                answer.pause().await?;
                next(batches, job).await?
            }
        };
        let Some(batch) = batch else { return Ok(()) };
        if answer.push(&batch).await?.is_break() {
            return Ok(());
        }
        if job.is_cancelled() {
            return Err(cancelled());
        }
    }
}

/// Reads all rows and keeps the unique values of one column.
async fn gather(
    batches: &mut Batches,
    mut distinct: Distinct,
    job: &Job,
    reply: &ReplySender,
) -> Result<Vec<RecordBatch>, Error> {
    let mut progress = Progress::default();
    let mut rows = 0;
    while let Some(batch) = next(batches, job).await? {
        distinct.add(&batch)?;
        rows += batch.num_rows() as u64;
        progress.tell(rows, reply).await?;
    }
    distinct.into_batches()
}

async fn next(batches: &mut Batches, job: &Job) -> Result<Option<RecordBatch>, Error> {
    or_cancelled(job, batches.next().map(Option::transpose)).await
}

async fn or_cancelled<T>(job: &Job, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::select! {
        biased;
        () = job.cancelled() => Err(cancelled()),
        done = work => done,
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the call was cancelled")
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
