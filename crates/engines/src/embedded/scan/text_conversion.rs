//! CSV columns that Arrow's reader cannot parse: typed columns with null markers, or with numbers in another format.
//! They are read as text and converted here, by the same rules.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::types::ArrowPrimitiveType;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use datafusion::arrow::compute::kernels::cast_utils::{Parser, parse_decimal};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float64Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::arrow::error::ArrowError;

use crate::embedded::files::{FileTable, NumberFormat, is_null_marker};

#[derive(Debug, Clone)]
pub(super) struct TextConversion {
    /// The columns of the file, with text in place of those that are converted.
    pub(super) read_as: SchemaRef,
    schema: SchemaRef,
    numbers: Option<NumberFormat>,
    /// Positions in the file of the columns that are converted.
    converted: HashSet<usize>,
}

impl TextConversion {
    pub(super) fn new(table: &FileTable) -> Self {
        let (schema, numbers) = (table.schema.file_schema().clone(), table.numbers());
        let is_converted = |field: &Field| {
            let is_number = field.data_type().is_numeric();
            *field.data_type() != DataType::Utf8
                && (table.null_marker_columns.contains(field.name()) || (numbers.is_some() && is_number))
        };
        let fields = schema.fields().iter();
        let converted: HashSet<usize> =
            fields.enumerate().filter(|(_, field)| is_converted(field)).map(|(position, _)| position).collect();
        let fields = schema.fields().iter().enumerate().map(|(position, field)| {
            let data_type = if converted.contains(&position) { DataType::Utf8 } else { field.data_type().clone() };
            field.as_ref().clone().with_data_type(data_type)
        });
        let read_as = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        Self { read_as, schema, numbers, converted }
    }

    /// Converts `batch`, which has the columns at `positions`. `first_row` is the number of its first row.
    pub(super) fn convert(
        &self,
        batch: RecordBatch,
        positions: &[usize],
        first_row: usize,
    ) -> Result<RecordBatch, ArrowError> {
        if !positions.iter().any(|position| self.converted.contains(position)) {
            return Ok(batch);
        }
        let mut columns = Vec::with_capacity(positions.len());
        for (column, &position) in batch.columns().iter().zip(positions) {
            columns.push(match column.as_any().downcast_ref::<StringArray>() {
                Some(values) if self.converted.contains(&position) => {
                    self.convert_column(values, position, first_row)?
                }
                _ => column.clone(),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(self.schema.project(positions)?), columns, &options)
    }

    fn convert_column(&self, values: &StringArray, position: usize, first_row: usize) -> Result<ArrayRef, ArrowError> {
        let data_type = self.schema.field(position).data_type();
        let reading = TextColumn { values, data_type, position, first_row, numbers: self.numbers };
        Ok(match data_type {
            DataType::Int64 => reading.parse_primitives::<Int64Type>()?,
            DataType::Float64 => reading.parse_primitives::<Float64Type>()?,
            DataType::Date32 => reading.parse_primitives::<Date32Type>()?,
            DataType::Timestamp(..) => reading.parse_primitives::<TimestampMicrosecondType>()?,
            DataType::Boolean => {
                let value = |value: &str| match value.to_ascii_lowercase().as_str() {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => None,
                };
                Arc::new(reading.parse_values(value)?.into_iter().collect::<BooleanArray>())
            }
            DataType::Decimal128(precision, scale) => {
                let value = |value: &str| parse_decimal::<Decimal128Type>(value, *precision, *scale).ok();
                let array = reading.parse_values(value)?.into_iter().collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(*precision, *scale)?)
            }
            other => return Err(ArrowError::NotYetImplemented(format!("a column of text as {other}"))),
        })
    }
}

struct TextColumn<'a> {
    values: &'a StringArray,
    data_type: &'a DataType,
    position: usize,
    first_row: usize,
    numbers: Option<NumberFormat>,
}

impl TextColumn<'_> {
    fn parse_primitives<T: ArrowPrimitiveType + Parser>(&self) -> Result<ArrayRef, ArrowError> {
        Ok(Arc::new(self.parse_values(T::parse)?.into_iter().collect::<PrimitiveArray<T>>()))
    }

    fn parse_values<V>(&self, parse: impl Fn(&str) -> Option<V>) -> Result<Vec<Option<V>>, ArrowError> {
        let numbers = self.numbers.filter(|_| self.data_type.is_numeric());
        let one = |(row, value): (usize, Option<&str>)| {
            let Some(value) = value.filter(|value| !is_null_marker(value)) else { return Ok(None) };
            let parsed = match numbers {
                Some(format) => format.normalize(value).and_then(|number| parse(&number)),
                None => parse(value),
            };
            let misfit = || {
                let (kind, column, line) = (self.data_type, self.position, self.first_row + row);
                let text =
                    format!("Error while parsing value '{value}' as type '{kind}' for column {column} at line {line}");
                ArrowError::ParseError(format!("{text}. Row data: ''"))
            };
            parsed.map(Some).ok_or_else(misfit)
        };
        self.values.iter().enumerate().map(one).collect()
    }
}
