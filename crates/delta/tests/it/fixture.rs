//! Tables in temporary folders, and their rows.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use tidegate_delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaSnapshot, DeltaTable, PartitionBy, WriterOptions, read_file,
};

/// Columns `n` and `name`.
pub(super) fn names_schema() -> Schema {
    Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("name", DataType::Utf8, true)])
}

/// Rows with these numbers and names.
pub(super) fn names(rows: &[(i64, Option<&str>)]) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int64Array>());
    let names: ArrayRef = Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>());
    RecordBatch::try_new(Arc::new(names_schema()), vec![numbers, names]).unwrap()
}

/// Writes data files with the rows.
pub(super) fn write(folder: &Path, partition_by: &[PartitionBy], batch: &RecordBatch) -> Vec<DataFile> {
    let options = WriterOptions::default();
    let mut writer = DataFileWriter::new(folder, &batch.schema(), partition_by, options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap()
}

/// Adds rows to a table.
pub(super) fn append(table: &mut DeltaTable, batch: &RecordBatch) -> u64 {
    let add = write(table.folder(), &table.partition_by(), batch);
    table.commit(DeltaCommit { add, operation: "WRITE", ..DeltaCommit::default() }).unwrap()
}

/// All rows of a version, file by file.
pub(super) fn rows(folder: &Path, snapshot: &DeltaSnapshot) -> RecordBatch {
    let mut batches = Vec::new();
    for file in &snapshot.files {
        for batch in read_file(folder, snapshot, file, 1000).unwrap() {
            batches.push(batch.unwrap());
        }
    }
    concat_batches(&snapshot.schema, &batches).unwrap()
}

/// The numbers of the column `n`, sorted.
pub(super) fn numbers(folder: &Path, snapshot: &DeltaSnapshot) -> Vec<i64> {
    let rows = rows(folder, snapshot);
    let column = rows.column_by_name("n").unwrap();
    let mut numbers: Vec<i64> = column.as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec();
    numbers.sort_unstable();
    numbers
}
