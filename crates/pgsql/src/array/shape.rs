//! Functions of the size of arrays: `array_length`, `cardinality`, `array_upper`, `array_lower`, `array_ndims`,
//! `array_dims`, `generate_subscripts`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, Int32Array, Int32Builder, Int64Array, ListArray, ListBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{BoundedTexts, ColumnarFunction, FunctionCall, check_bytes, int4_type, text_type};
use crate::list::{as_list, dimensions, item_type, list_type, lists, range, require_item};

pub(super) fn functions() -> Vec<ScalarUDF> {
    let bound = |name, invoke| ColumnarFunction::new(name, array_and_dimension_types, int4_type, invoke);
    vec![
        bound("array_length", |call| length_of(call, |length| length)),
        bound("array_upper", |call| length_of(call, |length| length)),
        bound("array_lower", |call| length_of(call, |_| 1)),
        ColumnarFunction::new("cardinality", single_array_types, int4_type, |call| {
            measure_each(call, 0, |list, row| Some(count(list, row)))
        }),
        ColumnarFunction::new("array_ndims", single_array_types, int4_type, |call| {
            measure_each(call, 0, |list, row| {
                if list.value_length(row) == 0 { None } else { i32::try_from(dimensions(list.data_type())).ok() }
            })
        }),
        ColumnarFunction::new("array_dims", single_array_types, text_type, dims),
        ColumnarFunction::new("generate_subscripts*", subscript_types, |_| Ok(list_type(DataType::Int32)), subscripts),
    ]
}

fn single_array_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array] => Ok(vec![list_type(require_item("of an array", array)?)]),
        _ => plan_err!("the function takes one array"),
    }
}

fn array_and_dimension_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, dimension] if dimension.is_integer() || dimension.is_null() => {
            Ok(vec![list_type(require_item("array_length", array)?), DataType::Int64])
        }
        [_] => plan_err!("array_length, array_upper and array_lower need a dimension: array_length(array, 1)"),
        _ => plan_err!("array_length, array_upper and array_lower take an array and a dimension"),
    }
}

fn subscript_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, dimension] => array_and_dimension_types(&[array.clone(), dimension.clone()]),
        [array, dimension, DataType::Boolean] => {
            Ok([array_and_dimension_types(&[array.clone(), dimension.clone()])?, vec![DataType::Boolean]].concat())
        }
        _ => plan_err!("generate_subscripts takes an array, a dimension, and a boolean that reverses the order"),
    }
}

fn measure_each(
    call: &FunctionCall<'_>,
    index: usize,
    measure: impl Fn(&ListArray, usize) -> Option<i32>,
) -> Result<ArrayRef> {
    let list = lists(call, index)?;
    let values = (0..call.rows).map(|row| if list.is_valid(row) { measure(&list, row) } else { None });
    Ok(Arc::new(values.collect::<Int32Array>()))
}

/// Returns the number of elements in all dimensions.
fn count(list: &ListArray, row: usize) -> i32 {
    if item_type(&list.value_type()).is_none() {
        return list.value_length(row);
    }
    match as_list(list.values()) {
        Ok(inner) => {
            range(list, row).map(|position| if inner.is_valid(position) { count(&inner, position) } else { 0 }).sum()
        }
        Err(_) => 0,
    }
}

/// Returns the length of a dimension; `None` if the dimension does not exist or is empty.
fn length(list: &ListArray, row: usize, dimension: i64) -> Option<i32> {
    let own = list.value_length(row);
    if dimension < 1 || own == 0 {
        return None;
    }
    if dimension == 1 {
        return Some(own);
    }
    item_type(&list.value_type())?;
    let inner = as_list(list.values()).ok()?;
    let first = range(list, row).start;
    if inner.is_valid(first) { length(&inner, first, dimension - 1) } else { None }
}

fn length_of(call: &FunctionCall<'_>, bound: fn(i32) -> i32) -> Result<ArrayRef> {
    let dimension = integers(call, 1)?;
    measure_each(call, 0, |list, row| {
        length(list, row, dimension.is_valid(row).then(|| dimension.value(row))?).map(bound)
    })
}

fn integers(call: &FunctionCall<'_>, index: usize) -> Result<Int64Array> {
    Ok(cast(&call.array(index)?, &DataType::Int64)?.as_primitive().clone())
}

fn dims(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let texts = BoundedTexts::of_rows(call.rows, |row| {
        let mut text = String::new();
        let mut dimension = 1;
        while let Some(length) = (list.is_valid(row)).then(|| length(&list, row, dimension)).flatten() {
            text.push_str(&format!("[1:{length}]"));
            dimension += 1;
        }
        Ok((!text.is_empty()).then_some(text))
    })?;
    Ok(Arc::new(texts.finish()))
}

fn subscripts(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, dimension) = (lists(call, 0)?, integers(call, 1)?);
    let reversed: Option<BooleanArray> = match call.args.len() {
        3 => Some(call.array(2)?.as_boolean().clone()),
        _ => None,
    };
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..call.rows {
        let is_valid = list.is_valid(row) && dimension.is_valid(row);
        let length = is_valid.then(|| length(&list, row, dimension.value(row))).flatten().unwrap_or(0);
        check_bytes(ArrayBuilder::len(builder.values()) * 4 + length as usize * 4)?;
        match reversed.as_ref().is_some_and(|reversed| reversed.is_valid(row) && reversed.value(row)) {
            true => builder.values().extend((1..=length).rev().map(Some)),
            false => builder.values().extend((1..=length).map(Some)),
        }
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}
