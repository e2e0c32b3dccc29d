//! Answers that go on: stored results, their pages, and exports.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tidegate_core::event::Events;
use tidegate_core::{
    Budget, Call, CallLimits, Caller, Chunk, Content, Error, Grants, Metadata, Notice, Origin, Outcome, Principal,
    Proof, Registry, Reply, ReplyEvent, SnapshotBuilder, Target, Tool, TransportKind, handler_fn,
};
use tidegate_query::{
    Database, End, Executor, Format, Mode, Page, Question, Rest, ResultId, ResultStore, SqlDialect, Statement,
    StoreLimits,
};

use crate::fake::Fake;
use crate::spool::counted;

/// A node in miniature: one tool `ask` over `fake`, which keeps what does not fit.
pub(crate) struct Scene {
    pub(crate) store: Arc<ResultStore>,
    registry: Arc<Registry>,
    pub(crate) folder: TempDir,
}

/// What a caller got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) text: String,
    pub(crate) lines: Vec<String>,
    pub(crate) links: Vec<String>,
    pub(crate) metadata: Metadata,
    pub(crate) failure: Option<Error>,
}

impl Got {
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.metadata.get("dev.tidegate/cursor").and_then(Value::as_str)
    }

    /// The values of the column `n`.
    pub(crate) fn numbers(&self) -> Vec<i64> {
        let rows: Vec<Value> = serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"));
        rows.iter().map(|row| row["n"].as_i64().unwrap()).collect()
    }
}

pub(crate) fn somebody(name: &str) -> Caller {
    let principal = Principal::new(name, Proof::Key, Arc::new(Grants::everything()));
    Caller::new(Arc::new(principal), Origin { transport: TransportKind::Rest, peer: None })
}

/// Somebody of a tenant.
pub(crate) fn somebody_of(tenant: &str, name: &str) -> Caller {
    let somebody = somebody(name);
    let principal = Principal { tenant: Some(tenant.to_owned()), ..(*somebody.principal).clone() };
    Caller::new(Arc::new(principal), somebody.origin)
}

impl Scene {
    pub(crate) async fn of(fake: Fake, limits: StoreLimits) -> Self {
        let folder = TempDir::new().unwrap();
        Self::within(folder, fake, limits).await
    }

    pub(crate) async fn within(folder: TempDir, fake: Fake, limits: StoreLimits) -> Self {
        Self::over(Arc::new(fake), folder, limits, Budget { rows: None, bytes: Some(400) }).await
    }

    pub(crate) async fn over(
        database: Arc<dyn Database>,
        folder: TempDir,
        limits: StoreLimits,
        inline: Budget,
    ) -> Self {
        let store = ResultStore::open(folder.path(), limits).await.unwrap();
        let executor = Executor::new(Events::default()).with_store(Some(store.clone()));
        let handler = handler_fn(move |job, reply| {
            let (executor, database) = (executor.clone(), database.clone());
            async move {
                let argument = |name: &str| job.arguments().get(name).cloned().unwrap_or_default();
                if let Some(cursor) = argument("cursor").as_str() {
                    let page = Page {
                        format: Format::Mcp,
                        is_list: false,
                        rows_max: argument("limit").as_u64(),
                        is_structured: false,
                    };
                    let (result, row) = executor.place(cursor, &job)?;
                    return executor.page((&result, row), page, &job, &reply).await;
                }
                let question = Question {
                    database,
                    statement: Statement::parse("SELECT * FROM flights", SqlDialect::DataFusion).unwrap(),
                    max_rows: argument("max_rows").as_u64(),
                    format: Format::Mcp,
                    extract: None,
                    mode: Mode::Streaming,
                    structured: None,
                    more: None,
                    rest: Rest::Kept { linked: true, cached: argument("no_cache") != true },
                };
                if argument("delivery") == "blocks" {
                    executor.export(question, &job, &reply).await
                } else {
                    executor.answer(question, &job, &reply).await
                }
            }
        });
        let limits = CallLimits { inline: Some(inline), ..CallLimits::default() };
        let tool = Tool::new("ask", "asks", handler).with_limits(limits);
        let tool = tool.with_input_schema(json!({"type": "object"})).unwrap();
        let snapshot = SnapshotBuilder::new().tool(tool).build();
        Self { store, registry: Registry::new(snapshot, Events::default()), folder }
    }

    pub(crate) fn begin(&self, who: &Caller, arguments: Value) -> Reply {
        let mut call = Call::new(Target::Tool("ask".to_owned()), who.clone());
        call.arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
        self.registry.call(call).unwrap()
    }

