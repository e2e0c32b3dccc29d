//! The tables and their columns, and rows of one table, appended as cells in the order of its columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, RecordBatch, RecordBatchOptions,
    StringBuilder, TimestampMillisecondBuilder, TimestampNanosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::formats::error::{FormatError, RecordError, RejectedRecords};
use crate::formats::limits::{TelemetryLimits, out_of_memory};

use ColumnType::{Boolean, Double, DoubleList, Int32, Int64, Int64List, Json, Milliseconds, Nanoseconds, Text};

/// The metadata of a field that marks text as JSON, with its name in Arrow.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const JSON_EXTENSION: &str = "arrow.json";
/// The zone of all times.
pub(crate) const UTC: &str = "UTC";

/// A table that records become rows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TelemetryTable {
    /// `otel_logs`: log records of OTLP.
    Logs,
    /// `otel_traces`: spans of OTLP.
    Traces,
    /// `otel_metrics_gauge`: data points of gauges.
    Gauge,
    /// `otel_metrics_sum`: data points of sums.
    Sum,
    /// `otel_metrics_histogram`: data points of histograms with explicit bounds.
    Histogram,
    /// `otel_metrics_exponential_histogram`: data points of exponential histograms.
    ExponentialHistogram,
    /// `otel_metrics_summary`: data points of summaries.
    Summary,
    /// `prometheus_samples`: samples of Prometheus remote write.
    PrometheusSamples,
    /// `prometheus_exemplars`: exemplars of Prometheus remote write.
    PrometheusExemplars,
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct TableBatch {
    /// The table.
    pub table: TelemetryTable,
    /// The rows, with [`TelemetryTable::schema`].
    pub rows: RecordBatch,
}

/// The rows of a body, and the records that have none.
#[derive(Debug, Clone)]
pub struct TableBatches {
    /// The rows: at most one batch for each table, and none without rows.
    pub batches: Vec<TableBatch>,
    /// Records that were left out.
    pub rejected: RejectedRecords,
}

impl TableBatches {
    /// The number of rows of all tables.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows.num_rows()).sum()
    }
}

/// The types of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Boolean,
    Int32,
    Int64,
    Double,
    Text,
    Json,
    /// Nanoseconds, UTC.
    Nanoseconds,
    /// Milliseconds, UTC.
    Milliseconds,
    Int64List,
    DoubleList,
}

