//! A database in memory that answers every statement with the same rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tidegate_core::event::{Event, Events, Subscriber};
use tidegate_core::{
    AnswerFormat, BodyHead, Budget, Call, CallLimits, Caller, Chunk, Content, Error, ErrorKind, Guard, Metadata,
    Notice, Origin, Outcome, Principal, Registry, ReplyEvent, Snapshot, SnapshotBuilder, Target, Tool, TransportKind,
    handler_fn,
};
use tidegate_query::{
    Catalog, Column, Database, Executor, Format, Freshness, Mode, Plan, Question, Rest, Rows, SqlDialect, Statement,
};

/// A database of `flights`, `airlines` and `orders`; what it answers is set from outside.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) batches: Vec<RecordBatch>,
    /// What its plan says of the columns; none for what they are.
    pub(crate) planned: Option<SchemaRef>,
    /// Comes after the batches.
    pub(crate) failure: Option<fn() -> Error>,
    /// Comes before each batch.
    pub(crate) delay: Option<Duration>,
    pub(crate) is_blocking: bool,
    pub(crate) estimated_rows: Option<u64>,
    pub(crate) dialect: SqlDialect,
    /// Whether the stream was dropped.
    pub(crate) stopped: Arc<AtomicBool>,
    /// What names the state of its data; 0 for one that nobody can tell.
    pub(crate) version: Arc<AtomicU64>,
    /// What the row policies make of each principal: the claim of that name.
    pub(crate) bound_by: Option<&'static str>,
    /// How often it was asked.
    pub(crate) runs: Arc<AtomicU64>,
}

impl Fake {
    pub(crate) fn of(batches: Vec<RecordBatch>) -> Self {
        let dialect = SqlDialect::DataFusion;
        Self {
            batches,
            planned: None,
            failure: None,
            delay: None,
            is_blocking: false,
            estimated_rows: None,
            dialect,
            stopped: Arc::default(),
            version: Arc::default(),
            bound_by: None,
            runs: Arc::default(),
        }
    }

    /// One that is asked in `dialect`.
    pub(crate) fn speaking(dialect: SqlDialect) -> Self {
        Self { dialect, ..Self::counting(1, 1) }
    }

    /// `batches` batches of `rows` rows with one column `n` that counts from 0.
    pub(crate) fn counting(batches: usize, rows: usize) -> Self {
        let batch = |index: usize| {
            let start = (index * rows) as i64;
            batch(&[("n", Arc::new(Int64Array::from_iter_values(start..start + rows as i64)))])
        };
        Self::of((0..batches).map(batch).collect())
    }
}

/// A batch of these columns.
pub(crate) fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, column)| (*name, column.clone(), true)))
        .unwrap()
}

const TABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "flights",
        &[
            ("flight_date", "date"),
            ("carrier", "text"),
            ("origin", "text"),
            ("dest", "text"),
            ("dep_delay", "double"),
            ("arr_delay", "double"),
            ("distance", "bigint"),
            ("Tail Number", "text"),
        ],
    ),
    ("airlines", &[("carrier", "text"), ("name", "text")]),
    ("odd \" name", &[("a\"b", "text"), ("c.d", "text"), ("e\\f", "text")]),
];

/// Tables of another schema, which the embedded engine has none of.
const ARCHIVE: &[(&str, &[(&str, &str)])] = &[
    ("archive.flights", &[("flight_date", "date"), ("carrier", "text"), ("distance", "bigint")]),
    ("archive.\"2013.csv\"", &[("n", "bigint")]),
];

#[async_trait]
impl Database for Fake {
    fn name(&self) -> &str {
        "demo"
    }

    fn kind(&self) -> &'static str {
        "fake"
    }

    fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<Column>, Error> {
        let archive = if self.dialect == SqlDialect::DataFusion { &[] } else { ARCHIVE };
        let (_, columns) = TABLES.iter().chain(archive).find(|(name, _)| *name == table).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"))
                .with_choices(TABLES.iter().map(|(name, _)| (*name).to_owned()))
        })?;
        let column = |(name, type_name): &(&str, &str)| Column {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            nullable: true,
            comment: None,
        };
        Ok(columns.iter().map(column).collect())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn row_policy_stamp(&self, principal: &Principal) -> u64 {
        self.bound_by.and_then(|claim| principal.claims.get(claim)?.as_u64()).unwrap_or_default()
    }

    async fn freshness(&self, _statement: &Statement, _principal: &Principal) -> Freshness {
        match self.version.load(Ordering::Relaxed) {
            0 => Freshness::Never,
            version => Freshness::While(version),
        }
    }
}

#[async_trait]
impl Plan for Fake {
    fn schema(&self) -> SchemaRef {
        self.planned.clone().unwrap_or_else(|| self.batches[0].schema())
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.estimated_rows
    }

    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    async fn explain(&self) -> Result<String, tidegate_core::Error> {
        Ok("fake".to_owned())
    }

    async fn run(self: Box<Self>, _job: &Arc<tidegate_core::Job>) -> Result<Rows, Error> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let schema = self.batches[0].schema();
        let items: Vec<Result<RecordBatch, Error>> =
            self.batches.into_iter().map(Ok).chain(self.failure.map(|failure| Err(failure()))).collect();
        let (delay, guard) = (self.delay, Stopped(self.stopped));
        let batches = futures::stream::iter(items).then(move |item| {
            let _ = &guard;
            async move {
                if let Some(delay) = delay {
                    tokio::time::sleep(delay).await;
                }
                item
            }
        });
        Ok(Rows { schema, batches: batches.boxed() })
    }
}

