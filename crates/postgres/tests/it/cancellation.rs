//! What stops a statement, and what becomes of its connection.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_postgres::PostgresOptions;
use tidegate_query::{Database, Transaction};

use crate::scene::{Node, Scene, TestJob, gather, of_owner, soon, until};

/// A statement that gives some rows, more than the server keeps back, and then never another.
const ENDLESS: &str =
    "SELECT repeat('x', 100), pg_sleep(CASE WHEN i > 500 THEN 1000 ELSE 0 END) FROM generate_series(1, 1000) i";

async fn nobody_runs(scene: &Scene, node: &Node) {
    until("the end of the backend's statement", || async { scene.active().await == "0" }).await;
    node.idle().await;
    assert_eq!(node.told("SELECT 1").await, "1");
}

#[tokio::test]
async fn a_dropped_stream_stops_the_server() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let job = TestJob::start().await;
    let mut rows = node.plan(&of_owner(ENDLESS, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(soon("the first rows", rows.batches.next()).await.unwrap().is_ok());
    assert_eq!(scene.active().await, "1");
    drop(rows);
    nobody_runs(&scene, &node).await;
}

#[tokio::test]
async fn a_cancelled_job_stops_the_server_before_and_after_the_first_row() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    for sql in ["SELECT pg_sleep(1000)", ENDLESS] {
        let job = TestJob::start().await;
        let plan = node.plan(&of_owner(sql, Vec::new())).await.unwrap();
        let to_cancel = job.job.clone();
        let observed = async {
            until("the statement's start", || async { scene.active().await == "1" }).await;
            to_cancel.cancel();
        };
        let asked = async {
            match plan.run(&job.job).await {
                Ok(rows) => gather(rows).await.map(drop),
                Err(error) => Err(error),
            }
        };
        let (outcome, ()) = futures::join!(soon("the end", asked), observed);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled, "{sql}");
        nobody_runs(&scene, &node).await;
    }
}

#[tokio::test]
async fn a_reader_that_stops_loses_its_connection() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let impatient = Transaction { stall: Duration::from_millis(50), ..Transaction::default() };
    let statement = of_owner("SELECT i, repeat('x', 1000) FROM generate_series(1, 1000000) i", Vec::new())
        .in_transaction(Arc::new(impatient));
    let job = TestJob::start().await;
    let mut rows = node.plan(&statement).await.unwrap().run(&job.job).await.unwrap();
    assert!(soon("the first rows", rows.batches.next()).await.unwrap().is_ok());
    nobody_runs(&scene, &node).await;
    let mut last = Ok(());
    while let Some(batch) = soon("the rest", rows.batches.next()).await {
        last = batch.map(drop);
    }
    let error = last.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::TimedOut, "nobody read the rows for 0.05 s, so the query was ended")
    );
}

#[tokio::test]
async fn a_first_row_that_is_late_ends_the_call() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let impatient = Transaction { first_row: Some(Duration::from_millis(50)), ..Transaction::default() };
    let statement = of_owner("SELECT pg_sleep(1000)", Vec::new()).in_transaction(Arc::new(impatient));
    assert_eq!(node.lines(&statement).await.unwrap_err().message(), "no row came within 50 ms");
    nobody_runs(&scene, &node).await;
}

#[tokio::test]
async fn a_plan_that_is_not_run_leaves_nothing_behind() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    drop(node.plan(&of_owner("SELECT 1", Vec::new())).await.unwrap());
    nobody_runs(&scene, &node).await;
    // The connection was kept, not replaced.
    let backend = node.told("SELECT pg_backend_pid()").await;
    drop(node.plan(&of_owner("SELECT 1", Vec::new())).await.unwrap());
    assert_eq!(node.told("SELECT pg_backend_pid()").await, backend);
    // Nor does a statement that fails cost a connection, wherever it fails.
    for sql in
        ["SELECT 1 / 0", "SELECT nothing", "SELECT 1 / (5000 - i) FROM generate_series(1, 10000) i", "SELECT '{'::json"]
    {
        assert!(node.told(sql).await.contains("invalid_arguments"), "{sql}");
        assert_eq!(node.told("SELECT pg_backend_pid()").await, backend, "{sql}");
    }
}

#[tokio::test]
async fn when_all_connections_are_in_use_a_call_waits_and_is_told() {
    let scene = Scene::new("").await;
    let wait = Duration::from_millis(100);
    let node = scene.open(PostgresOptions { connections_max: 1, wait, ..PostgresOptions::default() });
    let held = node.plan(&of_owner("SELECT 1", Vec::new())).await.unwrap();
    insta::assert_snapshot!(node.told("SELECT 1").await, @r"
    unavailable: all 1 connections to the database shop are in use
    Try again when other calls have ended.
    ");
    drop(held);
    nobody_runs(&scene, &node).await;
}

#[tokio::test]
async fn a_killed_backend_is_an_error_and_no_more() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions { connections_max: 1, ..PostgresOptions::default() });
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'tidegate%'";
    // While it rests in the pool.
    assert_eq!(node.told("SELECT 1").await, "1");
    scene.run(kill).await;
    until("the end of the connection", || async { node.told("SELECT 1").await == "1" }).await;
    // While it runs.
    let job = TestJob::start().await;
    let mut rows = node.plan(&of_owner(ENDLESS, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(soon("the first rows", rows.batches.next()).await.unwrap().is_ok());
    scene.run(kill).await;
    let mut outcome = Ok(());
    while let Some(batch) = soon("the rest", rows.batches.next()).await {
        outcome = batch.map(drop);
    }
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    drop(rows);
    nobody_runs(&scene, &node).await;
}

#[tokio::test]
async fn closing_ends_what_runs() {
    let scene = Scene::new("").await;
    let node = scene.open(PostgresOptions::default());
    let job = TestJob::start().await;
    let mut rows = node.plan(&of_owner(ENDLESS, Vec::new())).await.unwrap().run(&job.job).await.unwrap();
    assert!(soon("the first rows", rows.batches.next()).await.unwrap().is_ok());
    soon("closing", node.database.close()).await;
    until("the end of the backend's statement", || async { scene.active().await == "0" }).await;
    let mut outcome = Ok(());
    while let Some(batch) = soon("the rest", rows.batches.next()).await {
        outcome = batch.map(drop);
    }
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(node.told("SELECT 1").await.starts_with("unavailable"));
}