/// A column: its name, its type, whether it takes nulls.
type Column = (&'static str, ColumnType, bool);

/// The last columns of every table of OTLP.
const SOURCE: &[Column] = &[
    ("service_name", Text, true),
    ("resource_attributes", Json, false),
    ("resource_dropped_attributes_count", Int64, false),
    ("resource_schema_url", Text, true),
    ("scope_name", Text, true),
    ("scope_version", Text, true),
    ("scope_attributes", Json, false),
    ("scope_dropped_attributes_count", Int64, false),
    ("scope_schema_url", Text, true),
];

const LOGS: &[Column] = &[
    ("time", Nanoseconds, true),
    ("observed_time", Nanoseconds, true),
    ("severity_number", Int32, true),
    ("severity_text", Text, true),
    ("body", Text, true),
    ("event_name", Text, true),
    ("trace_id", Text, true),
    ("span_id", Text, true),
    ("flags", Int64, false),
    ("attributes", Json, false),
    ("dropped_attributes_count", Int64, false),
];

const TRACES: &[Column] = &[
    ("trace_id", Text, false),
    ("span_id", Text, false),
    ("parent_span_id", Text, true),
    ("trace_state", Text, true),
    ("flags", Int64, false),
    ("name", Text, false),
    ("kind", Text, false),
    ("start_time", Nanoseconds, true),
    ("end_time", Nanoseconds, true),
    ("duration_nanos", Int64, true),
    ("status_code", Text, false),
    ("status_message", Text, true),
    ("attributes", Json, false),
    ("dropped_attributes_count", Int64, false),
    ("events", Json, false),
    ("dropped_events_count", Int64, false),
    ("links", Json, false),
    ("dropped_links_count", Int64, false),
];

/// The first columns of every table of metrics of OTLP.
const POINT: &[Column] = &[
    ("metric_name", Text, false),
    ("description", Text, true),
    ("unit", Text, true),
    ("metadata", Json, false),
    ("start_time", Nanoseconds, true),
    ("time", Nanoseconds, true),
    ("attributes", Json, false),
    ("flags", Int64, false),
];

const GAUGE: &[Column] = &[("value", Double, true), ("value_int", Int64, true), ("exemplars", Json, false)];

const SUM: &[Column] = &[
    ("value", Double, true),
    ("value_int", Int64, true),
    ("is_monotonic", Boolean, false),
    ("aggregation_temporality", Text, false),
    ("exemplars", Json, false),
];

const HISTOGRAM: &[Column] = &[
    ("count", Int64, false),
    ("sum", Double, true),
    ("min", Double, true),
    ("max", Double, true),
    ("bucket_counts", Int64List, false),
    ("explicit_bounds", DoubleList, false),
    ("aggregation_temporality", Text, false),
    ("exemplars", Json, false),
];

const EXPONENTIAL_HISTOGRAM: &[Column] = &[
    ("count", Int64, false),
    ("sum", Double, true),
    ("min", Double, true),
    ("max", Double, true),
    ("scale", Int32, false),
    ("zero_count", Int64, false),
    ("zero_threshold", Double, false),
    ("positive_offset", Int32, false),
    ("positive_bucket_counts", Int64List, false),
    ("negative_offset", Int32, false),
    ("negative_bucket_counts", Int64List, false),
    ("aggregation_temporality", Text, false),
    ("exemplars", Json, false),
];

const SUMMARY: &[Column] = &[
    ("count", Int64, false),
    ("sum", Double, false),
    ("quantiles", DoubleList, false),
    ("quantile_values", DoubleList, false),
];

const PROMETHEUS_SAMPLES: &[Column] = &[
    ("time", Milliseconds, false),
    ("metric", Text, false),
    ("labels", Json, false),
    ("value", Double, true),
    ("start_time", Milliseconds, true),
    ("type", Text, true),
    ("unit", Text, true),
    ("help", Text, true),
];

const PROMETHEUS_EXEMPLARS: &[Column] = &[
    ("time", Milliseconds, true),
    ("metric", Text, false),
    ("labels", Json, false),
    ("exemplar_labels", Json, false),
    ("value", Double, false),
];

impl TelemetryTable {
    /// Every table.
    pub const ALL: [Self; 9] = [
        Self::Logs,
        Self::Traces,
        Self::Gauge,
        Self::Sum,
        Self::Histogram,
        Self::ExponentialHistogram,
        Self::Summary,
        Self::PrometheusSamples,
        Self::PrometheusExemplars,
    ];

    /// The name of the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Logs => "otel_logs",
            Self::Traces => "otel_traces",
            Self::Gauge => "otel_metrics_gauge",
            Self::Sum => "otel_metrics_sum",
            Self::Histogram => "otel_metrics_histogram",
            Self::ExponentialHistogram => "otel_metrics_exponential_histogram",
            Self::Summary => "otel_metrics_summary",
            Self::PrometheusSamples => "prometheus_samples",
            Self::PrometheusExemplars => "prometheus_exemplars",
        }
    }

    /// The columns of the table. Columns of JSON are text with the Arrow extension `arrow.json`.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        Arc::new(Schema::new(self.columns().map(field).collect::<Vec<_>>()))
    }

    pub(crate) fn columns(self) -> impl Iterator<Item = Column> {
        let parts: [&[Column]; 3] = match self {
            Self::Logs => [LOGS, SOURCE, &[]],
            Self::Traces => [TRACES, SOURCE, &[]],
            Self::Gauge => [POINT, GAUGE, SOURCE],
            Self::Sum => [POINT, SUM, SOURCE],
            Self::Histogram => [POINT, HISTOGRAM, SOURCE],
            Self::ExponentialHistogram => [POINT, EXPONENTIAL_HISTOGRAM, SOURCE],
            Self::Summary => [POINT, SUMMARY, SOURCE],
            Self::PrometheusSamples => [PROMETHEUS_SAMPLES, &[], &[]],
            Self::PrometheusExemplars => [PROMETHEUS_EXEMPLARS, &[], &[]],
        };
        parts.into_iter().flatten().copied()
    }
}

