//! A process that is killed at random points: what it acknowledged is there, once, and no write is there in part.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tidegate_ingest::delta::CompactionOptions;
use tidegate_ingest::{IngestOptions, LogOptions};
use tidegate_query::{IngestTarget, WriteRequest, WriteStart};

use super::fixture::{open_with, options, request, rows, schema, values, write};

/// The folder that the process of the test binary writes to until it is killed.
const FOLDER_VARIABLE: &str = "TIDEGATE_TEST_CRASH_FOLDER";
/// The number of its first write.
const FIRST_VARIABLE: &str = "TIDEGATE_TEST_CRASH_FIRST";
/// How often a process is killed; 20 without it.
const RUNS_VARIABLE: &str = "TIDEGATE_TEST_CRASHES";
const WRITERS: usize = 20;
/// A write has at most so many rows.
const ROWS_MAX: i64 = 1000;

/// Everything happens often.
fn busy() -> IngestOptions {
    IngestOptions {
        flush_rows: 500,
        flush_age: Duration::from_millis(5),
        inline_bytes_max: 8000,
        maintenance_interval: Duration::from_millis(10),
        vacuum_age: Duration::ZERO,
        compaction: CompactionOptions { files_min: 3, ..CompactionOptions::default() },
        log: LogOptions { segment_bytes: 20_000, ..LogOptions::default() },
        ..options()
    }
}

/// The rows of a write: few, or so many that they are in data files.
fn row_count(number: i64) -> i64 {
    if number % 9 == 0 { 300 + number % 50 } else { 1 + number % 40 }
}

fn request_of(number: i64) -> WriteRequest {
    WriteRequest { key: Some(number.to_string()), ..request(&format!("readings_{}", number % 3), schema()) }
}

/// Writes until the process is killed, and prints the number of each write that was acknowledged.
#[test]
fn process_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) else { return };
    let first: i64 = std::env::var(FIRST_VARIABLE).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = open_with(&folder, busy()).await;
        let next = Arc::new(AtomicI64::new(first));
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..WRITERS {
            let (folder, next) = (folder.clone(), next.clone());
            writers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let batch = rows(number * ROWS_MAX, row_count(number));
                    write(&folder, request_of(number), vec![batch]).await.unwrap();
                    let mut output = std::io::stdout().lock();
                    writeln!(output, "acknowledged {number}").unwrap();
                    output.flush().unwrap();
                }
            });
        }
        writers.join_all().await
    });
}

/// Runs the process until it has acknowledged so many writes, and returns all that it acknowledged.
fn run_and_kill(folder: &Path, first: i64, acknowledgements: usize) -> Vec<i64> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "folder::crashes::process_that_is_killed", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .env(FIRST_VARIABLE, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let output = BufReader::new(process.stdout.take().unwrap());
    for line in output.lines() {
        let line = line.unwrap();
        // The last line may be cut off by the end of the process; its write is acknowledged nevertheless or not.
        let Some(number) = line.split("acknowledged ").nth(1).and_then(|number| number.parse().ok()) else { continue };
        acknowledged.push(number);
        if acknowledged.len() == acknowledgements {
            process.kill().unwrap();
        }
    }
    process.wait().unwrap();
    assert!(acknowledged.len() >= acknowledgements, "the process ended by itself after {}", acknowledged.len());
    acknowledged
}

#[tokio::test]
async fn acknowledged_rows_are_there_once_after_a_kill_at_any_point() {
    let path = TempDir::new().unwrap();
    let runs = std::env::var(RUNS_VARIABLE).ok().and_then(|runs| runs.parse().ok()).unwrap_or(20_u64);
    let mut acknowledged: Vec<i64> = Vec::new();
    let mut first = 0;
    for run in 0..runs {
        let target = 1 + (RandomState::new().hash_one(run) % 150) as usize;
        acknowledged.extend(run_and_kill(path.path(), first, target));
        let folder = open_with(path.path(), busy()).await;
        let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for table in folder.tables() {
            for value in values(&folder, &table) {
                found.entry(value / ROWS_MAX).or_default().push(value);
            }
            assert!(folder.verify(&table).await.unwrap().is_intact(), "run {run}");
        }
        for (number, values) in &found {
            let start = number * ROWS_MAX;
            let expected: Vec<i64> = (start..start + row_count(*number)).collect();
            assert_eq!(*values, expected, "run {run}, write {number}: a part, or twice");
        }
        for number in &acknowledged {
            assert!(found.contains_key(number), "run {run}: write {number} was acknowledged and is lost");
        }
        // A write that was stored without an acknowledgement has its key too.
        for number in found.keys().rev().take(30) {
            let begun = folder.begin(request_of(*number)).await.unwrap();
            assert!(matches!(begun, WriteStart::Repeated(_)), "run {run}, write {number}: its key is forgotten");
        }
        first = found.keys().next_back().map_or(first, |last| last + 1).max(first);
        if run % 3 == 0 {
            folder.close().await.unwrap();
        } else {
            super::fixture::reopen(path.path(), folder, busy()).await.close().await.unwrap();
        }
    }
}
