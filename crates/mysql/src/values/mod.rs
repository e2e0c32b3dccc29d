//! Values between MySQL and Arrow: binary results in, as record batches; bound parameters out.
//!
//! | MySQL | Arrow |
//! |---|---|
//! | `TINYINT`, `SMALLINT`, `MEDIUMINT`, `INT`, `BIGINT`, with and without sign | integers of 8, 16, 32 and 64 bits |
//! | `FLOAT`, `DOUBLE` | the same |
//! | `DECIMAL(p,s)` | `Decimal128`, from 39 digits on `Decimal256` |
//! | `BIT(n)` | `UInt64` |
//! | `YEAR` | `UInt16` |
//! | `CHAR`, `VARCHAR`, `TEXT`, `ENUM`, `SET` | `Utf8` |
//! | `BINARY`, `VARBINARY`, `BLOB` | `Binary` |
//! | `JSON` | `Utf8`, marked as JSON |
//! | `DATE`, `DATETIME` | `Date32`, `Timestamp(µs)` |
//! | `TIMESTAMP` | `Timestamp(µs, UTC)`: sessions have the time zone UTC |
//! | `TIME` | `Utf8`, because it may be negative or beyond a day |
//! | spatial types | `Utf8`, as WKT |
//!
//! A value that Arrow cannot represent, such as the date 0000-00-00, is an error, never another value.

mod column;
mod geometry;

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Fields, Schema, SchemaRef};
use mysql_async::{Row, Value};
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::Parameter;

pub(crate) use column::ColumnDecoder;

use column::ColumnBuilder;

/// The schema of `columns`; names may be empty or equal.
pub(crate) fn arrow_schema(columns: &[ColumnDecoder]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Fields>()))
}

/// Builds the record batches of one result.
pub(crate) struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    bytes: usize,
}

impl BatchBuilder {
    pub(crate) fn new(columns: &[ColumnDecoder]) -> Self {
        let builders = columns.iter().map(ColumnDecoder::builder).collect();
        Self { schema: arrow_schema(columns), columns: builders, rows: 0, bytes: 0 }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends a row. After an error, the builder contains part of a row and must not be used again.
    pub(crate) fn push(&mut self, row: &Row) -> Result<(), Error> {
        if row.len() != self.columns.len() {
            let expected = self.columns.len();
            return Err(Error::internal(format!("the server sent rows of {} columns, not of {expected}", row.len())));
        }
        for (index, column) in self.columns.iter_mut().enumerate() {
            let value = row.as_ref(index).unwrap_or(&Value::NULL);
            let bytes = column.append(value).map_err(|error| error.into_error(self.schema.field(index).name()))?;
            self.bytes += bytes;
        }
        self.rows += 1;
        Ok(())
    }

    /// The number of rows since the last batch.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The approximate size of these rows in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the rows since the last batch as a batch.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, Error> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| Error::internal(format!("the rows do not make a batch: {error}")))
    }
}

/// Why a value cannot become an Arrow value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueError {
    /// The value has another form than its column.
    Malformed,
    /// A date that the calendar does not have, as MySQL writes it.
    NoDate(String),
    /// A number with more digits than its column declares.
    TooManyDigits,
    /// Text that is not UTF-8.
    NotUtf8,
}

impl ValueError {
    /// The error for the caller; `column` is the name of the value's column.
    fn into_error(self, column: &str) -> Error {
        let invalid = |subject: String, hint: &str| {
            Error::new(ErrorKind::InvalidArguments, format!("column {column:?} holds {subject}")).with_hint(hint)
        };
        match self {
            Self::Malformed => Error::internal(format!("a value of column {column:?} has not its type's binary form")),
            Self::NoDate(text) => invalid(
                format!("{text}, which is no date"),
                "Select its text, CAST(column AS CHAR), or null in its place, NULLIF(column, 0).",
            ),
            Self::TooManyDigits => {
                invalid("a number with more digits than its type".to_owned(), "Select its text: CAST(column AS CHAR).")
            }
            Self::NotUtf8 => invalid("text that is not UTF-8".to_owned(), "Select its bytes: CAST(column AS BINARY)."),
        }
    }
}

/// The values of `parameters` in the order in which the statement has its placeholders: `numbers` begin with 1.
pub(crate) fn bind_parameters(parameters: &[Parameter], numbers: &[usize]) -> Result<Vec<Value>, Error> {
    let bind = |number: &usize| {
        let parameter = number.checked_sub(1).and_then(|index| parameters.get(index));
        parameter.map(bind_parameter).ok_or_else(|| {
            let message = format!("the placeholder {number} has no value; {} values came", parameters.len());
            Error::new(ErrorKind::InvalidArguments, message)
        })
    };
    numbers.iter().map(bind).collect()
}

fn bind_parameter(parameter: &Parameter) -> Value {
    match parameter {
        Parameter::Null => Value::NULL,
        Parameter::Boolean(value) => Value::Int(i64::from(*value)),
        Parameter::Integer(value) => Value::Int(*value),
        Parameter::Float(value) => Value::Double(*value),
        Parameter::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_bound_by_their_numbers() {
        let parameters = [Parameter::Integer(7), Parameter::Text("a".to_owned()), Parameter::Boolean(true)];
        let bound = bind_parameters(&parameters, &[2, 1, 2, 3]).unwrap();
        let text = Value::Bytes(b"a".to_vec());
        assert_eq!(bound, [text.clone(), Value::Int(7), text, Value::Int(1)]);
        assert!(bind_parameters(&parameters, &[4]).is_err());
        assert!(bind_parameters(&parameters, &[0]).is_err());
    }
}