fn field((name, column_type, is_nullable): Column) -> Field {
    let field = Field::new(name, data_type(column_type), is_nullable);
    match column_type {
        Json => field.with_metadata(HashMap::from([(EXTENSION_NAME.to_owned(), JSON_EXTENSION.to_owned())])),
        _ => field,
    }
}

fn data_type(column_type: ColumnType) -> DataType {
    match column_type {
        Boolean => DataType::Boolean,
        Int32 => DataType::Int32,
        Int64 => DataType::Int64,
        Double => DataType::Float64,
        Text | Json => DataType::Utf8,
        Nanoseconds => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
        Milliseconds => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        Int64List => DataType::new_list(DataType::Int64, true),
        DoubleList => DataType::new_list(DataType::Float64, true),
    }
}

/// What a cell takes in memory beside its text or list, in bytes.
const CELL_BYTES: usize = 9;

/// A value of one column.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Null,
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Text(&'a str),
    /// Nanoseconds or milliseconds since 1970, by the type of the column.
    Time(i64),
    Int64List(&'a [i64]),
    DoubleList(&'a [f64]),
}

impl<'a> Cell<'a> {
    /// A text, or null if it is empty: the standards do not distinguish an empty text from a missing one.
    pub(crate) fn non_empty(text: &'a str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text) }
    }

    pub(crate) fn from_option<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Int64List(values) => size_of_val(*values),
            Self::DoubleList(values) => size_of_val(*values),
            _ => 0,
        }
    }
}

/// What the rows of a body may still take.
#[derive(Debug)]
pub(crate) struct RowBudget {
    bytes: usize,
    bytes_max: usize,
    records: usize,
    records_max: usize,
    record_bytes_max: usize,
}

impl RowBudget {
    pub(crate) fn new(limits: &TelemetryLimits) -> Self {
        let (bytes_max, records_max) = (limits.memory_bytes(), limits.records_max);
        let record_bytes_max = limits.record_bytes_max;
        Self { bytes: bytes_max, bytes_max, records: records_max, records_max, record_bytes_max }
    }

    /// Counts a record, whether it becomes a row or not.
    pub(crate) fn take_record(&mut self) -> Result<(), FormatError> {
        let Some(records) = self.records.checked_sub(1) else {
            return Err(FormatError::TooLarge(format!("the body has more than {} records", self.records_max)));
        };
        self.records = records;
        Ok(())
    }

    fn take_row(&mut self, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        let bytes: usize = cells.iter().map(Cell::bytes).sum();
        if bytes > self.record_bytes_max {
            let most = self.record_bytes_max;
            return RecordError::rejected(format!("it has {bytes} bytes as a row; at most {most} are accepted"));
        }
        let bytes = bytes + cells.len() * CELL_BYTES;
        let Some(rest) = self.bytes.checked_sub(bytes) else {
            return Err(out_of_memory("rows", self.bytes_max).into());
        };
        self.bytes = rest;
        Ok(())
    }
}

#[derive(Debug)]
enum ColumnBuilder {
    Boolean(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Double(Float64Builder),
    Text(StringBuilder),
    Nanoseconds(TimestampNanosecondBuilder),
    Milliseconds(TimestampMillisecondBuilder),
    Int64List(ListBuilder<Int64Builder>),
    DoubleList(ListBuilder<Float64Builder>),
}

/// The rows of one table.
#[derive(Debug)]
pub(crate) struct TableRows {
    table: TelemetryTable,
    columns: Vec<ColumnBuilder>,
    rows: usize,
}

impl TableRows {
    pub(crate) fn new(table: TelemetryTable) -> Self {
        Self {
            table,
            columns: table.columns().map(|(_, column_type, _)| ColumnBuilder::new(column_type)).collect(),
            rows: 0,
        }
    }

