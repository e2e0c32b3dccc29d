//! Tables that are closed with rows in the log: the log forgets the rows of all others, and theirs are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::delta::StopFlag;
use tidegate_ingest::{IngestFolder, IngestOptions, WriteAheadLogOptions, verify_folder};
use tidegate_query::WriteTarget;

use super::damaged_files::{change, crashed, make_unsupported, make_unwritable, records};
use super::fixture::{append, open_with, options, range, request, rows, schema, values, writer};

const LOG_BYTES_MAX: u64 = 30_000;

/// A log that is full after ten writes of 100 rows.
fn small_log() -> IngestOptions {
    IngestOptions { log: WriteAheadLogOptions { segment_bytes: 4096, bytes_max: LOG_BYTES_MAX }, ..options() }
}

async fn open(path: &Path) -> Arc<IngestFolder> {
    open_with(path, small_log()).await
}

/// Stores and moves far more rows than fit into the log, from `first` on, and returns the next one.
async fn fill(folder: &IngestFolder, first: i64) -> i64 {
    for write in 0..40 {
        append(folder, "readings", first + write * 100, 100).await;
        folder.flush("readings").await.unwrap();
    }
    assert!(folder.log_bytes() <= LOG_BYTES_MAX, "{}", folder.log_bytes());
    first + 4000
}

fn closed(folder: &IngestFolder) -> Vec<String> {
    folder.closed_tables().into_keys().collect()
}

/// The folders of kept records of `events`.
fn kept(path: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let of_logs = entries(&path.join(".tidegate/kept"));
    of_logs.flat_map(|of_log| entries(&of_log.join("events")).collect::<Vec<_>>()).collect()
}

/// A folder after a crash. The rows 0 to 10 of `events` are in data files, those from 10 to 18 are only in the log.
async fn crashed_with_events() -> TempDir {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 10).await;
    folder.flush("events").await.unwrap();
    append(&folder, "events", 10, 5).await;
    append(&folder, "readings", 0, 1).await;
    append(&folder, "events", 15, 3).await;
    crashed(path.path())
}

#[tokio::test]
async fn a_delta_table_that_cannot_be_opened_holds_back_no_other_table() {
    let path = crashed_with_events().await;
    let foreign = make_unsupported(path.path(), "events");
    let mut next = 1;
    for _ in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"]);
        next = fill(&folder, next).await;
        folder.close().await.unwrap();
    }
    assert_eq!(kept(path.path()).len(), 1);
    fs::remove_file(foreign).unwrap();
    let found = verify_folder(path.path(), Some("events"), &StopFlag::default()).unwrap();
    assert!(found[0].1.is_intact(), "{found:?}");
    assert_eq!((found[0].1.file_rows, found[0].1.log_rows), (10, 8));
    // Crashes before and after the rows are moved.
    for is_moved in [false, true] {
        let crashed = crashed(path.path());
        let folder = open(crashed.path()).await;
        assert_eq!(values(&folder, "events"), range(0, 18));
        assert_eq!(values(&folder, "readings"), range(0, next));
        if is_moved {
            folder.flush("events").await.unwrap();
            assert!(kept(crashed.path()).is_empty());
        }
        let again = super::damaged_files::crashed(crashed.path());
        assert_eq!(values(&*open(again.path()).await, "events"), range(0, 18));
    }
}

#[tokio::test]
async fn rows_since_then_are_kept_too_and_those_of_a_dropped_table_do_not_return() {
    let path = crashed_with_events().await;
    let foreign = make_unsupported(path.path(), "events");
    open(path.path()).await.close().await.unwrap();
    fs::remove_file(foreign).unwrap();
    let path = {
        let folder = open(path.path()).await;
        append(&folder, "events", 18, 2).await;
        crashed(path.path())
    };
    let foreign = make_unsupported(path.path(), "events");
    open(path.path()).await.close().await.unwrap();
    assert_eq!(kept(path.path()).len(), 2);
    fs::remove_file(foreign).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(0, 20));
    folder.drop_table("events").await.unwrap();
    append(&folder, "events", 100, 2).await;
    folder.close().await.unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(100, 102));
    assert_eq!(values(&folder, "readings"), range(0, 1));
}

