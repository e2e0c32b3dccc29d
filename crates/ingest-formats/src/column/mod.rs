//! One column of a batch while its rows are read.
//!
//! The builders of Arrow cannot take back a value. These buffers can, so that a row that does not fit is removed whole.

mod finish;
mod json;
mod names;
mod scalar;
mod size;
mod text;

use arrow::array::{BooleanBufferBuilder, NullBufferBuilder};
use arrow::datatypes::{DataType, Field, TimeUnit, i256};

pub use names::NameIndex;
pub(crate) use scalar::describe_type;

use crate::error::{CellError, CellResult};
use crate::options::{BinaryText, BodyOptions};
use crate::value::time::ColumnZone;

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
