//! Writes of many partitions.

use std::fs;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use tempfile::TempDir;
use tidegate_core::ErrorKind;
use tidegate_ingest::delta::{PartitionBy, WriterOptions};
use tidegate_ingest::{IngestOptions, TableDeclaration};

use super::fixture::{open_with, options, request, rows, schema, values, write, writer};

const DAYS: i64 = 40;
const DAY_SECONDS: i64 = 86_400;

/// One table, by day. Rows of four partitions have open files, those of others wait on disk.
fn by_day(inline_bytes_max: usize) -> IngestOptions {
    let declaration =
        TableDeclaration { partition_by: vec![PartitionBy::Day("time".to_owned())], ..TableDeclaration::default() };
    IngestOptions {
        tables: [("readings".to_owned(), declaration)].into(),
        inline_bytes_max,
        writer: WriterOptions { open_files_max: 4, memory_bytes_max: 4_000, ..WriterOptions::default() },
        ..options()
    }
}

/// A row of each day, so many seconds after its beginning.
fn one_of_each_day(second: i64) -> RecordBatch {
    let days: Vec<RecordBatch> = (0..DAYS).map(|day| rows(day * DAY_SECONDS + second, 1)).collect();
    concat_batches(&schema(), &days).unwrap()
}

#[tokio::test]
async fn a_write_and_a_move_of_rows_make_one_file_of_each_partition() {
    for inline_bytes_max in [1, 4 << 20] {
        let path = TempDir::new().unwrap();
        let folder = open_with(path.path(), by_day(inline_bytes_max)).await;
        write(&folder, request("readings", schema()), (0..20).map(one_of_each_day).collect()).await.unwrap();
        folder.flush("readings").await.unwrap();
        assert_eq!(folder.view("readings").unwrap().files().len(), DAYS as usize);
        let expected = (0..DAYS).flat_map(|day| day * DAY_SECONDS..day * DAY_SECONDS + 20);
        assert_eq!(values(&folder, "readings"), expected.collect::<Vec<i64>>());
        let trash = path.path().join(".tidegate/trash");
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 0, "rows have waited on disk");
        folder.close().await.unwrap();
        // A crash at the moment at which the file gets its name and loses it.
        fs::write(trash.join("rows"), "").unwrap();
        open_with(path.path(), by_day(inline_bytes_max)).await;
        assert!(!trash.exists());
    }
}

#[tokio::test]
async fn a_large_write_ends_with_the_folder_and_leaves_no_file() {
    let path = TempDir::new().unwrap();
    let folder = open_with(path.path(), by_day(1)).await;
    let mut writer = writer(&folder, request("readings", schema())).await;
    writer.write(0, one_of_each_day(0)).await.unwrap();
    writer.write(0, one_of_each_day(1)).await.unwrap();
    folder.close().await.unwrap();
    let error = writer.write(0, one_of_each_day(2)).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unavailable, "database \"plant\" is being closed"));
    drop(writer);
    let mut files = Vec::new();
    for day in fs::read_dir(path.path().join("readings")).unwrap() {
        files.extend(fs::read_dir(day.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    }
    assert!(files.is_empty(), "{files:?}");
}
