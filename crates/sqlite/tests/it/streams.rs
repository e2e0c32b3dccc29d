//! Rows leave early, readers stop and go away, queries are cancelled.

use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;
use tidegate_sqlite::SqliteOptions;

use crate::support::{TestJob, of, of_options, soon};

/// A query of ten million rows.
const MANY: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT i, 'row ' || i FROM n";
/// A query that never gives a row and never ends.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0";
/// A query that sorts for a long time.
const SORTED: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000) SELECT i FROM n ORDER BY abs(i * 7919 % 1000003)";
/// Work within few instructions of SQLite's machine.
const FEW_INSTRUCTIONS: &str = "SELECT count(*) FROM wide a, wide b WHERE a.t || b.t LIKE '%x%y%z%'";

const TABLE: &str = "CREATE TABLE wide (t); INSERT INTO wide
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT hex(zeroblob(200)) || i FROM n;";

#[tokio::test]
async fn the_first_batch_is_small_and_later_ones_grow() {
    let (_folder, node) = of("");
    let (_job, rows) = node.start(MANY).await;
    let sizes: Vec<usize> = rows.batches.take(10).map(|batch| batch.unwrap().num_rows()).collect().await;
    assert!(sizes[0] <= 64, "{sizes:?}");
    assert!(sizes.iter().all(|rows| *rows <= 8_192), "{sizes:?}");
    assert!(sizes[9] > 1_000, "{sizes:?}");
    node.free(4).await;
}

#[tokio::test]
async fn a_row_does_not_wait_for_the_next() {
    let (_folder, node) = of("");
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i = 1";
    let (_job, mut rows) = node.start(sql).await;
    let batch = soon("the first row", rows.batches.next()).await.unwrap().unwrap();
    assert_eq!(batch.num_rows(), 1);
}

#[tokio::test]
async fn batches_have_a_bound_of_bytes_and_all_rows_come() {
    let (_folder, node) = of_options("", SqliteOptions { batch_bytes: 10_000, ..SqliteOptions::default() });
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, hex(zeroblob(1000)) FROM n";
    let batches = node.batches(sql, Vec::new()).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 5), "{:?}", batches[1].num_rows());
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 500);
}

#[tokio::test]
async fn a_reader_that_goes_away_stops_the_query() {
    let (_folder, node) = of(TABLE);
    for sql in [MANY, ENDLESS, SORTED, FEW_INSTRUCTIONS] {
        let (_job, mut rows) = node.start(sql).await;
        if sql == MANY {
            soon("the first batch", rows.batches.next()).await.unwrap().unwrap();
        }
        assert_eq!(node.database.free_connections(), 3);
        drop(rows);
        node.free(4).await;
    }
}

#[tokio::test]
async fn a_cancelled_job_ends_its_query() {
    let (_folder, node) = of(TABLE);
    for sql in [ENDLESS, SORTED, FEW_INSTRUCTIONS] {
        let (job, mut rows) = node.start(sql).await;
        let cancelled = async {
            // The outcome is the same whenever it comes; by now the query is in the midst of its work.
            tokio::time::sleep(Duration::from_millis(50)).await;
            job.job.cancel();
            std::future::pending::<()>().await;
        };
        let batch = tokio::select! {
            batch = soon("the end", rows.batches.next()) => batch,
            () = cancelled => unreachable!(),
        };
        assert_eq!(batch.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        // While the reader still stands there.
        node.free(4).await;
        assert!(rows.batches.next().await.is_none());
    }
}

#[tokio::test]
async fn a_job_that_nobody_reads_is_cancelled_too() {
    let (_folder, node) = of("");
    let (job, rows) = node.start(MANY).await;
    job.job.cancel();
    node.free(4).await;
    drop(rows);
}

#[tokio::test]
async fn a_deadline_ends_the_query() {
    let (_folder, node) = of("");
    let job = TestJob::start(Some(Duration::from_millis(100))).await;
    let mut rows = node.plan(ENDLESS, Vec::new()).await.unwrap().run(&job.job).await.unwrap();
    let error = soon("the end", rows.batches.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    node.free(4).await;
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_query() {
    let stall_timeout = Duration::from_millis(50);
    let (_folder, node) = of_options("", SqliteOptions { stall_timeout, ..SqliteOptions::default() });
    let (_job, rows) = node.start(MANY).await;
    node.free(4).await;
    let mut ends: Vec<_> = rows.batches.collect().await;
    let error = ends.pop().unwrap().unwrap_err();
    assert!(ends.iter().all(Result::is_ok) && !ends.is_empty());
    insta::assert_snapshot!(format!("{}: {error}", error.kind().name()), @r#"
    timed_out: the answer was not read for too long, so the query was ended
    Ask again, and for less.
    "#);
}
