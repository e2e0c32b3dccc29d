//! The width of rows that an operator repeats.
//!
//! A join, an unnest or a scalar subquery repeats a row for many others. A text of one megabyte then becomes a batch of
//! gigabytes, and this memory is not accounted for. So rows that are too wide for the batch size stop the plan first,
//! and the statement is planned again with shorter batches.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use thiserror::Error;
use tidegate_query::batch_bytes;

use crate::embedded::row_bytes::{has_dictionaries, measure_rows};

/// Maximum number of bytes of a batch with repeated rows.
const BATCH_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes of a row that is alone in its batch.
const ROW_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("rows of {bytes} bytes are too wide")]
pub(super) struct RowsTooWide {
    pub(super) bytes: usize,
}

impl RowsTooWide {
    /// A batch size that fits, at most half of `before`.
    pub(super) fn batch_rows(self, before: usize) -> usize {
        (BATCH_BYTES_MAX / self.bytes.max(1)).min(before / 2).max(1)
    }
}

/// Checks the rows that are passed to an operator that repeats them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RepeatedRows {
    pub(super) batch_rows: usize,
    /// Whether the elements of lists become rows.
    pub(super) is_unnested: bool,
}

impl RepeatedRows {
    /// The number of bytes of the widest row made from `batch`, if it is too wide for the batch size.
    pub(super) fn check_batch(self, batch: &RecordBatch) -> Option<RowsTooWide> {
        let row_bytes_max = if self.batch_rows > 1 { BATCH_BYTES_MAX / self.batch_rows } else { ROW_BYTES_MAX };
        let elements = if self.is_unnested { longest_list(batch) } else { 1 };
        let all = if has_dictionaries(batch) { usize::MAX } else { batch_bytes(batch) };
        if all.saturating_mul(elements) <= row_bytes_max {
            return None;
        }
        let row = measure_rows(batch).into_iter().max().unwrap_or(0);
        let bytes = usize::try_from(row).unwrap_or(usize::MAX).min(all).saturating_mul(elements);
        (bytes > row_bytes_max).then_some(RowsTooWide { bytes })
    }
}

fn longest_list(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| longest_list_in(column)).max().unwrap_or(0).max(1)
}

fn longest_list_in(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().offsets().lengths().max().unwrap_or(0),
        DataType::LargeList(_) => column.as_list::<i64>().offsets().lengths().max().unwrap_or(0),
        DataType::Map(..) => column.as_map().offsets().lengths().max().unwrap_or(0),
        DataType::FixedSizeList(_, length) => usize::try_from(*length).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, StringArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;

    use super::*;

    fn excess(batch: &RecordBatch, batch_rows: usize, is_unnested: bool) -> Option<usize> {
        RepeatedRows { batch_rows, is_unnested }.check_batch(batch).map(|too_wide| too_wide.bytes)
    }

    #[test]
    fn measures_the_widest_row() {
        let long = "x".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", &long, ""]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        let bytes = (1 << 20) + 16;
        assert_eq!(excess(&batch, 63, false), None);
        assert_eq!(excess(&batch, 64, false), Some(bytes));
        assert_eq!(excess(&batch, 1, false), None);
        assert_eq!(RowsTooWide { bytes }.batch_rows(8_192), 63);
        assert_eq!(RowsTooWide { bytes }.batch_rows(100), 50, "at most half, so that it comes to an end");
        assert_eq!(RowsTooWide { bytes: usize::MAX }.batch_rows(8_192), 1);
    }

    #[test]
    fn lists_count_row_by_row_and_unnested_ones_for_each_element() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..80_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef =
            Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(vec![10; 8_000]), numbers, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert_eq!(excess(&batch, 8_192, false), None);
        assert_eq!(excess(&batch, 8_192, true), None);
        let long: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([10_000]), long, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert!(excess(&batch, 1, true).is_some_and(|bytes| bytes >= 800_000_000));
    }
}
