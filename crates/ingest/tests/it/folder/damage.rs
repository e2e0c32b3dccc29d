//! Damaged files: each costs its table, which says so until the owner acts. All others go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest::{IngestFolder, IngestOptions, LogOptions, lost_tables};
use tidegate_query::{IngestMaintenance, IngestTarget, WriteRequest, WriteStart};

use super::fixture::{append, open, open_with, options, range, replace, request, rows, schema, values, write};

/// The bytes of the header of a segment, and of that of a record.
const SEGMENT_HEADER_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 24;

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The folder as a crash leaves it: what only the log has stays there.
fn crashed(folder: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_folder(folder, copy.path());
    copy
}

/// The only segment of a log.
fn segment(folder: &Path, log: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join(".tidegate").join(log)).unwrap().map(|entry| entry.unwrap().path());
    let segments: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    let [segment] = segments.as_slice() else { panic!("{segments:?}") };
    segment.clone()
}

/// Where the records of a segment begin and end.
fn records(segment: &Path) -> Vec<std::ops::Range<usize>> {
    let content = fs::read(segment).unwrap();
    let mut records = Vec::new();
    let mut start = SEGMENT_HEADER_BYTES;
    while let Some(length) = content.get(start + 8..start + 12) {
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        records.push(start..start + RECORD_HEADER_BYTES + length);
        start += RECORD_HEADER_BYTES + length;
    }
    assert_eq!(start, content.len());
    records
}

fn change(file: &Path, position: usize) {
    let mut content = fs::read(file).unwrap();
    content[position] ^= 0x10;
    fs::write(file, content).unwrap();
}

async fn refused(folder: &IngestFolder, table: &str) -> Error {
    let error = folder.begin(request(table, schema())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(folder.view(table).is_none());
    error
}

/// A crashed folder whose second record has rows of `events`; the others have rows of `readings` and again of `events`.
async fn two_tables() -> TempDir {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 100, 5).await;
    append(&folder, "readings", 10, 5).await;
    append(&folder, "events", 200, 3).await;
    crashed(path.path())
}

fn closed(folder: &IngestFolder) -> Vec<String> {
    folder.closed_tables().into_keys().collect()
}

#[tokio::test]
async fn a_changed_byte_of_a_record_closes_its_table_alone() {
    let whole = two_tables().await;
    let record = records(&segment(whole.path(), "log"))[1].clone();
    for position in record.clone().step_by(29).chain([record.end - 1]) {
        let path = crashed(whole.path());
        change(&segment(path.path(), "log"), position);
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"], "{position}");
        let error = refused(&folder, "events").await;
        let place = format!(".tidegate/log/00000000000000000001.log is damaged at byte {} ", record.start);
        for part in [
            "table \"events\" is closed",
            "the record 2 of the log, with 5 rows, is lost",
            place.as_str(),
            "delete the file .tidegate/damaged/events.json",
        ] {
            assert!(error.message().contains(part), "{position}: {part}: {error}");
        }
        assert_eq!(values(&folder, "readings"), range(0, 15), "{position}");
        append(&folder, "readings", 15, 1).await;
        append(&folder, "new", 0, 1).await;
        assert_eq!(folder.damage(), [""; 0]);
        folder.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_table_stays_closed_until_its_owner_accepts_the_loss() {
    let path = two_tables().await;
    let log = segment(path.path(), "log");
    let damaged = records(&log)[1].start + RECORD_HEADER_BYTES + 20;
    change(&log, damaged);
    for _ in 0..2 {
        let folder = open(path.path()).await;
        let status = IngestMaintenance::status(&*folder);
        let errors: Vec<_> = status.iter().map(|status| (status.table.as_str(), status.last_error.is_some())).collect();
        assert_eq!(errors, [("events", true), ("readings", false)]);
        let verified = IngestMaintenance::verify(&*folder, "events").await.unwrap();
        assert!(verified.problems[0].contains("is lost"), "{verified:?}");
        refused(&folder, "events").await;
        assert_eq!(folder.tables(), ["events", "readings"]);
        append(&folder, "readings", 15, 1).await;
        // The log forgets its records.
        folder.close().await.unwrap();
    }
    assert!(lost_tables(path.path()).unwrap()["events"].contains("is lost"));
    let copy = path.path().join(".tidegate/damaged/00000000000000000001.log");
    assert!(fs::metadata(copy).unwrap().len() > damaged as u64);
    fs::remove_file(path.path().join(".tidegate/damaged/events.json")).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), [""; 0]);
    assert_eq!(values(&folder, "events"), range(200, 203));
    append(&folder, "events", 203, 2).await;
    assert_eq!(values(&folder, "events"), range(200, 205));
}