struct Stopped(Arc<AtomicBool>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a caller sees of an answer.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The text blocks.
    pub(crate) blocks: Vec<String>,
    /// The lengths of the pieces of text.
    pub(crate) pieces: Vec<usize>,
    /// What was known of a body, and its bytes.
    pub(crate) head: Option<BodyHead>,
    pub(crate) body: Vec<u8>,
    pub(crate) progress: Vec<f64>,
    /// The same in words, with what it will be at the end.
    pub(crate) words: Vec<String>,
    pub(crate) metadata: Metadata,
    pub(crate) failure: Option<Error>,
    /// Rows that the job counted.
    pub(crate) rows: u64,
    /// Secrets that were found.
    pub(crate) secrets: u64,
    /// The events about queries: database and rows.
    pub(crate) queries: Vec<(String, u64)>,
}

impl Seen {
    pub(crate) fn mode(&self) -> &str {
        self.metadata["dev.tidegate/mode"].as_str().unwrap()
    }
}

/// How an answer is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wishes {
    pub(crate) max_rows: Option<u64>,
    pub(crate) format: Format,
    pub(crate) extract: Option<String>,
    /// The columns of an output schema.
    pub(crate) structured: Option<SchemaRef>,
    pub(crate) mode: Mode,
    pub(crate) budget: Budget,
    /// The form of a body.
    pub(crate) body: Option<AnswerFormat>,
    pub(crate) guard: Guard,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            max_rows: None,
            format: Format::Mcp,
            extract: None,
            structured: None,
            mode: Mode::Streaming,
            budget: Budget::default(),
            body: None,
            guard: Guard::default(),
        }
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<(String, u64)>>);

impl Subscriber for Heard {
    fn hear(&self, event: Event<'_>) {
        if let Event::QueryEnded { database, rows, .. } = event {
            self.0.lock().push((database.to_owned(), rows));
        }
    }
}

/// Starts asking `fake`; the call runs on.
pub(crate) fn start(fake: &Fake, wishes: &Wishes) -> (tidegate_core::Reply, impl Fn() -> Vec<(String, u64)> + use<>) {
    let heard = Arc::new(Heard::default());
    let events = Events::new([heard.clone() as Arc<dyn Subscriber>]);
    let executor = Executor::new(events.clone());
    let (database, wanted) = (Arc::new(fake.clone()), wishes.clone());
    let handler = handler_fn(move |job, reply| {
        let (executor, wanted) = (executor.clone(), wanted.clone());
        let question = Question {
            database: database.clone(),
            statement: Statement::parse("SELECT * FROM flights", SqlDialect::DataFusion).unwrap(),
            max_rows: wanted.max_rows,
            format: wanted.format,
            extract: wanted.extract,
            mode: wanted.mode,
            structured: wanted.structured,
            more: None,
            rest: Rest::Lost,
        };
        async move { executor.answer(question, &job, &reply).await }
    });
    let limits = CallLimits { inline: Some(wishes.budget), ..CallLimits::default() };
    let snapshot: Snapshot = SnapshotBuilder::new()
        .tool(Tool::new("ask", "asks", handler).with_limits(limits))
        .guard(wishes.guard.clone())
        .build();
    let registry = Registry::new(snapshot, events);
    let origin = Origin { transport: TransportKind::CommandLine, peer: None };
    let mut call = Call::new(Target::Tool("ask".to_owned()), Caller::new(Principal::owner(), origin));
    call.format = wishes.body;
    call.wants_progress = true;
    (registry.call(call).unwrap(), move || heard.0.lock().clone())
}

/// Asks `fake` and reads the whole answer.
pub(crate) async fn ask(fake: &Fake, wishes: &Wishes) -> Seen {
    let (mut reply, queries) = start(fake, wishes);
    let job = reply.job().clone();
    let mut seen = Seen::default();
    let mut open = false;
    while let Some(event) = reply.next().await {
        match event {
            ReplyEvent::Chunk(Chunk::Text(text)) => {
                seen.pieces.push(text.len());
                if open {
                    seen.blocks.last_mut().unwrap().push_str(&text);
                } else {
                    seen.blocks.push(text);
                }
                open = true;
            }
            ReplyEvent::Chunk(Chunk::Body(head)) => assert!(seen.head.replace(head).is_none(), "it begins once"),
            ReplyEvent::Chunk(Chunk::Bytes(bytes)) => {
                assert!(seen.head.is_some() && bytes.len() <= 64 * 1024);
                seen.pieces.push(bytes.len());
                seen.body.extend_from_slice(&bytes);
            }
            ReplyEvent::Chunk(Chunk::EndOfText) => open = false,
            ReplyEvent::Chunk(Chunk::Block(Content::Text { text, .. })) => {
                open = false;
                seen.blocks.push(text);
            }
            ReplyEvent::Chunk(Chunk::Notice(Notice::Progress { done, total, message })) => {
                seen.progress.push(done);
                seen.words.push(format!("{done} of {total:?}: {}", message.unwrap()));
            }
            ReplyEvent::Chunk(other) => panic!("{other:?}"),
            ReplyEvent::End(Outcome::Done(metadata)) => seen.metadata = metadata,
            ReplyEvent::End(Outcome::Failed(error)) => seen.failure = Some(error),
        }
    }
    seen.rows = job.rows();
    seen.secrets = job.secrets();
    seen.queries = queries();
    seen
}
