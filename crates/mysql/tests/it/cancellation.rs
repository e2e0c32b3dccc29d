//! What ends a statement, and what becomes of its connection.

use futures::StreamExt;
use tidegate_core::{ErrorKind, Principal};
use tidegate_mysql::MySqlOptions;
use tidegate_query::Database;

use crate::test_database::{TestDatabase, TestJob, owner_statement, wait_until};

/// Runs for a minute, without a row.
const LONG: &str = "SELECT SLEEP(60)";
/// Rows without an end that a reader reaches.
const ENDLESS: &str = "SELECT a.seq, b.seq, REPEAT('x', 1000) FROM seq_1_to_100000 a JOIN seq_1_to_100000 b";

#[tokio::test]
async fn a_dropped_call_ends_its_statement_and_its_connection_is_used_again() {
    let options = MySqlOptions { connections_max: 1, ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&[], "ssl-mode=DISABLED", options).await;
    let connection = test.run_to_text("SELECT CONNECTION_ID()").await;
    let job = TestJob::start().await;
    let statement = owner_statement(LONG, Vec::new());
    let plan = test.database.plan(&statement, &Principal::process_user()).await.unwrap();
    let running = tokio::spawn(async move { plan.run(&job.job).await.map(drop) });
    wait_until("the statement", || async { test.running().await == "1" }).await;
    running.abort();
    wait_until("the end of the statement", || async { test.running().await == "0" }).await;
    test.wait_until_idle().await;
    assert_eq!(test.run_to_text("SELECT CONNECTION_ID()").await, connection);
}

#[tokio::test]
async fn a_cancelled_call_ends_its_statement() {
    let test = TestDatabase::new(&[]).await;
    let job = TestJob::start().await;
    let statement = owner_statement(LONG, Vec::new());
    let plan = test.database.plan(&statement, &Principal::process_user()).await.unwrap();
    let cancelled = job.job.clone();
    let running = tokio::spawn(async move { plan.run(&job.job).await.map(drop) });
    wait_until("the statement", || async { test.running().await == "1" }).await;
    cancelled.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    wait_until("the end of the statement", || async { test.running().await == "0" }).await;
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_rows() {
    let options = MySqlOptions { connections_max: 1, ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&[], "ssl-mode=DISABLED", options).await;
    for _ in 0..3 {
        let job = TestJob::start().await;
        let statement = owner_statement(ENDLESS, Vec::new());
        let plan = test.database.plan(&statement, &Principal::process_user()).await.unwrap();
        let mut rows = plan.run(&job.job).await.unwrap();
        assert!(rows.batches.next().await.is_some_and(|batch| batch.is_ok()));
        drop(rows);
        test.wait_until_idle().await;
    }
    assert_eq!(test.run_to_text("SELECT 1").await, "1");
}

#[tokio::test]
async fn a_storm_of_callers_that_leave_does_not_delay_the_next_one() {
    let test = TestDatabase::new(&[]).await;
    let mut calls = Vec::new();
    for _ in 0..100 {
        let database = test.database.clone();
        calls.push(tokio::spawn(async move {
            let job = TestJob::start().await;
            let statement = owner_statement(LONG, Vec::new());
            let plan = database.plan(&statement, &Principal::process_user()).await?;
            plan.run(&job.job).await.map(drop)
        }));
    }
    wait_until("the first statements", || async { test.running().await != "0" }).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(test.run_to_text("SELECT 1").await, "1");
    wait_until("the end of all statements", || async { test.running().await == "0" }).await;
    test.wait_until_idle().await;
}

#[tokio::test]
async fn the_server_ends_a_statement_that_takes_too_long() {
    let limit = Some(std::time::Duration::from_millis(200));
    let options = MySqlOptions { statement_timeout: limit, ..MySqlOptions::default() };
    let test = TestDatabase::with_options(&[], "ssl-mode=DISABLED", options).await;
    let statement = owner_statement("SELECT COUNT(*) FROM seq_1_to_1000000 a JOIN seq_1_to_1000000 b", Vec::new());
    let error = test.lines(&statement).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert_eq!(test.run_to_text("SELECT 1").await, "1");
}
