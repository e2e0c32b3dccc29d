//! Order, back-pressure, cancellation.

use std::time::Duration;

use futures::StreamExt;
use tidegate_core::ErrorKind;

use crate::support::{Folder, TestJob, TestNode, numbers, numbers_csv, with_timeout, write_parquet};

/// A table with so many rows that no query ends before it is cancelled.
fn large_table() -> (Folder, TestNode) {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(200_000), 50_000);
    folder.write("t.csv", numbers_csv(200_000));
    let node = folder.database();
    (folder, node)
}

#[tokio::test]
async fn rows_of_a_file_come_in_its_order() {
    let (folder, node) = large_table();
    for index in 0..5 {
        folder.write(&format!("parts/{index}.csv"), numbers_csv(20_000));
    }
    for table in ["n", "t"] {
        let rows = node.rows(&format!("SELECT id FROM {table} LIMIT 5")).await;
        assert_eq!(rows, "0\n1\n2\n3\n4");
        let rows = node.rows(&format!("SELECT id + 1 FROM {table} WHERE id % 2 = 0")).await;
        assert!(rows.lines().eq((0..100_000).map(|id| (id * 2 + 1).to_string())), "{table} is out of order");
        let rows = node.rows(&format!("SELECT id, row_number() OVER () FROM {table} LIMIT 3")).await;
        assert_eq!(rows, "0|1\n1|2\n2|3");
    }
    let rows = node.rows("SELECT id FROM parts WHERE id >= 0").await;
    let in_order = (0..5).flat_map(|_| 0..20_000).map(|id: i64| id.to_string());
    assert!(rows.lines().eq(in_order), "the files of a folder are out of order");
}

#[tokio::test]
async fn a_reader_that_stops_stops_the_query() {
    let (_folder, node) = large_table();
    let (_job, mut rows) = node.start("SELECT a.id, b.name FROM n a CROSS JOIN t b").await;
    with_timeout("the first batch", rows.batches.next()).await.unwrap().unwrap();
    // Once the build side is complete, no more memory is used, however long the reader pauses.
    let held = node.steady_memory_bytes().await;
    assert!(held < 64 << 20, "{held} bytes are held");
    for _ in 0..100 {
        with_timeout("the next batch", rows.batches.next()).await.unwrap().unwrap();
    }
    drop(rows);
    node.wait_until_idle().await;
}

/// How long a query computes before it is cancelled. Nothing reports that an operator is in the middle of a batch; an
/// earlier cancellation has the same outcome, but tests less.
const INTO_THE_WORK: Duration = Duration::from_millis(300);

/// Queries that run for hours in very different operators.
const ENDLESS: &[(&str, &str)] = &[
    ("a scan that sends nothing", "SELECT a.id FROM n a CROSS JOIN n b CROSS JOIN n c WHERE a.id + b.id + c.id < 0"),
    ("a join that matches nothing", "SELECT count(*) FROM n a JOIN n b ON a.id < b.id - 1000000"),
    (
        "a join that matches everything",
        "SELECT count(*) FROM n a JOIN n b ON a.id * 0 = b.id * 0 AND a.name || b.name = ''",
    ),
    ("an aggregate over a cross join", "SELECT sum(a.id * b.id) FROM n a CROSS JOIN n b"),
    ("a grouping", "SELECT a.id % 10, count(*) FROM n a CROSS JOIN n b GROUP BY 1"),
    ("a sort", "SELECT a.id FROM n a CROSS JOIN n b ORDER BY a.name LIMIT 5"),
    (
        "a window",
        "SELECT sum(a.id) OVER (ORDER BY a.id) FROM n a CROSS JOIN n b WHERE a.id < 0 OR b.id >= 0 LIMIT 1000000000",
    ),
    ("a series", "SELECT sum(value) FROM generate_series(1, 1000000000000) AS g(value)"),
    ("a recursion", "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"),
    ("an unnesting", "SELECT count(*) FROM (SELECT unnest(range(1, 400)) FROM n a CROSS JOIN n b)"),
    // With longer lists, a row would be too large.
    ("an unnesting of a long list", "SELECT count(*) FROM (SELECT unnest(range(0, 5000)) FROM n a CROSS JOIN n b)"),
];

