//! One write of decoded messages.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidegate_core::{Error, ErrorKind};
use tidegate_ingest_formats::RowPosition;
use tidegate_query::{
    IngestTarget, REJECTS_SUFFIX, TableWrite, WriteMode, WriteRequest, WriteStart, rejected_rows_schema,
};

use crate::decode::{DecodedMessages, RejectedMessage};

const TIME_ZONE: &str = "UTC";

/// Stores the rows and the rejected rows in one write. When it returns, they are on disk.
pub(crate) async fn write(
    target: &dyn IngestTarget,
    table: &str,
    subject: &str,
    decoded: DecodedMessages,
) -> Result<(), Error> {
    let mut batches = Vec::new();
    batches.extend(decoded.rows.map(|rows| (table.to_owned(), rows)));
    if !decoded.rejected.is_empty() {
        batches.push((format!("{table}{REJECTS_SUFFIX}"), rejected_batch(subject, &decoded.rejected)?));
    }
    if batches.is_empty() {
        return Ok(());
    }
    let tables = batches.iter().map(|(table, rows)| TableWrite { table: table.clone(), schema: rows.schema() });
    let request = WriteRequest { tables: tables.collect(), mode: WriteMode::Append, key: None };
    let mut writer = match target.begin(request).await? {
        WriteStart::Writer(writer) => writer,
        WriteStart::Repeated(_) => return Err(Error::internal("a write without a key was repeated")),
    };
    for (index, (_, rows)) in batches.into_iter().enumerate() {
        writer.write(index, rows).await?;
    }
    writer.commit().await.map(drop)
}

/// Whether the same rows would be refused again.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::TooLarge)
}

fn rejected_batch(subject: &str, rows: &[RejectedMessage]) -> Result<RecordBatch, Error> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    let times = TimestampMicrosecondArray::from(vec![microseconds; rows.len()]).with_timezone(TIME_ZONE);
    let line = |row: &RejectedMessage| match row.position {
        Some(RowPosition::Line(line)) => i64::try_from(line).ok(),
        _ => None,
    };
    let index = |row: &RejectedMessage| match row.position {
        Some(RowPosition::Index(index)) => i64::try_from(index).ok(),
        _ => None,
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|_| subject))),
        Arc::new(rows.iter().map(line).collect::<Int64Array>()),
        Arc::new(rows.iter().map(index).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.column.as_deref()).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.text.as_str()))),
    ];
    RecordBatch::try_new(rejected_rows_schema([]), columns)
        .map_err(|error| Error::internal(format!("a batch of rejected messages is invalid: {error}")))
}
