//! A database in memory that answers every statement with the same rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tidegate_core::{
    AnswerProtection, Budget, CallLimits, CallOrigin, CallTarget, Caller, Content, Error, ErrorKind, Format,
    MissingNodes, Principal, TransportKind,
};
use tidegate_query::{
    AnswerMode, Catalog, ColumnEntry, Database, DatabaseKind, Executor, Freshness, OutputOptions, OverflowPolicy, Plan,
    QueryRequest, QueryRows,
};
use tidegate_runtime::{
    AnswerMeta, BodyMetadata, Call, Registry, ReplyNotification, ReplyPart, Snapshot, SnapshotBuilder, Tool,
    event::{Event, EventDispatcher, Subscriber},
    handler_fn,
};
use tidegate_sql::{SqlDialect, Statement};

/// A database of `flights`, `airlines` and `orders`; what it answers is set from outside.
#[derive(Clone)]
pub(crate) struct FakeDatabase {
    pub(crate) batches: Vec<RecordBatch>,
    /// What its plan says of the columns; none for what they are.
    pub(crate) planned: Option<SchemaRef>,
    /// Comes after the batches.
    pub(crate) failure: Option<fn() -> Error>,
    /// Comes before each batch.
    pub(crate) delay: Option<Duration>,
    pub(crate) is_pipeline_breaking: bool,
    pub(crate) estimated_rows: Option<u64>,
    pub(crate) dialect: SqlDialect,
    /// Whether the stream was dropped.
    pub(crate) stopped: Arc<AtomicBool>,
    /// The stamp of its data; 0 if it is not known.
    pub(crate) version: Arc<AtomicU64>,
    /// What the row policies make of each principal: the claim of that name.
    pub(crate) bound_by: Option<&'static str>,
    /// How often it was asked.
    pub(crate) runs: Arc<AtomicU64>,
    /// The nodes whose rows its answers lack.
    pub(crate) missing: Option<Arc<MissingNodes>>,
}

impl FakeDatabase {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Self {
        let dialect = SqlDialect::DataFusion;
        Self {
            batches,
            planned: None,
            failure: None,
            delay: None,
            is_pipeline_breaking: false,
            estimated_rows: None,
            dialect,
            stopped: Arc::default(),
            version: Arc::default(),
            bound_by: None,
            runs: Arc::default(),
            missing: None,
        }
    }

    /// One that is asked in `dialect`.
    pub(crate) fn with_dialect(dialect: SqlDialect) -> Self {
        Self { dialect, ..Self::counting(1, 1) }
    }

    /// `batches` batches of `rows` rows with one column `n` that counts from 0.
    pub(crate) fn counting(batches: usize, rows: usize) -> Self {
        let batch = |index: usize| {
            let start = (index * rows) as i64;
            batch(&[("n", Arc::new(Int64Array::from_iter_values(start..start + rows as i64)))])
        };
        Self::new((0..batches).map(batch).collect())
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
impl Database for FakeDatabase {
    fn name(&self) -> &str {
        "demo"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("fake")
    }

    fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        let archive = if self.dialect == SqlDialect::DataFusion { &[] } else { ARCHIVE };
        let (_, columns) = TABLES.iter().chain(archive).find(|(name, _)| *name == table).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no table {table:?}"))
                .with_choices(TABLES.iter().map(|(name, _)| (*name).to_owned()))
        })?;
        let column = |(name, type_name): &(&str, &str)| ColumnEntry {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            nullable: true,
            ..ColumnEntry::default()
        };
        Ok(columns.iter().map(column).collect())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(self.clone()))
    }

    fn row_policy_fingerprint(&self, principal: &Principal) -> u64 {
        self.bound_by.and_then(|claim| principal.claims.get(claim)?.as_u64()).unwrap_or_default()
    }

    async fn freshness(&self, _statement: &Statement, _principal: &Principal) -> Freshness {
        match self.version.load(Ordering::Relaxed) {
            0 => Freshness::Never,
            version => Freshness::UntilChanged(version),
        }
    }
}

#[async_trait]
impl Plan for FakeDatabase {
    fn schema(&self) -> SchemaRef {
        self.planned.clone().unwrap_or_else(|| self.batches[0].schema())
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.estimated_rows
    }

    fn is_pipeline_breaking(&self) -> Option<bool> {
        Some(self.is_pipeline_breaking)
    }

    async fn explain(&self) -> Result<String, tidegate_core::Error> {
        Ok("fake".to_owned())
    }

    async fn run(self: Box<Self>, _job: &Arc<tidegate_runtime::Job>) -> Result<QueryRows, Error> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let schema = self.batches[0].schema();
        let items: Vec<Result<RecordBatch, Error>> =
            self.batches.into_iter().map(Ok).chain(self.failure.map(|failure| Err(failure()))).collect();
        let (delay, guard) = (self.delay, StopFlag(self.stopped));
        let batches = futures::stream::iter(items).then(move |item| {
            let _ = &guard;
            async move {
                if let Some(delay) = delay {
                    // Simulates a slow database.
                    tokio::time::sleep(delay).await;
                }
                item
            }
        });
        Ok(QueryRows { missing: self.missing, ..QueryRows::new(schema, batches.boxed()) })
    }
}

struct StopFlag(Arc<AtomicBool>);

