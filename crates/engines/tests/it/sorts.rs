//! Sorts with little memory: they spill, wait for memory, and give the same rows as with much memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use futures::StreamExt;
use futures::future::join_all;
use tidegate_engines::EngineOptions;

use crate::support::{Folder, TestNode, lines, wait_until, with_timeout, write_parquet};

/// Rows of an id, a text of 32 characters in no order, and a number.
fn keys(count: i64) -> RecordBatch {
    let scattered = |id: i64| u128::from(id.unsigned_abs()).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    let keys: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..count).map(|id| format!("{:032x}", scattered(id)))));
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..count).map(|id| i32::try_from(id % 7).unwrap())));
    RecordBatch::try_from_iter([("id", ids), ("key", keys), ("number", numbers)]).unwrap()
}

fn memory(bytes: usize) -> EngineOptions {
    EngineOptions { threads: 2, ..EngineOptions::with_memory(bytes) }
}

/// The rows of `sql` and the largest number of bytes that were spilled.
async fn sorted_rows(node: &TestNode, sql: &str) -> (String, u64) {
    let (_job, mut rows) = node.start(sql).await;
    let (mut batches, mut spilled) = (Vec::new(), 0);
    while let Some(batch) = with_timeout("a sorted batch", rows.batches.next()).await {
        batches.push(batch.unwrap_or_else(|error| panic!("{sql}: {error}")));
        spilled = spilled.max(node.engine.spilled_bytes());
        let (used, limit) = (node.engine.memory_used_bytes(), node.engine.options().memory_bytes);
        assert!(used <= limit, "{sql}: {used} of {limit} bytes");
    }
    (lines(&batches), spilled)
}

#[tokio::test]
async fn sorts_with_little_memory_spill_and_give_the_same_rows() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(120_000), 40_000);
    let unlimited = folder.database_with(memory(1 << 30));
    for sql in [
        "SELECT * FROM t ORDER BY key",
        "SELECT * FROM t ORDER BY key DESC, id",
        "SELECT id, number FROM t ORDER BY number DESC, id",
        "SELECT id FROM t ORDER BY number > 3, id % 2 = 0, id",
        "SELECT id, row_number() OVER (PARTITION BY number ORDER BY key) AS n FROM t ORDER BY n, id",
        "SELECT * FROM t ORDER BY key LIMIT 110000 OFFSET 10",
        "SELECT key, count(*) AS n FROM t GROUP BY key ORDER BY n, key",
    ] {
        let (expected, _) = sorted_rows(&unlimited, sql).await;
        for bytes in [12 << 20, 36 << 20] {
            let node = folder.database_with(memory(bytes));
            let (rows, spilled) = sorted_rows(&node, sql).await;
            // Comparing with `assert_eq` would print all rows.
            assert!(rows == expected, "{sql}: other rows with {bytes} bytes of memory");
            // Some of the others fit.
            let is_large = sql.starts_with("SELECT *") && bytes == 12 << 20;
            assert!(spilled > 0 || !is_large, "{sql}: nothing was spilled");
            node.wait_until_idle().await;
        }
    }
}

/// A statement without ORDER BY returns the rows of a sorted subquery in its order.
#[tokio::test]
async fn the_output_keeps_the_order_of_a_subquery() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(20_000), 1_000);
    let node = folder.database_with(memory(1 << 30));
    for (unordered, ordered) in [
        ("SELECT * FROM (SELECT * FROM t ORDER BY key) s", "SELECT * FROM t ORDER BY key"),
        (
            "SELECT id % 10 AS d FROM (SELECT id FROM t ORDER BY number, key DESC) s WHERE id % 3 = 0",
            "SELECT id % 10 AS d FROM t WHERE id % 3 = 0 ORDER BY number, key DESC",
        ),
        (
            "WITH s AS (SELECT id, key FROM t ORDER BY key LIMIT 500) SELECT id FROM s",
            "SELECT id FROM t ORDER BY key LIMIT 500",
        ),
    ] {
        assert!(node.rows(unordered).await == node.rows(ordered).await, "{unordered}");
    }
}

#[tokio::test]
async fn rows_of_many_kilobytes_are_sorted() {
    let folder = Folder::new();
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..3_000_i64).map(|id| format!("{:04}", id * 7 % 3_000).repeat(5_000)),
    ));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3_000));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    write_parquet(&folder.join("wide.parquet"), &batch, 1_000);
    let node = folder.database_with(memory(40 << 20));
    let (rows, spilled) = sorted_rows(&node, "SELECT left(text, 4) AS start, id FROM wide ORDER BY text").await;
    // 7 and 3,000 have no common factor, so each key occurs once.
    let starts: Vec<&str> = rows.lines().map(|line| line.split_once('|').unwrap().0).collect();
    let expected: Vec<String> = (0..3_000).map(|key| format!("{key:04}")).collect();
    assert!(starts == expected, "the rows are not sorted");
    assert!(spilled > 0, "nothing was spilled");
}