#[tokio::test]
async fn a_cancelled_job_ends_its_query_wherever_it_is() {
    let (_folder, node) = large_table();
    for (subject, sql) in ENDLESS {
        let plan = node.plan(sql).await.unwrap();
        let job = TestJob::start().await;
        let running = job.job.clone();
        let reader = tokio::spawn(async move {
            // The rows are there with the first of them.
            let mut rows = match plan.run(&running).await {
                Ok(rows) => rows,
                Err(error) => return (error.kind(), true),
            };
            loop {
                match rows.batches.next().await {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return (error.kind(), rows.batches.next().await.is_none()),
                    None => panic!("a query that runs for hours has ended"),
                }
            }
        });
        tokio::time::sleep(INTO_THE_WORK).await;
        assert!(!reader.is_finished(), "{subject} has ended by itself: {:?}", reader.await);
        job.job.cancel();
        let (kind, has_ended) = with_timeout(subject, reader).await.unwrap();
        assert_eq!((kind, has_ended), (ErrorKind::Cancelled, true), "{subject}");
        node.wait_until_idle().await;
    }
}

#[tokio::test]
async fn dropping_the_rows_ends_the_query() {
    let (_folder, node) = large_table();
    for (_, sql) in ENDLESS {
        let plan = node.plan(sql).await.unwrap();
        let job = TestJob::start().await;
        let running = tokio::time::timeout(Duration::from_millis(50), plan.run(&job.job)).await;
        drop(running);
        node.wait_until_idle().await;
    }
    let (_job, mut rows) = node.start("SELECT * FROM t").await;
    with_timeout("the first batch", rows.batches.next()).await.unwrap().unwrap();
    drop(rows);
    node.wait_until_idle().await;
}

#[tokio::test]
async fn queries_do_not_block_caller_threads() {
    let (_folder, node) = large_table();
    let plan = node.plan(ENDLESS[1].1).await.unwrap();
    let job = TestJob::start().await;
    let mut running = plan.run(&job.job);
    // This test has only one thread, and it is free.
    let began = std::time::Instant::now();
    for _ in 0..20 {
        let begun = tokio::time::timeout(Duration::from_millis(1), &mut running).await;
        assert!(begun.is_err(), "a scan that finds nothing has rows");
    }
    assert!(began.elapsed() < crate::support::TEST_TIMEOUT);
    drop(running);
    node.wait_until_idle().await;
}

#[tokio::test]
async fn an_engine_that_shuts_down_ends_its_queries_with_an_error() {
    let (_folder, node) = large_table();
    let plan = node.plan(ENDLESS[1].1).await.unwrap();
    let job = TestJob::start().await;
    let running = job.job.clone();
    let reader = tokio::spawn(async move { plan.run(&running).await?.batches.next().await.unwrap() });
    node.wait_until_busy().await;
    with_timeout("the shutdown", node.engine.shutdown(Duration::from_secs(30))).await;
    let error = with_timeout("the end", reader).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(node.engine.running_tasks(), 0);
    assert_eq!(node.plan("SELECT 1").await.err().unwrap().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn engine_can_be_dropped_in_async_code() {
    let (_folder, node) = large_table();
    let plan = node.plan("SELECT count(*) FROM n a CROSS JOIN n b").await.unwrap();
    let job = TestJob::start().await;
    let mut running = plan.run(&job.job);
    let begun = tokio::time::timeout(Duration::from_millis(50), &mut running).await;
    drop(node);
    drop((begun, running));
}

#[tokio::test]
async fn wide_rows_come_in_small_batches() {
    let folder = Folder::new();
    let mut text = String::from("id,blob\n");
    for id in 0..2_000 {
        text.push_str(&format!("{id},{}\n", "x".repeat(20_000)));
    }
    folder.write("wide.csv", text);
    let node = folder.database();
    let batches = node.batches("SELECT * FROM wide", Vec::new()).await.unwrap();
    let largest = batches.iter().map(|batch| batch.num_rows()).max().unwrap();
    assert!(largest <= (4 << 20) / 20_000, "{largest} rows of 20 kB in one batch");
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2_000);
}
