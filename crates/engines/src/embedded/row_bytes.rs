//! Approximate number of bytes of each row, computed from the values and not from their memory layout; and the width
//! of rows that an operator repeats.
//!
//! A join, an unnest or a scalar subquery repeats a row for many others. A text of one megabyte then becomes a batch
//! of gigabytes, and this memory is not accounted for. So rows that are too wide for the batch size stop the plan
//! first, and the statement is planned again with shorter batches.

use datafusion::arrow::array::{Array, AsArray, OffsetSizeTrait, RecordBatch, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use thiserror::Error;
use tidegate_query::batch_bytes;

/// Approximate number of bytes of a fixed-size value, and overhead of other values.
const FIXED_BYTES: u64 = 8;

/// Parts of `batch` with at most about `bytes_max` bytes, or with one row.
pub(super) fn cut_rows(batch: &RecordBatch, bytes_max: u64) -> Vec<RecordBatch> {
    let (mut parts, mut begun, mut bytes) = (Vec::new(), 0, 0_u64);
    for (row, width) in measure_rows(batch).into_iter().enumerate() {
        if row > begun && bytes.saturating_add(width) > bytes_max {
            parts.push(batch.slice(begun, row - begun));
            (begun, bytes) = (row, 0);
        }
        bytes = bytes.saturating_add(width);
    }
    parts.push(batch.slice(begun, batch.num_rows() - begun));
    parts
}

/// Whether values of the columns are in dictionaries, so that the memory of a batch says nothing about its rows.
fn has_dictionaries(batch: &RecordBatch) -> bool {
    batch.schema_ref().fields().iter().any(|field| is_in_dictionary(field.data_type()))
}

fn is_in_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => is_in_dictionary(item.data_type()),
        DataType::Struct(members) => members.iter().any(|member| is_in_dictionary(member.data_type())),
        _ => false,
    }
}

pub(super) fn measure_rows(batch: &RecordBatch) -> Vec<u64> {
    let mut widths = vec![0; batch.num_rows()];
    batch.columns().iter().for_each(|column| add_value_bytes(column.as_ref(), &mut widths));
    widths
}

fn add_value_bytes(array: &dyn Array, widths: &mut [u64]) {
    widths.iter_mut().for_each(|width| *width += FIXED_BYTES);
    match array.data_type() {
        data_type if data_type.is_string() || data_type.is_binary() => {
            // The kernel supports all of these types.
            let lengths = length(array).and_then(|lengths| cast(&lengths, &DataType::UInt64));
            let lengths = lengths.unwrap_or_else(|_| new_null_array(&DataType::UInt64, array.len()));
            let lengths = lengths.as_primitive::<UInt64Type>().iter().map(Option::unwrap_or_default);
            widths.iter_mut().zip(lengths).for_each(|(width, length)| *width += length);
        }
        // Each row has its value, which others may have, too.
        DataType::Dictionary(..) if !array.as_any_dictionary().values().is_empty() => {
            let dictionary = array.as_any_dictionary();
            let mut of_values = vec![0; dictionary.values().len()];
            add_value_bytes(dictionary.values().as_ref(), &mut of_values);
            for (row, (width, key)) in widths.iter_mut().zip(dictionary.normalized_keys()).enumerate() {
                if array.is_valid(row) {
                    *width += of_values[key] - FIXED_BYTES;
                }
            }
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().for_each(|column| add_value_bytes(column.as_ref(), widths))
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            add_items(list.values().as_ref(), list.value_offsets(), widths);
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            add_items(list.values().as_ref(), list.value_offsets(), widths);
        }
        DataType::FixedSizeList(_, length) => {
            let offsets: Vec<i32> =
                (0..).step_by(usize::try_from(*length).unwrap_or(1).max(1)).take(array.len() + 1).collect();
            add_items(array.as_fixed_size_list().values().as_ref(), &offsets, widths);
        }
        DataType::Map(..) => {
            let map = array.as_map();
            add_items(map.entries(), map.value_offsets(), widths);
        }
        _ => {}
    }
}

/// Adds the bytes of the `items` of each row. `offsets` delimit the rows.
fn add_items<O: OffsetSizeTrait>(items: &dyn Array, offsets: &[O], widths: &mut [u64]) {
    // The array may have items of other rows before and after.
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return };
    let items = items.slice(first.as_usize(), last.as_usize() - first.as_usize());
    let mut of_items = vec![0; items.len()];
    add_value_bytes(items.as_ref(), &mut of_items);
    for (width, [start, end]) in widths.iter_mut().zip(offsets.array_windows()) {
        let range = start.as_usize() - first.as_usize()..end.as_usize() - first.as_usize();
        *width += of_items[range].iter().sum::<u64>();
    }
}

/// Maximum number of bytes of a batch with repeated rows.
const BATCH_BYTES_MAX: usize = 64 << 20;
/// Maximum number of bytes of a row that is alone in its batch.
const ROW_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("rows of {bytes} bytes are too wide")]
pub(super) struct RowsTooWide {
    pub(super) bytes: usize,
}

impl RowsTooWide {
    /// A batch size that fits, at most half of `before`.
    pub(super) fn batch_rows(self, before: usize) -> usize {
        (BATCH_BYTES_MAX / self.bytes.max(1)).min(before / 2).max(1)
    }
}

