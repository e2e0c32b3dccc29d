//! Pages put together are the whole.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::{Budget, CallTarget, Error, Principal};
use tidegate_query::{Catalog, ColumnEntry, Database, DatabaseKind, Plan, compute_query_id};
use tidegate_results::{ResultEnd, StoreLimits};
use tidegate_runtime::Call;
use tidegate_sql::{SqlDialect, Statement};

use super::{RunningCall, TestStore, ann, numbered_rows, read};
use crate::fake::FakeDatabase;
use crate::stored::{StoredAnswers, limits};

/// A database whose rows others change.
struct SwitchableDatabase(Mutex<FakeDatabase>);

#[async_trait]
impl Database for SwitchableDatabase {
    fn name(&self) -> &str {
        "demo"
    }

    fn kind(&self) -> DatabaseKind {
        DatabaseKind::Other("fake")
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::DataFusion
    }

    async fn catalog(&self, _principal: &Principal) -> Result<Arc<Catalog>, Error> {
        Ok(Arc::default())
    }

    async fn columns(&self, _table: &str, _principal: &Principal) -> Result<Vec<ColumnEntry>, Error> {
        Ok(Vec::new())
    }

    async fn plan(&self, _statement: &Statement, _principal: &Principal) -> Result<Box<dyn Plan>, Error> {
        Ok(Box::new(self.0.lock().clone()))
    }
}

/// Rows that count from `start_call`, in batches of these sizes.
fn table(start: i64, batches: &[usize], text_bytes: usize, delay: Duration) -> (FakeDatabase, i64) {
    let mut from = start;
    let batches = batches.iter().map(|rows| {
        let batch = numbered_rows(from..from + *rows as i64, text_bytes);
        from += *rows as i64;
        batch
    });
    let mut fake = FakeDatabase::new(batches.collect());
    fake.delay = Some(delay);
    (fake, from)
}

#[derive(Debug, Clone)]
struct Case {
    batches: Vec<usize>,
    text_bytes: usize,
    delay_ms: u64,
    block_kib: usize,
    budget: usize,
    limits: Vec<u64>,
    exported: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let rows = prop_oneof![Just(0_usize), 1..4_usize, 10..400_usize];
    let limit = prop_oneof![1..5_u64, 20..2000_u64];
    let texts = prop_oneof![Just(0_usize), Just(30), Just(700)];
    (
        (vec(rows, 1..8), texts, prop_oneof![Just(0_u64), 1..200_u64]),
        (prop_oneof![Just(64_usize), Just(1024)], 300..40_000_usize, vec(limit, 1..6), any::<bool>()),
    )
        .prop_map(|((batches, text_bytes, delay_ms), (block_kib, budget, limits, exported))| Case {
            batches,
            text_bytes,
            delay_ms,
            block_kib,
            // A row fits, whatever its text.
            budget: budget + 2 * text_bytes,
            limits,
            exported,
        })
}

