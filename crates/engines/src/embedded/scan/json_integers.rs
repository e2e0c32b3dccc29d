//! Exact integers from JSON.
//!
//! Arrow's reader truncates `0.5` to `0` in integer columns. So such columns are read as text first and then converted
//! to numbers, which fails for fractions.
//!
//! Arrow's issue 10265; `docs/decisions/upstream` says when the module can go.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;

pub(super) fn with_numbers_as_text(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(fields_as_text(schema.fields())))
}

fn fields_as_text(fields: &Fields) -> Fields {
    fields.iter().map(|field| field.as_ref().clone().with_data_type(integer_as_text(field.data_type()))).collect()
}

fn integer_as_text(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Int64 => DataType::Utf8View,
        DataType::Struct(fields) => DataType::Struct(fields_as_text(fields)),
        DataType::List(item) => {
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(integer_as_text(item.data_type()))))
        }
        other => other.clone(),
    }
}

/// Converts `batch` to the types of `schema`. A number that does not fit gives an error with the same text as the
/// reader's.
pub(super) fn parse_numbers(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if batch.schema_ref().fields() == schema.fields() {
        return Ok(batch.clone());
    }
    let columns: Result<Vec<ArrayRef>, ArrowError> =
        batch.columns().iter().zip(schema.fields()).map(|(array, field)| strictly_cast(array, field)).collect();
    RecordBatch::try_new(schema.clone(), columns?)
}

fn strictly_cast(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, field.data_type(), &strict).map_err(|error| match error {
        ArrowError::CastError(text) => {
            let value = text.split('\'').nth(1).unwrap_or(&text);
            let (name, data_type) = (field.name(), field.data_type());
            ArrowError::JsonError(format!("whilst decoding field '{name}': failed to parse {value} as {data_type}"))
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringViewArray;

    #[test]
    fn a_fraction_among_whole_numbers_is_an_error() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let read = |values: Vec<&str>| {
            let array = Arc::new(StringViewArray::from(values));
            let batch = RecordBatch::try_new(with_numbers_as_text(&schema), vec![array]).unwrap();
            parse_numbers(&batch, &schema)
        };
        assert_eq!(read(vec!["1", "-2"]).unwrap().schema(), schema);
        let error = read(vec!["1", "0.5"]).unwrap_err().to_string();
        assert_eq!(error, "Json error: whilst decoding field 'n': failed to parse 0.5 as Int64");
    }
}
