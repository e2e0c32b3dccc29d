//! Rows that do not fit, as rows of the table of rejected rows.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use tidegate_core::Error;
use tidegate_ingest_formats::{RejectedRow, RowPosition};
use tidegate_query::rejected_rows_schema;

use super::stamps::Stamps;

const TIME_ZONE: &str = "UTC";

/// Makes batches of rejected rows.
#[derive(Debug)]
pub(super) struct RejectedRows {
    pub(super) schema: SchemaRef,
    subject: String,
}

impl RejectedRows {
    pub(super) fn new(stamps: &Stamps, subject: &str) -> Self {
        Self { schema: rejected_rows_schema(stamps.names()), subject: subject.to_owned() }
    }

    /// The batch of `rows`, rejected at `time`.
    pub(super) fn batch(&self, rows: &[RejectedRow], stamps: &Stamps, time: SystemTime) -> Result<RecordBatch, Error> {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        let times = TimestampMicrosecondArray::from(vec![microseconds; rows.len()]).with_timezone(TIME_ZONE);
        let line = |row: &RejectedRow| match row.position {
            RowPosition::Line(line) => i64::try_from(line).ok(),
            RowPosition::Index(_) => None,
        };
        let index = |row: &RejectedRow| match row.position {
            RowPosition::Index(index) => i64::try_from(index).ok(),
            RowPosition::Line(_) => None,
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| self.subject.as_str()))),
            Arc::new(rows.iter().map(line).collect::<Int64Array>()),
            Arc::new(rows.iter().map(index).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.column.as_deref()).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.text.as_str()))),
        ];
        columns.extend(stamps.columns(rows.len()));
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::internal(format!("a batch of rejected rows is invalid: {error}")))
    }
}