#[tokio::test]
async fn a_table_that_another_program_changes_is_closed_while_the_others_go_on() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 10).await;
    folder.flush("events").await.unwrap();
    append(&folder, "events", 10, 5).await;
    let mut begun = writer(&folder, request("events", schema())).await;
    begun.write(0, rows(15, 3)).await.unwrap();
    let foreign = make_unsupported(path.path(), "events");
    let error = folder.flush("events").await.unwrap_err().to_string();
    assert!(error.contains("table \"events\" is closed: ") && error.contains("deletionVectors"), "{error}");
    assert_eq!(closed(&folder), ["events"]);
    for error in [begun.commit().await.unwrap_err(), folder.begin(request("events", schema())).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("move events out"), "{error}");
    }
    let status = folder.status();
    let events = status.iter().find(|status| status.table == "events").unwrap();
    assert_eq!((events.waiting_rows, events.waiting_bytes), (0, 0), "they take no memory");
    let next = fill(&folder, 0).await;
    folder.close().await.unwrap();
    fs::remove_file(foreign).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(0, 15));
    assert_eq!(values(&folder, "readings"), range(0, next));
}

#[tokio::test]
async fn a_table_that_gets_an_unknown_rule_for_writers_returns_its_rows_while_the_others_go_on() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 10).await;
    folder.flush("events").await.unwrap();
    append(&folder, "events", 10, 5).await;
    let mut begun = writer(&folder, request("events", schema())).await;
    begun.write(0, rows(15, 3)).await.unwrap();
    let foreign = make_unwritable(path.path(), "events");
    let error = folder.flush("events").await.unwrap_err().to_string();
    assert!(error.contains("table \"events\" takes no rows: ") && error.contains("changeDataFeed"), "{error}");
    assert_eq!(begun.commit().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(closed(&folder), [""; 0]);
    let next = fill(&folder, 0).await;
    assert_eq!(values(&folder, "events"), range(0, 15));
    folder.close().await.unwrap();
    assert_eq!(kept(path.path()).len(), 1);
    fs::remove_file(foreign).unwrap();
    let folder = open(path.path()).await;
    folder.flush("events").await.unwrap();
    assert!(kept(path.path()).is_empty());
    assert_eq!(values(&folder, "events"), range(0, 15));
    assert_eq!(values(&folder, "readings"), range(0, next));
}

#[tokio::test]
async fn a_missing_data_file_holds_back_no_other_table() {
    let path = TempDir::new().unwrap();
    let small = IngestOptions { inline_bytes_max: 5000, ..small_log() };
    let folder = open_with(path.path(), small.clone()).await;
    append(&folder, "events", 0, 500).await;
    let path = crashed(path.path());
    let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    let mut files = fs::read_dir(path.path().join("events")).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(is_data).unwrap();
    let content = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    for round in 0..2 {
        let folder = open_with(path.path(), small.clone()).await;
        assert_eq!(closed(&folder), ["events"]);
        fill(&folder, round * 4000).await;
        folder.close().await.unwrap();
    }
    fs::write(&file, content).unwrap();
    let folder = open_with(path.path(), small).await;
    assert_eq!(values(&folder, "events"), range(0, 500));
    assert_eq!(values(&folder, "readings"), range(0, 8000));
}

#[tokio::test]
async fn a_damaged_kept_record_costs_its_rows() {
    let path = crashed_with_events().await;
    let foreign = make_unsupported(path.path(), "events");
    open(path.path()).await.close().await.unwrap();
    fs::remove_file(foreign).unwrap();
    let mut segments: Vec<PathBuf> =
        fs::read_dir(&kept(path.path())[0]).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    // That of the rows 10 to 15.
    let damaged = records(&segments[0])[0].end - 1;
    change(&segments[0], damaged);
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), ["events"]);
    let reason = &folder.closed_tables()["events"];
    assert!(reason.contains("with 5 rows, is lost: .tidegate/kept/"), "{reason}");
    folder.close().await.unwrap();
    assert!(kept(path.path()).is_empty(), "the other rows are moved");
    fs::remove_file(path.path().join(".tidegate/damaged/events.json")).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), [range(0, 10), range(15, 18)].concat());
}
