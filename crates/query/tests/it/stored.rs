//! Answers that go on: stored results, their pages, and exports.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tidegate_core::{
    AuthMethod, Budget, CallLimits, CallOrigin, CallTarget, Caller, ClientCapabilities, Content, Error, Grants,
    Principal, TransportKind,
};
use tidegate_query::{AnswerMode, Database, Executor, OutputOptions, OverflowPolicy, QueryRequest};
use tidegate_results::{ResultEnd, ResultId, ResultStore, StoreLimits};
use tidegate_runtime::{
    AnswerMeta, Call, Registry, Reply, ReplyNotification, ReplyPart, SnapshotBuilder, Tool, event::EventDispatcher,
    handler_fn,
};
use tidegate_sql::{SqlDialect, Statement};

use crate::fake::FakeDatabase;
use crate::result_store::numbered_rows;

/// A node in miniature: one tool `ask` over `fake`, which keeps what does not fit.
pub(crate) struct StoredAnswers {
    pub(crate) store: Arc<ResultStore>,
    registry: Arc<Registry>,
    pub(crate) folder: TempDir,
}

/// What a caller got.
#[derive(Debug)]
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    pub(crate) lines: Vec<String>,
    pub(crate) links: Vec<String>,
    pub(crate) metadata: AnswerMeta,
    pub(crate) failure: Option<Error>,
}

impl ToolAnswer {
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.metadata.cursor.as_deref()
    }

    /// The values of the column `n`.
    pub(crate) fn numbers(&self) -> Vec<i64> {
        let rows: Vec<Value> = serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"));
        rows.iter().map(|row| row["n"].as_i64().unwrap()).collect()
    }
}

pub(crate) fn caller_named(name: &str) -> Caller {
    let principal = Principal::new(name, AuthMethod::Key, Arc::new(Grants::everything()));
    Caller::new(Arc::new(principal), CallOrigin { transport: TransportKind::Rest, peer: None })
}

/// Somebody of a tenant.
pub(crate) fn caller_of_tenant(tenant: &str, name: &str) -> Caller {
    let somebody = caller_named(name);
    let principal = Principal { tenant: Some(tenant.to_owned()), ..(*somebody.principal).clone() };
    Caller::new(Arc::new(principal), somebody.origin)
}

impl StoredAnswers {
    pub(crate) async fn new(fake: FakeDatabase, limits: StoreLimits) -> Self {
        let folder = TempDir::new().unwrap();
        Self::within(folder, fake, limits).await
    }

    pub(crate) async fn within(folder: TempDir, fake: FakeDatabase, limits: StoreLimits) -> Self {
        Self::with_database(Arc::new(fake), folder, limits, Budget { rows: None, bytes: Some(400) }).await
    }

    pub(crate) async fn with_database(
        database: Arc<dyn Database>,
        folder: TempDir,
        limits: StoreLimits,
        inline: Budget,
    ) -> Self {
        let store = ResultStore::open(folder.path(), limits).await.unwrap();
        let executor = Executor::new(EventDispatcher::default()).with_store(Some(store.clone()));
        let handler = handler_fn(move |call| {
            let (executor, database) = (executor.clone(), database.clone());
            async move {
                let argument = |name: &str| call.arguments().get(name).cloned().unwrap_or_default();
                if let Some(cursor) = argument("cursor").as_str() {
                    let page = OutputOptions { rows_max: argument("limit").as_u64(), ..OutputOptions::default() };
                    return Ok(executor.answer_page(executor.resolve_cursor(cursor, &call)?, page));
                }
                let question = QueryRequest {
                    database,
                    statement: Statement::parse("SELECT * FROM flights", SqlDialect::DataFusion).unwrap(),
                    output: OutputOptions {
                        rows_max: argument("max_rows").as_u64(),
                        limit_hint: Some("Raise the limit."),
                        mode: AnswerMode::Streaming,
                        overflow: OverflowPolicy::Store { linked: true, cached: argument("no_cache") != true },
                        ..OutputOptions::default()
                    },
                };
                let is_export = argument("delivery") == "blocks";
                Ok(if is_export { executor.export(question) } else { executor.answer(question) })
            }
        });
        let limits = CallLimits { inline: Some(inline), ..CallLimits::default() };
        let tool = Tool::new("ask", "asks", handler).with_limits(limits);
        let tool = tool.with_input_schema(json!({"type": "object"})).unwrap();
        let snapshot = SnapshotBuilder::new().tool(tool).build();
        Self { store, registry: Registry::new(snapshot, EventDispatcher::default()), folder }
    }

