//! Rows that do not fit, as rows of the table of rejected rows.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tidegate_core::Error;
use tidegate_ingest_formats::{RejectedRow, RowPosition};
use tidegate_query::{ColumnStamp, REJECTS_SUFFIX};

use super::stamps::Stamps;

const TIME_ZONE: &str = "UTC";

/// The columns of a table of rejected rows. The columns that the caller's attributes stamp follow, so that the rows of a
/// tenant are its own there as well.
///
/// - `time`: when the row was rejected.
/// - `subject`: who sent it.
/// - `line`: the line in which it begins, from 1 (NDJSON, CSV).
/// - `row`: its number, from 0 (JSON, Arrow, Parquet).
/// - `column`: the column that does not fit, if it is a single one.
/// - `reason`: why.
/// - `text`: the beginning of the row as it was sent; empty in Arrow and Parquet.
pub fn rejects_schema(stamps: &[ColumnStamp]) -> SchemaRef {
    schema_with(stamps.iter().map(|stamp| stamp.column.as_str()))
}

fn schema_with<'a>(stamped: impl Iterator<Item = &'a str>) -> SchemaRef {
    let own = [
        ("time", DataType::Timestamp(TimeUnit::Microsecond, Some(TIME_ZONE.into()))),
        ("subject", DataType::Utf8),
        ("line", DataType::UInt64),
        ("row", DataType::UInt64),
        ("column", DataType::Utf8),
        ("reason", DataType::Utf8),
        ("text", DataType::Utf8),
    ];
    let mut fields: Vec<Field> = own.map(|(name, data_type)| Field::new(name, data_type, true)).into();
    for name in stamped {
        let is_taken = fields.iter().any(|field| field.name().eq_ignore_ascii_case(name));
        // The attribute is then only in the rows of the table itself.
        let name = if is_taken { format!("{name}{REJECTS_SUFFIX}") } else { name.to_owned() };
        fields.push(Field::new(name, DataType::Utf8, true));
    }
    Arc::new(Schema::new(fields))
}

/// Makes batches of rejected rows.
#[derive(Debug)]
pub(super) struct RejectedRows {
    pub(super) schema: SchemaRef,
    subject: String,
}

impl RejectedRows {
    pub(super) fn new(stamps: &Stamps, subject: &str) -> Self {
        Self { schema: schema_with(stamps.names()), subject: subject.to_owned() }
    }

    /// The batch of `rows`, rejected at `time`.
    pub(super) fn batch(&self, rows: &[RejectedRow], stamps: &Stamps, time: SystemTime) -> Result<RecordBatch, Error> {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        let times = TimestampMicrosecondArray::from(vec![microseconds; rows.len()]).with_timezone(TIME_ZONE);
        let line = |row: &RejectedRow| match row.position {
            RowPosition::Line(line) => Some(line),
            RowPosition::Index(_) => None,
        };
        let index = |row: &RejectedRow| match row.position {
            RowPosition::Index(index) => Some(index),
            RowPosition::Line(_) => None,
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| self.subject.as_str()))),
            Arc::new(rows.iter().map(line).collect::<UInt64Array>()),
            Arc::new(rows.iter().map(index).collect::<UInt64Array>()),
            Arc::new(rows.iter().map(|row| row.column.as_deref()).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.text.as_str()))),
        ];
        columns.extend(stamps.columns(rows.len()));
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| Error::internal(format!("a batch of rejected rows is invalid: {error}")))
    }
}
