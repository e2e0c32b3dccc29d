//! Builds Arrow batches from SQLite rows.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder, UnionArray,
};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::columns::{ResultColumn, any_fields};
use crate::tables::SqliteType;
use crate::work_error::WorkError;

/// Initial capacity of a builder, in values. The first batch has this size.
const INITIAL_CAPACITY: usize = 64;

pub(super) struct SqliteBatchBuilder {
    schema: SchemaRef,
    columns: Vec<(String, ColumnBuilder)>,
    rows: usize,
    bytes: usize,
}

impl SqliteBatchBuilder {
    pub(super) fn new(columns: &[ResultColumn], schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().zip(columns);
        let columns = columns.map(|(field, column)| (field.name().clone(), ColumnBuilder::new(column.kind))).collect();
        Self { schema, columns, rows: 0, bytes: 0 }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a row. After an error, only the rows before it can be taken.
    pub(super) fn push(&mut self, row: &Row<'_>, row_bytes_max: usize) -> Result<(), WorkError> {
        let mut row_bytes = 0;
        for (index, (name, values)) in self.columns.iter_mut().enumerate() {
            let value = row.get_ref(index)?;
            row_bytes += value_bytes(value);
            if row_bytes > row_bytes_max {
                return Err(WorkError::RowTooLarge(row_bytes_max));
            }
            values.push(value).map_err(|error| error(name.clone()))?;
        }
        self.rows += 1;
        self.bytes += row_bytes;
        Ok(())
    }

    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = self.rows;
        // A row with an error may have values in its first columns.
        let arrays = self.columns.iter_mut().map(|(_, values)| Ok(values.take()?.slice(0, rows)));
        let arrays = arrays.collect::<Result<Vec<_>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}

fn value_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() + 8,
    }
}

/// Why a value cannot be in a column, once the name of the column is known.
type ColumnError = fn(String) -> WorkError;

enum ColumnBuilder {
    Integer(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Blob(BinaryBuilder),
    Any(Box<AnyBuilder>),
}

impl ColumnBuilder {
    fn new(kind: SqliteType) -> Self {
        match kind {
            SqliteType::Integer => Self::Integer(Int64Builder::with_capacity(INITIAL_CAPACITY)),
            SqliteType::Real => Self::Real(Float64Builder::with_capacity(INITIAL_CAPACITY)),
            SqliteType::Text => Self::Text(StringBuilder::new()),
            SqliteType::Blob => Self::Blob(BinaryBuilder::new()),
            SqliteType::Any => Self::Any(Box::new(AnyBuilder::new())),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<(), ColumnError> {
        match (self, value) {
            (Self::Integer(values), ValueRef::Integer(value)) => values.append_value(value),
            (Self::Integer(values), ValueRef::Null) => values.append_null(),
            (Self::Real(values), ValueRef::Real(value)) => values.append_value(value),
            (Self::Real(values), ValueRef::Null) => values.append_null(),
            (Self::Text(values), ValueRef::Text(bytes)) => {
                values.append_value(std::str::from_utf8(bytes).map_err(|_| WorkError::NotUtf8 as ColumnError)?);
            }
            (Self::Text(values), ValueRef::Null) => values.append_null(),
            (Self::Blob(values), ValueRef::Blob(bytes)) => values.append_value(bytes),
            (Self::Blob(values), ValueRef::Null) => values.append_null(),
            (Self::Any(values), value) => values.push(value)?,
            _ => return Err(WorkError::TypeMismatch),
        }
        Ok(())
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Real(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
            Self::Blob(values) => Arc::new(values.finish()),
            Self::Any(values) => Arc::new(values.take()?),
        })
    }
}

struct AnyBuilder {
    kinds: Vec<i8>,
    offsets: Vec<i32>,
    /// In the order of [`any_fields`].
    members: [ColumnBuilder; 4],
    counts: [i32; 4],
}

impl AnyBuilder {
    fn new() -> Self {
        let kinds = [SqliteType::Integer, SqliteType::Real, SqliteType::Text, SqliteType::Blob];
        Self { kinds: Vec::new(), offsets: Vec::new(), members: kinds.map(ColumnBuilder::new), counts: [0; 4] }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<(), ColumnError> {
        let kind = match value {
            ValueRef::Integer(_) => 0,
            ValueRef::Real(_) => 1,
            ValueRef::Text(_) => 2,
            ValueRef::Blob(_) | ValueRef::Null => 3,
        };
        self.members[kind].push(value)?;
        self.kinds.push(kind as i8);
        self.offsets.push(self.counts[kind]);
        self.counts[kind] += 1;
        Ok(())
    }

    fn take(&mut self) -> Result<UnionArray, ArrowError> {
        let children = self.members.iter_mut().map(ColumnBuilder::take).collect::<Result<_, _>>()?;
        self.counts = [0; 4];
        let (kinds, offsets) = (std::mem::take(&mut self.kinds), std::mem::take(&mut self.offsets));
        UnionArray::try_new(any_fields(), kinds.into(), Some(offsets.into()), children)
    }
}