/// Checks the rows that are passed to an operator that repeats them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RepeatedRows {
    pub(super) batch_rows: usize,
    /// Whether the elements of lists become rows.
    pub(super) is_unnested: bool,
}

impl RepeatedRows {
    /// The number of bytes of the widest row made from `batch`, if it is too wide for the batch size.
    pub(super) fn check_batch(self, batch: &RecordBatch) -> Option<RowsTooWide> {
        let row_bytes_max = if self.batch_rows > 1 { BATCH_BYTES_MAX / self.batch_rows } else { ROW_BYTES_MAX };
        let elements = if self.is_unnested { longest_list(batch) } else { 1 };
        let all = if has_dictionaries(batch) { usize::MAX } else { batch_bytes(batch) };
        if all.saturating_mul(elements) <= row_bytes_max {
            return None;
        }
        let row = measure_rows(batch).into_iter().max().unwrap_or(0);
        let bytes = usize::try_from(row).unwrap_or(usize::MAX).min(all).saturating_mul(elements);
        (bytes > row_bytes_max).then_some(RowsTooWide { bytes })
    }
}

fn longest_list(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| longest_list_in(column)).max().unwrap_or(0).max(1)
}

fn longest_list_in(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().offsets().lengths().max().unwrap_or(0),
        DataType::LargeList(_) => column.as_list::<i64>().offsets().lengths().max().unwrap_or(0),
        DataType::Map(..) => column.as_map().offsets().lengths().max().unwrap_or(0),
        DataType::FixedSizeList(_, length) => usize::try_from(*length).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, DictionaryArray, Int64Array, ListArray, ListBuilder, StringArray, StringBuilder, StructArray,
    };
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::{Field, Int8Type};

    use super::*;

    #[test]
    fn row_bytes_depend_on_values_only() {
        let mut lists = ListBuilder::new(StringBuilder::new());
        lists.append_value([Some("ab"), Some("cde")]);
        lists.append_value([None::<&str>; 0]);
        lists.append_null();
        lists.append_value([Some("f")]);
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("four"), Some("")]));
        let nested: ArrayRef = Arc::new(StructArray::try_from(vec![("x", texts.clone())]).unwrap());
        let lists: ArrayRef = Arc::new(lists.finish());
        let batch =
            RecordBatch::try_from_iter([("id", ids), ("text", texts), ("deep", nested), ("list", lists)]).unwrap();
        let expected = [8 + 9 + 17 + 8 + 10 + 11, 8 + 8 + 16 + 8, 8 + 12 + 20 + 8, 8 + 8 + 16 + 8 + 9];
        assert_eq!(measure_rows(&batch), expected);
        assert_eq!(measure_rows(&batch.slice(1, 3)), expected[1..]);
    }

    #[test]
    fn values_of_dictionaries_count_for_each_row() {
        let long = "x".repeat(1_000);
        let texts = [Some(long.as_str()), None, Some("ab"), Some(long.as_str())];
        let dictionary: ArrayRef = Arc::new(texts.into_iter().collect::<DictionaryArray<Int8Type>>());
        let empty: ArrayRef = Arc::new([None::<&str>; 4].into_iter().collect::<DictionaryArray<Int8Type>>());
        let batch = RecordBatch::try_from_iter_with_nullable([("d", dictionary, true), ("e", empty, true)]).unwrap();
        assert_eq!(measure_rows(&batch), [1_016, 16, 18, 1_016]);
        assert_eq!(measure_rows(&batch.slice(2, 2)), [18, 1_016]);
        assert!(has_dictionaries(&batch));
        let parts: Vec<usize> = cut_rows(&batch, 1_100).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(parts, [3, 1]);
        let parts: Vec<usize> = cut_rows(&batch, 10).iter().map(RecordBatch::num_rows).collect();
        assert_eq!(parts, [1, 1, 1, 1]);
    }

    fn excess(batch: &RecordBatch, batch_rows: usize, is_unnested: bool) -> Option<usize> {
        RepeatedRows { batch_rows, is_unnested }.check_batch(batch).map(|too_wide| too_wide.bytes)
    }

    #[test]
    fn measures_the_widest_row() {
        let long = "x".repeat(1 << 20);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", &long, ""]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = RecordBatch::try_from_iter([("t", texts), ("n", numbers)]).unwrap();
        let bytes = (1 << 20) + 16;
        assert_eq!(excess(&batch, 63, false), None);
        assert_eq!(excess(&batch, 64, false), Some(bytes));
        assert_eq!(excess(&batch, 1, false), None);
        assert_eq!(RowsTooWide { bytes }.batch_rows(8_192), 63);
        assert_eq!(RowsTooWide { bytes }.batch_rows(100), 50, "at most half, so that it comes to an end");
        assert_eq!(RowsTooWide { bytes: usize::MAX }.batch_rows(8_192), 1);
    }

    #[test]
    fn lists_count_row_by_row_and_unnested_ones_for_each_element() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..80_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef =
            Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(vec![10; 8_000]), numbers, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert_eq!(excess(&batch, 8_192, false), None);
        assert_eq!(excess(&batch, 8_192, true), None);
        let long: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let lists: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([10_000]), long, None));
        let batch = RecordBatch::try_from_iter([("l", lists)]).unwrap();
        assert!(excess(&batch, 1, true).is_some_and(|bytes| bytes >= 800_000_000));
    }
}
