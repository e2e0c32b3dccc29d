//! From the values of a column to an array of Arrow.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, ListArray,
    MapArray, StringArray, StructArray, make_array, new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{ArrowNativeType, DataType, Fields};
use arrow::error::ArrowError;

use super::{ColumnBuffer, ColumnValues, value_type};

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

impl ColumnBuffer {
    /// The array of all values; the column is empty afterwards.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let len = self.nulls.len();
        let nulls = self.nulls.finish();
        let data_type = value_type(&self.data_type).clone();
        let array: ArrayRef = match &mut self.values {
            ColumnValues::Null => new_null_array(&DataType::Null, len),
            ColumnValues::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            ColumnValues::Integer { values, .. } | ColumnValues::Time { values, .. } => {
                primitive(&data_type, integers(std::mem::take(values), &data_type), len, nulls)?
            }
            ColumnValues::Date(values) => {
                let days = std::mem::take(values);
                let values = if data_type == DataType::Date64 {
                    days.into_iter().map(|days| days.saturating_mul(MILLISECONDS_PER_DAY)).collect()
                } else {
                    days
                };
                primitive(&data_type, integers(values, &data_type), len, nulls)?
            }
            ColumnValues::Timestamp { values, .. } => primitive(&data_type, take(values), len, nulls)?,
            ColumnValues::Unsigned(values) => primitive(&data_type, take(values), len, nulls)?,
            ColumnValues::Float32(values) => primitive(&data_type, take(values), len, nulls)?,
            ColumnValues::Float64(values) => primitive(&data_type, take(values), len, nulls)?,
            ColumnValues::Decimal { values, .. } => {
                primitive(&data_type, decimals(std::mem::take(values), &data_type), len, nulls)?
            }
            ColumnValues::WideDecimal { values, .. } => primitive(&data_type, take(values), len, nulls)?,
            ColumnValues::Text { text, .. } => {
                let offsets = take_offsets(&mut text.offsets);
                Arc::new(StringArray::try_new(offsets, take(&mut text.bytes), nulls)?)
            }
            ColumnValues::Binary { bytes, size: None, .. } => {
                let offsets = take_offsets(&mut bytes.offsets);
                Arc::new(BinaryArray::try_new(offsets, take(&mut bytes.bytes), nulls)?)
            }
            ColumnValues::Binary { bytes, size: Some(size), .. } => {
                bytes.offsets.truncate(1);
                let size = i32::try_from(*size).unwrap_or(i32::MAX);
                Arc::new(FixedSizeBinaryArray::try_new_with_len(size, take(&mut bytes.bytes), nulls, len)?)
            }
            ColumnValues::List { .. } | ColumnValues::Struct { .. } | ColumnValues::Map { .. } => {
                return self.finish_nested(len, nulls);
            }
        };
        as_type(array, &self.data_type)
    }

    fn finish_nested(&mut self, len: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let array: ArrayRef = match (&mut self.values, value_type(&self.data_type)) {
            (ColumnValues::List { offsets, item, .. }, DataType::FixedSizeList(field, size)) => {
                offsets.truncate(1);
                let items = item.finish()?;
                Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, items, nulls, len)?)
            }
            (ColumnValues::List { offsets, item, .. }, DataType::List(field) | DataType::LargeList(field)) => {
                let offsets = take_offsets(offsets);
                Arc::new(ListArray::try_new(field.clone(), offsets, item.finish()?, nulls)?)
            }
            (ColumnValues::Struct { members, .. }, DataType::Struct(fields)) => {
                let arrays = members.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, len)?)
            }
            (ColumnValues::Map { offsets, key, value }, DataType::Map(entries, is_sorted)) => {
                let offsets = take_offsets(offsets);
                let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(&self.data_type)) };
                let fields: Fields = fields.clone();
                let arrays = StructArray::try_new(fields, vec![key.finish()?, value.finish()?], None)?;
                Arc::new(MapArray::try_new(entries.clone(), offsets, arrays, nulls, *is_sorted)?)
            }
            _ => return Err(unexpected(&self.data_type)),
        };
        as_type(array, &self.data_type)
    }
}

/// The same values in a larger, viewed or dictionary layout.
fn as_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(array);
    }
    cast_with_options(&array, data_type, &CastOptions { safe: false, ..CastOptions::default() })
}

fn take<T: ArrowNativeType>(values: &mut Vec<T>) -> Buffer {
    Buffer::from_vec(std::mem::take(values))
}

/// The offsets so far; those of an empty column remain.
fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}

fn primitive(
    data_type: &DataType,
    values: Buffer,
    len: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(values).nulls(nulls).build()?;
    Ok(make_array(data))
}

/// Integers in the width of their type. All of them are within its range, which was checked when they were appended.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the values are within the range of the type"
)]
fn integers(values: Vec<i64>, data_type: &DataType) -> Buffer {
    let values = values.into_iter();
    match data_type {
        DataType::Int8 => Buffer::from_vec(values.map(|value| value as i8).collect()),
        DataType::Int16 => Buffer::from_vec(values.map(|value| value as i16).collect()),
        DataType::UInt8 => Buffer::from_vec(values.map(|value| value as u8).collect()),
        DataType::UInt16 => Buffer::from_vec(values.map(|value| value as u16).collect()),
        DataType::UInt32 => Buffer::from_vec(values.map(|value| value as u32).collect()),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
            Buffer::from_vec(values.map(|value| value as i32).collect())
        }
        _ => Buffer::from_vec(values.collect::<Vec<i64>>()),
    }
}

/// Decimals in the width of their type, which has room for its precision.
#[allow(clippy::cast_possible_truncation, reason = "the values are within the precision of the type")]
fn decimals(values: Vec<i128>, data_type: &DataType) -> Buffer {
    match data_type {
        DataType::Decimal32(..) => Buffer::from_vec(values.into_iter().map(|value| value as i32).collect()),
        DataType::Decimal64(..) => Buffer::from_vec(values.into_iter().map(|value| value as i64).collect()),
        _ => Buffer::from_vec(values),
    }
}

fn unexpected(data_type: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("a column of type {data_type} has other values"))
}
