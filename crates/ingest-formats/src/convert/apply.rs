//! Converts rows that were checked.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray, UInt32Array,
    make_array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options, take};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;

use super::check::unpack;
use super::{ConversionKind, MemberConversion, ValueConversion, value_type};

/// The arrays of the columns or members, each with `len` values.
pub(super) fn convert_members(
    arrays: &[ArrayRef],
    len: usize,
    members: &[MemberConversion],
) -> Result<Vec<ArrayRef>, ArrowError> {
    let convert = |member: &MemberConversion| match member.source.and_then(|position| arrays.get(position)) {
        Some(array) => convert_values(array, &member.value),
        None => Ok(new_null_array(&member.value.target, len)),
    };
    members.iter().map(convert).collect()
}

fn convert_values(array: &ArrayRef, conversion: &ValueConversion) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == &conversion.target {
        return Ok(array.clone());
    }
    let array = unpack(array)?;
    let target = value_type(&conversion.target);
    let converted = match (&conversion.kind, target) {
        (ConversionKind::Same, _) => array,
        (ConversionKind::Cast, _) => exact_cast(&array, target)?,
        (ConversionKind::Struct(members), DataType::Struct(fields)) => {
            let nulls = array.nulls().cloned();
            let columns = array.as_struct().columns().iter();
            let columns = columns.map(|column| masked(column, nulls.as_ref())).collect::<Result<Vec<_>, _>>()?;
            let arrays = convert_members(&columns, array.len(), members)?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, array.len())?)
        }
        (ConversionKind::List(item), _) => convert_list(&without_hidden_items(&array)?, item, target)?,
        (ConversionKind::Map { key, value }, DataType::Map(entries, is_sorted)) => {
            let array = without_hidden_items(&array)?;
            let map = array.as_map();
            let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected(target)) };
            let arrays = vec![convert_values(map.keys(), key)?, convert_values(map.values(), value)?];
            let converted = StructArray::try_new(fields.clone(), arrays, None)?;
            let nulls = map.nulls().cloned();
            Arc::new(MapArray::try_new(entries.clone(), map.offsets().clone(), converted, nulls, *is_sorted)?)
        }
        _ => return Err(unexpected(target)),
    };
    exact_cast(&converted, &conversion.target)
}

fn exact_cast(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(array.clone());
    }
    cast_with_options(array, target, &CastOptions { safe: false, ..CastOptions::default() })
}

/// A copy that has no items but those of its lists: items of a list that is null were not checked.
fn without_hidden_items(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let rows = UInt32Array::from_iter_values(0..u32::try_from(array.len()).unwrap_or(u32::MAX));
    take(array, &rows, None)
}

/// The same values, null where `nulls` is: what is within a null was not checked.
fn masked(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    if nulls.is_none() || array.data_type() == &DataType::Null {
        return Ok(array.clone());
    }
    let nulls = NullBuffer::union(array.nulls(), nulls);
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// The items of lists of a fixed size, where also a list that is null has items.
fn fixed_items(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let list = array.as_fixed_size_list();
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    masked(list.values(), list.nulls().map(|nulls| nulls.expand(size)).as_ref())
}

fn convert_list(array: &ArrayRef, item: &ValueConversion, target: &DataType) -> Result<ArrayRef, ArrowError> {
    let nulls = array.nulls().cloned();
    if let (DataType::FixedSizeList(..), DataType::FixedSizeList(field, size)) = (array.data_type(), target) {
        let items = convert_values(&fixed_items(array)?, item)?;
        return Ok(Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *size, items, nulls, array.len())?));
    }
    let field = match target {
        DataType::List(field) | DataType::LargeList(field) => field,
        _ => return Err(unexpected(target)),
    };
    let large = match array.data_type() {
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            LargeListArray::try_new(field.clone(), list.offsets().clone(), convert_values(list.values(), item)?, nulls)?
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let items = convert_values(list.values(), item)?;
            let offsets = list.offsets().clone();
            return finish_list(Arc::new(ListArray::try_new(field.clone(), offsets, items, nulls)?), target);
        }
        _ => return fixed_to_list(array, item, field, target),
    };
    finish_list(Arc::new(large), target)
}

fn fixed_to_list(
    array: &ArrayRef,
    item: &ValueConversion,
    field: &FieldRef,
    target: &DataType,
) -> Result<ArrayRef, ArrowError> {
    let list = array.as_fixed_size_list();
    let size = usize::try_from(list.value_length()).unwrap_or(0);
    let offsets = OffsetBuffer::<i64>::from_lengths(std::iter::repeat_n(size, list.len()));
    let items = convert_values(&fixed_items(array)?, item)?;
    let converted = LargeListArray::try_new(field.clone(), offsets, items, list.nulls().cloned())?;
    finish_list(Arc::new(converted), target)
}

fn finish_list(array: ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    exact_cast(&array, target)
}

fn unexpected(data_type: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("a column of type {data_type} has other values"))
}
