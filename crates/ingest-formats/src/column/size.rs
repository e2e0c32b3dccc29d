//! What the values of a column take in memory.

use arrow::datatypes::i256;

use super::{ByteRuns, ColumnBuffer, ColumnValues};
use crate::options::BodyLimits;

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
    pub(super) fn count_items_max(&self, limits: &BodyLimits) -> usize {
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
