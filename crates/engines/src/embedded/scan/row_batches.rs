//! Batches of the rows of a text file, which a reader makes one after the other.

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;

/// The bytes of the values of a batch, unless a row has more.
pub(super) const BATCH_BYTES_MAX: usize = 16 << 20;

/// The batches that `read` returns, until it has no more or fails.
pub(super) fn batches_until_error<E>(
    mut read: impl FnMut() -> Result<Option<RecordBatch>, E>,
) -> impl Iterator<Item = Result<RecordBatch, E>> {
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let batch = read().transpose();
        is_over = !matches!(batch, Some(Ok(_)));
        batch
    })
}

/// The batch of `rows` rows with these columns, which may be none.
pub(super) fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}
