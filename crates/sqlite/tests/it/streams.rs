//! Rows are sent early, readers stop and are dropped, queries are cancelled.

use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_sqlite::SqliteOptions;

use crate::support::{TestJob, open_database, open_database_with, within_timeout};

/// A query of ten million rows.
const MANY_ROWS_SQL: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT i, 'row ' || i FROM n";
/// A query that returns no row and never ends.
const ENDLESS_SQL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0";
/// A query that sorts for a long time.
const SORTING_SQL: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT i FROM n ORDER BY abs(i * 7919 % 1000003)";
/// Work within few instructions of SQLite's machine.
const FEW_INSTRUCTIONS_SQL: &str = "SELECT count(*) FROM wide a, wide b WHERE a.t || b.t LIKE '%x%y%z%'";

const TABLE: &str = "CREATE TABLE wide (t); INSERT INTO wide
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT hex(zeroblob(200)) || i FROM n;";

#[tokio::test]
async fn the_first_batch_is_small_and_later_ones_grow() {
    let (_folder, node) = open_database("");
    let (_job, rows) = node.start(MANY_ROWS_SQL).await;
    let sizes: Vec<usize> = rows.batches.take(10).map(|batch| batch.unwrap().num_rows()).collect().await;
    assert!(sizes[0] <= 64, "{sizes:?}");
    assert!(sizes.iter().all(|rows| *rows <= 8_192), "{sizes:?}");
    assert!(sizes[9] > 1_000, "{sizes:?}");
    node.wait_for_free_connections(4).await;
}

#[tokio::test]
async fn row_is_sent_without_waiting_for_the_next() {
    let (_folder, node) = open_database("");
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i = 1";
    let (_job, mut rows) = node.start(sql).await;
    let batch = within_timeout("the first row", rows.batches.next()).await.unwrap().unwrap();
    assert_eq!(batch.num_rows(), 1);
}

#[tokio::test]
async fn batches_respect_the_byte_limit() {
    let (_folder, node) = open_database_with("", SqliteOptions { batch_bytes: 10_000, ..SqliteOptions::default() });
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, hex(zeroblob(1000)) FROM n";
    let batches = node.batches(sql, Vec::new()).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 5), "{:?}", batches[1].num_rows());
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 500);
}

#[tokio::test]
async fn dropped_reader_stops_the_query() {
    let (_folder, node) = open_database(TABLE);
    for sql in [MANY_ROWS_SQL, ENDLESS_SQL, SORTING_SQL, FEW_INSTRUCTIONS_SQL] {
        let (_job, mut rows) = node.start(sql).await;
        if sql == MANY_ROWS_SQL {
            within_timeout("the first batch", rows.batches.next()).await.unwrap().unwrap();
        }
        assert_eq!(node.database.free_connections(), 3);
        drop(rows);
        node.wait_for_free_connections(4).await;
    }
}

#[tokio::test]
async fn cancelled_job_stops_the_query() {
    let (_folder, node) = open_database(TABLE);
    for sql in [ENDLESS_SQL, SORTING_SQL, FEW_INSTRUCTIONS_SQL] {
        let (job, mut rows) = node.start(sql).await;
        let cancelled = async {
            // Nothing shows that SQLite computes, so the query gets some time for it. The outcome is the same at any time.
            tokio::time::sleep(Duration::from_millis(50)).await;
            job.job.cancel();
            std::future::pending::<()>().await;
        };
        let batch = tokio::select! {
            batch = within_timeout("the end", rows.batches.next()) => batch,
            () = cancelled => unreachable!(),
        };
        assert_eq!(batch.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        // The reader still exists.
        node.wait_for_free_connections(4).await;
        assert!(rows.batches.next().await.is_none());
    }
}

#[tokio::test]
async fn unread_job_can_be_cancelled() {
    let (_folder, node) = open_database("");
    let (job, rows) = node.start(MANY_ROWS_SQL).await;
    job.job.cancel();
    node.wait_for_free_connections(4).await;
    drop(rows);
}

#[tokio::test]
async fn deadline_stops_the_query() {
    let (_folder, node) = open_database("");
    let plan = node.plan(ENDLESS_SQL, Vec::new()).await.unwrap();
    let job = TestJob::start_within(Duration::from_millis(100)).await;
    // On a busy machine, the time may be over before the query runs.
    let mut run = plan.run(&job.job).await;
    let kind = match &mut run {
        Ok(rows) => within_timeout("the end", rows.batches.next()).await.unwrap().unwrap_err().kind(),
        Err(error) => error.kind(),
    };
    // The query may notice the deadline before its job, which is then cancelled. The caller receives the error of the job.
    assert!(matches!(kind, ErrorKind::TimedOut | ErrorKind::Cancelled), "{kind:?}");
    node.wait_for_free_connections(4).await;
}

#[tokio::test]
async fn stalled_reader_times_out() {
    let stall_timeout = Duration::from_millis(50);
    let (_folder, node) = open_database_with("", SqliteOptions { stall_timeout, ..SqliteOptions::default() });
    let (_job, rows) = node.start(MANY_ROWS_SQL).await;
    node.wait_for_free_connections(4).await;
    let mut ends: Vec<_> = rows.batches.collect().await;
    let error = ends.pop().unwrap().unwrap_err();
    assert!(ends.iter().all(Result::is_ok) && !ends.is_empty());
    insta::assert_snapshot!(format!("{}: {error}", error.kind().name()), @r#"
    timed_out: the client stopped reading, so the query was cancelled
    Try again, and request fewer rows.
    "#);
}
