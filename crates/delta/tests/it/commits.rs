//! Versions, conflicts, checkpoints, interrupted writes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::datatypes::{DataType, Field, Schema};
use serde_json::{Value, json};
use tempfile::tempdir;
use tidegate_delta::{
    CompactionOptions, DataFileWriter, DeltaCommit, DeltaError, DeltaTable, OPTIMIZE, WriterOptions, plan_compaction,
    unreferenced_files, verify_file,
};

use super::fixture::{append, names, names_schema, numbers, rows, write};

fn create(folder: &Path) -> DeltaTable {
    DeltaTable::create(folder, &names_schema(), &[]).unwrap()
}

fn open(folder: &Path) -> DeltaTable {
    DeltaTable::open(folder).unwrap().unwrap()
}

#[test]
fn a_folder_without_log_has_no_table() {
    let folder = tempdir().unwrap();
    assert!(DeltaTable::open(folder.path()).unwrap().is_none());
    assert!(DeltaTable::open(&folder.path().join("missing")).unwrap().is_none());
}

#[test]
fn a_table_is_created_once() {
    let folder = tempdir().unwrap();
    create(folder.path());
    assert!(matches!(DeltaTable::create(folder.path(), &names_schema(), &[]), Err(DeltaError::Exists(_))));
}

#[test]
fn commits_are_found_after_reopening() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    assert_eq!(append(&mut table, &names(&[(1, Some("a")), (2, None)])), 1);
    let before = table.snapshot();
    assert_eq!(append(&mut table, &names(&[(3, Some("c"))])), 2);
    let reopened = open(folder.path()).snapshot();
    assert_eq!(reopened.version, 2);
    assert_eq!(reopened.files, table.snapshot().files);
    assert_eq!(numbers(folder.path(), &reopened), [1, 2, 3]);
    assert_eq!(numbers(folder.path(), &before), [1, 2]);
    for file in &reopened.files {
        verify_file(folder.path(), file).unwrap();
    }
}

#[test]
fn the_second_writer_of_a_version_fails() {
    let folder = tempdir().unwrap();
    let mut first = create(folder.path());
    let mut second = open(folder.path());
    append(&mut first, &names(&[(1, None)]));
    let add = write(folder.path(), &[], &names(&[(2, None)]));
    let commit = DeltaCommit { add, operation: "WRITE", ..DeltaCommit::default() };
    assert!(matches!(second.commit(commit), Err(DeltaError::Conflict(1))));
    assert_eq!(numbers(folder.path(), &open(folder.path()).snapshot()), [1]);
    assert!(second.snapshot().files.is_empty());
}

#[test]
fn a_checkpoint_and_the_log_give_the_same_table() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    for number in 0..120 {
        append(&mut table, &names(&[(number, Some("\"x\"\n\u{1F600}"))]));
        if number % 10 == 9 {
            let remove = vec![Arc::clone(&table.snapshot().files[0])];
            let transaction = Some(("writer".to_owned(), number));
            let commit = DeltaCommit { remove, transaction, operation: "DELETE", ..DeltaCommit::default() };
            table.commit(commit).unwrap();
        }
    }
    let log = folder.path().join("_delta_log");
    let checkpoint = log.join("00000000000000000100.checkpoint.parquet");
    let from_checkpoint = open(folder.path());
    // Entries before the checkpoint are not needed with it, and are enough without it.
    fs::rename(&checkpoint, log.join("aside")).unwrap();
    let replayed = open(folder.path());
    fs::rename(log.join("aside"), &checkpoint).unwrap();
    for version in 0..=100 {
        fs::remove_file(log.join(format!("{version:020}.json"))).unwrap();
    }
    let without_entries = open(folder.path());
    for other in [&replayed, &without_entries, &table] {
        assert_eq!(from_checkpoint.snapshot().files, other.snapshot().files);
        assert_eq!(from_checkpoint.snapshot().schema, other.snapshot().schema);
        assert_eq!(other.transaction_version("writer"), Some(119));
        assert_eq!(other.transaction_version("other"), None);
    }
    assert_eq!(numbers(folder.path(), &without_entries.snapshot()), (12..120).collect::<Vec<_>>());
    fs::remove_file(&checkpoint).unwrap();
    assert!(matches!(DeltaTable::open(folder.path()), Err(DeltaError::Corrupt { .. })));
}

