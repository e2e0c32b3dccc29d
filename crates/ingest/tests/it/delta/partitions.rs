//! Rows of many partitions get into few files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use tempfile::tempdir;
use tidegate_ingest::delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaError, DeltaTable, PartitionBy, StopFlag, WriterOptions, read_file,
};

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

/// The rows of each file, as they lie in it.
fn numbers_by_file(folder: &Path, key: impl Fn(i64) -> i64, add: Vec<DataFile>) -> Vec<Vec<i64>> {
    let mut table = DeltaTable::create(folder, &keyed(0, 1, key).schema(), &by_key()).unwrap();
    table.commit(DeltaCommit { add, operation: "WRITE", ..DeltaCommit::default() }).unwrap();
    let snapshot = table.snapshot();
    let numbers = snapshot.files.iter().map(|file| {
        let batches = read_file(folder, &snapshot, file, 1000).unwrap();
        let of_batch = |batch: RecordBatch| batch["n"].as_primitive::<Int64Type>().values().to_vec();
        batches.flat_map(|batch| of_batch(batch.unwrap())).collect()
    });
    numbers.collect()
}

#[test]
fn each_partition_has_one_file() {
    for partitions in [1, 2, 64, 65, 250, 700] {
        let folder = tempdir().unwrap();
        let key = |row: i64| row * 7919 % partitions;
        let add = write(folder.path(), 1_000, WriterOptions::default(), key);
        assert_eq!(add.len(), partitions as usize);
        let mut all = Vec::new();
        for numbers in numbers_by_file(folder.path(), key, add) {
            assert!(numbers.is_sorted(), "the order within a partition is that of the rows");
            all.extend(numbers);
        }
        all.sort_unstable();
        assert_eq!(all, (0..20_000).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Little memory divides the rows into rounds. Each round adds a file to a partition only if its file was closed.
    #[test]
    fn files_are_bounded_by_partitions_and_rounds(
        partitions in 1_i64..300,
        rows in 100_i64..3_000,
        memory_bytes_max in 100_000_usize..1_000_000,
        open_files_max in 1_usize..600,
    ) {
        let folder = tempdir().unwrap();
        let key = |row: i64| row * 7919 % partitions;
        let options = WriterOptions { open_files_max, memory_bytes_max, ..WriterOptions::default() };
        let add = write(folder.path(), rows, options, key);
        // A row takes less than 40 bytes, with its partition.
        let rounds = 1 + 2 * 40 * 20_000 / memory_bytes_max;
        let files_max = partitions as usize * if partitions as usize <= open_files_max { 1 } else { rounds };
        prop_assert!(add.len() <= files_max, "{} > {files_max}", add.len());
        let mut all: Vec<i64> = numbers_by_file(folder.path(), key, add).concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..20_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_writer_that_is_stopped_leaves_no_file() {
    let folder = tempdir().unwrap();
    let stop = StopFlag::default();
    let options = WriterOptions { stop: stop.clone(), memory_bytes_max: 0, ..WriterOptions::default() };
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