    pub(crate) fn begin(&self, caller: &Caller, arguments: Value) -> Reply {
        let mut call = Call::new(CallTarget::Tool("ask".to_owned()), caller.clone());
        call.arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
        self.registry.call(call).unwrap()
    }

    pub(crate) async fn call(&self, caller: &Caller, arguments: Value) -> ToolAnswer {
        Self::read(self.begin(caller, arguments)).await
    }

    async fn read(mut reply: Reply) -> ToolAnswer {
        let (mut text, mut lines, mut links) = (String::new(), Vec::new(), Vec::new());
        while let Some(part) = reply.next().await {
            match part {
                ReplyPart::Text(piece) => text.push_str(&piece),
                ReplyPart::Item(Content::Text { text, .. }) => lines.push(text),
                ReplyPart::Item(Content::Link(link)) => links.push(link.uri),
                ReplyPart::End(end) => {
                    let failure = end.as_ref().err().cloned();
                    return ToolAnswer { text, lines, links, metadata: end.unwrap_or_default(), failure };
                }
                _ => {}
            }
        }
        panic!("an answer has an end")
    }

    /// Calls that run, in the background too.
    pub(crate) fn open_calls(&self) -> usize {
        self.registry.jobs().open_count()
    }

    /// Waits until the result of the last answer has ended, and gives its rows and how it ended.
    pub(crate) async fn stored(&self, caller: &Caller, id: ResultId) -> (Vec<i64>, Option<ResultEnd>) {
        let result = self.store.get(id, caller).unwrap();
        let rows: Vec<i64> = result
            .rows_from(0)
            .flat_map(|batch| {
                let batch = batch.unwrap();
                let column = batch.column(0).as_any().downcast_ref::<arrow::array::Int64Array>().unwrap().clone();
                futures::stream::iter(column.values().to_vec())
            })
            .collect()
            .await;
        (rows, result.progress().end)
    }
}

pub(crate) fn id_of(uri: &str) -> ResultId {
    uri.rsplit('/').next().unwrap().parse().unwrap()
}

/// Limits without a floor on the disk.
pub(crate) fn limits() -> StoreLimits {
    StoreLimits { free_bytes: 0, ..StoreLimits::default() }
}

