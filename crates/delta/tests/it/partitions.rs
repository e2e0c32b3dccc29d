//! Rows of many partitions get into few files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Int64Type, Schema};
use proptest::prelude::*;
use tempfile::tempdir;
use tidegate_delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaError, DeltaTable, PartitionBy, StopFlag, WriterOptions, read_file,
};
use tokio::sync::Semaphore;

/// Rows with the numbers from `first` on, each in the partition that `key` gives.
fn keyed(first: i64, rows: i64, key: impl Fn(i64) -> i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + rows));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((first..first + rows).map(key)));
    RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("key", keys, true)]).unwrap()
}

fn by_key() -> [PartitionBy; 1] {
    [PartitionBy::Column("key".to_owned())]
}

/// Writes batches of `rows` rows, 20,000 in all.
fn write(folder: &Path, rows: i64, options: WriterOptions, key: impl Fn(i64) -> i64) -> Vec<DataFile> {
    let schema = keyed(0, 1, &key).schema();
    let mut writer = DataFileWriter::new(folder, &schema, &by_key(), options).unwrap();
    for first in (0..20_000).step_by(rows as usize) {
        writer.write(&keyed(first, rows.min(20_000 - first), &key)).unwrap();
    }
    writer.finish().unwrap()
}

/// The numbers of the rows of each file, as they lie in it.
fn numbers_by_file(folder: &Path, schema: &Schema, add: Vec<DataFile>) -> Vec<Vec<i64>> {
    let mut table = DeltaTable::create(folder, schema, &by_key()).unwrap();
    table.commit(DeltaCommit { add, operation: "WRITE", ..DeltaCommit::default() }).unwrap();
    let snapshot = table.snapshot();
    let numbers = snapshot.files.iter().map(|file| {
        let batches = read_file(folder, &snapshot, file, 1000).unwrap();
        let of_batch = |batch: RecordBatch| batch["n"].as_primitive::<Int64Type>().values().to_vec();
        batches.flat_map(|batch| of_batch(batch.unwrap())).collect()
    });
    numbers.collect()
}

/// Checks that each row is in one file, and that the order within a file is that of the rows.
fn check_numbers(folder: &Path, schema: &Schema, add: Vec<DataFile>, rows: i64) {
    let by_file = numbers_by_file(folder, schema, add);
    assert!(by_file.iter().all(|numbers| numbers.is_sorted()));
    let mut all = by_file.concat();
    all.sort_unstable();
    assert_eq!(all, (0..rows).collect::<Vec<_>>());
}

#[test]
fn each_partition_has_one_file() {
    for partitions in [1, 2, 64, 65, 250, 700] {
        let folder = tempdir().unwrap();
        let key = |row: i64| row * 7919 % partitions;
        let add = write(folder.path(), 1_000, WriterOptions::default(), key);
        assert_eq!(add.len(), partitions as usize);
        check_numbers(folder.path(), &keyed(0, 1, key).schema(), add, 20_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.div_ceil(16)))]

    /// Files <= partitions + rows / rows of a file, for any memory, number of open files and order of the rows.
    #[test]
    fn files_are_bounded_by_partitions_and_sizes(
        partitions in 1_i64..300,
        rows in 100_i64..3_000,
        memory_bytes_max in 100_000_usize..1_000_000,
        open_files_max in 0_usize..400,
        file_bytes_max in prop_oneof![Just(u64::MAX), 20_000_u64..100_000],
        is_in_order in any::<bool>(),
    ) {
        let folder = tempdir().unwrap();
        let key = |row: i64| if is_in_order { row * partitions / 20_000 } else { row * 7919 % partitions };
        let options = WriterOptions { open_files_max, memory_bytes_max, file_bytes_max, ..WriterOptions::default() };
        let add = write(folder.path(), rows, options, key);
        // A row takes less than 400 bytes, even if each one were a row group.
        let files_max = partitions as u64 + 20_000 / (file_bytes_max / 400);
        prop_assert!(add.len() as u64 <= files_max, "{} > {files_max}", add.len());
        check_numbers(folder.path(), &keyed(0, 1, key).schema(), add, 20_000);
    }
}

/// Some rows are so large that a batch of several partitions is divided.
#[test]
fn large_rows_of_many_partitions_are_written_once() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200).map(|row| row * 7919 % 23)));
    let text = |row: usize| "x".repeat(if row.is_multiple_of(10) { 400_000 } else { 10 });
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..200).map(text)));
    let columns = [("n", numbers, true), ("key", keys, true), ("text", texts, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let folder = tempdir().unwrap();
    let options = WriterOptions { open_files_max: 3, memory_bytes_max: 2 << 20, ..WriterOptions::default() };
    let mut writer = DataFileWriter::new(folder.path(), &batch.schema(), &by_key(), options).unwrap();
    for start in (0..200).step_by(20) {
        writer.write(&batch.slice(start, 20)).unwrap();
    }
    let add = writer.finish().unwrap();
    assert_eq!(add.len(), 23);
    check_numbers(folder.path(), &batch.schema(), add, 200);
}

#[test]
fn rows_that_wait_on_disk_have_no_name_and_return_their_room() {
    let (folder, parent) = (tempdir().unwrap(), tempdir().unwrap());
    let spill_folder = parent.path().join("spills");
    let options = |room: usize| WriterOptions {
        open_files_max: 1,
        memory_bytes_max: 0,
        spill_folder: Some(spill_folder.clone()),
        spill_room: Arc::new(Semaphore::new(room)),
        ..WriterOptions::default()
    };
    let batch = keyed(0, 1_000, |row| row % 50);
    let writer = |options: &WriterOptions| {
        let mut writer = DataFileWriter::new(folder.path(), &batch.schema(), &by_key(), options.clone()).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer
    };
    let without_room = writer(&options(0));
    assert!(!spill_folder.exists());
    assert_eq!(without_room.finish().unwrap().len(), 2 * 50, "files are completed early");
    let options = options(1_000);
    for is_finished in [true, false] {
        let writer = writer(&options);
        assert!(options.spill_room.available_permits() < 1_000);
        assert_eq!(std::fs::read_dir(&spill_folder).unwrap().count(), 0);
        if is_finished {
            assert_eq!(writer.finish().unwrap().len(), 50);
        } else {
            drop(writer);
        }
        assert_eq!(options.spill_room.available_permits(), 1_000);
    }
}

#[test]
fn a_writer_that_is_stopped_leaves_no_file() {
    for open_files_max in [128, 10] {
        let folder = tempdir().unwrap();
        let stop = StopFlag::default();
        let options =
            WriterOptions { stop: stop.clone(), open_files_max, memory_bytes_max: 0, ..WriterOptions::default() };
        let batch = keyed(0, 1_000, |row| row % 100);
        let mut writer = DataFileWriter::new(folder.path(), &batch.schema(), &by_key(), options).unwrap();
        writer.write(&batch).unwrap();
        stop.stop();
        assert!(matches!(writer.finish(), Err(DeltaError::Stopped)));
        let files = std::fs::read_dir(folder.path()).unwrap().flat_map(|entry| {
            let folder = std::fs::read_dir(entry.unwrap().path()).unwrap();
            folder.map(|file| file.unwrap().path())
        });
        assert_eq!(files.count(), 0);
    }
}
