//! Rotated and compressed files, and files that grow or are rotated while they are read.

use std::io::Write as _;
use std::time::SystemTime;

use futures::StreamExt;

use super::{SETTLED, combined, numbered, settle};
use crate::formats::compressed;
use crate::support::{Folder, TestNode, lines, no_rescan_limits, two_thread_options, wait_until_settled, with_timeout};

/// Numbers in paths such as `/17`, in the order of the rows.
fn numbers_of(rows: &str) -> Vec<usize> {
    rows.lines().map(|path| path.trim_start_matches('/').parse().unwrap()).collect()
}

async fn rest_of(stream: &mut tidegate_query::QueryRows) -> String {
    let mut batches = Vec::new();
    while let Some(batch) = with_timeout("a batch", stream.batches.next()).await {
        batches.push(batch.unwrap());
    }
    lines(&batches)
}

fn append(folder: &Folder, name: &str, text: &str) {
    std::fs::File::options().append(true).open(folder.join(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn rotated_files_are_one_table_from_old_to_new() {
    let folder = Folder::with(&[("access.log", &numbered(30..40)), ("access.log.1", &numbered(20..30))]);
    folder.write("access.log.2.gz", compressed("gzip", numbered(10..20).as_bytes()).unwrap());
    folder.write("access.log.10.zst", compressed("zstd", numbered(0..10).as_bytes()).unwrap());
    folder.write("access.log.1.gz", compressed("gzip", numbered(20..30).as_bytes()).unwrap());
    folder.write("error.log", "2024/03/01 12:00:00 [error] 1#1: x\n");
    let node = folder.database();
    assert_eq!(node.tables().await, "access: readable\nerror: readable");
    assert_eq!(numbers_of(&node.rows("SELECT path FROM access").await), (0..40).collect::<Vec<_>>());
    assert_eq!(
        node.rows("SELECT entry_file, count(*), min(entry_offset) FROM access GROUP BY 1 ORDER BY 1").await,
        "access.log|10|0\naccess.log.1|10|0\naccess.log.10.zst|10|0\naccess.log.2.gz|10|0"
    );
    assert_eq!(node.rows("SELECT count(*) FROM access WHERE entry_file = 'access.log'").await, "10");
    let comment = node.catalog().await.tables[0].comment.clone().unwrap();
    assert_eq!(comment, "log of 4 files from oldest to newest, format combined");
}

#[tokio::test]
async fn an_incomplete_last_line_waits_while_the_file_is_written() {
    let folder = Folder::with(&[("access.log", &(numbered(0..5) + combined("/5", 200).trim_end()))]);
    // However slow the machine is, the file was written recently.
    let file = std::fs::File::options().append(true).open(folder.join("access.log")).unwrap();
    file.set_modified(SystemTime::now() + SETTLED).unwrap();
    let node = folder.database();
    assert_eq!(node.rows("SELECT count(*) FROM access").await, "5", "it is being written");
    settle(&folder, "access.log");
    assert_eq!(node.rows("SELECT count(*) FROM access").await, "6", "nobody writes to it");
}

/// A log with so many lines that no query has read it when its first batch arrives.
fn large_log() -> (Folder, TestNode) {
    let folder = Folder::with(&[("access.log.1", &numbered(0..50_000)), ("access.log", &numbered(50_000..100_000))]);
    let node = folder.database();
    (folder, node)
}

#[tokio::test]
async fn lines_that_are_appended_while_a_query_reads_are_of_the_next_query() {
    let (folder, node) = large_log();
    let (_job, mut stream) = node.start("SELECT path FROM access").await;
    let first = lines(&[with_timeout("a batch", stream.batches.next()).await.unwrap().unwrap()]);
    append(&folder, "access.log", &numbered(100_000..100_100));
    let numbers = numbers_of(&format!("{first}\n{}", rest_of(&mut stream).await));
    assert!(numbers.iter().copied().eq(0..100_000), "{} lines", numbers.len());
    assert_eq!(node.rows("SELECT count(*) FROM access").await, "100100");
}

#[tokio::test]
async fn appended_lines_and_a_rotation_are_of_the_next_query() {
    let folder = Folder::with(&[("access.log", &numbered(0..5))]);
    let node = TestNode::open_with(vec![folder.path()], two_thread_options(), no_rescan_limits());
    let (path, count) = (folder.join("access.log"), async || node.rows("SELECT count(*) FROM access").await);
    for end in 5..8 {
        assert_eq!(count().await, end.to_string());
        wait_until_settled(&path).await;
        assert_eq!(count().await, end.to_string());
        append(&folder, "access.log", &numbered(end..end + 1));
    }
    assert_eq!(count().await, "8");
    wait_until_settled(&path).await;
    assert_eq!(count().await, "8");
    std::fs::rename(&path, folder.join("access.log.1")).unwrap();
    folder.write("access.log", numbered(8..10));
    assert_eq!(numbers_of(&node.rows("SELECT path FROM access").await), (0..10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_rotation_while_a_query_reads_loses_and_repeats_nothing() {
    let (folder, node) = large_log();
    let (_job, mut stream) = node.start("SELECT path FROM access").await;
    let first = lines(&[with_timeout("a batch", stream.batches.next()).await.unwrap().unwrap()]);
    std::fs::rename(folder.join("access.log.1"), folder.join("access.log.2")).unwrap();
    std::fs::rename(folder.join("access.log"), folder.join("access.log.1")).unwrap();
    folder.write("access.log", numbered(100_000..100_010));
    let numbers = numbers_of(&format!("{first}\n{}", rest_of(&mut stream).await));
    assert!(numbers.iter().copied().eq(0..100_000), "{} lines", numbers.len());
    let numbers = numbers_of(&node.rows("SELECT path FROM access").await);
    assert!(numbers.iter().copied().eq(0..100_010), "{} lines after it", numbers.len());
}

#[tokio::test]
async fn a_rotation_that_copies_and_truncates_loses_nothing() {
    let (folder, node) = large_log();
    let plan = node.plan("SELECT path FROM access").await.unwrap();
    std::fs::rename(folder.join("access.log.1"), folder.join("access.log.2")).unwrap();
    std::fs::copy(folder.join("access.log"), folder.join("access.log.1")).unwrap();
    folder.write("access.log", numbered(100_000..100_010));
    let job = crate::support::TestJob::start().await;
    let mut stream = plan.run(&job.job).await.unwrap();
    let numbers = numbers_of(&rest_of(&mut stream).await);
    assert!(numbers.iter().copied().eq(0..100_000), "{} lines", numbers.len());
}

#[tokio::test]
async fn a_file_that_is_emptied_while_it_is_read_is_an_error() {
    let folder = Folder::with(&[("access.log", &numbered(0..200_000))]);
    let node = folder.database();
    let (_job, mut stream) = node.start("SELECT path FROM access").await;
    with_timeout("a batch", stream.batches.next()).await.unwrap().unwrap();
    folder.write("access.log", numbered(0..1));
    let mut last = None;
    while let Some(batch) = with_timeout("a batch", stream.batches.next()).await {
        last = Some(batch);
    }
    let error = last.unwrap().unwrap_err().to_string();
    assert!(error.contains("access.log cannot be read: it changed while it was being read; retry"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_scan_of_a_log_holds_some_batches_and_not_the_file() {
    let folder = Folder::new();
    let line = combined(&format!("/{}", "x".repeat(300)), 200);
    folder.write("access.log", line.repeat(200_000));
    let node = folder.database();
    let before = crate::memory::anonymous_bytes();
    let (_job, mut stream) = node.start("SELECT * FROM access").await;
    let (mut count, mut most) = (0, 0);
    while let Some(batch) = with_timeout("a batch", stream.batches.next()).await {
        count += batch.unwrap().num_rows();
        most = most.max(crate::memory::anonymous_bytes());
    }
    assert_eq!(count, 200_000);
    let grown = most.saturating_sub(before);
    assert!(grown < 64 << 20, "anonymous memory grew by {grown} bytes over a file of 80 MB");
}