#[tokio::test]
async fn stores_overflow_and_pages_through_it() {
    let scene = StoredAnswers::new(FakeDatabase::counting(20, 50), limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({})).await;
    let id = id_of(&first.links[0]);
    let message = first.lines[0].replace(first.cursor().unwrap(), "CURSOR").replace(&id.to_string(), "ID");
    insta::assert_snapshot!(message, @r#"Showing the first 45 rows, as many as fit into 400 bytes; more exist. To continue, repeat the call with "cursor": "CURSOR". The rows are stored at tidegate://results/ID."#);
    let (rows, end) = scene.stored(&ann, id).await;
    assert_eq!((rows, end), ((0..1000).collect(), Some(ResultEnd::Complete)));
    let mut seen = first.numbers();
    let mut cursor = first.cursor().map(str::to_owned);
    while let Some(at) = cursor {
        let page = scene.call(&ann, json!({"cursor": at, "limit": 170})).await;
        assert!(page.failure.is_none(), "{page:?}");
        seen.extend(page.numbers());
        cursor = page.cursor().map(str::to_owned);
    }
    assert_eq!(seen, (0..1000).collect::<Vec<i64>>());
}

#[tokio::test]
async fn last_page_reports_row_limit() {
    let scene = StoredAnswers::new(FakeDatabase::counting(20, 50), limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({"max_rows": 70})).await;
    let last = scene.call(&ann, json!({"cursor": first.cursor().unwrap()})).await;
    assert_eq!([first.numbers(), last.numbers()].concat(), (0..70).collect::<Vec<i64>>());
    assert_eq!((last.metadata.is_truncated, last.cursor()), (Some(true), None));
    insta::assert_snapshot!(last.lines[0], @r#"These are the last of the 70 requested rows (limit, max_rows); more may exist. Raise the limit, or use delivery: "blocks" to store all rows."#);
}

#[tokio::test]
async fn states_how_many_rows_are_stored() {
    let scene = StoredAnswers::new(FakeDatabase::counting(20, 50), limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({"max_rows": 70})).await;
    let page = scene.call(&ann, json!({"cursor": first.cursor().unwrap(), "limit": 5})).await;
    let mut call = Call::new(CallTarget::Tool("ask".to_owned()), ann);
    call.arguments = json!({"max_rows": 30, "delivery": "blocks"}).as_object().unwrap().clone();
    call.client_capabilities = ClientCapabilities { tasks: true, ..ClientCapabilities::default() };
    let export = StoredAnswers::read(scene.registry.call(call).unwrap()).await;
    let mut notes = Vec::new();
    for (answer, linked) in [(&first, &first), (&page, &first), (&export, &export)] {
        let id = id_of(&linked.links[0]).to_string();
        notes.push(answer.lines.last().unwrap().replace(answer.cursor().unwrap(), "CURSOR").replace(&id, "ID"));
    }
    insta::assert_snapshot!(notes.join("\n"), @r#"
    Showing the first 45 rows, as many as fit into 400 bytes; more exist. To continue, repeat the call with "cursor": "CURSOR". At most the first 70 rows (limit, max_rows) are stored at tidegate://results/ID; raise the limit to store more.
    Showing rows 46 to 50; more exist. To continue, repeat the call with "cursor": "CURSOR". At most the first 70 rows (limit, max_rows) are stored; raise the limit to store more.
    Showing the first 10 rows, and a summary of the columns over the first 30. Stored: 30 rows so far, as many as requested (limit, max_rows); more may exist. The stored rows: tidegate://results/ID, over HTTP /results/ID/data. Page by page: repeat the call with "cursor": "CURSOR".
    "#);
}

#[tokio::test]
async fn cursor_is_bound_to_principal_and_query() {
    let scene = StoredAnswers::new(FakeDatabase::counting(20, 50), limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({"where": "a"})).await;
    let cursor = first.cursor().unwrap();
    let mut table = String::new();
    let mut forged = cursor.to_owned().into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for (subject, caller, arguments) in [
        ("somebody else", caller_named("bob"), json!({"where": "a", "cursor": cursor})),
        ("another question", ann.clone(), json!({"where": "b", "cursor": cursor})),
        ("forged", ann.clone(), json!({"where": "a", "cursor": forged})),
        ("none", ann.clone(), json!({"where": "a", "cursor": "x"})),
        ("right", ann.clone(), json!({"where": "a", "cursor": cursor, "limit": 1})),
    ] {
        let got = scene.call(&caller, arguments).await;
        let text = got.failure.map_or_else(|| got.text, |error| format!("{}: {error}", error.kind().name()));
        table.push_str(&format!("{subject}: {text}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    somebody else: invalid_arguments: the cursor is unknown or was changed
    Pass the cursor of an earlier answer unchanged, with the arguments of that call.
    another question: invalid_arguments: the cursor belongs to a call with other arguments
    Repeat the arguments of that call; only cursor, delivery, format, limit, max_rows, mode, no_cache and save_as may differ.
    forged: invalid_arguments: the cursor is unknown or was changed
    Pass the cursor of an earlier answer unchanged, with the arguments of that call.
    none: invalid_arguments: the cursor is unknown or was changed
    Pass the cursor of an earlier answer unchanged, with the arguments of that call.
    right: [{"n":45}]
    "#);
}

#[tokio::test(start_paused = true)]
async fn export_reports_progress_until_preview() {
    let fake = FakeDatabase { delay: Some(Duration::from_millis(1_500)), ..FakeDatabase::counting(3, 10) };
    let node = StoredAnswers::new(fake, StoreLimits::default()).await;
    let mut call = Call::new(CallTarget::Tool("ask".to_owned()), caller_named("ann"));
    call.arguments = json!({"delivery": "blocks"}).as_object().unwrap().clone();
    call.wants_progress = true;
    let mut reply = node.registry.call(call).unwrap();
    let mut words = Vec::new();
    loop {
        match reply.next().await.unwrap() {
            ReplyPart::Notification(ReplyNotification::Progress { done, message, .. }) => {
                words.push(format!("{done}: {}", message.unwrap()));
            }
            ReplyPart::End(end) => {
                assert!(end.is_ok(), "{end:?}");
                break;
            }
            _ => {}
        }
    }
    insta::assert_snapshot!(words.join("\n"), @"
    0: the query runs
    0.000001: the query runs, 1 s so far
    ");
}

#[tokio::test]
async fn an_export_answers_with_a_preview_and_goes_on() {
    let mut fake = FakeDatabase::counting(40, 50);
    fake.delay = Some(Duration::from_millis(5));
    let scene = StoredAnswers::new(fake, limits()).await;
    let ann = caller_named("ann");
    let got = scene.call(&ann, json!({"delivery": "blocks"})).await;
    assert!(got.failure.is_none(), "{got:?}");
    assert_eq!(got.links.len(), 1);
    let (rows, end) = scene.stored(&ann, id_of(&got.links[0])).await;
    assert_eq!((rows, end), ((0..2000).collect(), Some(ResultEnd::Complete)));
    let page = scene.call(&ann, json!({"cursor": got.cursor().unwrap(), "limit": 3})).await;
    assert_eq!(page.numbers(), [10, 11, 12]);
}

#[tokio::test]
async fn failed_result_is_marked_incomplete() {
    let mut fake = FakeDatabase::counting(20, 50);
    fake.failure = Some(|| Error::new(tidegate_core::ErrorKind::Unavailable, "the database went away"));
    let scene = StoredAnswers::new(fake, limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({})).await;
    let (rows, end) = scene.stored(&ann, id_of(&first.links[0])).await;
    assert_eq!(rows, (0..1000).collect::<Vec<i64>>());
    assert_eq!(end, Some(ResultEnd::Incomplete("the database went away".to_owned())));
    let last = scene.call(&ann, json!({"cursor": first.cursor().unwrap(), "limit": 100_000})).await;
    assert_eq!(last.cursor().is_some(), last.numbers().last() != Some(&999));
}

#[tokio::test]
async fn restart_recovers_results_for_owner_only() {
    let scene = StoredAnswers::new(FakeDatabase::counting(20, 50), limits()).await;
    let (ann, bob) = (caller_named("ann"), caller_named("bob"));
    let first = scene.call(&ann, json!({})).await;
    let id = id_of(&first.links[0]);
    scene.stored(&ann, id).await;
    let StoredAnswers { store, registry, folder } = scene;
    registry.drain(Duration::from_secs(5)).await;
    drop((store, registry));
    let scene = StoredAnswers::within(folder, FakeDatabase::counting(1, 1), limits()).await;
    assert_eq!(scene.stored(&ann, id).await, ((0..1000).collect(), Some(ResultEnd::Complete)));
    let page = scene.call(&ann, json!({"cursor": first.cursor().unwrap(), "limit": 1})).await;
    assert_eq!(page.numbers().len(), 1, "a cursor outlives a restart");
    let text = |error: Error| error.to_string();
    let strange = scene.store.get(id, &bob).map(|_| ()).map_err(text).unwrap_err();
    let absent: ResultId = "00000000-0000-4000-8000-000000000000".parse().unwrap();
    let absent = scene.store.get(absent, &bob).map(|_| ()).map_err(text).unwrap_err();
    assert_eq!(strange.replace(&id.to_string(), "ID"), absent.replace("00000000-0000-4000-8000-000000000000", "ID"));
}

/// Asks until the job of the first answer has ended, so that what it stores is remembered.
async fn settled(scene: &StoredAnswers) {
    while scene.open_calls() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn replays_cached_answer_without_query() {
    let fake = FakeDatabase::counting(20, 50);
    let (version, runs) = (fake.version.clone(), fake.runs.clone());
    version.store(1, Ordering::Relaxed);
    let scene = StoredAnswers::new(fake, limits()).await;
    let (ann, bob) = (caller_named("ann"), caller_named("bob"));
    let is_cached = |got: &ToolAnswer| got.metadata.is_cached;
    let first = scene.call(&ann, json!({})).await;
    settled(&scene).await;
    assert!(!is_cached(&first));
    let tool_answer = scene.call(&ann, json!({})).await;
    assert!(is_cached(&tool_answer) && runs.load(Ordering::Relaxed) == 1);
    assert_eq!(tool_answer.text, first.text);
    assert_eq!(tool_answer.links, first.links, "it goes on in the same result");
    let page = scene.call(&ann, json!({"cursor": tool_answer.cursor().unwrap(), "limit": 1})).await;
    assert_eq!(page.numbers(), [first.numbers().len() as i64]);

    // Callers with other rights, a larger limit or `no_cache` get no earlier answer; nor does any caller once the data has
    // changed.
    for (caller, arguments) in [(&bob, json!({})), (&ann, json!({"max_rows": 2000})), (&ann, json!({"no_cache": true}))]
    {
        let got = scene.call(caller, arguments.clone()).await;
        assert!(!is_cached(&got), "{arguments}");
        settled(&scene).await;
    }
    version.store(2, Ordering::Relaxed);
    assert!(!is_cached(&scene.call(&ann, json!({})).await));
    settled(&scene).await;
    version.store(0, Ordering::Relaxed);
    scene.call(&ann, json!({})).await;
    settled(&scene).await;
    assert!(!is_cached(&scene.call(&ann, json!({})).await));
}

#[tokio::test]
async fn does_not_cache_answer_at_row_limit() {
    let fake = FakeDatabase::counting(20, 50);
    fake.version.store(1, Ordering::Relaxed);
    let runs = fake.runs.clone();
    let scene = StoredAnswers::new(fake, limits()).await;
    let ann = caller_named("ann");
    for _ in 0..2 {
        scene.call(&ann, json!({"max_rows": 900, "delivery": "blocks"})).await;
        settled(&scene).await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    for _ in 0..2 {
        scene.call(&ann, json!({"delivery": "blocks"})).await;
        settled(&scene).await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn does_not_cache_answer_without_rows_in_budget() {
    let mut fake = FakeDatabase::new(vec![numbered_rows(0..1, 1000), numbered_rows(1..3, 1000)]);
    fake.version.store(1, Ordering::Relaxed);
    // As long as makes an answer worth keeping.
    fake.delay = Some(Duration::from_millis(25));
    let runs = fake.runs.clone();
    let scene = StoredAnswers::new(fake, limits()).await;
    for run in 1..3 {
        let got = scene.call(&caller_named("ann"), json!({})).await;
        assert!(got.lines[0].starts_with("Showing no rows: the first has"), "{got:?}");
        settled(&scene).await;
        assert_eq!((runs.load(Ordering::Relaxed), scene.store.len()), (run, 0));
    }
}

#[tokio::test]
async fn reruns_query_when_cached_result_is_damaged() {
    let fake = FakeDatabase::counting(20, 50);
    fake.version.store(1, Ordering::Relaxed);
    let runs = fake.runs.clone();
    let scene = StoredAnswers::new(fake, limits()).await;
    let ann = caller_named("ann");
    let first = scene.call(&ann, json!({})).await;
    settled(&scene).await;
    let folder = scene.folder.path().join("0").join(id_of(&first.links[0]).to_string());
    std::fs::write(folder.join("0.arrow"), "not what it was").unwrap();
    let error = scene.call(&ann, json!({})).await.failure.unwrap();
    assert!(error.message().contains("is damaged") && error.hint() == Some("Repeat the query."));
    assert_eq!(scene.call(&ann, json!({})).await.text, first.text);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}
