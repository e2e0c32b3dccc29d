//! Damaged files: each costs its table, which says so until the owner acts. All others go on.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest::delta::StopFlag;
use tidegate_ingest::{IngestFolder, IngestOptions, WriteAheadLogOptions, lost_tables, verify_folder};
use tidegate_query::{IngestMaintenance, WriteMode, WriteRequest, WriteTarget};

use super::damaged_files::{
    RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, add_version, change, crashed, make_unsupported, make_unwritable,
    records, segment,
};
use super::fixture::{append, open, open_with, options, range, replace, request, schema, values};

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

/// It was acknowledged, as the mark behind it says, so it is no incomplete end.
#[tokio::test]
async fn a_changed_byte_of_the_last_record_closes_its_table_alone() {
    let whole = two_tables().await;
    let record = records(&segment(whole.path(), "log"))[3].clone();
    for position in record.clone().step_by(29).chain([record.end - 1]) {
        let path = crashed(whole.path());
        change(&segment(path.path(), "log"), position);
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"], "{position}");
        let error = refused(&folder, "events").await;
        let lost = "the record 4 of the log, with 3 rows, is lost";
        assert!(error.message().contains(lost), "{position}: {error}");
        assert!(error.message().contains("a record was changed after it was acknowledged"), "{position}: {error}");
        assert_eq!(values(&folder, "readings"), range(0, 15), "{position}");
        assert_eq!(append(&folder, "readings", 15, 1).await.sequence, 5, "{position}");
        append(&folder, "new", 0, 1).await;
        assert_eq!(folder.damage(), [""; 0]);
        folder.close().await.unwrap();
    }
}

/// Without its mark, the last record may be one that a crash of the system left incomplete.
#[tokio::test]
async fn an_incomplete_last_record_is_cut_off() {
    let path = two_tables().await;
    let log = segment(path.path(), "log");
    let record = records(&log)[3].clone();
    let content = fs::read(&log).unwrap();
    let mut changed = content[..record.end].to_vec();
    changed[record.end - 1] ^= 1;
    for end in [&content[..record.end - 1], &content[..record.start + 1], &changed] {
        let path = crashed(path.path());
        fs::write(segment(path.path(), "log"), end).unwrap();
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), [""; 0]);
        assert_eq!(values(&folder, "events"), range(100, 105));
        assert_eq!(append(&folder, "events", 200, 3).await.sequence, 4);
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
    let log = WriteAheadLogOptions { segment_bytes: 200, ..WriteAheadLogOptions::default() };
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
async fn an_unsupported_delta_table_is_closed_and_its_rows_are_kept() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 0, 10).await;
    for table in ["readings", "events"] {
        folder.flush(table).await.unwrap();
    }
    append(&folder, "events", 10, 5).await;
    let path = crashed(path.path());
    let foreign = make_unsupported(path.path(), "events");
    for round in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"]);
        let error = refused(&folder, "events").await;
        assert!(error.message().contains("deletionVectors") && error.message().contains("move events out"), "{error}");
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

/// Its rows can be read, also those that are only in the log.
#[tokio::test]
async fn a_delta_table_with_an_unknown_rule_for_writers_takes_no_rows_and_returns_those_that_it_has() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "readings", 0, 10).await;
    append(&folder, "events", 0, 10).await;
    folder.flush("events").await.unwrap();
    append(&folder, "events", 10, 5).await;
    let path = crashed(path.path());
    let foreign = make_unwritable(path.path(), "events");
    for round in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), [""; 0]);
        let notes = folder.notes();
        assert!(notes[0].starts_with("table \"events\" takes no rows: ") && notes.len() == 1, "{notes:?}");
        assert_eq!(values(&folder, "events"), range(0, 15));
        let error = folder.begin(request("events", schema())).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("writers of the table need the Delta feature \"changeDataFeed\""), "{error}");
        assert!(IngestMaintenance::flush(&*folder, "events").await.is_err());
        assert!(IngestMaintenance::compact(&*folder, "events").await.is_err());
        let verified = IngestMaintenance::verify(&*folder, "events").await.unwrap();
        assert_eq!((verified.file_rows, verified.log_rows, verified.problems.len()), (10, 5, 0), "{verified:?}");
        let status = IngestMaintenance::status(&*folder);
        let errors: Vec<_> = status.iter().map(|status| (status.table.as_str(), status.last_error.is_some())).collect();
        assert_eq!(errors, [("events", true), ("readings", false)]);
        append(&folder, "readings", 10 + round, 1).await;
        folder.close().await.unwrap();
    }
    let writable = crashed(path.path());
    fs::remove_file(writable.path().join(foreign.strip_prefix(path.path()).unwrap())).unwrap();
    let folder = open(writable.path()).await;
    assert_eq!(folder.notes(), [""; 0]);
    append(&folder, "events", 15, 5).await;
    folder.flush("events").await.unwrap();
    assert_eq!(values(&folder, "events"), range(0, 20));
    assert_eq!(values(&folder, "readings"), range(0, 12));
    // It can be removed, too, and its kept rows with it.
    let folder = open(path.path()).await;
    folder.drop_table("events").await.unwrap();
    append(&folder, "events", 100, 2).await;
    folder.close().await.unwrap();
    assert_eq!(values(&*open(path.path()).await, "events"), range(100, 102));
}

