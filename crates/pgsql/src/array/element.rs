//! Subscripts and slices.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array, new_null_array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::function::{Lists, as_list, dimensions, item_of, list_of, lists, range, require_item};
use crate::json::function::{Call, Function};
use crate::json::kind::kind_of;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        Function::new("array_subscript*", subscript_types, subscript_type, subscript),
        Function::new("array_slice_between*", slice_types, |fields| Ok(fields[0].data_type().clone()), slice),
    ]
}

fn subscript_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let Some((array, subscripts)) = types.split_first() else { return plan_err!("a subscript needs an array") };
    if kind_of(array).is_some() {
        let indexes = subscripts.iter().map(|_| DataType::Int64);
        return Ok([vec![array.clone()], indexes.collect()].concat());
    }
    let Some(item) = item_of(array) else {
        return plan_err!("cannot subscript type {array} because it does not support subscripting");
    };
    if subscripts.iter().any(|subscript| !subscript.is_integer() && !subscript.is_null()) {
        return plan_err!("array subscript must have type integer");
    }
    let integers = subscripts.iter().map(|_| DataType::Int64);
    Ok([vec![list_of(item.clone())], integers.collect()].concat())
}

/// The type of the elements, even if there are too few subscripts or too many: the result is NULL then.
fn subscript_type(fields: &[FieldRef]) -> Result<DataType> {
    let mut innermost = fields[0].data_type();
    while let Some(item) = item_of(innermost) {
        innermost = item;
    }
    Ok(innermost.clone())
}

fn subscript(call: &Call<'_>) -> Result<ArrayRef> {
    if call.kind(0).is_some() {
        return crate::json::elements_at(call);
    }
    let mut values = call.array(0)?;
    if dimensions(values.data_type()) != call.args.len() - 1 {
        return Ok(new_null_array(call.returns, call.rows));
    }
    for index in 1..call.args.len() {
        let list = as_list(&values)?;
        let subscripts = call.array(index)?;
        let subscripts = subscripts.as_primitive::<Int64Type>();
        let place = |row: usize| {
            if list.is_null(row) || subscripts.is_null(row) {
                return None;
            }
            let (own, wanted) = (range(&list, row), subscripts.value(row));
            let is_there = wanted >= 1 && wanted <= own.len() as i64;
            is_there.then(|| own.start as u64 + wanted as u64 - 1)
        };
        let places: UInt64Array = (0..list.len()).map(place).collect();
        values = take(list.values(), &places, None)?;
    }
    Ok(values)
}

fn slice_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, lower, upper] if [lower, upper].iter().all(|bound| bound.is_integer() || bound.is_null()) => {
            Ok(vec![list_of(require_item("of a slice", array)?), DataType::Int64, DataType::Int64])
        }
        _ => plan_err!("the bounds of a slice are integers"),
    }
}

fn slice(call: &Call<'_>) -> Result<ArrayRef> {
    let list: ListArray = lists(call, 0)?;
    let (lower, upper) = (call.array(1)?, call.array(2)?);
    let (lower, upper) = (lower.as_primitive::<Int64Type>(), upper.as_primitive::<Int64Type>());
    let mut made = Lists::new(call.rows);
    for row in 0..call.rows {
        if list.is_null(row) || lower.is_null(row) || upper.is_null(row) {
            made.push_null();
            continue;
        }
        let own = range(&list, row);
        let first = (lower.value(row).max(1) - 1).min(own.len() as i64);
        let last = upper.value(row).clamp(first, own.len() as i64);
        made.push((own.start + first as usize..own.start + last as usize).map(|place| (0, place)))?;
    }
    let sliced = made.finish(&[list.values().clone()])?;
    Ok(if sliced.data_type() == call.returns { sliced } else { Arc::new(cast(&sliced, call.returns)?) })
}