#[tokio::test]
async fn a_table_that_is_dropped_or_replaced_has_lost_nothing() {
    let path = two_tables().await;
    change(&segment(path.path(), "log"), records(&segment(path.path(), "log"))[1].end - 1);
    let folder = open(path.path()).await;
    folder.drop_table("events").await.unwrap();
    append(&folder, "events", 300, 2).await;
    let path = crashed(path.path());
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(300, 302));
    assert!(lost_tables(path.path()).unwrap().is_empty());

    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 5).await;
    replace(&folder, "events", 10, 5).await;
    let path = crashed(path.path());
    let log = segment(path.path(), "log");
    change(&log, records(&log)[0].end - 1);
    assert_eq!(values(&*open(path.path()).await, "events"), range(10, 15));
}

/// A record whose rows were moved was acknowledged, so its damage is no incomplete end.
#[tokio::test]
async fn a_damaged_last_record_does_not_give_its_number_away() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 100, 5).await;
    folder.flush("events").await.unwrap();
    let path = crashed(path.path());
    let log = segment(path.path(), "log");
    change(&log, records(&log)[1].end - 1);
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), [""; 0]);
    assert_eq!(values(&folder, "events"), range(100, 105));
    assert_eq!(append(&folder, "events", 105, 5).await.sequence, 3);
    folder.close().await.unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(100, 110));
    assert_eq!(values(&folder, "readings"), range(0, 10));
}

#[tokio::test]
async fn a_damaged_header_of_a_segment_loses_nothing() {
    let whole = two_tables().await;
    for position in 0..SEGMENT_HEADER_BYTES {
        let path = crashed(whole.path());
        change(&segment(path.path(), "log"), position);
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), [""; 0], "{position}");
        assert_eq!(values(&folder, "readings"), range(0, 15), "{position}");
        assert_eq!(append(&folder, "readings", 15, 1).await.sequence, 5, "{position}");
    }
}

#[tokio::test]
async fn a_record_of_unknown_tables_closes_those_that_may_have_lost_rows() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "waiting", 0, 5).await;
    append(&folder, "created", 0, 5).await;
    append(&folder, "readings", 10, 5).await;
    folder.flush("readings").await.unwrap();
    let path = crashed(path.path());
    let log = segment(path.path(), "log");
    let record = records(&log)[2].clone();
    // Both of its descriptions.
    change(&log, record.start + RECORD_HEADER_BYTES + 10);
    change(&log, record.end - 20);
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "readings"), range(0, 15));
    assert_eq!(closed(&folder), ["waiting"]);
    refused(&folder, "waiting").await;
    let error = refused(&folder, "created").await;
    assert!(error.message().contains(".tidegate/damaged/new tables.json"), "{error}");
    assert!(folder.damage()[0].starts_with("no table can be created: "), "{:?}", folder.damage());
    folder.close().await.unwrap();
    fs::remove_dir_all(path.path().join(".tidegate/damaged")).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "waiting"), range(0, 5));
    append(&folder, "created", 0, 5).await;
}

#[tokio::test]
async fn a_missing_segment_closes_the_tables_that_it_may_have_had() {
    let path = TempDir::new().unwrap();
    let log = LogOptions { segment_bytes: 200, ..LogOptions::default() };
    let folder = open_with(path.path(), IngestOptions { log, ..options() }).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 0, 5).await;
    append(&folder, "readings", 10, 5).await;
    let path = crashed(path.path());
    fs::remove_file(path.path().join(".tidegate/log/00000000000000000002.log")).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), ["readings"]);
    let error = refused(&folder, "readings").await;
    assert!(error.message().contains("the records that follow are missing"), "{error}");
    refused(&folder, "events").await;
}

#[tokio::test]
async fn after_an_unreadable_segment_sequence_numbers_are_new() {
    let path = two_tables().await;
    fs::write(segment(path.path(), "log"), vec![0x55; 400]).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), [""; 0], "no table is known");
    let error = refused(&folder, "readings").await;
    assert!(error.message().contains("neither its header nor its first record can be read"), "{error}");
    folder.close().await.unwrap();
    fs::remove_dir_all(path.path().join(".tidegate/damaged")).unwrap();
    let folder = open(path.path()).await;
    assert!(append(&folder, "readings", 0, 1).await.sequence > 4);
    let path = crashed(path.path());
    assert_eq!(values(&*open(path.path()).await, "readings"), range(0, 1));
}

