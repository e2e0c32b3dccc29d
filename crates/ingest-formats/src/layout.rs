//! Types whose values are the same and lie in memory in other ways.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};

/// The type without dictionaries and views: which values repeat in a body is no property of a column.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    with_leaves(data_type, |leaf| match leaf {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    })
}

/// The type with views of text and bytes.
pub(crate) fn view_type(data_type: &DataType) -> DataType {
    with_leaves(data_type, |leaf| match leaf {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    })
}

/// The type with other types of single values. A dictionary becomes its values.
fn with_leaves(data_type: &DataType, leaf: fn(&DataType) -> DataType) -> DataType {
    let part = |field: &FieldRef| {
        let data_type = with_leaves(field.data_type(), leaf);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Dictionary(_, values) => with_leaves(values, leaf),
        DataType::List(item) => DataType::List(part(item)),
        DataType::LargeList(item) => DataType::LargeList(part(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(part(item), *size),
        DataType::Struct(members) => DataType::Struct(members.iter().map(part).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(part(entries), *is_sorted),
        single => leaf(single),
    }
}
