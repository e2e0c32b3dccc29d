//! Spans from rows of `otel_traces`.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType};

use crate::error::FormatError;
use crate::tables::UTC;

/// The columns of a span that a tree needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpan {
    /// The trace.
    pub trace_id: String,
    /// The span within its trace.
    pub span_id: String,
    /// The parent. Nothing for a root.
    pub parent_span_id: Option<String>,
    /// What the span describes.
    pub name: String,
    /// The service that sent it.
    pub service_name: Option<String>,
    /// `SERVER` and the like.
    pub kind: Option<String>,
    /// `UNSET`, `OK` or `ERROR`.
    pub status_code: Option<String>,
    /// The start, in nanoseconds since 1970.
    pub start_time: Option<i64>,
    /// The end, in nanoseconds since 1970.
    pub end_time: Option<i64>,
}

impl TraceSpan {
    pub(super) fn duration_nanos(&self) -> Option<i64> {
        self.end_time?.checked_sub(self.start_time?)
    }

    /// By start, with unknown ones last; then by the other columns, so that equal rows are neighbours.
    pub(super) fn order(&self) -> impl Ord + '_ {
        (
            (self.start_time.is_none(), self.start_time, self.end_time),
            (&self.span_id, &self.trace_id, &self.parent_span_id, &self.name),
            (&self.service_name, &self.kind, &self.status_code),
        )
    }
}

/// The spans of rows with the columns of `otel_traces`. The columns `service_name`, `kind` and `status_code` may be missing,
/// and there may be others.
///
/// # Errors
/// `Malformed` if a column is missing, has another type, or has a null that it cannot have.
pub fn trace_spans(batches: &[RecordBatch]) -> Result<Vec<TraceSpan>, FormatError> {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
    let mut spans = Vec::new();
    for batch in batches {
        let trace_ids = required(batch, "trace_id", &DataType::Utf8)?;
        let span_ids = required(batch, "span_id", &DataType::Utf8)?;
        let parents = required(batch, "parent_span_id", &DataType::Utf8)?;
        let names = required(batch, "name", &DataType::Utf8)?;
        let starts = required(batch, "start_time", &time)?;
        let ends = required(batch, "end_time", &time)?;
        let services = column(batch, "service_name", &DataType::Utf8)?;
        let kinds = column(batch, "kind", &DataType::Utf8)?;
        let statuses = column(batch, "status_code", &DataType::Utf8)?;
        for row in 0..batch.num_rows() {
            let not_null = |array: &ArrayRef, name: &str| {
                text(array, row).ok_or_else(|| FormatError::Malformed(format!("the column {name:?} has a null")))
            };
            spans.push(TraceSpan {
                trace_id: not_null(&trace_ids, "trace_id")?,
                span_id: not_null(&span_ids, "span_id")?,
                parent_span_id: text(&parents, row),
                name: not_null(&names, "name")?,
                service_name: services.as_ref().and_then(|array| text(array, row)),
                kind: kinds.as_ref().and_then(|array| text(array, row)),
                status_code: statuses.as_ref().and_then(|array| text(array, row)),
                start_time: nanoseconds(&starts, row),
                end_time: nanoseconds(&ends, row),
            });
        }
    }
    Ok(spans)
}

fn required(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<ArrayRef, FormatError> {
    let missing = || FormatError::Malformed(format!("the rows have no column {name:?}"));
    column(batch, name, data_type)?.ok_or_else(missing)
}

/// A column in the type that is read here; engines return text in several layouts.
fn column(batch: &RecordBatch, name: &str, data_type: &DataType) -> Result<Option<ArrayRef>, FormatError> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let is_time = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..));
    let is_text = |data_type: &DataType| match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        _ => data_type.is_string(),
    };
    if is_time(array.data_type()) != is_time(data_type) || is_text(array.data_type()) != is_text(data_type) {
        return Err(FormatError::Malformed(format!("the column {name:?} has the type {}", array.data_type())));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(array, data_type, &options);
    cast.map(Some).map_err(|error| FormatError::Malformed(format!("the column {name:?} cannot be read: {error}")))
}

fn text(array: &ArrayRef, row: usize) -> Option<String> {
    let texts = array.as_string_opt::<i32>()?;
    texts.is_valid(row).then(|| texts.value(row).to_owned())
}

fn nanoseconds(array: &ArrayRef, row: usize) -> Option<i64> {
    let times = array.as_primitive_opt::<TimestampNanosecondType>()?;
    times.is_valid(row).then(|| times.value(row))
}
