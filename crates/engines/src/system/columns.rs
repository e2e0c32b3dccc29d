//! Rows of live tables as Arrow record batches.

use std::sync::Arc;

use arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions,
    StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use tidegate_system::{SystemColumn, SystemColumnType, SystemTableDescription, SystemValue};

/// The time zone of timestamps.
const TIME_ZONE: &str = "UTC";

/// The schema of all columns of a table.
pub(super) fn table_schema(table: &SystemTableDescription) -> SchemaRef {
    let field = |column: &SystemColumn| Field::new(column.name.as_ref(), data_type(column.column_type), true);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// Unsigned numbers are `bigint`, as in PostgreSQL, so that they join with keys of other tables without a conversion.
fn data_type(column_type: SystemColumnType) -> DataType {
    match column_type {
        SystemColumnType::Text => DataType::Utf8,
        SystemColumnType::Integer | SystemColumnType::Unsigned => DataType::Int64,
        SystemColumnType::Float | SystemColumnType::Duration => DataType::Float64,
        SystemColumnType::Boolean => DataType::Boolean,
        SystemColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(TIME_ZONE.into())),
    }
}

/// The unit and the meaning of a column, as `get_schema` shows them.
pub(super) fn column_comment(column: &SystemColumn, is_masked: bool) -> String {
    let mask = if is_masked { " Masked for you." } else { "" };
    match column.unit.as_deref() {
        // The name ends in this unit.
        Some(unit) if column.name.ends_with(&unit.replace(' ', "_")) => format!("{}{mask}", column.description),
        Some(unit) => format!("{} In {unit}.{mask}", column.description),
        None => format!("{}{mask}", column.description),
    }
}

enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ColumnBuilder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Timestamp(..) => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(TIME_ZONE)),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends `value`; null if it is of another type or too large for the column.
    fn append(&mut self, value: &SystemValue) {
        match self {
            Self::Text(builder) => builder.append_option(value.as_text()),
            Self::Integer(builder) => builder.append_option(match *value {
                SystemValue::Integer(number) => Some(number),
                SystemValue::Unsigned(number) => i64::try_from(number).ok(),
                _ => None,
            }),
            Self::Float(builder) => builder.append_option(match *value {
                SystemValue::Float(number) => Some(number),
                _ => None,
            }),
            Self::Boolean(builder) => builder.append_option(value.as_boolean()),
            Self::Timestamp(builder) => builder.append_option(match *value {
                SystemValue::Timestamp(microseconds) => Some(microseconds),
                _ => None,
            }),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Self::Text(builder) => builder,
            Self::Integer(builder) => builder,
            Self::Float(builder) => builder,
            Self::Boolean(builder) => builder,
            Self::Timestamp(builder) => builder,
        };
        builder.finish()
    }
}

/// Collects rows to batches.
pub(super) struct RowBatchBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    text_bytes: usize,
}

impl RowBatchBuilder {
    pub(super) fn new(schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| ColumnBuilder::new(field.data_type())).collect();
        Self { schema, columns, rows: 0, text_bytes: 0 }
    }

    /// Adds a row with the values of the columns, in their order.
    pub(super) fn push<'a>(&mut self, values: impl IntoIterator<Item = &'a SystemValue>) {
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.text_bytes += value.as_text().map_or(0, str::len);
            column.append(value);
        }
        self.rows += 1;
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of text in the rows.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The rows so far; the builder is empty afterwards.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.text_bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}
