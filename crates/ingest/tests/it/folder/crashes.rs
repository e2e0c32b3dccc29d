//! A process that is killed at random points: what it acknowledged is there, once, and no write is there in part.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use proptest::test_runner::Config;
use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::delta::{CompactionOptions, PartitionBy, WriterOptions};
use tidegate_ingest::{IngestFolder, IngestOptions, TableDeclaration, WriteAheadLogOptions};
use tidegate_query::{WriteMode, WriteRequest, WriteStart, WriteTarget};
use tokio::runtime::Runtime;

use super::fixture::{append, open_with, options, request, rows, schema, values, write};

/// The folder that the process of the test binary writes to until it is killed.
const FOLDER_VARIABLE: &str = "TIDEGATE_TEST_CRASH_FOLDER";
/// The number of its first write.
const FIRST_VARIABLE: &str = "TIDEGATE_TEST_CRASH_FIRST";
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
        // Rows of the third partition wait on disk.
        writer: WriterOptions { open_files_max: 2, memory_bytes_max: 500, ..WriterOptions::default() },
        log: WriteAheadLogOptions { segment_bytes: 20_000, ..WriteAheadLogOptions::default() },
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

/// The folder of the process that is killed, the number of its first write, and its runtime; `None` in a run of the tests.
fn process_to_kill() -> Option<(PathBuf, i64, Runtime)> {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from)?;
    let first = std::env::var(FIRST_VARIABLE).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    Some((folder, first, runtime))
}

fn acknowledge(number: i64) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "acknowledged {number}").unwrap();
    output.flush().unwrap();
}

/// Writes until the process is killed, and prints the number of each write that was acknowledged.
#[test]
fn process_that_is_killed() {
    let Some((folder, first, runtime)) = process_to_kill() else { return };
    runtime.block_on(async {
        let folder = open_with(&folder, expiring()).await;
        let next = Arc::new(AtomicI64::new(first));
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..WRITERS {
            let (folder, next) = (folder.clone(), next.clone());
            writers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let batch = rows(number * ROWS_MAX, row_count(number));
                    // So that old partitions are removed meanwhile.
                    append(&folder, EXPIRING, number * ROWS_MAX, 1).await;
                    write(&folder, request_of(number), vec![batch]).await.unwrap();
                    acknowledge(number);
                }
            });
        }
        writers.join_all().await
    });
}

/// Runs the process of a test until it has acknowledged so many writes, and returns all that it acknowledged.
fn run_and_kill(process: &str, folder: &Path, first: i64, acknowledgements: usize) -> Vec<i64> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("folder::crashes::{process}"), "--nocapture"])
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

/// How often a process is killed.
fn runs() -> u64 {
    u64::from(Config::default().cases.div_ceil(32))
}

/// After how many acknowledgements a process is killed.
fn random_target(run: u64) -> usize {
    1 + (RandomState::new().hash_one(run) % 150) as usize
}

#[tokio::test]
async fn acknowledged_rows_are_there_once_after_a_kill_at_any_point() {
    let path = TempDir::new().unwrap();
    let mut acknowledged: Vec<i64> = Vec::new();
    let mut first = 0;
    for run in 0..runs() {
        let target = random_target(run);
        acknowledged.extend(run_and_kill("process_that_is_killed", path.path(), first, target));
        let folder = open_with(path.path(), expiring()).await;
        let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for table in folder.tables() {
            let stored = if table == EXPIRING { Vec::new() } else { values(&folder, &table) };
            for value in stored {
                found.entry(value / ROWS_MAX).or_default().push(value);
            }
            assert_eq!(folder.verify(&table).await.unwrap().problems, [], "run {run}");
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
            super::fixture::reopen(path.path(), folder, expiring()).await.close().await.unwrap();
        }
    }
}

const RETRY_AFTER: Duration = Duration::from_millis(1);
const TRIES_MAX: usize = 10_000;
const CHANGED: &str = "changed";
const EXPIRING: &str = "expiring";
/// 2100-01-01 in seconds; older rows of `EXPIRING` are removed.
const RECENT: i64 = 4_102_444_800;