#[tokio::test]
async fn many_sorts_at_once_wait_for_memory() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(20_000), 20_000);
    let node = folder.database_with(memory(24 << 20));
    let sql = "SELECT * FROM t ORDER BY key";
    let expected = node.rows(sql).await;
    let answers = join_all((0..50).map(|_| node.try_rows(sql))).await;
    for rows in answers {
        assert!(rows.unwrap() == expected, "other rows than alone");
    }
    node.wait_until_idle().await;
}

#[tokio::test]
async fn many_sorts_at_once_spill_and_hold_little_memory() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(40_000), 40_000);
    // Far more than all of them need to sort in memory.
    let node = folder.database_with(memory(2 << 30));
    let read = || async {
        let (_job, mut rows) = node.start("SELECT key, id FROM t ORDER BY key").await;
        let (mut count, mut most, mut last) = (0, 0, String::new());
        while let Some(batch) = with_timeout("a sorted batch", rows.batches.next()).await {
            let batch = lines(&[batch.unwrap()]);
            assert!(batch.lines().is_sorted() && batch >= last, "the rows are not sorted");
            last = batch.lines().last().unwrap_or_default().to_owned();
            count += batch.lines().count();
            most = most.max(node.engine.memory_used_bytes());
        }
        assert_eq!(count, 40_000);
        most
    };
    let most = join_all((0..30).map(|_| read())).await.into_iter().max().unwrap_or_default();
    // Some 10 MiB a sort, and more for those that began before the others, as on a loaded machine. Alone, each has 48 MiB.
    assert!(most < (30 * 48 / 2) << 20, "{most} bytes for 30 sorts");
    node.wait_until_idle().await;
}

#[tokio::test]
async fn sort_waits_for_memory_for_a_limited_time() {
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(100_000), 20_000);
    // Beside one sort, this is less than another one needs at least.
    let options =
        EngineOptions { query_memory_bytes: 5 << 20, memory_wait: Duration::from_millis(50), ..memory(5 << 20) };
    let node = folder.database_with(options);
    let sql = "SELECT * FROM t ORDER BY key";
    let (_job, mut paused) = node.start(sql).await;
    with_timeout("the first batch", paused.batches.next()).await.unwrap().unwrap();
    insta::assert_snapshot!(node.refusal(sql).await, @r"
    too_large: not enough memory is available while other queries run
    Retry later, or request less: filter, aggregate, or set a smaller limit.
    ");
    assert_eq!(
        node.rows("SELECT id FROM t WHERE id < 3 ORDER BY key").await.lines().count(),
        3,
        "a small sort needs little"
    );
    drop(paused);
    node.wait_until_idle().await;
    assert_eq!(node.rows(sql).await.lines().count(), 100_000);
}

fn spill_folders(root: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn spilled_files_lie_in_a_private_folder_below_the_named_one() {
    let spill = Folder::new();
    let options = EngineOptions { spill_folder: Some(spill.path()), ..memory(12 << 20) };
    let folder = Folder::new();
    write_parquet(&folder.join("t.parquet"), &keys(200_000), 60_000);
    let node = folder.database_with(options);
    let (_job, mut rows) = node.start("SELECT * FROM t ORDER BY key").await;
    with_timeout("the first batch", rows.batches.next()).await.unwrap().unwrap();
    assert!(node.engine.spilled_bytes() > 0);
    let own = spill_folders(&spill.path());
    assert_eq!(own.len(), 1, "{own:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(own[0].metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    drop((rows, node));
    wait_until("the end of the spill folder", || spill_folders(&spill.path()).is_empty()).await;
}

#[tokio::test]
async fn folders_of_killed_processes_are_removed_at_start() {
    let (spill, folder) = (Folder::new(), Folder::with(&[("t.csv", "a\n1\n")]));
    let options = || EngineOptions { spill_folder: Some(spill.path()), ..memory(64 << 20) };
    let living = folder.database_with(options());
    let of_living = spill_folders(&spill.path());
    spill.write("tidegate-spill-killed/lock", "");
    spill.write("tidegate-spill-killed/datafusion-x/spilled", "rows");
    // It may belong to a process whose lock file something else removed.
    spill.write("tidegate-spill-unlocked/spilled", "rows");
    spill.write("other/kept", "of another program");
    let second = folder.database_with(options());
    let remaining = spill_folders(&spill.path());
    assert_eq!(remaining.len(), 4, "{remaining:?}");
    let kept = [spill.join("other"), spill.join("tidegate-spill-unlocked")];
    assert!(kept.iter().chain(&of_living[..1]).all(|folder| remaining.contains(folder)), "{remaining:?}");
    drop((living, second));
    let is_ended = || spill_folders(&spill.path()).iter().all(|folder| kept.contains(folder));
    wait_until("the end of both folders", is_ended).await;
}
