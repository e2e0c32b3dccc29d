//! The answer to a statement that writes and returns no rows: the number of rows that it changed.

use std::sync::Arc;

use arrow::array::{Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

const COLUMN: &str = "changed_rows";

/// The columns of the answer.
pub fn changed_rows_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::Int64, false)]))
}

/// The answer of a statement that changed `rows` rows.
pub fn changed_rows_batch(rows: u64) -> RecordBatch {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    RecordBatch::try_new(changed_rows_schema(), vec![Arc::new(Int64Array::from(vec![rows]))])
        .unwrap_or_else(|_| RecordBatch::new_empty(changed_rows_schema()))
}

/// The number of rows in such an answer.
pub(crate) fn read_changed_rows(batch: &RecordBatch) -> Option<u64> {
    let column = batch.column_by_name(COLUMN)?.as_any().downcast_ref::<Int64Array>()?;
    (!column.is_empty()).then(|| column.value(0)).and_then(|rows| u64::try_from(rows).ok())
}
