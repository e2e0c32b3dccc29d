//! What stops a statement, and whether its connection is used again.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_postgres::PostgresOptions;
use tidegate_query::Database;
use tidegate_sql::Transaction;

use crate::test_database::{
    OpenDatabase as _, OpenedDatabase, TestDatabase, TestJob, collect_batches, owner_statement, wait_until,
    within_timeout,
};

/// A statement that gives some rows, more than the server keeps back, and then never another.
const ENDLESS_SQL: &str =
    "SELECT repeat('x', 100), pg_sleep(CASE WHEN i > 500 THEN 1000 ELSE 0 END) FROM generate_series(1, 1000) i";

async fn wait_until_nothing_runs(scene: &TestDatabase, node: &OpenedDatabase) {
    wait_until("the end of the backend's statement", || async { scene.active().await == "0" }).await;
    node.wait_until_idle().await;
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
}

#[tokio::test]
async fn dropped_stream_cancels_the_statement() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let job = TestJob::start().await;
    let mut rows = node.plan(&owner_statement(ENDLESS_SQL, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(within_timeout("the first rows", rows.batches.next()).await.unwrap().is_ok());
    assert_eq!(scene.active().await, "1");
    drop(rows);
    wait_until_nothing_runs(&scene, &node).await;
}

#[tokio::test]
async fn cancelled_job_cancels_the_statement() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    for sql in ["SELECT pg_sleep(1000)", ENDLESS_SQL] {
        let job = TestJob::start().await;
        let plan = node.plan(&owner_statement(sql, Vec::new())).await.unwrap();
        let to_cancel = job.job.clone();
        let observed = async {
            wait_until("the statement's start", || async { scene.active().await == "1" }).await;
            to_cancel.cancel();
        };
        let requested = async {
            match plan.run(&job.job).await {
                Ok(rows) => collect_batches(rows).await.map(drop),
                Err(error) => Err(error),
            }
        };
        let (outcome, ()) = futures::join!(within_timeout("the end", requested), observed);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled, "{sql}");
        wait_until_nothing_runs(&scene, &node).await;
    }
}

#[tokio::test]
async fn stalled_reader_loses_its_connection() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let with_timeout = Transaction { stall_timeout: Duration::from_millis(50), ..Transaction::default() };
    let statement = owner_statement("SELECT i, repeat('x', 1000) FROM generate_series(1, 1000000) i", Vec::new())
        .in_transaction(Arc::new(with_timeout));
    let job = TestJob::start().await;
    let mut rows = node.plan(&statement).await.unwrap().run(&job.job).await.unwrap();
    assert!(within_timeout("the first rows", rows.batches.next()).await.unwrap().is_ok());
    wait_until_nothing_runs(&scene, &node).await;
    let mut last = Ok(());
    while let Some(batch) = within_timeout("the rest", rows.batches.next()).await {
        last = batch.map(drop);
    }
    let error = last.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::TimedOut, "the client read no rows for 0.05 s, so the query was cancelled")
    );
}

#[tokio::test]
async fn late_first_row_times_out() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let with_timeout = Transaction { first_row_timeout: Some(Duration::from_millis(50)), ..Transaction::default() };
    let statement = owner_statement("SELECT pg_sleep(1000)", Vec::new()).in_transaction(Arc::new(with_timeout));
    assert_eq!(node.lines(&statement).await.unwrap_err().message(), "no row came within 50 ms");
    wait_until_nothing_runs(&scene, &node).await;
}

#[tokio::test]
async fn unused_plan_releases_its_connection() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    drop(node.plan(&owner_statement("SELECT 1", Vec::new())).await.unwrap());
    wait_until_nothing_runs(&scene, &node).await;
    // The connection was kept, not replaced.
    let backend = node.run_to_text("SELECT pg_backend_pid()").await;
    drop(node.plan(&owner_statement("SELECT 1", Vec::new())).await.unwrap());
    assert_eq!(node.run_to_text("SELECT pg_backend_pid()").await, backend);
    // Nor does a statement that fails cost a connection, wherever it fails.
    for sql in
        ["SELECT 1 / 0", "SELECT nothing", "SELECT 1 / (5000 - i) FROM generate_series(1, 10000) i", "SELECT '{'::json"]
    {
        assert!(node.run_to_text(sql).await.contains("invalid_arguments"), "{sql}");
        assert_eq!(node.run_to_text("SELECT pg_backend_pid()").await, backend, "{sql}");
    }
}

#[tokio::test]
async fn call_times_out_when_all_connections_are_in_use() {
    let scene = TestDatabase::new("").await;
    let wait = Duration::from_millis(100);
    let node = scene.open(PostgresOptions { connections_max: 1, acquire_timeout: wait, ..PostgresOptions::default() });
    let held = node.plan(&owner_statement("SELECT 1", Vec::new())).await.unwrap();
    insta::assert_snapshot!(node.run_to_text("SELECT 1").await, @r"
    unavailable: all 1 connections to the database shop are in use
    Try again when other calls have ended.
    ");
    drop(held);
    wait_until_nothing_runs(&scene, &node).await;
}

#[tokio::test]
async fn terminated_backend_fails_only_its_call() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tidegate%'";
    // While it rests in the pool.
    assert_eq!(node.run_to_text("SELECT 1").await, "1");
    scene.run(kill).await;
    wait_until("the end of the connection", || async { node.run_to_text("SELECT 1").await == "1" }).await;
    // While it runs.
    let job = TestJob::start().await;
    let mut rows = node.plan(&owner_statement(ENDLESS_SQL, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(within_timeout("the first rows", rows.batches.next()).await.unwrap().is_ok());
    scene.run(kill).await;
    let mut outcome = Ok(());
    while let Some(batch) = within_timeout("the rest", rows.batches.next()).await {
        outcome = batch.map(drop);
    }
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    drop(rows);
    wait_until_nothing_runs(&scene, &node).await;
}

#[tokio::test]
async fn close_cancels_running_statements() {
    let scene = TestDatabase::new("").await;
    let node = scene.open(PostgresOptions::default());
    let job = TestJob::start().await;
    let mut rows = node.plan(&owner_statement(ENDLESS_SQL, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(within_timeout("the first rows", rows.batches.next()).await.unwrap().is_ok());
    within_timeout("closing", node.database.close()).await;
    wait_until("the end of the backend's statement", || async { scene.active().await == "0" }).await;
    let mut outcome = Ok(());
    while let Some(batch) = within_timeout("the rest", rows.batches.next()).await {
        outcome = batch.map(drop);
    }
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(node.run_to_text("SELECT 1").await.starts_with("unavailable"));
}
