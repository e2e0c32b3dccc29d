//! The memory that values use, without unused parts of buffers that they share with other rows.

use arrow::array::{Array, AsArray, OffsetSizeTrait, RecordBatch};
use arrow::datatypes::DataType;

/// The number of bytes of the rows of `batch`.
pub fn batch_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column)).sum()
}

/// The number of bytes of the values of `array`.
pub fn array_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.len() * 16 + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.len() * 16 + array.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => list_bytes(array.as_list::<i32>().value_offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>().value_offsets(), array.as_list::<i64>().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| array_bytes(column)).sum(),
        DataType::Map(..) => list_bytes(array.as_map().value_offsets(), array.as_map().entries()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let (rows, all) = (array.len(), dictionary.values().len());
            let values = array_bytes(dictionary.values());
            // At most as many values as rows are used.
            array_bytes(dictionary.keys()) + if rows < all { values / all * rows } else { values }
        }
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

fn list_bytes<O: OffsetSizeTrait>(offsets: &[O], elements: &dyn Array) -> usize {
    let (first, last) = match offsets {
        [first, .., last] => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    size_of_val(offsets) + array_bytes(&elements.slice(first, last - first))
}