async fn check(case: Case) {
    let store = StoreLimits { block_bytes: case.block_kib * 1024, ..limits() };
    let delay = Duration::from_millis(case.delay_ms);
    let (fake, rows) = table(0, &case.batches, case.text_bytes, delay);
    let database = Arc::new(SwitchableDatabase(Mutex::new(fake)));
    let budget = Budget { rows: None, bytes: Some(case.budget) };
    let scene = StoredAnswers::with_database(database.clone(), TempDir::new().unwrap(), store, budget).await;
    let ann = ann();
    let delivery = if case.exported { "blocks" } else { "inline" };
    let first = scene.call(&ann, json!({"delivery": delivery})).await;
    assert!(first.failure.is_none(), "{first:?}");
    // Others write: other rows, more of them, at another speed.
    *database.0.lock() = table(1_000_000, &[7, 7], case.text_bytes, Duration::ZERO).0;
    let (mut seen, mut cursor) = (Vec::new(), first.cursor().map(str::to_owned));
    if case.exported {
        let visible = first.lines[0].lines().count();
        let rows = first.metadata.rows.unwrap();
        assert!(visible > 0 && rows <= 10);
        seen.extend(0..i64::try_from(rows).unwrap());
    } else {
        seen.extend(first.numbers());
    }
    let mut limits = case.limits.iter().cycle();
    let mut pages = Vec::new();
    while let Some(at) = cursor {
        let limit = limits.next().unwrap();
        let page = scene.call(&ann, json!({"delivery": delivery, "cursor": at, "limit": limit})).await;
        assert!(page.failure.is_none(), "{page:?}");
        let numbers = page.numbers();
        assert!(numbers.len() as u64 <= *limit && (!numbers.is_empty() || page.cursor().is_none()), "{page:?}");
        pages.push((at, *limit, numbers.clone()));
        seen.extend(numbers);
        cursor = page.cursor().map(str::to_owned);
    }
    assert_eq!(seen, (0..rows).collect::<Vec<i64>>());
    // Each page is the same whenever it is asked for, now that everything is written, too.
    for (at, limit, numbers) in pages.into_iter().take(5) {
        let page = scene.call(&ann, json!({"delivery": delivery, "cursor": at, "limit": limit})).await;
        assert_eq!(page.numbers(), numbers);
    }
    let anew = scene.call(&ann, json!({"fresh": true})).await;
    assert!(anew.numbers().iter().all(|number| *number >= 1_000_000), "the question itself sees what was written");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(4)))]

    #[test]
    fn pages_concatenate_to_the_result(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(case));
    }
}

/// Readers that begin anywhere while it is written see all rows from there on, each in its own time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_follow_the_writer_from_any_row() {
    let spool = TestStore::new(super::small_limits()).await;
    let running = RunningCall::from_caller(&ann());
    let schema = numbered_rows(0..1, 60).schema();
    let writer = spool.begin(&running, &schema).await.unwrap();
    let result = writer.result().clone();
    let batches = futures::stream::iter(0..100_i64).then(|index| async move {
        tokio::task::yield_now().await;
        Ok(numbered_rows(index * 100..(index + 1) * 100, 60))
    });
    let readers: Vec<_> = [0, 1, 777, 5000, 9999, 10_000, 20_000]
        .into_iter()
        .map(|row| {
            let result = result.clone();
            tokio::spawn(async move { (row, read(&result, row).await.unwrap()) })
        })
        .collect();
    let end = writer.write_all(batches.boxed(), 0, &running.job).await.unwrap();
    assert_eq!((result.progress().rows(), end), (10_000, ResultEnd::Complete));
    for reader in readers {
        let (row, numbers) = reader.await.unwrap();
        assert_eq!(numbers, (row as i64..10_000).collect::<Vec<i64>>(), "from row {row}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        (-2_i32..2).prop_map(|half| Value::from(f64::from(half) / 2.0)),
        "[a-c{}\\[\\]\",:]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-c]{1,2}", inner), 0..4).prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    vec(("[a-d]{1,2}", values()), 0..5).prop_map(|members| members.into_iter().collect::<Value>())
}

/// What names the question of a call of `tool` with these arguments.
fn question(tool: &str, arguments: &Value) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), ann());
        call.arguments = arguments.as_object().unwrap().clone();
        compute_query_id(&RunningCall::from_call(call).job)
    })
}

/// The same value with the members of each object in the other order.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().rev().map(|(name, value)| (name.clone(), turned(value))).collect(),
        Value::Array(items) => items.iter().map(turned).collect(),
        plain => plain.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn query_id_ignores_argument_order(one in arguments(), other in arguments()) {
        prop_assert_eq!(question("ask", &one), question("ask", &turned(&one)));
        prop_assert_eq!(question("ask", &one) == question("ask", &other), one == other);
        prop_assert_ne!(question("ask", &one), question("tell", &one));
        let mut presented = one.clone();
        for (name, value) in [("cursor", json!("x")), ("limit", json!(3)), ("format", json!("csv"))] {
            presented[name] = value;
        }
        prop_assert_eq!(question("ask", &one), question("ask", &presented));
    }
}
