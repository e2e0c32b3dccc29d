//! Approximate number of bytes of each row, computed from the values and not from their memory layout.

use datafusion::arrow::array::{Array, AsArray, OffsetSizeTrait, RecordBatch, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, UInt64Type};

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
pub(super) fn has_dictionaries(batch: &RecordBatch) -> bool {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, DictionaryArray, Int64Array, ListBuilder, StringArray, StringBuilder, StructArray,
    };
    use datafusion::arrow::datatypes::Int8Type;

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
}
