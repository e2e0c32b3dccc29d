//! Queries use new, changed and removed files without a restart.

use std::time::Duration;

use tidegate_engines::FileLimits;
use tidegate_query::Freshness;
use tidegate_testkit::wait::wait_until;

use crate::support::{Folder, TestNode, numbers, two_thread_options, write_parquet};

#[tokio::test]
async fn sees_added_changed_and_removed_files() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let node = folder.database();
    assert_eq!(node.tables().await, "a: 1 rows");

    folder.write("b.csv", "x,y\n1,2\n");
    assert_eq!(node.rows("SELECT x, y FROM b").await, "1|2");

    folder.write("a.csv", "id,name\n1,one\n2,two\n");
    assert_eq!(node.rows("SELECT name FROM a").await, "one\ntwo");

    folder.remove("b.csv");
    assert_eq!(node.tables().await, "a: 2 rows");
    assert!(node.refusal("SELECT * FROM b").await.contains("there is no table \"b\""));

    folder.write("parts/1.csv", "id\n1\n");
    folder.write("parts/2.csv", "id\n2\n");
    assert_eq!(node.rows("SELECT sum(id) FROM parts").await, "3");
    folder.write("parts/3.csv", "id\n4\n");
    assert_eq!(node.rows("SELECT sum(id) FROM parts").await, "7");
    folder.remove("parts");
    assert_eq!(node.tables().await, "a: 2 rows");
}

#[tokio::test]
async fn a_parquet_file_that_is_replaced_is_read_anew() {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10), 10);
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*), max(id) FROM n").await, "10|9");
    write_parquet(&folder.join("n.parquet"), &numbers(20), 10);
    assert_eq!(node.rows("SELECT count(*), max(id) FROM n").await, "20|19");
    assert_eq!(node.rows("SELECT name FROM n WHERE id = 19").await, "name 19");
}

#[tokio::test]
async fn a_plan_is_made_again_when_a_parquet_file_was_replaced_since() {
    let folder = Folder::new();
    write_parquet(&folder.join("n.parquet"), &numbers(10), 10);
    let node = folder.database();
    let plan = node.plan("SELECT * FROM n").await.unwrap();
    write_parquet(&folder.join("n.parquet"), &numbers(20), 10);
    let job = crate::support::TestJob::start().await;
    let mut rows = plan.run(&job.job).await.unwrap();
    let mut count = 0;
    while let Some(batch) = futures::StreamExt::next(&mut rows.batches).await {
        count += batch.unwrap().num_rows();
    }
    assert_eq!(count, 20);
}

#[tokio::test]
async fn folder_scans_are_throttled() {
    let folder = Folder::with(&[("a.csv", "id\n1\n")]);
    let limits = FileLimits { rescan_after: Duration::from_secs(3_600), ..FileLimits::default() };
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), limits);
    assert_eq!(node.tables().await, "a: 1 rows");
    folder.write("b.csv", "id\n1\n");
    assert_eq!(node.tables().await, "a: 1 rows");
}

#[tokio::test]
async fn vanished_path_is_reported_and_recovers() {
    let folder = Folder::with(&[("data/a.csv", "id\n1\n")]);
    let node = TestNode::open(vec![folder.join("data")], two_thread_options());
    assert_eq!(node.tables().await, "a: 1 rows");
    folder.remove("data");
    let error = node.refusal("SELECT * FROM a").await;
    assert_eq!(error, "unavailable: the files of the database cannot be found");
    folder.write("data/a.csv", "id\n2\n");
    assert_eq!(node.rows("SELECT id FROM a").await, "2");
}

#[tokio::test]
async fn freshness_ends_with_file_change_and_volatile_functions() {
    let folder = Folder::with(&[("a.csv", "id\n1\n"), ("b.csv", "id\n2\n")]);
    let settled = |name: &str, seconds: u64| {
        let file = std::fs::File::options().write(true).open(folder.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    let node = folder.database();
    // The file is new for two seconds. A query that begins later is too late.
    wait_until("an answer while the file may change within the same tick", async || {
        folder.write("a.csv", "id\n1\n");
        node.freshness("SELECT * FROM a").await == Freshness::Never
    })
    .await;
    settled("a.csv", 60);
    settled("b.csv", 60);
    let before = node.freshness("SELECT max(id) FROM a").await;
    assert!(matches!(before, Freshness::UntilChanged(_)), "{before:?}");
    assert_eq!(node.freshness("SELECT max(id) FROM a").await, before);
    settled("b.csv", 30);
    assert_eq!(node.freshness("SELECT max(id) FROM a").await, before, "another table changed");
    folder.write("a.csv", "id\n3\n");
    settled("a.csv", 30);
    assert_ne!(node.freshness("SELECT max(id) FROM a").await, before);
    for sql in [
        "SELECT now() FROM a",
        "SELECT random() FROM a",
        "SELECT id FROM a WHERE current_date > '2026-01-01'",
        "SELECT id FROM a WHERE 'today'::date > '2026-01-01'",
        "SELECT age(timestamp '2020-01-01') FROM a",
        "SELECT uuid()",
    ] {
        assert_eq!(node.freshness(sql).await, Freshness::Never, "{sql}");
    }
    for sql in ["SELECT upper('a'), abs(id), count(*) OVER () FROM a", "SELECT * FROM generate_series(1, 3)"] {
        assert!(matches!(node.freshness(sql).await, Freshness::UntilChanged(_)), "{sql}");
    }
}

/// A scan that takes longer than its callers wait serves the next one.
#[tokio::test]
async fn a_scan_goes_on_when_its_callers_leave() {
    let folder = Folder::new();
    for number in 0..300 {
        folder.write(&format!("t{number}.csv"), "id,name\n1,one\n");
    }
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), FileLimits::default());
    wait_until("an answer for a caller in a hurry", async || {
        tokio::time::timeout(Duration::from_millis(20), node.columns("t1")).await.is_ok()
    })
    .await;
}
