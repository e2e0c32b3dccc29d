//! What row policies cost: questions over a million rows through a policy, beside the same with the condition written
//! by hand; and the setting up of twenty views. `cargo run --release -p tidegate-sqlite --example row_policies`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement for people")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use tidegate_core::{AuthMethod, CallOrigin, CallTarget, Caller, Grants, Principal, TransportKind};
use tidegate_query::{Database, HashKey, RowCondition, RowPolicies, RowPolicy};
use tidegate_runtime::{Answer, Call, Job, Registry, SnapshotBuilder, Tool, event::EventDispatcher, handler_fn};
use tidegate_sql::{SqlDialect, Statement};
use tidegate_sqlite::{SqliteDatabase, SqliteOptions};

const QUERIES: &[(&str, &str)] = &[
    ("SELECT id, email, amount FROM orders WHERE tenant = 'a'", "SELECT id, email, amount FROM orders"),
    ("SELECT count(*) FROM orders WHERE tenant = 'a'", "SELECT count(*) FROM orders"),
    (
        "SELECT count(*), sum(amount) FROM orders WHERE tenant = 'a' AND amount > 9",
        "SELECT count(*), sum(amount) FROM orders WHERE amount > 9",
    ),
    ("SELECT id FROM orders WHERE tenant = 'a' AND id = 77777", "SELECT id FROM orders WHERE id = 77777"),
    (
        "SELECT count(*) FROM orders WHERE tenant = 'a' AND abs(amount) > 9",
        "SELECT count(*) FROM orders WHERE abs(amount) > 9",
    ),
    (
        "SELECT id, email, amount FROM orders WHERE tenant = 'a' AND abs(amount) > 9",
        "SELECT id, email, amount FROM orders WHERE abs(amount) > 9",
    ),
];

fn main() {
    let folder = std::env::temp_dir().join(format!("row-policies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("data.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT, email TEXT, amount INTEGER, note TEXT);
        WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 1000000) INSERT INTO orders
        SELECT i, char(97 + i % 2), 'user' || i || '@example.com', i % 1000, 'note ' || i FROM s;";
    connection.execute_batch(sql).unwrap();
    for table in 0..20 {
        let columns: Vec<String> = (0..10).map(|column| format!("c{column} TEXT")).collect();
        connection.execute_batch(&format!("CREATE TABLE t{table} (tenant TEXT, {})", columns.join(", "))).unwrap();
    }
    drop(connection);
    let policy = RowPolicy {
        table: "*".to_owned(),
        rows: Some(RowCondition::parse("tenant = :claims.tenant").unwrap()),
        columns: BTreeMap::new(),
        except_roles: BTreeSet::new(),
    };
    let options = |row_policies| SqliteOptions { row_policies, connections_max: 1, ..SqliteOptions::default() };
    let open = |options| Arc::new(SqliteDatabase::open("shop", vec![path.clone()], options).unwrap());
    let plain = open(options(RowPolicies::default()));
    let bound = open(options(RowPolicies::new(vec![policy], HashKey::process_key())));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for (by_hand, through) in QUERIES {
            let (by_hand, through_policy) = (best_time(&plain, by_hand, 7).await, best_time(&bound, through, 7).await);
            let ratio = through_policy.as_secs_f64() / by_hand.as_secs_f64();
            println!("{through}\n    by hand {by_hand:?}, through the policy {through_policy:?}: {ratio:.2}");
        }
        // The principal changes each time, so that all views are dropped and created again.
        for sql in ["SELECT c1 FROM t1 WHERE c1 = 'x'", "SELECT abs(c1) FROM t1 ORDER BY abs(c1)", "SELECT t1.c1 FROM t1, t2, t3, t4"] {
            let plan = async |database: &Arc<SqliteDatabase>, who: usize| {
                let statement = Statement::parse(sql, SqlDialect::Sqlite).unwrap();
                let somebody = caller_of_tenant(["a", "b"][who % 2]);
                let start = Instant::now();
                drop(database.plan(&statement, &somebody).await.unwrap());
                start.elapsed()
            };
            let (mut without, mut same, mut other) = (Duration::MAX, Duration::MAX, Duration::MAX);
            for round in 0..200 {
                without = without.min(plan(&plain, round).await);
                other = other.min(plan(&bound, round).await);
                same = same.min(plan(&bound, round).await);
            }
            println!("{sql}\n    planned without policies {without:?}, for the same principal {same:?}, for another {other:?}");
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
}

fn caller_of_tenant(tenant: &str) -> Principal {
    let mut principal = Principal::new(tenant, AuthMethod::Token, Arc::new(Grants::everything()));
    principal.claims.insert("tenant".to_owned(), tenant.into());
    principal
}

async fn best_time(database: &Arc<SqliteDatabase>, sql: &str, rounds: usize) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let (_reply, job) = start_job().await;
        let start = Instant::now();
        let statement = Statement::parse(sql, SqlDialect::Sqlite).unwrap();
        let plan = database.plan(&statement, &caller_of_tenant("a")).await.unwrap();
        let mut rows = plan.run(&job).await.unwrap().batches;
        while let Some(batch) = rows.next().await {
            batch.unwrap();
        }
        best = best.min(start.elapsed());
    }
    best
}

/// A job that runs until its reply is dropped.
async fn start_job() -> (tidegate_runtime::Reply, Arc<Job>) {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
    let handler = handler_fn(move |call| {
        let sender = sender.lock().unwrap().take();
        async move {
            let _ = sender.unwrap().send(call.job().clone());
            call.cancelled().await;
            Ok(Answer::content(Vec::new()))
        }
    });
    let snapshot = SnapshotBuilder::new().tool(Tool::new("wait", "Waits.", handler)).build();
    let origin = CallOrigin { transport: TransportKind::CommandLine, peer: None };
    let call = Call::new(CallTarget::Tool("wait".to_owned()), Caller::new(Principal::process_user(), origin));
    let reply = Registry::new(snapshot, EventDispatcher::default()).call(call).unwrap();
    (reply, receiver.await.unwrap())
}
