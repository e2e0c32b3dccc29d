//! One column of a batch while its rows are read, what its values take in memory, and the array of Arrow that they become.
//!
//! The builders of Arrow cannot take back a value. These buffers can, so that a row that does not fit is removed whole.

mod names;
mod scalar;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, FixedSizeBinaryArray,
    FixedSizeListArray, ListArray, MapArray, NullBufferBuilder, StringArray, StructArray, make_array, new_null_array,
};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{ArrowNativeType, DataType, Field, Fields, TimeUnit, i256};
use arrow::error::ArrowError;

pub use names::NameIndex;
pub(crate) use scalar::describe_type;

use crate::error::{CellError, CellResult};
use crate::options::{BinaryText, BodyLimits, BodyOptions};
use crate::value::ColumnZone;

/// The metadata of a field that marks text as JSON, with its name in Arrow.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const JSON_EXTENSION: &str = "arrow.json";
/// How deeply the types of columns may be nested.
const TYPE_DEPTH_MAX: usize = 32;

/// The values of one column, or of one part of a nested column.
#[derive(Debug)]
pub(crate) struct ColumnBuffer {
    data_type: DataType,
    is_nullable: bool,
    nulls: NullBufferBuilder,
    values: ColumnValues,
    /// The most values, if they are the items of lists.
    items_max: usize,
}

#[derive(Debug)]
enum ColumnValues {
    Null,
    Boolean(BooleanBufferBuilder),
    Integer { values: Vec<i64>, min: i64, max: i64 },
    Unsigned(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal { values: Vec<i128>, precision: u8, scale: i8 },
    WideDecimal { values: Vec<i256>, precision: u8, scale: i8 },
    Date(Vec<i64>),
    Time { values: Vec<i64>, unit: TimeUnit },
    Timestamp { values: Vec<i64>, unit: TimeUnit, zone: ColumnZone, epoch_unit: Option<TimeUnit> },
    Text { text: ByteRuns, is_json: bool },
    Binary { bytes: ByteRuns, encoding: BinaryText, size: Option<usize> },
    List { offsets: Vec<i32>, item: Box<ColumnBuffer>, size: Option<usize> },
    Struct { names: NameIndex, members: Vec<ColumnBuffer> },
    Map { offsets: Vec<i32>, key: Box<ColumnBuffer>, value: Box<ColumnBuffer> },
}

/// Values of any length, one after the other.
#[derive(Debug)]
struct ByteRuns {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
}

/// Whether a field has text that is JSON.
pub(crate) fn is_json_field(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == JSON_EXTENSION)
}

/// The metadata of a field whose text is JSON.
pub(crate) fn json_field(name: &str) -> Field {
    let metadata = [(EXTENSION_NAME.to_owned(), JSON_EXTENSION.to_owned())].into();
    Field::new(name, DataType::Utf8, true).with_metadata(metadata)
}

impl ColumnBuffer {
    /// An empty column, or the reason why rows in text cannot have it.
    pub(crate) fn new(field: &Field, options: &BodyOptions) -> Result<Self, String> {
        let epoch_unit = options.epoch_units.get(field.name()).copied();
        if epoch_unit.is_some() && !matches!(field.data_type(), DataType::Timestamp(..)) {
            let described = describe_type(field.data_type());
            return Err(format!("column \"{}\" has a unit of epochs, but it is {described}", field.name()));
        }
        Self::with_depth(field, options, epoch_unit, TYPE_DEPTH_MAX)
            .map_err(|reason| format!("column \"{}\": {reason}", field.name()))
    }

