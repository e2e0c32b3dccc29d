//! Rows of one table, appended as cells in the order of its columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListBuilder, RecordBatch, RecordBatchOptions,
    StringBuilder, TimestampMillisecondBuilder, TimestampNanosecondBuilder,
};

use crate::error::{FormatError, RecordError};
use crate::limits::TelemetryLimits;
use crate::tables::{ColumnType, TableBatch, TelemetryTable, UTC};

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
    records: usize,
    record_bytes_max: usize,
}

impl RowBudget {
    pub(crate) fn new(limits: &TelemetryLimits) -> Self {
        Self { bytes: limits.memory_bytes(), records: limits.records_max, record_bytes_max: limits.record_bytes_max }
    }

    /// Counts a record, whether it becomes a row or not.
    pub(crate) fn take_record(&mut self) -> Result<(), FormatError> {
        let Some(records) = self.records.checked_sub(1) else {
            return Err(FormatError::TooLarge("the body has more records than are accepted at once".into()));
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
            let message = "the rows of the body take more memory than is accepted".to_owned();
            return Err(FormatError::OutOfMemory(message).into());
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