impl Drop for StopFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a caller sees of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerRecord {
    /// The text blocks.
    pub(crate) blocks: Vec<String>,
    /// The structured content.
    pub(crate) structured: Option<String>,
    /// The lengths of the pieces of text.
    pub(crate) pieces: Vec<usize>,
    /// What was known of a body, and its bytes.
    pub(crate) head: Option<BodyMetadata>,
    pub(crate) body: Vec<u8>,
    pub(crate) progress: Vec<f64>,
    /// The same in words, with what it will be at the end.
    pub(crate) words: Vec<String>,
    pub(crate) metadata: AnswerMeta,
    pub(crate) failure: Option<Error>,
    /// Rows that the job counted.
    pub(crate) rows: u64,
    /// Secrets that were found.
    pub(crate) secrets: u64,
    /// The events about queries: database and rows.
    pub(crate) queries: Vec<(String, u64)>,
}

impl AnswerRecord {
    pub(crate) fn mode(&self) -> &str {
        if self.metadata.was_buffered.unwrap() { "batch" } else { "streaming" }
    }
}

/// How an answer is asked for.
#[derive(Debug, Clone)]
pub(crate) struct AnswerOptions {
    pub(crate) max_rows: Option<u64>,
    pub(crate) format: Option<Format>,
    pub(crate) extract: Option<String>,
    /// The columns of an output schema.
    pub(crate) structured: Option<SchemaRef>,
    pub(crate) mode: AnswerMode,
    pub(crate) budget: Budget,
    /// The form of a body.
    pub(crate) body: Option<Format>,
    pub(crate) guard: AnswerProtection,
}

impl Default for AnswerOptions {
    fn default() -> Self {
        Self {
            max_rows: None,
            format: None,
            extract: None,
            structured: None,
            mode: AnswerMode::Streaming,
            budget: Budget::default(),
            body: None,
            guard: AnswerProtection::default(),
        }
    }
}

#[derive(Default)]
struct QueryEvents(Mutex<Vec<(String, u64)>>);

impl Subscriber for QueryEvents {
    fn on_event(&self, event: Event<'_>) {
        if let Event::QueryEnded { database, rows, .. } = event {
            self.0.lock().push((database.to_owned(), rows));
        }
    }
}

/// Starts asking `fake`; the call runs on.
pub(crate) fn start_call(
    fake: &FakeDatabase,
    wishes: &AnswerOptions,
) -> (tidegate_runtime::Reply, impl Fn() -> Vec<(String, u64)> + use<>) {
    let query_events = Arc::new(QueryEvents::default());
    let events = EventDispatcher::new([query_events.clone() as Arc<dyn Subscriber>]);
    let executor = Executor::new(events.clone());
    let (database, answer_options) = (Arc::new(fake.clone()), wishes.clone());
    let handler = handler_fn(move |_call| {
        let answer_options = answer_options.clone();
        let question = QueryRequest {
            database: database.clone(),
            statement: Statement::parse("SELECT * FROM flights", SqlDialect::DataFusion).unwrap(),
            output: OutputOptions {
                rows_max: answer_options.max_rows,
                limit_hint: Some("Raise the limit."),
                format: answer_options.format,
                extract: answer_options.extract,
                mode: answer_options.mode,
                structured: answer_options.structured,
                overflow_hint: "Narrow the query.",
                overflow: OverflowPolicy::Discard,
                ..OutputOptions::default()
            },
        };
        std::future::ready(Ok(executor.answer(question)))
    });
    let limits = CallLimits { inline: Some(wishes.budget), ..CallLimits::default() };
    let snapshot: Snapshot = SnapshotBuilder::new()
        .tool(Tool::new("ask", "asks", handler).with_limits(limits))
        .protection(wishes.guard.clone())
        .build();
    let registry = Registry::new(snapshot, events);
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let mut call = Call::new(CallTarget::Tool("ask".to_owned()), Caller::new(Principal::process_user(), origin));
    call.format = wishes.body;
    call.wants_progress = true;
    (registry.call(call).unwrap(), move || query_events.0.lock().clone())
}

/// Asks `fake` and reads the whole answer.
pub(crate) async fn request_answer(fake: &FakeDatabase, wishes: &AnswerOptions) -> AnswerRecord {
    let (mut reply, queries) = start_call(fake, wishes);
    let job = reply.job().clone();
    let mut seen = AnswerRecord::default();
    let mut open = false;
    while let Some(part) = reply.next().await {
        match part {
            ReplyPart::Text(text) => {
                seen.pieces.push(text.len());
                if open {
                    seen.blocks.last_mut().unwrap().push_str(&text);
                } else {
                    seen.blocks.push(text);
                }
                open = true;
            }
            ReplyPart::Body(head) => assert!(seen.head.replace(head).is_none(), "it begins once"),
            ReplyPart::Bytes(bytes) => {
                assert!(seen.head.is_some() && bytes.len() <= 64 * 1024);
                seen.pieces.push(bytes.len());
                seen.body.extend_from_slice(&bytes);
            }
            ReplyPart::EndOfText => open = false,
            ReplyPart::Item(Content::Text { text, .. }) => {
                open = false;
                seen.blocks.push(text);
            }
            ReplyPart::Structured(json) => seen.structured = Some(json.get().to_owned()),
            ReplyPart::Notification(ReplyNotification::Progress { done, total, message }) => {
                seen.progress.push(done);
                seen.words.push(format!("{done} of {total:?}: {}", message.unwrap()));
            }
            ReplyPart::End(Ok(metadata)) => seen.metadata = metadata,
            ReplyPart::End(Err(error)) => seen.failure = Some(error),
            other => panic!("{other:?}"),
        }
    }
    seen.rows = job.usage().rows();
    seen.secrets = job.protection().secret_count();
    seen.queries = queries();
    seen
}