    fn with_depth(
        field: &Field,
        options: &BodyOptions,
        epoch_unit: Option<TimeUnit>,
        depth: usize,
    ) -> Result<Self, String> {
        let Some(depth) = depth.checked_sub(1) else { return Err("the type is nested too deeply".to_owned()) };
        let part = |field: &Field| Self::with_depth(field, options, None, depth);
        let values = match value_type(field.data_type()) {
            DataType::List(item) | DataType::LargeList(item) => {
                ColumnValues::List { offsets: vec![0], item: Box::new(part(item)?), size: None }
            }
            DataType::FixedSizeList(item, size) => {
                let size = usize::try_from(*size).map_err(|_| "the type has a negative size".to_owned())?;
                ColumnValues::List { offsets: vec![0], item: Box::new(part(item)?), size: Some(size) }
            }
            DataType::Struct(fields) => {
                let members = fields.iter().map(|field| part(field)).collect::<Result<_, _>>()?;
                let names = NameIndex::new(fields.iter().map(|field| field.name().clone()))?;
                ColumnValues::Struct { names, members }
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err("the type is a map without entries".to_owned());
                };
                let [key, value] = fields.as_ref() else {
                    return Err("the type is a map without key and value".to_owned());
                };
                let (key, value) = (part(key)?, part(value)?);
                if !key.is_text() && !matches!(key.values, ColumnValues::Integer { .. } | ColumnValues::Unsigned(_)) {
                    let described = key.description();
                    return Err(format!("JSON and CSV have maps from text or integers; the key is {described}"));
                }
                ColumnValues::Map { offsets: vec![0], key: Box::new(key), value: Box::new(value) }
            }
            data_type => scalar::scalar_values(data_type, is_json_field(field), options, epoch_unit)?,
        };
        let mut buffer = Self {
            data_type: field.data_type().clone(),
            is_nullable: field.is_nullable(),
            nulls: NullBufferBuilder::new(0),
            values,
            items_max: 0,
        };
        buffer.items_max = buffer.count_items_max(&options.limits);
        Ok(buffer)
    }

    /// The number of values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.nulls.len()
    }

    fn is_text(&self) -> bool {
        matches!(self.values, ColumnValues::Text { is_json: false, .. })
    }

    /// What the column takes, for messages.
    pub(crate) fn description(&self) -> String {
        describe_type(&self.data_type)
    }

    /// Appends null, or reports that the column does not take it.
    #[inline]
    pub(crate) fn append_null(&mut self) -> CellResult<()> {
        if !self.is_nullable {
            return Err(CellError::new("it is null, and the column takes no nulls"));
        }
        self.append_masked_null();
        Ok(())
    }

    /// Appends the null of a value that was not there at all.
    pub(crate) fn append_missing(&mut self) -> CellResult<()> {
        if !self.is_nullable {
            return Err(CellError::new("it is missing, and the column takes no nulls"));
        }
        self.append_masked_null();
        Ok(())
    }

    /// Appends null whether or not the column takes it: within a null, it is not visible.
    fn append_masked_null(&mut self) {
        match &mut self.values {
            ColumnValues::Null => {}
            ColumnValues::Boolean(values) => values.append(false),
            ColumnValues::Integer { values, .. }
            | ColumnValues::Date(values)
            | ColumnValues::Time { values, .. }
            | ColumnValues::Timestamp { values, .. } => values.push(0),
            ColumnValues::Unsigned(values) => values.push(0),
            ColumnValues::Float32(values) => values.push(0.0),
            ColumnValues::Float64(values) => values.push(0.0),
            ColumnValues::Decimal { values, .. } => values.push(0),
            ColumnValues::WideDecimal { values, .. } => values.push(i256::ZERO),
            ColumnValues::Text { text, .. } => text.end_unchanged(),
            ColumnValues::Binary { bytes, size, .. } => {
                bytes.bytes.extend(std::iter::repeat_n(0, size.unwrap_or(0)));
                bytes.end_unchecked();
            }
            ColumnValues::List { offsets, item, size } => {
                for _ in 0..size.unwrap_or(0) {
                    item.append_masked_null();
                }
                offsets.push(offset_of(item.len()));
            }
            ColumnValues::Map { offsets, key, .. } => offsets.push(offset_of(key.len())),
            ColumnValues::Struct { members, .. } => members.iter_mut().for_each(Self::append_masked_null),
        }
        self.nulls.append_null();
    }

    /// Removes all values from the one with this index on, also those that are not complete.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.nulls.truncate(len);
        match &mut self.values {
            ColumnValues::Null => {}
            ColumnValues::Boolean(values) => values.truncate(len),
            ColumnValues::Integer { values, .. }
            | ColumnValues::Date(values)
            | ColumnValues::Time { values, .. }
            | ColumnValues::Timestamp { values, .. } => values.truncate(len),
            ColumnValues::Unsigned(values) => values.truncate(len),
            ColumnValues::Float32(values) => values.truncate(len),
            ColumnValues::Float64(values) => values.truncate(len),
            ColumnValues::Decimal { values, .. } => values.truncate(len),
            ColumnValues::WideDecimal { values, .. } => values.truncate(len),
            ColumnValues::Text { text, .. } => text.truncate(len),
            ColumnValues::Binary { bytes, .. } => bytes.truncate(len),
            ColumnValues::List { offsets, item, .. } => item.truncate(truncate_offsets(offsets, len)),
            ColumnValues::Map { offsets, key, value } => {
                let entries = truncate_offsets(offsets, len);
                key.truncate(entries);
                value.truncate(entries);
            }
            ColumnValues::Struct { members, .. } => members.iter_mut().for_each(|member| member.truncate(len)),
        }
    }
}

