//! Other values in the leaves of columns, however they are nested and encoded; and what are texts in a table.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array as _, ArrayRef, AsArray as _, BinaryViewArray, FixedSizeListArray, GenericListArray, GenericListViewArray,
    MapArray, OffsetSizeTrait, RunArray, StringViewArray, StructArray, UInt64Array, new_empty_array,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::compute::{CastOptions, cast, take};
use datafusion::arrow::datatypes::{
    ArrowNativeType as _, DataType, FieldRef, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use datafusion::arrow::error::ArrowError;
use uuid::Uuid;

use crate::column_cast::cast_column;
use crate::embedded::files::UUID_BYTES;

/// Gives the values of a leaf another type.
type ConvertLeaf<'c, E> = &'c dyn Fn(&ArrayRef, &DataType) -> Result<ArrayRef, E>;

/// `column` as `data_type`, which differs only in its leaves and encodings. Leaves are converted by `leaf`, unless they have their
/// type.
pub(super) fn convert_leaves<E: From<ArrowError>>(
    column: &ArrayRef,
    data_type: &DataType,
    leaf: ConvertLeaf<'_, E>,
) -> Result<ArrayRef, E> {
    if column.data_type() == data_type {
        return Ok(column.clone());
    }
    match column.data_type() {
        DataType::Dictionary(..) if !matches!(data_type, DataType::Dictionary(..)) => {
            let dictionary = column.as_any_dictionary();
            let values = convert_leaves(dictionary.values(), data_type, leaf)?;
            return Ok(take(&values, dictionary.keys(), None)?);
        }
        DataType::RunEndEncoded(ends, _) if !matches!(data_type, DataType::RunEndEncoded(..)) => {
            return match ends.data_type() {
                DataType::Int16 => convert_runs(column.as_run::<Int16Type>(), data_type, leaf),
                DataType::Int32 => convert_runs(column.as_run::<Int32Type>(), data_type, leaf),
                _ => convert_runs(column.as_run::<Int64Type>(), data_type, leaf),
            };
        }
        _ => {}
    }
    Ok(match data_type {
        DataType::Struct(members) => {
            let values = column.as_struct();
            let columns = values.columns().iter().zip(members);
            let columns = columns.map(|(column, member)| convert_leaves(column, member.data_type(), leaf));
            let (columns, nulls) = (columns.collect::<Result<Vec<_>, _>>()?, values.nulls().cloned());
            Arc::new(StructArray::try_new_with_length(members.clone(), columns, nulls, values.len())?)
        }
        DataType::List(item) => match column.data_type() {
            DataType::ListView(_) => copy_list_view::<i32, E>(column, item, leaf)?,
            // Without items, and so without a length that could be counted.
            DataType::FixedSizeList(..) => {
                let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(0, column.len()));
                let (items, nulls) = (new_empty_array(item.data_type()), column.nulls().cloned());
                Arc::new(GenericListArray::<i32>::try_new(item.clone(), offsets, items, nulls)?)
            }
            _ => convert_list::<i32, E>(column, item, leaf)?,
        },
        DataType::LargeList(item) => match column.data_type() {
            DataType::LargeListView(_) => copy_list_view::<i64, E>(column, item, leaf)?,
            _ => convert_list::<i64, E>(column, item, leaf)?,
        },
        DataType::ListView(item) => convert_list_view::<i32, E>(column, item, leaf)?,
        DataType::LargeListView(item) => convert_list_view::<i64, E>(column, item, leaf)?,
        DataType::FixedSizeList(item, length) => {
            let list = column.as_fixed_size_list();
            let items = convert_leaves(list.values(), item.data_type(), leaf)?;
            let list = FixedSizeListArray::try_new_with_length(
                item.clone(),
                *length,
                items,
                list.nulls().cloned(),
                list.len(),
            );
            Arc::new(list?)
        }
        DataType::Map(entries, is_sorted) => {
            let map = column.as_map();
            let (start, length) = used_items(map.offsets());
            let used: ArrayRef = Arc::new(map.entries().slice(start, length));
            let values = convert_leaves(&used, entries.data_type(), leaf)?.as_struct().clone();
            let (offsets, nulls) = (OffsetBuffer::from_lengths(map.offsets().lengths()), map.nulls().cloned());
            Arc::new(MapArray::try_new(entries.clone(), offsets, values, nulls, *is_sorted)?)
        }
        other => leaf(column, other)?,
    })
}

fn convert_list<O: OffsetSizeTrait, E: From<ArrowError>>(
    column: &ArrayRef,
    item: &FieldRef,
    leaf: ConvertLeaf<'_, E>,
) -> Result<ArrayRef, E> {
    let list = column.as_list::<O>();
    let (start, length) = used_items(list.offsets());
    let items = convert_leaves(&list.values().slice(start, length), item.data_type(), leaf)?;
    let (offsets, nulls) = (OffsetBuffer::from_lengths(list.offsets().lengths()), list.nulls().cloned());
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, items, nulls)?))
}

