//! Compaction, retention, unused files, verification.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tidegate_ingest::delta::{CompactionOptions, PartitionBy};
use tidegate_ingest::{IngestFolder, IngestOptions, TableDeclaration};

use super::fixture::{
    POLL, append, open, open_with, options, range, reopen, replace, request, rows, schema, values, values_of, write,
};

fn data_files(folder: &Path) -> Vec<PathBuf> {
    files_with_extension(folder, "parquet")
}

fn files_with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("_delta_log") {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                files.push(path);
            }
        }
    }
    files
}

/// Files are deleted as soon as nobody needs them.
fn eager() -> IngestOptions {
    IngestOptions { vacuum_age: Duration::ZERO, ..options() }
}

async fn append_files(folder: &IngestFolder, files: i64) {
    for number in 0..files {
        append(folder, "readings", number * 10, 10).await;
        folder.flush("readings").await.unwrap();
    }
}

/// Deletes unused files; those of the last millisecond only count as old in the next one.
async fn maintain_until(folder: &IngestFolder, files: usize) {
    loop {
        folder.maintain().await;
        let found = data_files(folder.view("readings").unwrap().folder()).len();
        assert!(found >= files, "{found} of {files} files are left");
        if found == files {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn small_files_are_joined_and_deleted_when_no_view_needs_them() {
    let path = TempDir::new().unwrap();
    let folder = open_with(path.path(), eager()).await;
    append_files(&folder, 8).await;
    append(&folder, "readings", 80, 10).await;
    let view = folder.view("readings").unwrap();
    assert_eq!(folder.compact("readings").await.unwrap(), 8);
    assert_eq!(folder.view("readings").unwrap().files().len(), 1);
    assert_eq!(values(&folder, "readings"), range(0, 90));
    for _ in 0..20 {
        folder.maintain().await;
    }
    assert_eq!(values_of(&view), range(0, 90), "a view keeps its files");
    drop(view);
    maintain_until(&folder, 1).await;
    assert_eq!(values(&folder, "readings"), range(0, 90));
    assert_eq!(folder.status()[0].compactions, 1);
    let folder = reopen(path.path(), folder, eager()).await;
    assert_eq!(values(&folder, "readings"), range(0, 90));
}

#[tokio::test]
async fn files_of_replaced_rows_and_of_the_log_are_handled() {
    let path = TempDir::new().unwrap();
    let small = IngestOptions { inline_bytes_max: 1000, ..eager() };
    let folder = open_with(path.path(), small.clone()).await;
    append(&folder, "readings", 0, 300).await;
    folder.flush("readings").await.unwrap();
    replace(&folder, "readings", 1000, 300).await;
    // The files of the log are needed, though no version has them.
    for _ in 0..5 {
        folder.maintain().await;
        assert_eq!(values(&folder, "readings"), range(1000, 1300));
    }
    replace(&folder, "readings", 2000, 300).await;
    folder.flush("readings").await.unwrap();
    maintain_until(&folder, 1).await;
    let folder = reopen(path.path(), folder, small).await;
    assert_eq!(values(&folder, "readings"), range(2000, 2300));
}

#[tokio::test]
async fn rows_older_than_the_retention_are_removed_by_partition() {
    let path = TempDir::new().unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    let today = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let declaration = TableDeclaration {
        partition_by: vec![PartitionBy::Day("time".to_owned())],
        retention: Some(30 * day),
        ..TableDeclaration::default()
    };
    let options = IngestOptions { tables: [("readings".to_owned(), declaration)].into(), ..eager() };
    let folder = open_with(path.path(), options.clone()).await;
    // A value is a number of seconds since 1970, so the first rows are old.
    let batches = vec![rows(0, 10), rows(today - 40 * 86_400, 10), rows(today - 86_400, 10)];
    write(&folder, request("readings", schema()), batches).await.unwrap();
    folder.flush("readings").await.unwrap();
    let version = folder.version();
    folder.maintain().await;
    assert_ne!(folder.version(), version);
    assert_eq!(values(&folder, "readings"), range(today - 86_400, today - 86_400 + 10));
    let folder = reopen(path.path(), folder, options).await;
    assert_eq!(values(&folder, "readings"), range(today - 86_400, today - 86_400 + 10));
    let by_other = TableDeclaration { partition_by: Vec::new(), retention: None, ..TableDeclaration::default() };
    folder.close().await.unwrap();
    let options = IngestOptions { tables: [("readings".to_owned(), by_other)].into(), ..eager() };
    let error = IngestFolder::open("plant", path.path().to_owned(), options).await.unwrap_err();
    assert!(error.to_string().contains("partitioned by"), "{error}");
}

#[tokio::test]
async fn a_changed_data_file_is_found_by_its_checksum() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append_files(&folder, 2).await;
    append(&folder, "readings", 20, 7).await;
    let intact = folder.verify("readings").await.unwrap();
    assert!(intact.is_intact());
    assert_eq!((intact.files, intact.file_rows, intact.log_rows), (2, 20, 7));
    let file = data_files(&path.path().join("readings")).pop().unwrap();
    let mut content = std::fs::read(&file).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(&file, content).unwrap();
    let damaged = folder.verify("readings").await.unwrap();
    assert_eq!(damaged.problems.len(), 1);
    assert_eq!(damaged.problems[0].0, file);
    assert!(folder.verify("other").await.is_err());
}

#[tokio::test]
async fn a_changed_record_of_the_log_is_found_while_the_log_is_open() {
    let path = TempDir::new().unwrap();
    let folder = open(path.path()).await;
    append_files(&folder, 1).await;
    append(&folder, "readings", 10, 7).await;
    append(&folder, "readings", 17, 3).await;
    replace(&folder, "others", 0, 5).await;
    let problems = async |table: &str| folder.verify(table).await.unwrap().problems;
    assert_eq!((problems("readings").await, problems("others").await), (Vec::new(), Vec::new()));
    let segment = files_with_extension(path.path(), "log").into_iter().max().unwrap();
    let content = std::fs::read(&segment).unwrap();
    let mut changed = content.clone();
    let middle = content.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&segment, changed).unwrap();
    for table in ["readings", "others"] {
        let found = problems(table).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, segment);
        assert!(found[0].1.contains("a record is incomplete or was changed"), "{found:?}");
    }
    // The marker of the segment begins its records and marks; a mark has no length.
    let is_mark =
        |start: &usize| content[*start..].starts_with(&content[12..20]) && content[start + 8..][..4] == [0_u8; 4];
    let marks: Vec<usize> = (32..content.len() - 24).filter(is_mark).collect();
    let mut changed = content.clone();
    changed[marks[0] + 20] ^= 1;
    std::fs::write(&segment, &changed).unwrap();
    for table in ["readings", "others"] {
        let found = problems(table).await;
        assert!(found.len() == 1 && found[0].1.contains("a mark was changed"), "{found:?}");
    }
    std::fs::write(&segment, &changed[..marks[1]]).unwrap();
    let found = problems("readings").await;
    assert!(found[0].1.contains("a mark was changed") && found[1].1.ends_with("is missing"), "{found:?}");
    std::fs::write(&segment, &content[..middle]).unwrap();
    assert_eq!(problems("readings").await.len(), 1, "acknowledged records are missing");
    std::fs::write(&segment, &content[..32]).unwrap();
    assert!(problems("readings").await[0].1.ends_with("is missing"), "{:?}", problems("readings").await);
    std::fs::write(&segment, content).unwrap();
    assert_eq!(problems("readings").await, Vec::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_intact_while_rows_are_written_and_moved() {
    let path = TempDir::new().unwrap();
    let busy = IngestOptions { flush_rows: 500, ..options() };
    let folder = open_with(path.path(), busy).await;
    append(&folder, "readings", 0, 1).await;
    let writer = {
        let folder = folder.clone();
        tokio::spawn(async move {
            for round in 0..200 {
                append(&folder, "readings", 1 + round * 10, 10).await;
            }
        })
    };
    while !writer.is_finished() {
        let found = folder.verify("readings").await.unwrap();
        assert!(found.is_intact(), "{:?}", found.problems);
    }
    writer.await.unwrap();
    assert_eq!(values(&folder, "readings"), range(0, 2001));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_flushes_compaction_and_deletion_run_at_once() {
    let path = TempDir::new().unwrap();
    let busy = IngestOptions {
        flush_rows: 100,
        inline_bytes_max: 3000,
        maintenance_interval: Duration::from_millis(1),
        vacuum_age: Duration::ZERO,
        compaction: CompactionOptions { files_min: 2, ..CompactionOptions::default() },
        ..options()
    };
    let folder = open_with(path.path(), busy.clone()).await;
    let tasks: Vec<_> = (0..4)
        .map(|writer| {
            let folder = folder.clone();
            tokio::spawn(async move {
                for number in 0..60 {
                    let count = if number % 6 == 0 { 150 } else { 30 };
                    let request = request("readings", schema());
                    write(&folder, request, vec![rows((writer * 60 + number) * 200, count)]).await.unwrap();
                    let view = folder.view("readings").unwrap();
                    assert_eq!(values_of(&view).len() as u64, view.rows());
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let expected =
        (0..240).flat_map(|write| range(write * 200, write * 200 + if write % 60 % 6 == 0 { 150 } else { 30 }));
    let expected: Vec<i64> = expected.collect();
    assert_eq!(values(&folder, "readings"), expected);
    folder.close().await.unwrap();
    assert!(folder.counters().compacted_files.load(std::sync::atomic::Ordering::Relaxed) > 0);
    let folder = open(path.path()).await;
    assert_eq!(values(&folder, "readings"), expected);
    assert!(folder.verify("readings").await.unwrap().is_intact());
}