#[test]
fn files_without_commit_are_in_no_version() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    append(&mut table, &names(&[(1, None)]));
    let orphan = write(folder.path(), &[], &names(&[(2, None)]));
    let log = folder.path().join("_delta_log");
    fs::write(log.join(".half.tmp"), b"{\"add\":").unwrap();
    let table = open(folder.path());
    assert_eq!(numbers(folder.path(), &table.snapshot()), [1]);
    let later = SystemTime::now() + Duration::from_secs(60);
    let found = unreferenced_files(folder.path(), &table.snapshot(), later).unwrap();
    assert_eq!(found, [folder.path().join(&orphan[0].path)]);
    let earlier = SystemTime::now() - Duration::from_secs(60);
    assert!(unreferenced_files(folder.path(), &table.snapshot(), earlier).unwrap().is_empty());
}

#[test]
fn a_writer_that_does_not_finish_leaves_no_files() {
    let folder = tempdir().unwrap();
    let table = create(folder.path());
    let mut writer = DataFileWriter::new(folder.path(), &names_schema(), &[], WriterOptions::default()).unwrap();
    writer.write(&names(&[(1, None)])).unwrap();
    drop(writer);
    let later = SystemTime::now() + Duration::from_secs(60);
    assert!(unreferenced_files(folder.path(), &table.snapshot(), later).unwrap().is_empty());
}

#[test]
fn compaction_keeps_the_rows() {
    let earlier = SystemTime::now() - Duration::from_secs(1);
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    for number in 0..5 {
        append(&mut table, &names(&[(number, None)]));
    }
    let groups = plan_compaction(&table.snapshot(), CompactionOptions::default());
    assert_eq!(groups.len(), 1);
    let add = write(folder.path(), &[], &rows(folder.path(), &table.snapshot()));
    let remove = groups.into_iter().next().unwrap();
    table.commit(DeltaCommit { add, remove, operation: OPTIMIZE, ..DeltaCommit::default() }).unwrap();
    let snapshot = open(folder.path()).snapshot();
    assert_eq!((snapshot.files.len(), snapshot.rows()), (1, 5));
    assert_eq!(numbers(folder.path(), &snapshot), [0, 1, 2, 3, 4]);
    assert!(plan_compaction(&snapshot, CompactionOptions::default()).is_empty());
    // Files that were removed since then stay for readers.
    assert!(unreferenced_files(folder.path(), &snapshot, earlier).unwrap().is_empty());
}

/// Another program adds a rule for writers. Readers need not know it.
#[test]
fn a_table_with_an_unknown_rule_for_writers_can_be_read() {
    let features = ["appendOnly", "changeDataFeed"];
    for (protocol, feature) in [
        (json!({"minReaderVersion": 1, "minWriterVersion": 4}), "writer version 4"),
        (json!({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}), "changeDataFeed"),
    ] {
        let folder = tempdir().unwrap();
        let mut table = create(folder.path());
        append(&mut table, &names(&[(1, None)]));
        assert_eq!(table.snapshot().unsupported_writer_feature, None);
        let entry = folder.path().join("_delta_log/00000000000000000002.json");
        fs::write(entry, json!({"protocol": protocol}).to_string()).unwrap();
        let mut table = open(folder.path());
        assert_eq!(numbers(folder.path(), &table.snapshot()), [1]);
        assert_eq!(table.snapshot().unsupported_writer_feature.as_deref(), Some(feature));
        let add = write(folder.path(), &[], &names(&[(2, None)]));
        let refused = table.commit(DeltaCommit { add, operation: "WRITE", ..DeltaCommit::default() });
        let is_named = matches!(&refused, Err(DeltaError::UnsupportedWriterFeature(name)) if name == feature);
        assert!(is_named, "{refused:?}");
    }
}

#[test]
fn rows_of_an_append_only_table_are_only_put_into_other_files() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    append(&mut table, &names(&[(1, None)]));
    let log = folder.path().join("_delta_log");
    let first = fs::read_to_string(log.join("00000000000000000000.json")).unwrap();
    let mut actions = first.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut metadata = actions.find(|action| action.get("metaData").is_some()).unwrap();
    metadata["metaData"]["configuration"]["delta.appendOnly"] = "true".into();
    fs::write(log.join("00000000000000000002.json"), metadata.to_string()).unwrap();
    let mut table = open(folder.path());
    assert!(table.snapshot().is_append_only);
    append(&mut table, &names(&[(2, None)]));
    let remove = table.snapshot().files.clone();
    let delete = DeltaCommit { remove: remove.clone(), operation: "DELETE", ..DeltaCommit::default() };
    assert!(matches!(table.commit(delete), Err(DeltaError::UnsupportedWriterFeature(name)) if name == "appendOnly"));
    let add = write(folder.path(), &[], &rows(folder.path(), &table.snapshot()));
    table.commit(DeltaCommit { add, remove, operation: OPTIMIZE, ..DeltaCommit::default() }).unwrap();
    assert_eq!(numbers(folder.path(), &open(folder.path()).snapshot()), [1, 2]);
}