fn convert_list_view<O: OffsetSizeTrait, E: From<ArrowError>>(
    column: &ArrayRef,
    item: &FieldRef,
    leaf: ConvertLeaf<'_, E>,
) -> Result<ArrayRef, E> {
    let list = column.as_list_view::<O>();
    let used = || list.offsets().iter().zip(list.sizes().iter()).filter(|(_, size)| size.as_usize() > 0);
    let start = used().map(|(offset, _)| offset.as_usize()).min().unwrap_or(0);
    let end = used().map(|(offset, size)| offset.as_usize() + size.as_usize()).max().unwrap_or(start);
    let items = convert_leaves(&list.values().slice(start, end - start), item.data_type(), leaf)?;
    // An empty row may begin anywhere.
    let moved = |offset: &O| O::usize_as(offset.as_usize().saturating_sub(start).min(end - start));
    let offsets = list.offsets().iter().map(moved).collect::<ScalarBuffer<O>>();
    let (sizes, nulls) = (list.sizes().clone(), list.nulls().cloned());
    Ok(Arc::new(GenericListViewArray::<O>::try_new(item.clone(), offsets, sizes, items, nulls)?))
}

/// The rows of `list` with items of their own, which may share those of other rows.
fn copy_list_view<O: OffsetSizeTrait, E: From<ArrowError>>(
    column: &ArrayRef,
    item: &FieldRef,
    leaf: ConvertLeaf<'_, E>,
) -> Result<ArrayRef, E> {
    let list = column.as_list_view::<O>();
    let row_items = |row: usize| {
        let start = list.offsets()[row].as_usize();
        // The items of a null are not read.
        if list.is_valid(row) { start..start + list.sizes()[row].as_usize() } else { start..start }
    };
    let positions = (0..list.len()).flat_map(row_items).map(|position| position as u64);
    let items = take(list.values(), &UInt64Array::from_iter_values(positions), None)?;
    let items = convert_leaves(&items, item.data_type(), leaf)?;
    let offsets = OffsetBuffer::from_lengths((0..list.len()).map(|row| row_items(row).len()));
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, items, list.nulls().cloned())?))
}

/// The values of each row, as `data_type`.
fn convert_runs<R: RunEndIndexType, E: From<ArrowError>>(
    runs: &RunArray<R>,
    data_type: &DataType,
    leaf: ConvertLeaf<'_, E>,
) -> Result<ArrayRef, E> {
    let values = convert_leaves(&runs.values_slice(), data_type, leaf)?;
    let mut start = 0;
    let rows = runs.run_ends().sliced_values().enumerate().flat_map(|(run, end)| {
        let length = end.as_usize() - std::mem::replace(&mut start, end.as_usize());
        std::iter::repeat_n(run as u64, length)
    });
    Ok(take(&values, &UInt64Array::from_iter_values(rows), None)?)
}

/// Where the items of a list are among its values, and how many: a few rows of a batch have all values of the batch.
fn used_items<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let position = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    let start = position(offsets.first());
    (start, position(offsets.last()).saturating_sub(start))
}

/// `column` as `data_type`; as text, UUIDs have PostgreSQL's notation, and structures without members are JSON.
pub(super) fn leaf_as_text(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match (column.data_type(), data_type) {
        (DataType::FixedSizeBinary(UUID_BYTES), DataType::Utf8View | DataType::Utf8) => {
            let text = |value: &[u8]| Uuid::from_slice(value).ok().map(|uuid| uuid.to_string());
            let texts = column.as_fixed_size_binary().iter().map(|value| text(value?));
            let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
            cast(&texts, data_type)
        }
        // A value of zero bytes: the library loses the number of such values.
        (DataType::FixedSizeBinary(0), DataType::BinaryView | DataType::Binary) => {
            let values = (0..column.len()).map(|row| column.is_valid(row).then_some([0_u8; 0]));
            let values: ArrayRef = Arc::new(values.collect::<BinaryViewArray>());
            cast(&values, data_type)
        }
        (DataType::Struct(_), DataType::Utf8View | DataType::Utf8) => {
            let texts = (0..column.len()).map(|row| column.is_valid(row).then_some("{}"));
            let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
            cast(&texts, data_type)
        }
        _ => cast_column(column, data_type, &CastOptions::default()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{FixedSizeBinaryArray, ListArray, StringArray};
    use datafusion::arrow::datatypes::Field;

    use super::*;

    /// The rows of a slice have the items of their own, whatever the batch has before them.
    #[test]
    fn uuids_become_the_text_that_postgresql_writes() {
        let id: [u8; 16] = std::array::from_fn(|index| index as u8 * 17);
        let ids = FixedSizeBinaryArray::try_from_iter([[0; 16], id, id].into_iter()).unwrap();
        let item = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
        let offsets = OffsetBuffer::from_lengths([1, 0, 2]);
        let lists = ListArray::new(item(ids.data_type()), offsets, Arc::new(ids), None);
        let rows: ArrayRef = Arc::new(lists.slice(1, 2));
        let to = DataType::List(item(&DataType::Utf8));
        let texts = convert_leaves::<ArrowError>(&rows, &to, &leaf_as_text).unwrap();
        assert_eq!(texts.as_list::<i32>().value_length(0), 0);
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(texts.as_list::<i32>().value(1).as_string::<i32>(), &StringArray::from(vec![text, text]));
    }
}