    /// Appends a row that is made of several parts of the columns.
    ///
    /// # Errors
    /// `Rejected` if the row is too large; `Refused` if all rows are, or if the cells are not those of the table.
    pub(crate) fn push(&mut self, budget: &mut RowBudget, cells: &[Cell<'_>]) -> Result<(), RecordError> {
        if cells.len() != self.columns.len() {
            let message = format!("{} has {} columns, not {}", self.table.name(), self.columns.len(), cells.len());
            return Err(FormatError::Internal(message).into());
        }
        budget.take_row(cells)?;
        for (index, (column, cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            if !column.push(*cell) {
                let message = format!("column {index} of {} does not take {cell:?}", self.table.name());
                return Err(FormatError::Internal(message).into());
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows, or nothing if there are none.
    pub(crate) fn finish(mut self) -> Result<Option<TableBatch>, FormatError> {
        if self.rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let rows = RecordBatch::try_new_with_options(self.table.schema(), arrays, &options)
            .map_err(|error| FormatError::Internal(error.to_string()))?;
        Ok(Some(TableBatch { table: self.table, rows }))
    }
}

impl ColumnBuilder {
    fn new(column_type: ColumnType) -> Self {
        match column_type {
            ColumnType::Boolean => Self::Boolean(BooleanBuilder::new()),
            ColumnType::Int32 => Self::Int32(Int32Builder::new()),
            ColumnType::Int64 => Self::Int64(Int64Builder::new()),
            ColumnType::Double => Self::Double(Float64Builder::new()),
            ColumnType::Text | ColumnType::Json => Self::Text(StringBuilder::new()),
            ColumnType::Nanoseconds => Self::Nanoseconds(TimestampNanosecondBuilder::new().with_timezone(UTC)),
            ColumnType::Milliseconds => Self::Milliseconds(TimestampMillisecondBuilder::new().with_timezone(UTC)),
            ColumnType::Int64List => Self::Int64List(ListBuilder::new(Int64Builder::new())),
            ColumnType::DoubleList => Self::DoubleList(ListBuilder::new(Float64Builder::new())),
        }
    }

    /// Appends a cell. Returns whether it has the type of the column.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Boolean(column), Cell::Boolean(value)) => column.append_value(value),
            (Self::Int32(column), Cell::Int32(value)) => column.append_value(value),
            (Self::Int64(column), Cell::Int64(value)) => column.append_value(value),
            (Self::Double(column), Cell::Double(value)) => column.append_value(value),
            (Self::Text(column), Cell::Text(value)) => column.append_value(value),
            (Self::Nanoseconds(column), Cell::Time(value)) => column.append_value(value),
            (Self::Milliseconds(column), Cell::Time(value)) => column.append_value(value),
            (Self::Int64List(column), Cell::Int64List(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (Self::DoubleList(column), Cell::DoubleList(values)) => {
                column.values().append_slice(values);
                column.append(true);
            }
            (column, Cell::Null) => column.push_null(),
            _ => return false,
        }
        true
    }

    fn push_null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::Int32(column) => column.append_null(),
            Self::Int64(column) => column.append_null(),
            Self::Double(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::Nanoseconds(column) => column.append_null(),
            Self::Milliseconds(column) => column.append_null(),
            Self::Int64List(column) => column.append_null(),
            Self::DoubleList(column) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Boolean(column) => Arc::new(column.finish()),
            Self::Int32(column) => Arc::new(column.finish()),
            Self::Int64(column) => Arc::new(column.finish()),
            Self::Double(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::Nanoseconds(column) => Arc::new(column.finish()),
            Self::Milliseconds(column) => Arc::new(column.finish()),
            Self::Int64List(column) => Arc::new(column.finish()),
            Self::DoubleList(column) => Arc::new(column.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_columns_are_unique() {
        let mut names: Vec<&str> = TelemetryTable::ALL.iter().map(|table| table.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TelemetryTable::ALL.len());
        for table in TelemetryTable::ALL {
            let schema = table.schema();
            let mut columns: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
            columns.sort_unstable();
            columns.dedup();
            assert_eq!(columns.len(), schema.fields().len(), "{table:?}");
        }
    }
}
