//! Memory size of the values of an array.

use datafusion::arrow::array::{Array, AsArray, OffsetSizeTrait};
use datafusion::arrow::datatypes::DataType;

/// Number of bytes of the values in an array, without unused parts of its buffers.
pub(super) fn array_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.len() * 16 + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.len() * 16 + array.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => list_bytes(array.as_list::<i32>().value_offsets(), array.as_list::<i32>().values()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>().value_offsets(), array.as_list::<i64>().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(|column| array_bytes(column)).sum(),
        DataType::Map(..) => list_bytes(array.as_map().value_offsets(), array.as_map().entries()),
        _ => array.to_data().get_slice_memory_size().unwrap_or(0),
    }
}

/// Number of bytes of the `elements` between the first and the last of `offsets`, and of the offsets.
fn list_bytes<O: OffsetSizeTrait>(offsets: &[O], elements: &dyn Array) -> usize {
    let (first, last) = match offsets {
        [first, .., last] => (first.as_usize(), last.as_usize()),
        _ => (0, 0),
    };
    size_of_val(offsets) + array_bytes(&elements.slice(first, last - first))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, ListArray, StringArray, StringViewArray};
    use datafusion::arrow::buffer::OffsetBuffer;
    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn long_texts_count_however_they_are_held() {
        let long = "x".repeat(1_000);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 10]));
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![long.as_str(); 10]));
        for values in [texts, views] {
            assert!((10_000..11_000).contains(&array_bytes(&values)), "{:?}", values.data_type());
            assert!((2_000..2_100).contains(&array_bytes(&values.slice(3, 2))), "{:?}", values.data_type());
            let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
            let lists = ListArray::new(field, OffsetBuffer::from_lengths([4, 0, 6]), values, None);
            assert!((10_000..11_000).contains(&array_bytes(&lists)));
            assert!((6_000..6_300).contains(&array_bytes(&lists.slice(1, 2))));
        }
    }
}
