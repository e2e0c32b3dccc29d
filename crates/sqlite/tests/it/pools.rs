//! Waiting for a connection, and its return.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_sqlite::SqliteOptions;

use crate::support::{TestJob, open_database_with, wait_until, within_timeout};

const MANY_ROWS_SQL: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT i FROM n";

fn one_connection() -> SqliteOptions {
    SqliteOptions { connections_max: 1, ..SqliteOptions::default() }
}

#[tokio::test]
async fn call_waits_for_a_free_connection() {
    let (_folder, node) = open_database_with("CREATE TABLE t (a); INSERT INTO t VALUES (1)", one_connection());
    let (_job, mut rows) = node.start(MANY_ROWS_SQL).await;
    rows.batches.next().await.unwrap().unwrap();
    let (waiting, notify) = (node.clone(), Arc::new(tokio::sync::Notify::new()));
    let message = notify.clone();
    let waiter = tokio::spawn(async move {
        message.notify_one();
        waiting.rows("SELECT a FROM t").await
    });
    notify.notified().await;
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    drop(rows);
    assert_eq!(within_timeout("the answer", waiter).await.unwrap(), "1");
}

#[tokio::test]
async fn waiting_call_ends_at_its_deadline() {
    let (_folder, node) = open_database_with("CREATE TABLE t (a)", one_connection());
    let plan = node.plan("SELECT a FROM t", Vec::new()).await.unwrap();
    let (_job, rows) = node.start(MANY_ROWS_SQL).await;
    let job = TestJob::start_within(Duration::from_millis(50)).await;
    let error = within_timeout("the end", plan.run(&job.job)).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    drop(rows);
    node.wait_for_free_connections(1).await;
}

#[tokio::test]
async fn planned_statement_holds_no_connection() {
    let (_folder, node) = open_database_with("CREATE TABLE t (a)", one_connection());
    let first = node.plan("SELECT a FROM t", Vec::new()).await.unwrap();
    let second = within_timeout("the second plan", node.plan("SELECT a FROM t", Vec::new())).await.unwrap();
    drop((first, second));
    node.wait_for_free_connections(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_share_few_connections() {
    let sql = "CREATE TABLE t (a); INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n";
    let (_folder, node) = open_database_with(sql, SqliteOptions { connections_max: 2, ..SqliteOptions::default() });
    let callers = (0..50).map(|caller| {
        let node = node.clone();
        tokio::spawn(async move {
            if caller % 3 == 0 {
                let (_job, rows) = node.start(MANY_ROWS_SQL).await;
                drop(rows);
            }
            node.rows("SELECT sum(a) FROM t").await
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        assert_eq!(within_timeout("a caller", caller).await.unwrap(), "500500");
    }
    node.wait_for_free_connections(2).await;
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let options = SqliteOptions { idle_timeout: Duration::from_millis(20), ..SqliteOptions::default() };
    let (folder, node) = open_database_with("CREATE TABLE t (a); INSERT INTO t VALUES (1)", options);
    let is_open = || {
        let path = folder.join("data.db");
        let handles = std::fs::read_dir("/proc/self/fd").unwrap();
        handles.flatten().any(|handle| std::fs::read_link(handle.path()).is_ok_and(|target| target == path))
    };
    for _ in 0..3 {
        assert_eq!(node.rows("SELECT a FROM t").await, "1");
        wait_until("the end of the connection", || async { !is_open() }).await;
    }
}