#[tokio::test]
async fn an_unsupported_delta_table_is_closed_and_the_log_keeps_its_rows() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 0, 10).await;
    for table in ["readings", "events"] {
        folder.flush(table).await.unwrap();
    }
    append(&folder, "events", 10, 5).await;
    let path = crashed(path.path());
    let delta_log = path.path().join("events/_delta_log");
    let entries = fs::read_dir(&delta_log).unwrap().map(|entry| entry.unwrap().path());
    let versions = entries.filter_map(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    let foreign = delta_log.join(format!("{:020}.json", versions.max().unwrap() + 1));
    let features = ["deletionVectors"];
    let protocol = json!({
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
    });
    fs::write(&foreign, json!({"protocol": protocol}).to_string()).unwrap();
    for round in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"]);
        let error = refused(&folder, "events").await;
        assert!(error.message().contains("deletionVectors") && error.message().contains("move the folder"), "{error}");
        assert_eq!(folder.drop_table("events").await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(folder.flush("events").await.is_err());
        append(&folder, "readings", 10 + round, 1).await;
        folder.close().await.unwrap();
    }
    fs::remove_file(foreign).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(0, 15));
    assert_eq!(values(&folder, "readings"), range(0, 12));
}

#[tokio::test]
async fn a_missing_data_file_of_the_log_closes_its_table() {
    let path = TempDir::new().unwrap();
    let small = IngestOptions { inline_bytes_max: 2000, ..options() };
    let folder = open_with(path.path(), small.clone()).await;
    append(&folder, "events", 0, 500).await;
    append(&folder, "readings", 0, 10).await;
    let path = crashed(path.path());
    let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
    let files = fs::read_dir(path.path().join("events")).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(is_data).unwrap();
    let content = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let folder = open_with(path.path(), small.clone()).await;
    assert_eq!(closed(&folder), ["events"]);
    let error = refused(&folder, "events").await;
    assert!(error.message().contains("cannot be found"), "{error}");
    append(&folder, "readings", 10, 1).await;
    folder.close().await.unwrap();
    fs::write(&file, content).unwrap();
    let folder = open_with(path.path(), small).await;
    assert_eq!(values(&folder, "events"), range(0, 500));
    assert_eq!(values(&folder, "readings"), range(0, 11));
}

fn with_key(key: &str) -> WriteRequest {
    WriteRequest { key: Some(key.to_owned()), ..request("readings", schema()) }
}

async fn is_repeat(folder: &Arc<IngestFolder>, key: &str) -> bool {
    matches!(folder.begin(with_key(key)).await.unwrap(), WriteStart::Repeated(_))
}

#[tokio::test]
async fn after_a_damaged_record_of_keys_unknown_keys_are_refused() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    for (position, key) in (0..).zip(["first", "second", "third"]) {
        write(&folder, with_key(key), vec![rows(position, 1)]).await.unwrap();
        folder.flush("readings").await.unwrap();
    }
    folder.close().await.unwrap();
    let keys = segment(path.path(), "keys");
    let saved = records(&keys);
    // After each record of keys comes an empty one, which protects the last one, too.
    assert_eq!(saved.len(), 6);
    let damage_and_open = async |record: usize| {
        let path = crashed(path.path());
        change(&segment(path.path(), "keys"), saved[record].end - 1);
        let folder = open(path.path()).await;
        (path, folder)
    };
    for (record, lost, known) in [(2, "second", ["first", "third"]), (4, "third", ["first", "second"])] {
        let (path, folder) = damage_and_open(record).await;
        for key in known {
            assert!(is_repeat(&folder, key).await, "{key}");
        }
        for key in [lost, "other"] {
            let error = folder.begin(with_key(key)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{key}: {error}");
            assert!(error.message().contains("delete the folder .tidegate/keys"), "{key}: {error}");
        }
        append(&folder, "readings", 3, 1).await;
        assert_eq!(values(&folder, "readings"), range(0, 4));
        assert!(folder.damage()[0].contains("keys of writes are lost: .tidegate/keys/"), "{:?}", folder.damage());
        assert!(folder.status()[0].last_error.is_some());
        folder.close().await.unwrap();
        fs::remove_dir_all(path.path().join(".tidegate/keys")).unwrap();
        assert!(!is_repeat(&open(path.path()).await, lost).await);
    }
    // A record without keys.
    let (_path, folder) = damage_and_open(3).await;
    assert_eq!(folder.damage(), [""; 0]);
    assert!(is_repeat(&folder, "second").await && !is_repeat(&folder, "other").await);
}