#[tokio::test]
async fn the_rows_of_an_append_only_table_cannot_be_replaced() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 10).await;
    folder.close().await.unwrap();
    let first = fs::read_to_string(path.path().join("events/_delta_log/00000000000000000000.json")).unwrap();
    let mut actions = first.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut metadata = actions.find(|action| action.get("metaData").is_some()).unwrap();
    metadata["metaData"]["configuration"]["delta.appendOnly"] = "true".into();
    add_version(path.path(), "events", &metadata);
    let folder = open(path.path()).await;
    let replacing = WriteRequest { mode: WriteMode::Replace, ..request("events", schema()) };
    let error = folder.begin(replacing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
    assert!(error.message().contains("delta.appendOnly"), "{error}");
    append(&folder, "events", 10, 5).await;
    folder.flush("events").await.unwrap();
    assert_eq!(values(&folder, "events"), range(0, 15));
}

#[tokio::test]
async fn a_file_in_the_place_of_a_table_closes_this_table() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append(&folder, "events", 0, 5).await;
    folder.flush("events").await.unwrap();
    append(&folder, "events", 5, 3).await;
    append(&folder, "readings", 0, 10).await;
    folder.flush("readings").await.unwrap();
    let path = crashed(path.path());
    let (events, aside) = (path.path().join("events"), path.path().join("events.aside"));
    fs::rename(&events, &aside).unwrap();
    fs::write(&events, "a file").unwrap();
    // It has taken the place of no table.
    fs::write(path.path().join("Readings"), "a file").unwrap();
    for round in 0..2 {
        let folder = open(path.path()).await;
        assert_eq!(closed(&folder), ["events"]);
        let error = refused(&folder, "events").await;
        let reason = "\"events\" is damaged: it is not a folder, and each table is one; ";
        assert!(error.message().contains(reason) && error.message().contains("move events out"), "{error}");
        append(&folder, "readings", 10 + round, 1).await;
        folder.close().await.unwrap();
    }
    let verified = verify_folder(path.path(), Some("events"), &StopFlag::default()).unwrap();
    assert!(verified[0].1.problems[0].1.contains("it is not a folder"), "{verified:?}");
    fs::remove_file(&events).unwrap();
    fs::rename(&aside, &events).unwrap();
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "events"), range(0, 8));
    assert_eq!(values(&folder, "readings"), range(0, 12));
}

/// Callers read the reasons, and need not know where the folder is.
#[tokio::test]
async fn reasons_name_files_without_the_folder_of_the_database() {
    let path = two_tables().await;
    let log = segment(path.path(), "log");
    change(&log, records(&log)[1].end - 1);
    let entry = path.path().join("broken/_delta_log/00000000000000000000.json");
    fs::create_dir_all(entry.parent().unwrap()).unwrap();
    fs::write(&entry, "no JSON").unwrap();
    let folder = open(path.path()).await;
    assert_eq!(closed(&folder), ["broken", "events"]);
    for (table, file) in [
        ("broken", "broken/_delta_log/00000000000000000000.json"),
        ("events", ".tidegate/log/00000000000000000001.log"),
    ] {
        let error = refused(&folder, table).await;
        assert!(error.message().contains(file), "{error}");
        assert!(!error.message().contains(path.path().to_str().unwrap()), "{error}");
    }
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
