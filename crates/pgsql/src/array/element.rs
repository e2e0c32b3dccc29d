//! Subscripts and slices.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, UInt64Array, new_null_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{ColumnarFunction, FunctionCall, first_type};
use crate::json;
use crate::json_type::json_kind;
use crate::list::{
    as_list, assemble_lists, dimensions, innermost_type, item_type, list_type, lists, range, range_or_empty,
    require_item,
};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("array_subscript*", subscript_types, subscript_type, subscript),
        ColumnarFunction::new("array_slice_between*", slice_types, first_type, slice),
        ColumnarFunction::new("array_slices*", slice_types, first_type, slice_dimensions),
    ]
}

fn subscript_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let Some((array, subscripts)) = types.split_first() else { return plan_err!("a subscript needs an array") };
    if json_kind(array).is_some() {
        return json::subscript_types(types);
    }
    let Some(item) = item_type(array) else {
        return plan_err!("cannot subscript type {array} because it does not support subscripting");
    };
    if subscripts.iter().any(|subscript| !subscript.is_integer() && !subscript.is_null()) {
        return plan_err!("array subscript must have type integer");
    }
    let integers = subscripts.iter().map(|_| DataType::Int64);
    Ok([vec![list_type(item.clone())], integers.collect()].concat())
}

/// Returns the type of the elements, even if the number of subscripts is wrong: the result is NULL then.
fn subscript_type(fields: &[FieldRef]) -> Result<DataType> {
    Ok(innermost_type(fields[0].data_type()).clone())
}

fn subscript(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    if call.kind(0).is_some() {
        return json::elements_at(call);
    }
    let mut values = call.array(0)?;
    if dimensions(values.data_type()) != call.args.len() - 1 {
        return Ok(new_null_array(call.returns, call.rows));
    }
    for index in 1..call.args.len() {
        let list = as_list(&values)?;
        let subscripts = call.array(index)?;
        let subscripts = subscripts.as_primitive::<Int64Type>();
        let position = |row: usize| {
            if list.is_null(row) || subscripts.is_null(row) {
                return None;
            }
            let (own, expected) = (range(&list, row), subscripts.value(row));
            let is_there = expected >= 1 && expected <= own.len() as i64;
            is_there.then(|| own.start as u64 + expected as u64 - 1)
        };
        values = take(list.values(), &(0..list.len()).map(position).collect::<UInt64Array>(), None)?;
    }
    Ok(values)
}

/// Returns the positions of the elements `lower` to `upper` of an array; the first element has the number 1.
fn slice_range(own: Range<usize>, lower: i64, upper: i64) -> Range<usize> {
    let first = (lower.max(1) - 1).min(own.len() as i64);
    let last = upper.clamp(first, own.len() as i64);
    own.start + first as usize..own.start + last as usize
}

fn slice_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let Some((array, bounds)) = types.split_first() else { return plan_err!("a slice needs an array") };
    if !bounds.iter().all(|bound| bound.is_integer() || bound.is_null()) {
        return plan_err!("the bounds of a slice must be integers");
    }
    let array = list_type(require_item("of a slice", array)?);
    Ok([vec![array], bounds.iter().map(|_| DataType::Int64).collect()].concat())
}

/// Computes slices of several dimensions. An array without elements has no dimensions.
fn slice_dimensions(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let bounds = (1..call.args.len()).map(|index| Ok(call.array(index)?.as_primitive::<Int64Type>().clone()));
    let bounds: Vec<Int64Array> = bounds.collect::<Result<_>>()?;
    let mut is_empty = vec![bounds.len() / 2 > dimensions(list.data_type()); call.rows];
    let owners: Vec<usize> = (0..call.rows).collect();
    let has_dimensions = !is_empty.contains(&true);
    let sliced = if has_dimensions { slice_rows(&list, &owners, &bounds, &mut is_empty)? } else { list.clone() };
    let slices = assemble_lists(call.rows, &[sliced.values().clone()], |row| {
        let is_valid = list.is_valid(row) && bounds.iter().all(|bound| bound.is_valid(row));
        let elements = if is_empty[row] { 0..0 } else { range(&sliced, row) };
        Ok(is_valid.then(|| elements.map(|position| (0, position))))
    })?;
    with_returned_type(call, slices)
}

/// Slices each row of `list` by the `bounds` of its owner, and marks owners whose slice is empty in `is_empty`.
fn slice_rows(list: &ListArray, owners: &[usize], bounds: &[Int64Array], is_empty: &mut [bool]) -> Result<ListArray> {
    let [lower, upper, rest @ ..] = bounds else { return Ok(list.clone()) };
    let (mut positions, mut lengths, mut inner_owners) = (Vec::new(), Vec::new(), Vec::new());
    for (row, owner) in owners.iter().enumerate() {
        let own = range_or_empty(list, row);
        let slice = slice_range(own, lower.value(*owner), upper.value(*owner));
        is_empty[*owner] |= slice.is_empty();
        lengths.push(slice.len());
        inner_owners.extend(slice.clone().map(|_| *owner));
        positions.extend(slice.map(|position| position as u64));
    }
    let mut values = take(list.values(), &UInt64Array::from(positions), None)?;
    if !rest.is_empty() {
        values = Arc::new(slice_rows(&as_list(&values)?, &inner_owners, rest, is_empty)?);
    }
    let DataType::List(item) = list_type(values.data_type().clone()) else { return plan_err!("expected a list") };
    Ok(ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), values, None)?)
}

fn slice(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list: ListArray = lists(call, 0)?;
    let (lower, upper) = (call.array(1)?, call.array(2)?);
    let (lower, upper) = (lower.as_primitive::<Int64Type>(), upper.as_primitive::<Int64Type>());
    let slices = assemble_lists(call.rows, &[list.values().clone()], |row| {
        let is_valid = list.is_valid(row) && lower.is_valid(row) && upper.is_valid(row);
        let own = slice_range(range(&list, row), lower.value(row), upper.value(row));
        Ok(is_valid.then(|| own.map(|position| (0, position))))
    })?;
    with_returned_type(call, slices)
}

fn with_returned_type(call: &FunctionCall<'_>, slices: ArrayRef) -> Result<ArrayRef> {
    Ok(if slices.data_type() == call.returns { slices } else { Arc::new(cast(&slices, call.returns)?) })
}
