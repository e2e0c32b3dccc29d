//! Arrow lists, as the arrays of PostgreSQL.

mod literal;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, interleave};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;

use crate::function::{FunctionCall, check_bytes};
use crate::{number, time};

pub(crate) use literal::{
    TextPairs, cast_arrays, parse_arrays, text_lists, text_pairs, write_element, written_dimensions,
};

/// Returns the element type if `data_type` is an array.
pub(crate) fn item_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item.data_type()),
        _ => None,
    }
}

/// Returns the array type with elements of type `item`.
pub(crate) fn list_type(item: DataType) -> DataType {
    DataType::new_list(item, true)
}

/// Returns the number of dimensions of a type.
pub(crate) fn dimensions(data_type: &DataType) -> usize {
    item_type(data_type).map_or(0, |item| 1 + dimensions(item))
}

/// Returns the type of the elements of the innermost arrays.
pub(crate) fn innermost_type(data_type: &DataType) -> &DataType {
    item_type(data_type).map_or(data_type, innermost_type)
}

/// Returns the common type of elements of `types`.
pub(crate) fn common_type(function: &str, types: &[DataType]) -> Result<DataType> {
    let typed: Vec<DataType> = types.iter().filter(|data_type| !data_type.is_null()).cloned().collect();
    let Some(first) = typed.first() else { return Ok(DataType::Utf8) };
    if typed.iter().all(|data_type| data_type == first) {
        return Ok(first.clone());
    }
    match number::common_float(&typed).or_else(|| type_union_resolution(&typed)) {
        // PostgreSQL does not convert text to a number here.
        Some(common) if !common.is_string() || typed.iter().all(DataType::is_string) => Ok(common),
        _ => {
            let names: Vec<String> = typed.iter().map(ToString::to_string).collect();
            let advice = typed.iter().find_map(|other| time::number_advice(first, other)).unwrap_or("cast one side");
            plan_err!("{function} of elements of {} does not exist; {advice}", names.join(" and "))
        }
    }
}

/// Returns the element type of an array argument; NULL is an array of any type.
pub(crate) fn require_item(function: &str, data_type: &DataType) -> Result<DataType> {
    match item_type(data_type) {
        Some(item) => Ok(item.clone()),
        None if data_type.is_null() => Ok(DataType::Null),
        None => plan_err!("function {function}({data_type}) does not exist; its argument must be an array"),
    }
}

/// Converts `array` to a `ListArray`.
pub(crate) fn as_list(array: &ArrayRef) -> Result<ListArray> {
    match array.data_type() {
        DataType::List(_) => Ok(array.as_list::<i32>().clone()),
        other => {
            let item = item_type(other).cloned().unwrap_or(DataType::Utf8);
            Ok(cast(array, &list_type(item))?.as_list::<i32>().clone())
        }
    }
}

/// Returns an argument as lists for all rows.
pub(crate) fn lists(call: &FunctionCall<'_>, index: usize) -> Result<ListArray> {
    as_list(&call.array(index)?)
}

/// Returns the range of the elements of `row` in the values of `list`.
pub(crate) fn range(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize
}

/// Returns the range of the elements of `row`; an empty one if the row is NULL.
pub(crate) fn range_or_empty(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    if list.is_valid(row) { range(list, row) } else { 0..0 }
}

/// Builds the list of each row from pairs of the number of a source and the position of an element in it. `None` is NULL.
/// The elements of `sources` all have one type.
pub(crate) fn assemble_lists<I: IntoIterator<Item = (usize, usize)>>(
    rows: usize,
    sources: &[ArrayRef],
    elements: impl Fn(usize) -> Result<Option<I>>,
) -> Result<ArrayRef> {
    let (mut positions, mut lengths, mut valid) = (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let (own, before) = (elements(row)?, positions.len());
        valid.push(own.is_some());
        positions.extend(own.into_iter().flatten());
        check_bytes(positions.len() * size_of::<usize>())?;
        lengths.push(positions.len() - before);
    }
    let values: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
    let values = interleave(&values, &positions)?;
    let DataType::List(item) = list_type(values.data_type().clone()) else { return plan_err!("expected a list") };
    Ok(Arc::new(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, Some(valid.into()))?))
}

/// Compares rows as PostgreSQL does. NULLs are equal to each other and sort last.
pub(crate) struct RowComparer {
    converter: RowConverter,
}

impl RowComparer {
    pub(crate) fn new(data_type: &DataType) -> Result<Self> {
        let options = SortOptions { descending: false, nulls_first: false };
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type.clone(), options)])?;
        Ok(Self { converter })
    }

    pub(crate) fn rows(&self, values: &ArrayRef) -> Result<Rows> {
        Ok(self.converter.convert_columns(&[without_negative_zero(values)])?)
    }
}

/// Replaces negative zero, because zeros are equal whatever their sign.
fn without_negative_zero(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let positive: Float32Array = values.as_primitive::<Float32Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        DataType::Float64 => {
            let positive: Float64Array = values.as_primitive::<Float64Type>().unary(|value| value + 0.0);
            Arc::new(positive)
        }
        _ => values.clone(),
    }
}