#[test]
fn columns_can_be_added_and_are_null_in_older_files() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    append(&mut table, &names(&[(1, Some("a"))]));
    let mut fields = names_schema().fields().to_vec();
    fields.push(Arc::new(Field::new("late", DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None), true)));
    let schema = Some(Schema::new(fields.clone()));
    table.commit(DeltaCommit { schema, operation: "ADD COLUMNS", ..DeltaCommit::default() }).unwrap();
    append(&mut table, &names(&[(2, Some("b"))]).project(&[0]).unwrap());
    let table = open(folder.path());
    let rows = rows(folder.path(), &table.snapshot());
    assert_eq!((rows.num_rows(), rows.column(2).null_count()), (2, 2));
    fields[0] = Arc::new(Field::new("n", DataType::Int32, true));
    for fields in [fields.clone(), fields[1..].to_vec()] {
        let commit = DeltaCommit { schema: Some(Schema::new(fields)), operation: "ALTER", ..DeltaCommit::default() };
        let mut table = open(folder.path());
        assert!(matches!(table.commit(commit), Err(DeltaError::InvalidSchema(_))));
    }
}

#[test]
fn a_commit_that_does_not_fit_changes_nothing() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    append(&mut table, &names(&[(1, None)]));
    let file = Arc::clone(&table.snapshot().files[0]);
    let twice = DeltaCommit { remove: vec![Arc::clone(&file), Arc::clone(&file)], ..DeltaCommit::default() };
    let again = DeltaCommit { add: vec![file.as_ref().clone()], ..DeltaCommit::default() };
    let mut missing = file.as_ref().clone();
    missing.path = "missing.parquet".to_owned();
    let missing = DeltaCommit { add: vec![missing], ..DeltaCommit::default() };
    for commit in [twice, again, missing] {
        table.commit(commit).unwrap_err();
    }
    assert_eq!(table.snapshot().version, 1);
    assert_eq!(open(folder.path()).snapshot().version, 1);
}

#[test]
fn other_columns_are_possible_when_all_files_go() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    append(&mut table, &names(&[(1, Some("a"))]));
    append(&mut table, &names(&[(2, Some("b"))]));
    let replaced = names(&[(3, Some("c"))]).project(&[1]).unwrap();
    let add = write(folder.path(), &[], &replaced);
    let mut remove = table.snapshot().files.clone();
    let schema = Some(replaced.schema().as_ref().clone());
    let some =
        DeltaCommit { add: add.clone(), remove: remove.split_off(1), schema: schema.clone(), ..DeltaCommit::default() };
    assert!(matches!(table.commit(some), Err(DeltaError::InvalidSchema(_))));
    let remove = table.snapshot().files.clone();
    table.commit(DeltaCommit { add, remove, schema, operation: "WRITE", ..DeltaCommit::default() }).unwrap();
    assert_eq!(rows(folder.path(), &open(folder.path()).snapshot()), replaced);
}

#[test]
fn the_log_before_an_old_checkpoint_is_deleted() {
    let folder = tempdir().unwrap();
    let mut table = create(folder.path());
    let log = folder.path().join("_delta_log");
    append(&mut table, &names(&[(0, None)]));
    table.checkpoint().unwrap();
    append(&mut table, &names(&[(1, None)]));
    append(&mut table, &names(&[(2, None)]));
    table.checkpoint().unwrap();
    let entries = || (0..4).filter(|version| log.join(format!("{version:020}.json")).exists()).collect::<Vec<_>>();
    assert_eq!(entries(), [0, 1, 2, 3]);
    let checkpoint = |version: u64| log.join(format!("{version:020}.checkpoint.parquet"));
    let old = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    fs::File::options().write(true).open(checkpoint(1)).unwrap().set_modified(old).unwrap();
    table.checkpoint().unwrap();
    assert_eq!(entries(), [1, 2, 3]);
    fs::File::options().write(true).open(checkpoint(3)).unwrap().set_modified(old).unwrap();
    append(&mut table, &names(&[(3, None)]));
    table.checkpoint().unwrap();
    assert_eq!(entries(), [3]);
    assert!(!checkpoint(1).exists() && checkpoint(3).exists() && checkpoint(4).exists());
    assert_eq!(numbers(folder.path(), &open(folder.path()).snapshot()), [0, 1, 2, 3]);
}