    pub(crate) async fn ask(&self, who: &Caller, arguments: Value) -> Got {
        let mut reply = self.begin(who, arguments);
        let (mut text, mut lines, mut links) = (String::new(), Vec::new(), Vec::new());
        while let Some(event) = reply.next().await {
            match event {
                ReplyEvent::Chunk(Chunk::Text(piece)) => text.push_str(&piece),
                ReplyEvent::Chunk(Chunk::Block(Content::Text { text, .. })) => lines.push(text),
                ReplyEvent::Chunk(Chunk::Block(Content::Link(link))) => links.push(link.uri),
                ReplyEvent::Chunk(_) => {}
                ReplyEvent::End(Outcome::Done(metadata)) => return Got { text, lines, links, metadata, failure: None },
                ReplyEvent::End(Outcome::Failed(error)) => {
                    return Got { text, lines, links, metadata: Metadata::new(), failure: Some(error) };
                }
            }
        }
        panic!("an answer has an end")
    }

    /// Calls that run, in the background too.
    pub(crate) fn open_calls(&self) -> usize {
        self.registry.jobs().open_count()
    }

    /// Waits until the result of the last answer has ended, and gives its rows and how it ended.
    pub(crate) async fn stored(&self, who: &Caller, id: ResultId) -> (Vec<i64>, Option<End>) {
        let result = self.store.get(id, who).unwrap();
        let rows: Vec<i64> = result
            .rows_from(0)
            .flat_map(|batch| {
                let batch = batch.unwrap();
                let column = batch.column(0).as_any().downcast_ref::<arrow::array::Int64Array>().unwrap().clone();
                futures::stream::iter(column.values().to_vec())
            })
            .collect()
            .await;
        (rows, result.stage().end)
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
async fn what_does_not_fit_is_kept_whole_and_paged_through() {
    let scene = Scene::of(Fake::counting(20, 50), limits()).await;
    let ann = somebody("ann");
    let first = scene.ask(&ann, json!({})).await;
    let id = id_of(&first.links[0]);
    let told = first.lines[0].replace(first.cursor().unwrap(), "CURSOR").replace(&id.to_string(), "ID");
    insta::assert_snapshot!(told, @r#"Shown: the first 45 rows, as many as fit into 400 characters; more exist. For the next ones make the same call with "cursor": "CURSOR". What was asked for is kept at tidegate://results/ID."#);
    let (rows, end) = scene.stored(&ann, id).await;
    assert_eq!((rows, end), ((0..1000).collect(), Some(End::Complete)));
    let mut seen = first.numbers();
    let mut cursor = first.cursor().map(str::to_owned);
    while let Some(at) = cursor {
        let page = scene.ask(&ann, json!({"cursor": at, "limit": 170})).await;
        assert!(page.failure.is_none(), "{page:?}");
        seen.extend(page.numbers());
        cursor = page.cursor().map(str::to_owned);
    }
    assert_eq!(seen, (0..1000).collect::<Vec<i64>>());
}

#[tokio::test]
async fn the_last_page_of_what_was_asked_for_says_that_there_may_be_more() {
    let scene = Scene::of(Fake::counting(20, 50), limits()).await;
    let ann = somebody("ann");
    let first = scene.ask(&ann, json!({"max_rows": 70})).await;
    let last = scene.ask(&ann, json!({"cursor": first.cursor().unwrap()})).await;
    assert_eq!([first.numbers(), last.numbers()].concat(), (0..70).collect::<Vec<i64>>());
    assert_eq!((&last.metadata["dev.tidegate/truncated"], last.cursor()), (&json!(true), None));
    insta::assert_snapshot!(last.lines[0], @r#"These are the last of the 70 rows that were asked for (limit, max_rows); more may exist. Ask again for more of them, or with delivery: "blocks" for all."#);
}

#[tokio::test]
async fn a_cursor_is_good_for_its_principal_and_its_question_alone() {
    let scene = Scene::of(Fake::counting(20, 50), limits()).await;
    let ann = somebody("ann");
    let first = scene.ask(&ann, json!({"where": "a"})).await;
    let cursor = first.cursor().unwrap();
    let mut table = String::new();
    let mut forged = cursor.to_owned().into_bytes();
    forged[30] = if forged[30] == b'A' { b'B' } else { b'A' };
    let forged = String::from_utf8(forged).unwrap();
    for (what, who, arguments) in [
        ("somebody else", somebody("bob"), json!({"where": "a", "cursor": cursor})),
        ("another question", ann.clone(), json!({"where": "b", "cursor": cursor})),
        ("forged", ann.clone(), json!({"where": "a", "cursor": forged})),
        ("none", ann.clone(), json!({"where": "a", "cursor": "x"})),
        ("right", ann.clone(), json!({"where": "a", "cursor": cursor, "limit": 1})),
    ] {
        let got = scene.ask(&who, arguments).await;
        let said = got.failure.map_or_else(|| got.text, |error| format!("{}: {error}", error.kind().name()));
        table.push_str(&format!("{what}: {said}\n"));
    }
    insta::assert_snapshot!(table, @r#"
    somebody else: invalid_arguments: the cursor is none that you were given
    Use a cursor unchanged, with the arguments of the answer that it stood in.
    another question: invalid_arguments: the cursor belongs to a question with other arguments
    Repeat the arguments of that question and change nothing but cursor, limit and format.
    forged: invalid_arguments: the cursor is none that you were given
    Use a cursor unchanged, with the arguments of the answer that it stood in.
    none: invalid_arguments: the cursor is none that you were given
    Use a cursor unchanged, with the arguments of the answer that it stood in.
    right: [{"n":45}]
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_export_tells_how_far_it_is_until_its_preview_is_there() {
    let fake = Fake { delay: Some(Duration::from_millis(1_500)), ..Fake::counting(3, 10) };
    let node = Scene::of(fake, StoreLimits::default()).await;
    let mut call = Call::new(Target::Tool("ask".to_owned()), somebody("ann"));
    call.arguments = json!({"delivery": "blocks"}).as_object().unwrap().clone();
    call.wants_progress = true;
    let mut reply = node.registry.call(call).unwrap();
    let mut words = Vec::new();
    loop {
        match reply.next().await.unwrap() {
            ReplyEvent::Chunk(Chunk::Notice(Notice::Progress { done, message, .. })) => {
                words.push(format!("{done}: {}", message.unwrap()));
            }
            ReplyEvent::Chunk(_) => {}
            ReplyEvent::End(outcome) => {
                assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
                break;
            }
        }
    }
    insta::assert_snapshot!(words.join("\n"), @"
    0: the query runs
    0.000001: the query runs, 1 s so far
    ");
}

#[tokio::test]
async fn an_export_answers_with_a_preview_and_goes_on() {
    let mut fake = Fake::counting(40, 50);
    fake.delay = Some(Duration::from_millis(5));
    let scene = Scene::of(fake, limits()).await;
    let ann = somebody("ann");
    let got = scene.ask(&ann, json!({"delivery": "blocks"})).await;
    assert!(got.failure.is_none(), "{got:?}");
    assert_eq!(got.links.len(), 1);
    let (rows, end) = scene.stored(&ann, id_of(&got.links[0])).await;
    assert_eq!((rows, end), ((0..2000).collect(), Some(End::Complete)));
    let page = scene.ask(&ann, json!({"cursor": got.cursor().unwrap(), "limit": 3})).await;
    assert_eq!(page.numbers(), [10, 11, 12]);
}

#[tokio::test]
async fn what_fails_in_the_middle_is_never_taken_for_the_whole() {
    let mut fake = Fake::counting(20, 50);
    fake.failure = Some(|| Error::new(tidegate_core::ErrorKind::Unavailable, "the database went away"));
    let scene = Scene::of(fake, limits()).await;
    let ann = somebody("ann");
    let first = scene.ask(&ann, json!({})).await;
    let (rows, end) = scene.stored(&ann, id_of(&first.links[0])).await;
    assert_eq!(rows, (0..1000).collect::<Vec<i64>>());
    assert_eq!(end, Some(End::Incomplete("the database went away".to_owned())));
    let last = scene.ask(&ann, json!({"cursor": first.cursor().unwrap(), "limit": 100_000})).await;
    assert_eq!(last.cursor().is_some(), last.numbers().last() != Some(&999));
}

#[tokio::test]
async fn a_restart_finds_what_was_there_and_strangers_find_nothing() {
    let scene = Scene::of(Fake::counting(20, 50), limits()).await;
    let (ann, bob) = (somebody("ann"), somebody("bob"));
    let first = scene.ask(&ann, json!({})).await;
    let id = id_of(&first.links[0]);
    scene.stored(&ann, id).await;
    let Scene { store, registry, folder } = scene;
    registry.drain(Duration::from_secs(5)).await;
    drop((store, registry));
    let scene = Scene::within(folder, Fake::counting(1, 1), limits()).await;
    assert_eq!(scene.stored(&ann, id).await, ((0..1000).collect(), Some(End::Complete)));
    let page = scene.ask(&ann, json!({"cursor": first.cursor().unwrap(), "limit": 1})).await;
    assert_eq!(page.numbers().len(), 1, "a cursor outlives a restart");
    let said = |error: Error| error.to_string();
    let strange = scene.store.get(id, &bob).map(|_| ()).map_err(said).unwrap_err();
    let absent: ResultId = "00000000-0000-4000-8000-000000000000".parse().unwrap();
    let absent = scene.store.get(absent, &bob).map(|_| ()).map_err(said).unwrap_err();
    assert_eq!(strange.replace(&id.to_string(), "ID"), absent.replace("00000000-0000-4000-8000-000000000000", "ID"));
}

/// Asks until the job of the first answer has ended, so that what it stores is remembered.
async fn settled(scene: &Scene) {
    while scene.open_calls() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_same_question_over_the_same_data_is_answered_again_without_asking() {
    let fake = Fake::counting(20, 50);
    let (version, runs) = (fake.version.clone(), fake.runs.clone());
    version.store(1, Ordering::Relaxed);
    let scene = Scene::of(fake, limits()).await;
    let (ann, bob) = (somebody("ann"), somebody("bob"));
    let is_cached = |got: &Got| got.metadata.get("dev.tidegate/cached") == Some(&json!(true));
    let first = scene.ask(&ann, json!({})).await;
    settled(&scene).await;
    assert!(!is_cached(&first));
    let again = scene.ask(&ann, json!({})).await;
    assert!(is_cached(&again) && runs.load(Ordering::Relaxed) == 1);
    assert_eq!(again.text, first.text);
    assert_eq!(again.links, first.links, "it goes on in the same result");
    let page = scene.ask(&ann, json!({"cursor": again.cursor().unwrap(), "limit": 1})).await;
    assert_eq!(page.numbers(), [first.numbers().len() as i64]);

    // Whoever has other rights, asks for more or wants it anew is given no earlier answer; nor is anybody once the data
    // is other.
    for (who, arguments) in [(&bob, json!({})), (&ann, json!({"max_rows": 2000})), (&ann, json!({"no_cache": true}))] {
        let got = scene.ask(who, arguments.clone()).await;
        assert!(!is_cached(&got), "{arguments}");
        settled(&scene).await;
    }
    version.store(2, Ordering::Relaxed);
    assert!(!is_cached(&scene.ask(&ann, json!({})).await));
    settled(&scene).await;
    version.store(0, Ordering::Relaxed);
    scene.ask(&ann, json!({})).await;
    settled(&scene).await;
    assert!(!is_cached(&scene.ask(&ann, json!({})).await));
}

#[tokio::test]
async fn an_answer_at_its_bound_may_not_be_all_and_is_not_given_again() {
    let fake = Fake::counting(20, 50);
    fake.version.store(1, Ordering::Relaxed);
    let runs = fake.runs.clone();
    let scene = Scene::of(fake, limits()).await;
    let ann = somebody("ann");
    for _ in 0..2 {
        scene.ask(&ann, json!({"max_rows": 900, "delivery": "blocks"})).await;
        settled(&scene).await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    for _ in 0..2 {
        scene.ask(&ann, json!({"delivery": "blocks"})).await;
        settled(&scene).await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn an_answer_whose_first_row_does_not_fit_is_not_taken_for_all_rows() {
    let mut fake = Fake::of(vec![counted(0..1, 1000), counted(1..3, 1000)]);
    fake.version.store(1, Ordering::Relaxed);
    // As long as makes an answer worth keeping.
    fake.delay = Some(Duration::from_millis(25));
    let runs = fake.runs.clone();
    let scene = Scene::of(fake, limits()).await;
    for run in 1..3 {
        let got = scene.ask(&somebody("ann"), json!({})).await;
        assert!(got.lines[0].starts_with("Shown: no rows; the first alone takes"), "{got:?}");
        settled(&scene).await;
        assert_eq!((runs.load(Ordering::Relaxed), scene.store.len()), (run, 0));
    }
}

#[tokio::test]
async fn a_damaged_answer_is_asked_for_again() {
    let fake = Fake::counting(20, 50);
    fake.version.store(1, Ordering::Relaxed);
    let runs = fake.runs.clone();
    let scene = Scene::of(fake, limits()).await;
    let ann = somebody("ann");
    let first = scene.ask(&ann, json!({})).await;
    settled(&scene).await;
    let folder = scene.folder.path().join("0").join(id_of(&first.links[0]).to_string());
    std::fs::write(folder.join("0.arrow"), "not what it was").unwrap();
    let error = scene.ask(&ann, json!({})).await.failure.unwrap();
    assert!(error.message().contains("is damaged") && error.hint() == Some("Ask the question again."));
    assert_eq!(scene.ask(&ann, json!({})).await.text, first.text);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}
