//! Tables with all rows, and with those of each node.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use arrow::ipc::writer::FileWriter;

/// 2026-03-01T12:00:00Z, in seconds since 1970.
const START: i64 = 1_772_366_400;

/// A table: all of its rows, and those of each node.
pub(super) struct TestTable {
    pub(super) name: &'static str,
    pub(super) whole: RecordBatch,
    pub(super) parts: Vec<RecordBatch>,
}

/// Writes the rows of a table as a file in `folder`.
pub(super) fn write(folder: &Path, table: &str, rows: &RecordBatch) {
    let file = File::create(folder.join(format!("{table}.arrow"))).unwrap();
    let mut writer = FileWriter::try_new(file, &rows.schema()).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
}

/// Rows with these columns, which may have nulls.
pub(super) fn table_rows<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
}

/// Times in seconds from the start, which is 2026-03-01T12:00:00Z.
pub(super) fn times(seconds: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let nanoseconds = seconds.into_iter().map(|seconds| seconds.map(|seconds| (START + seconds) * 1_000_000_000));
    Arc::new(nanoseconds.collect::<TimestampNanosecondArray>().with_timezone("UTC"))
}

pub(super) fn texts<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

pub(super) fn integers(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

pub(super) fn floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Float64Array>())
}
