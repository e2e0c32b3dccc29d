//! Converts the columns of a member's result to the types that the plan expects.
//!
//! In SQLite each value has its own type. Here a column has one type, by the
//! [affinity](https://sqlite.org/datatype3.html) of its declared type. A value of another type is an error; it is never
//! converted silently.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    UnionArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{declared_type_name, type_name};

pub(super) fn type_from_declaration(field: &Field) -> DataType {
    let declared = declared_type_name(field).unwrap_or_default().to_ascii_uppercase();
    let names = |parts: &[&str]| parts.iter().any(|part| declared.contains(part));
    // In the order of SQLite's rules.
    match () {
        () if names(&["INT", "BOOL"]) => DataType::Int64,
        () if names(&["CHAR", "CLOB", "TEXT"]) => DataType::Utf8,
        () if names(&["BLOB"]) => DataType::Binary,
        () if names(&["REAL", "FLOA", "DOUB", "NUM", "DEC"]) => DataType::Float64,
        () => DataType::Utf8,
    }
}

/// Converts `batch` to the columns of `expected`, which has the same number and order of columns.
pub(super) fn convert_batch(batch: &RecordBatch, expected: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = expected.fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| convert_column(column, field)).collect::<Result<Vec<_>, Error>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(expected.clone(), columns, &options)
        .map_err(|error| Error::internal(error.to_string()))
}

fn convert_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef, Error> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    let unfit = |reason: String| {
        let expected = type_name(field.data_type());
        let message = format!("column {:?} has a value that is not of type {expected}: {reason}", field.name());
        Error::new(ErrorKind::InvalidArguments, message)
            .with_hint("Query that database directly, where each value keeps its type, or leave the column out.")
    };
    if let Some(union) = column.as_any().downcast_ref::<UnionArray>() {
        let target = field.data_type();
        // Other types belong to computed columns, and are cast from the type of the computation.
        let stored = match target {
            DataType::Int64 | DataType::Float64 | DataType::Utf8 | DataType::Binary => target.clone(),
            other if other.is_integer() => DataType::Int64,
            other if other.is_floating() => DataType::Float64,
            _ => DataType::Utf8,
        };
        return convert_column(&convert_union(union, &stored).map_err(unfit)?, field);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, field.data_type(), &options).map_err(|error| unfit(error.to_string()))
}

#[derive(Clone, Copy)]
enum SqliteValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl<'a> SqliteValue<'a> {
    fn from_row(union: &'a UnionArray, row: usize) -> Self {
        let member = union.child(union.type_id(row));
        let offset = union.value_offset(row);
        if member.is_null(offset) {
            return Self::Null;
        }
        match member.data_type() {
            DataType::Int64 => Self::Integer(member.as_primitive::<Int64Type>().value(offset)),
            DataType::Float64 => Self::Real(member.as_primitive::<Float64Type>().value(offset)),
            DataType::Utf8 => Self::Text(member.as_string::<i32>().value(offset)),
            _ => Self::Blob(member.as_binary::<i32>().value(offset)),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Text(_) => "a text".to_owned(),
            Self::Blob(_) => "bytes".to_owned(),
        }
    }
}

fn convert_union(union: &UnionArray, target: &DataType) -> Result<ArrayRef, String> {
    let values = (0..union.len()).map(|row| SqliteValue::from_row(union, row));
    Ok(match target {
        DataType::Int64 => Arc::new(collect_values::<_, Int64Array>(values, |value| match value {
            SqliteValue::Integer(value) => Some(value),
            _ => None,
        })?),
        DataType::Float64 => Arc::new(collect_values::<_, Float64Array>(values, |value| match value {
            SqliteValue::Integer(value) => Some(value as f64),
            SqliteValue::Real(value) => Some(value),
            _ => None,
        })?),
        DataType::Binary => Arc::new(collect_values::<_, BinaryArray>(values, |value| match value {
            SqliteValue::Blob(value) => Some(value),
            SqliteValue::Text(value) => Some(value.as_bytes()),
            _ => None,
        })?),
        _ => Arc::new(collect_values::<_, StringArray>(values, |value| match value {
            SqliteValue::Integer(value) => Some(Cow::Owned(value.to_string())),
            SqliteValue::Real(value) => Some(Cow::Owned(format!("{value:?}"))),
            SqliteValue::Text(value) => Some(Cow::Borrowed(value)),
            _ => None,
        })?),
    })
}

/// Collects `values`, each converted by `convert`. Fails with the description of the first that cannot be converted.
fn collect_values<'a, T, A: FromIterator<Option<T>>>(
    values: impl Iterator<Item = SqliteValue<'a>>,
    convert: impl Fn(SqliteValue<'a>) -> Option<T>,
) -> Result<A, String> {
    let converted = values.map(|value| match value {
        SqliteValue::Null => Ok(None),
        value => convert(value).map(Some).ok_or_else(|| value.describe()),
    });
    converted.collect()
}
