//! How many bytes values have once they are written out, before that is done.
//!
//! A dictionary has a value once, however many rows have it, and so have views of text. A few bytes can thus stand for
//! gigabytes.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, RecordBatch};
use arrow::datatypes::DataType;

use super::{ConversionKind, MemberConversion, ValueConversion};

/// The bytes of values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueBytes {
    /// Of the values that the body has.
    pub(super) written: u64,
    /// Of the nulls that stand for columns that it does not have.
    filled: u64,
}

impl ValueBytes {
    pub(super) fn total(self) -> u64 {
        self.written.saturating_add(self.filled)
    }

    fn written(bytes: u64) -> Self {
        Self { written: bytes, filled: 0 }
    }

    fn filled(data_type: &DataType, rows: usize) -> Self {
        Self { written: 0, filled: fixed_width(data_type).unwrap_or(8).saturating_mul(rows as u64) }
    }

    fn and(self, other: Self) -> Self {
        Self { written: self.written.saturating_add(other.written), filled: self.filled.saturating_add(other.filled) }
    }
}

/// The bytes of a batch as rows of the table.
pub(super) fn batch_bytes(batch: &RecordBatch, columns: &[MemberConversion]) -> ValueBytes {
    members_bytes(batch.columns(), batch.num_rows(), columns)
}

fn members_bytes(arrays: &[ArrayRef], rows: usize, members: &[MemberConversion]) -> ValueBytes {
    let bytes = |member: &MemberConversion| match member.source.and_then(|position| arrays.get(position)) {
        Some(array) => value_bytes(array, &member.value),
        None => ValueBytes::filled(&member.value.target, rows),
    };
    members.iter().map(bytes).fold(ValueBytes::default(), ValueBytes::and)
}

fn value_bytes(array: &ArrayRef, conversion: &ValueConversion) -> ValueBytes {
    if array.data_type() == &DataType::Null {
        return ValueBytes::filled(&conversion.target, array.len());
    }
    if let DataType::Dictionary(..) = array.data_type() {
        return ValueBytes::written(dictionary_bytes(array));
    }
    let offsets = ValueBytes::written(offsets_bytes(array.len()));
    match (&conversion.kind, array.data_type()) {
        (ConversionKind::Struct(members), DataType::Struct(_)) => {
            members_bytes(array.as_struct().columns(), array.len(), members)
        }
        (ConversionKind::List(item), DataType::List(_)) => {
            let list = array.as_list::<i32>();
            offsets.and(value_bytes(&between(list.values(), list.offsets()), item))
        }
        (ConversionKind::List(item), DataType::LargeList(_)) => {
            let list = array.as_list::<i64>();
            offsets.and(value_bytes(&between(list.values(), list.offsets()), item))
        }
        (ConversionKind::List(item), DataType::FixedSizeList(..)) => {
            value_bytes(array.as_fixed_size_list().values(), item)
        }
        (ConversionKind::Map { key, value }, DataType::Map(..)) => {
            let map = array.as_map();
            let keys = value_bytes(&between(map.keys(), map.offsets()), key);
            offsets.and(keys).and(value_bytes(&between(map.values(), map.offsets()), value))
        }
        // The type of the table may be wider.
        _ => {
            let target = fixed_width(&conversion.target).unwrap_or(0).saturating_mul(array.len() as u64);
            ValueBytes::written(plain_bytes(array).max(target))
        }
    }
}

/// The items that lists with these offsets have.
pub(super) fn between<O: OffsetSizeTrait>(items: &ArrayRef, offsets: &[O]) -> ArrayRef {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => items.slice(first.as_usize(), last.as_usize() - first.as_usize()),
        _ => items.slice(0, 0),
    }
}

fn offsets_bytes(rows: usize) -> u64 {
    4 * rows as u64
}

/// Each row has a copy of its value.
fn dictionary_bytes(array: &ArrayRef) -> u64 {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    if values.is_empty() {
        return 0;
    }
    let keys = dictionary.normalized_keys();
    let keys = keys.into_iter().enumerate().filter(|(row, _)| array.is_valid(*row)).map(|(_, key)| key);
    match values.data_type() {
        DataType::Utf8 => sum_of(keys, |key| length_between(values.as_string::<i32>().value_offsets(), key)),
        DataType::LargeUtf8 => sum_of(keys, |key| length_between(values.as_string::<i64>().value_offsets(), key)),
        DataType::Binary => sum_of(keys, |key| length_between(values.as_binary::<i32>().value_offsets(), key)),
        DataType::LargeBinary => sum_of(keys, |key| length_between(values.as_binary::<i64>().value_offsets(), key)),
        DataType::Utf8View => sum_of(keys, |key| view_length(values.as_string_view().views().get(key))),
        DataType::BinaryView => sum_of(keys, |key| view_length(values.as_binary_view().views().get(key))),
        other => match fixed_width(other) {
            Some(width) => sum_of(keys, |_| width),
            None => sum_of(keys, |key| values.slice(key, 1).to_data().get_slice_memory_size().unwrap_or(0) as u64),
        },
    }
}

fn sum_of(keys: impl Iterator<Item = usize>, bytes: impl Fn(usize) -> u64) -> u64 {
    keys.map(bytes).fold(0, u64::saturating_add)
}

fn length_between<O: OffsetSizeTrait>(offsets: &[O], index: usize) -> u64 {
    match offsets.get(index..) {
        Some([start, end, ..]) => (end.as_usize() - start.as_usize()) as u64,
        _ => 0,
    }
}

/// The lowest bits of a view are the length of its value.
fn view_length(view: Option<&u128>) -> u64 {
    view.map_or(0, |view| u64::from(*view as u32))
}

/// The bytes of values without members and items.
fn plain_bytes(array: &ArrayRef) -> u64 {
    let len = array.len() as u64;
    match array.data_type() {
        DataType::Utf8 => text_bytes(array.as_string::<i32>().value_offsets(), array.len()),
        DataType::LargeUtf8 => text_bytes(array.as_string::<i64>().value_offsets(), array.len()),
        DataType::Binary => text_bytes(array.as_binary::<i32>().value_offsets(), array.len()),
        DataType::LargeBinary => text_bytes(array.as_binary::<i64>().value_offsets(), array.len()),
        DataType::Utf8View => views_bytes(array.as_string_view().views()),
        DataType::BinaryView => views_bytes(array.as_binary_view().views()),
        other => fixed_width(other).unwrap_or(8).saturating_mul(len),
    }
}

fn text_bytes<O: OffsetSizeTrait>(offsets: &[O], rows: usize) -> u64 {
    let ends = offsets.first().zip(offsets.last());
    let bytes = ends.map_or(0, |(first, last)| last.as_usize() - first.as_usize());
    bytes as u64 + offsets_bytes(rows)
}

fn views_bytes(views: &[u128]) -> u64 {
    views.iter().map(|view| view_length(Some(view))).sum::<u64>() + offsets_bytes(views.len())
}

/// The bytes of each value, if all have the same number of them.
fn fixed_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Boolean | DataType::Null => Some(1),
        DataType::FixedSizeBinary(size) => Some(u64::try_from(*size).unwrap_or(0)),
        DataType::FixedSizeList(item, size) => {
            Some(fixed_width(item.data_type())?.saturating_mul(u64::try_from(*size).unwrap_or(0)))
        }
        DataType::Struct(members) => {
            members.iter().try_fold(0_u64, |sum, member| Some(sum.saturating_add(fixed_width(member.data_type())?)))
        }
        other => other.primitive_width().map(|width| width as u64),
    }
}