/// A table whose old partitions are removed all the time.
fn expiring() -> IngestOptions {
    let declaration = TableDeclaration {
        partition_by: vec![PartitionBy::Day("time".to_owned())],
        retention: Some(Duration::from_secs(30 * 24 * 60 * 60)),
        ..TableDeclaration::default()
    };
    IngestOptions { tables: [(EXPIRING.to_owned(), declaration)].into(), ..busy() }
}

/// What the change `number` makes of `values`: it drops the table, replaces its rows, or adds some.
fn changed(number: i64, mut values: Vec<i64>) -> Vec<i64> {
    let added = number * ROWS_MAX..number * ROWS_MAX + row_count(number);
    match number % 7 {
        6 => Vec::new(),
        0 | 3 => added.collect(),
        _ => {
            values.extend(added);
            values
        }
    }
}

/// Rows of a table that was dropped are refused while a step of the upkeep has its files.
async fn store_when_possible(folder: &IngestFolder, mode: WriteMode, batch: RecordBatch) {
    for _ in 0..TRIES_MAX {
        let request = WriteRequest { mode, ..request(CHANGED, schema()) };
        match write(folder, request, vec![batch.clone()]).await {
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::Unavailable => tokio::time::sleep(RETRY_AFTER).await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the dropped table stays");
}

async fn change(folder: &IngestFolder, number: i64) {
    let (first, count) = (number * ROWS_MAX, row_count(number));
    match number % 7 {
        // The table may have been dropped already, by the same change of a process that was killed.
        6 => drop(folder.drop_table(CHANGED).await),
        0 | 3 => store_when_possible(folder, WriteMode::Replace, rows(first, count)).await,
        _ => store_when_possible(folder, WriteMode::Append, rows(first, count)).await,
    }
    append(folder, EXPIRING, first, 3).await;
    append(folder, EXPIRING, RECENT + first, 3).await;
}

/// Changes its tables, one change after the other, until the process is killed.
#[test]
fn process_that_changes_tables_and_is_killed() {
    let Some((folder, first, runtime)) = process_to_kill() else { return };
    runtime.block_on(async {
        let folder = open_with(&folder, expiring()).await;
        for number in first.. {
            change(&folder, number).await;
            acknowledge(number);
        }
    });
}

#[tokio::test]
async fn replaced_dropped_and_expired_tables_survive_a_kill_at_any_point() {
    let path = TempDir::new().unwrap();
    let (mut first, mut known) = (0, Vec::new());
    let mut recent: Vec<i64> = Vec::new();
    for run in 0..runs() {
        let process = "process_that_changes_tables_and_is_killed";
        let last = *run_and_kill(process, path.path(), first, random_target(run)).last().unwrap();
        let acknowledged = (first..=last).fold(known, |values, number| changed(number, values));
        let folder = open_with(path.path(), expiring()).await;
        let found = match folder.tables().iter().any(|table| table == CHANGED) {
            true => values(&folder, CHANGED),
            false => Vec::new(),
        };
        // The next change may be there too, but only as a whole.
        let next = changed(last + 1, acknowledged.clone());
        assert!(found == acknowledged || found == next, "run {run}, change {last}: {} rows", found.len());
        // Of a change without an acknowledgement, rows that expire may be there.
        recent.extend((first..=last).flat_map(|number| RECENT + number * ROWS_MAX..RECENT + number * ROWS_MAX + 3));
        let kept = values(&folder, EXPIRING);
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]), "run {run}: a row is there twice");
        let lost = recent.iter().find(|value| kept.binary_search(value).is_err());
        assert!(lost.is_none(), "run {run}: {lost:?} was acknowledged and is lost");
        for table in folder.tables() {
            assert_eq!(folder.verify(&table).await.unwrap().problems, [], "run {run}");
        }
        folder.close().await.unwrap();
        // A number is used once, because its rows may be there.
        (first, known) = (last + 2, found);
    }
}
