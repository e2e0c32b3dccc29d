//! Reading beside a program that writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use futures::StreamExt;
use tidegate_core::Principal;
use tidegate_query::Database;
use tidegate_sqlite::SqliteOptions;

use crate::support::{Folder, open_database, within_timeout};

/// Each transfer leaves the sum as it was.
const ACCOUNTS: &str = "PRAGMA journal_mode = WAL;
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER) STRICT;
    INSERT INTO accounts WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, 100 FROM n;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reader_sees_one_snapshot_without_blocking_writers() {
    let folder = Folder::new();
    let writer = folder.write("data.db", ACCOUNTS);
    // It gives up at once when it is blocked.
    writer.busy_timeout(Duration::ZERO).unwrap();
    let node = folder.open(&["data.db"], SqliteOptions::default());
    let stop = Arc::new(AtomicBool::new(false));
    let message = stop.clone();
    let writing = std::thread::spawn(move || {
        let mut transfers = 0_u64;
        while !message.load(Ordering::Relaxed) {
            let (from, to) = (transfers * 7 % 2000 + 1, transfers * 13 % 2000 + 1);
            writer
                .execute_batch(&format!(
                    "BEGIN IMMEDIATE; UPDATE accounts SET balance = balance - 5 WHERE id = {from};
                     UPDATE accounts SET balance = balance + 5 WHERE id = {to}; COMMIT"
                ))
                .unwrap();
            transfers += 1;
        }
        transfers
    });
    for _ in 0..20 {
        // The sum over the stream, batch by batch, so that the writer has time between them.
        let (_job, mut rows) = node.start("SELECT balance FROM accounts").await;
        let (mut sum, mut count) = (0, 0);
        while let Some(batch) = within_timeout("a batch", rows.batches.next()).await {
            let batch = batch.unwrap();
            sum += batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
            count += batch.num_rows();
            tokio::task::yield_now().await;
        }
        assert_eq!((sum, count), (200_000, 2_000));
        assert_eq!(node.rows("SELECT sum(balance) FROM accounts").await, "200000");
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writing.join().unwrap() > 0);
}

#[tokio::test]
async fn next_query_sees_committed_rows() {
    for mode in ["WAL", "DELETE"] {
        let folder = Folder::new();
        let writer = folder.write("data.db", &format!("PRAGMA journal_mode = {mode}; CREATE TABLE t (a)"));
        let node = folder.open(&["data.db"], SqliteOptions::default());
        for count in 0..5 {
            assert_eq!(node.rows("SELECT count(*) FROM t").await, count.to_string());
            writer.execute_batch("INSERT INTO t VALUES (1)").unwrap();
        }
        writer.execute_batch("ALTER TABLE t ADD COLUMN b DEFAULT 7; BEGIN; INSERT INTO t VALUES (1, 2)").unwrap();
        assert_eq!(node.rows("SELECT sum(b) FROM t").await, "35");
    }
}

#[tokio::test]
async fn locked_file_times_out_with_a_hint() {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(30), ..SqliteOptions::default() };
    let folder = Folder::new();
    let writer = folder.write("data.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let node = folder.open(&["data.db"], options);
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    insta::assert_snapshot!(node.refusal("SELECT a FROM t").await, @r#"
    unavailable: the file of the database "shop" is locked by a program that writes to it
    Try again in a few seconds.
    "#);
    writer.execute_batch("COMMIT").unwrap();
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
}

#[tokio::test]
async fn waiting_for_a_lock_can_be_cancelled() {
    let options = SqliteOptions { busy_timeout: Duration::from_secs(600), ..SqliteOptions::default() };
    let folder = Folder::new();
    let writer = folder.write("data.db", "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    let node = folder.open(&["data.db"], options);
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(50), node.plan("SELECT a FROM t", Vec::new())).await;
    assert!(waiting.is_err());
    node.wait_for_free_connections(4).await;
}

#[tokio::test]
async fn finished_reader_holds_no_lock() {
    let (folder, node) = open_database("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_eq!(node.rows("SELECT a FROM t").await, "1");
    let writer = folder.write("data.db", "");
    writer.busy_timeout(Duration::ZERO).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE; INSERT INTO t VALUES (2); COMMIT").unwrap();
    assert_eq!(node.rows("SELECT count(*) FROM t").await, "2");
}

#[tokio::test]
async fn version_tag_changes_on_writes_only() {
    for mode in ["DELETE", "WAL"] {
        let folder = Folder::new();
        let sql = format!("PRAGMA journal_mode = {mode}; CREATE TABLE a (n); CREATE TABLE b (n)");
        let writer = folder.write("data.db", &sql);
        let node = folder.open(&["data.db"], SqliteOptions::default());
        let version_tag = async |table| node.database.version_tag(table, &Principal::anonymous()).await.unwrap();
        let (of_a, of_all) = (version_tag(Some("a")).await, version_tag(None).await);
        assert!(of_a.is_some() && of_all.is_some() && of_a != of_all);
        assert_eq!(version_tag(Some("c")).await, None, "there is no such table");
        assert_eq!(node.rows("SELECT count(*) FROM a").await, "0");
        assert_eq!(
            (version_tag(Some("a")).await, version_tag(None).await),
            (of_a.clone(), of_all.clone()),
            "{mode}: only read"
        );
        writer.execute_batch("INSERT INTO a VALUES (1)").unwrap();
        let of_rows = version_tag(Some("a")).await;
        assert!(of_rows.is_some() && of_rows != of_a && version_tag(None).await != of_all, "{mode}");
        writer.execute_batch("CREATE TABLE c (n)").unwrap();
        assert!(version_tag(Some("c")).await.is_some());
        writer.execute_batch("DROP TABLE c").unwrap();
        assert_eq!(version_tag(Some("c")).await, None);
    }
}