impl ByteRuns {
    fn new() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0] }
    }

    /// Ends a value without bytes.
    fn end_unchanged(&mut self) {
        let last = self.offsets.last().copied().unwrap_or(0);
        self.offsets.push(last);
    }

    /// Ends a value with the bytes that were appended.
    #[inline]
    fn end_unchecked(&mut self) {
        self.offsets.push(offset_of(self.bytes.len()));
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end_unchecked();
    }

    /// The number of bytes since the end of the last value.
    fn open_length(&self) -> usize {
        self.bytes.len() - self.offsets.last().map_or(0, |offset| index_of(*offset))
    }

    fn truncate(&mut self, len: usize) {
        let bytes = truncate_offsets(&mut self.offsets, len);
        self.bytes.truncate(bytes);
    }
}

/// Removes the offsets after value `len`, and returns where it begins.
fn truncate_offsets(offsets: &mut Vec<i32>, len: usize) -> usize {
    offsets.truncate(len + 1);
    offsets.last().map_or(0, |offset| index_of(*offset))
}

/// Batches are far smaller than 2 GiB ([`crate::BodyLimits`] is bounded), so offsets of 32 bits are enough.
#[inline]
fn offset_of(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

fn index_of(offset: i32) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

/// The type of the values: that of the dictionary where the column has one.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        _ => data_type,
    }
}

/// What an offset or a number takes in memory, roughly.
const VALUE_BYTES: usize = 8;

impl ColumnBuffer {
    /// About how many bytes each value takes, without text.
    pub(crate) fn width(&self) -> usize {
        match &self.values {
            ColumnValues::Struct { members, .. } => VALUE_BYTES + members.iter().map(Self::width).sum::<usize>(),
            ColumnValues::List { item, size: Some(size), .. } => VALUE_BYTES + item.width().saturating_mul(*size),
            ColumnValues::Binary { size: Some(size), .. } => VALUE_BYTES + size,
            ColumnValues::WideDecimal { .. } => 4 * VALUE_BYTES,
            ColumnValues::Decimal { .. } => 2 * VALUE_BYTES,
            _ => VALUE_BYTES,
        }
    }

    /// How many items of lists a batch may have here: those of a row and those of the rows before it.
    fn count_items_max(&self, limits: &BodyLimits) -> usize {
        (limits.row_bytes_max.saturating_add(limits.batch_bytes) / self.width()).max(1)
    }

    /// About how many bytes the items of all lists take. A few bytes of text are an item of any width.
    pub(crate) fn items_bytes(&self) -> usize {
        let bytes_of = |item: &Self| item.len().saturating_mul(item.width()).saturating_add(item.items_bytes());
        match &self.values {
            ColumnValues::List { item, .. } => bytes_of(item),
            ColumnValues::Map { key, value, .. } => bytes_of(key).saturating_add(bytes_of(value)),
            ColumnValues::Struct { members, .. } => members.iter().map(Self::items_bytes).sum(),
            _ => 0,
        }
    }

    /// The memory of all values, with the room for further ones.
    pub(crate) fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            ColumnValues::Null => 0,
            ColumnValues::Boolean(values) => values.len() / 8,
            ColumnValues::Integer { values, .. }
            | ColumnValues::Date(values)
            | ColumnValues::Time { values, .. }
            | ColumnValues::Timestamp { values, .. } => values.capacity() * size_of::<i64>(),
            ColumnValues::Unsigned(values) => values.capacity() * size_of::<u64>(),
            ColumnValues::Float32(values) => values.capacity() * size_of::<f32>(),
            ColumnValues::Float64(values) => values.capacity() * size_of::<f64>(),
            ColumnValues::Decimal { values, .. } => values.capacity() * size_of::<i128>(),
            ColumnValues::WideDecimal { values, .. } => values.capacity() * size_of::<i256>(),
            ColumnValues::Text { text: runs, .. } | ColumnValues::Binary { bytes: runs, .. } => runs.memory_bytes(),
            ColumnValues::List { offsets, item, .. } => offsets.capacity() * size_of::<i32>() + item.memory_bytes(),
            ColumnValues::Struct { members, .. } => members.iter().map(Self::memory_bytes).sum(),
            ColumnValues::Map { offsets, key, value } => {
                offsets.capacity() * size_of::<i32>() + key.memory_bytes() + value.memory_bytes()
            }
        };
        self.nulls.allocated_size() + values
    }
}

impl ByteRuns {
    fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.offsets.capacity() * size_of::<i32>()
    }
}

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
