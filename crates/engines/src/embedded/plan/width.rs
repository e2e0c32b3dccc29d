//! How wide the rows of a batch are, where an operator repeats them.
//!
//! A join, an unnesting and a scalar subquery repeat a row for many others, so that one text of a megabyte becomes
//! a batch of gigabytes, which is counted nowhere. Rows that are too wide for the batches of a plan end it before that, and
//! it is planned again with shorter ones.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use thiserror::Error;

use super::bytes::bytes_of;

/// Bytes of a batch that an operator makes of rows of another one.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Rows are too wide for the batches of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("rows of {bytes} bytes are too wide")]
pub(super) struct TooWide {
    /// Of the widest row.
    bytes: usize,
}

impl TooWide {
    /// The one that `error` tells of.
    pub(super) fn told_by(error: &DataFusionError) -> Option<Self> {
        match error.find_root() {
            DataFusionError::External(error) => error.downcast_ref().copied(),
            _ => None,
        }
    }

    /// Rows of a batch that fit.
    pub(super) fn batch_rows(self) -> usize {
        (BATCH_BYTES_MAX / self.bytes.max(1)).max(1)
    }
}

/// Bytes of a row that may be repeated for all rows of a batch; none where a batch has only one.
pub(super) fn row_bytes_max(batch_rows: usize) -> Option<usize> {
    (batch_rows > 1).then(|| BATCH_BYTES_MAX / batch_rows)
}

/// # Errors
/// [`TooWide`] when `batch` has a row of more than `row_bytes_max`.
pub(super) fn check(batch: &RecordBatch, row_bytes_max: usize) -> Result<()> {
    let columns = batch.columns();
    let all: usize = columns.iter().map(|column| bytes_of(column)).sum();
    if all <= row_bytes_max {
        return Ok(());
    }
    let bytes = columns.iter().map(widest).sum();
    if bytes <= row_bytes_max {
        return Ok(());
    }
    Err(DataFusionError::External(Box::new(TooWide { bytes })))
}

/// Bytes of the widest value, or more.
fn widest(column: &ArrayRef) -> usize {
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    match column.data_type() {
        DataType::Utf8 => longest(&mut column.as_string::<i32>().offsets().lengths()),
        DataType::LargeUtf8 => longest(&mut column.as_string::<i64>().offsets().lengths()),
        DataType::Binary => longest(&mut column.as_binary::<i32>().offsets().lengths()),
        DataType::LargeBinary => longest(&mut column.as_binary::<i64>().offsets().lengths()),
        DataType::Utf8View => longest(&mut column.as_string_view().lengths().map(|length| length as usize)),
        DataType::BinaryView => longest(&mut column.as_binary_view().lengths().map(|length| length as usize)),
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            longest(&mut lists.offsets().lengths()).saturating_mul(widest(lists.values()))
        }
        DataType::Struct(_) => column.as_struct().columns().iter().map(widest).sum(),
        // Not more than all of them.
        data_type if data_type.is_nested() => bytes_of(column),
        data_type => data_type.primitive_width().unwrap_or(16),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn the_widest_row_counts() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "abc", ""]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        check(&batch, 11).unwrap();
        let refusal = check(&batch, 10).unwrap_err();
        assert_eq!(TooWide::told_by(&refusal.context("a join")), Some(TooWide { bytes: 11 }));
        assert_eq!(row_bytes_max(8_192), Some(8_192));
        assert_eq!(row_bytes_max(1), None);
        assert_eq!(TooWide { bytes: 1 << 20 }.batch_rows(), 64);
        assert_eq!(TooWide { bytes: usize::MAX }.batch_rows(), 1);
    }
}
