//! Functions that build arrays from other arrays: `array_append`, `array_prepend`, `array_cat`, `array_remove`,
//! `array_replace`, `trim_array`, and the array of a subquery.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::function::{
    ListAssembler, RowComparer, as_list, common_type, item_type, list_type, lists, range, require_item,
};
use crate::json::function::{ColumnarFunction, FunctionCall};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("array_append", append_types, |fields| Ok(fields[0].data_type().clone()), append),
        ColumnarFunction::new("array_prepend", prepend_types, |fields| Ok(fields[1].data_type().clone()), prepend),
        ColumnarFunction::new("array_cat", cat_types, |fields| Ok(fields[0].data_type().clone()), concatenate),
        ColumnarFunction::new("array_remove", flat_types, |fields| Ok(fields[0].data_type().clone()), remove),
        ColumnarFunction::new("array_replace", replace_types, |fields| Ok(fields[0].data_type().clone()), replace),
        ColumnarFunction::new("trim_array", trim_types, |fields| Ok(fields[0].data_type().clone()), trim),
        ColumnarFunction::new(
            "array_of_subquery*",
            subquery_types,
            |fields| Ok(fields[0].data_type().clone()),
            or_empty,
        ),
    ]
}

fn append_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [array, element] = types else { return plan_err!("array_append takes an array and an element") };
    let item = common_type("array_append", &[require_item("array_append", array)?, element.clone()])?;
    Ok(vec![list_type(item.clone()), item])
}

fn prepend_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [element, array] = types else {
        return plan_err!("array_prepend takes an element and an array");
    };
    let item = common_type("array_prepend", &[require_item("array_prepend", array)?, element.clone()])?;
    Ok(vec![item.clone(), list_type(item)])
}

fn cat_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [left, right] = types else { return plan_err!("array_cat takes two arrays") };
    let item = common_type("array_cat", &[require_item("array_cat", left)?, require_item("array_cat", right)?])?;
    Ok(vec![list_type(item.clone()), list_type(item)])
}

/// Coerces the arguments to a one-dimensional array and an element.
pub(super) fn flat_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [array, element, ..] = types else { return plan_err!("the function takes an array and an element") };
    let item = require_item("of an array", array)?;
    if item_type(&item).is_some() {
        return plan_err!("removing or searching elements of multidimensional arrays is not supported");
    }
    let item = common_type("the function", &[item, element.clone()])?;
    Ok([vec![list_type(item.clone()), item], types[2..].to_vec()].concat())
}

fn replace_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [array, from, to] = types else { return plan_err!("array_replace takes an array and two elements") };
    let item = require_item("array_replace", array)?;
    if item_type(&item).is_some() {
        return plan_err!("array_replace of multidimensional arrays is not supported; unnest them");
    }
    let item = common_type("array_replace", &[item, from.clone(), to.clone()])?;
    Ok(vec![list_type(item.clone()), item.clone(), item])
}

fn trim_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array, count] if count.is_integer() || count.is_null() => {
            Ok(vec![list_type(require_item("trim_array", array)?), DataType::Int64])
        }
        _ => plan_err!("trim_array takes an array and a number of elements"),
    }
}

fn subquery_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array] => Ok(vec![list_type(require_item("ARRAY", array)?)]),
        _ => plan_err!("ARRAY(SELECT …) must return one column"),
    }
}

/// A NULL array counts as an array without elements.
fn append(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, elements) = (lists(call, 0)?, call.array(1)?);
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        let own = if list.is_valid(row) { range(&list, row) } else { 0..0 };
        made.push(own.map(|place| (0, place)).chain([(1, row)]))?;
    }
    made.finish(&[list.values().clone(), elements])
}

fn prepend(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (elements, list) = (call.array(0)?, lists(call, 1)?);
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        let own = if list.is_valid(row) { range(&list, row) } else { 0..0 };
        made.push([(1, row)].into_iter().chain(own.map(|place| (0, place))))?;
    }
    made.finish(&[list.values().clone(), elements])
}

fn concatenate(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (left, right) = (lists(call, 0)?, lists(call, 1)?);
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        if left.is_null(row) && right.is_null(row) {
            made.push_null();
            continue;
        }
        let of_left = if left.is_valid(row) { range(&left, row) } else { 0..0 };
        let of_right = if right.is_valid(row) { range(&right, row) } else { 0..0 };
        made.push(of_left.map(|place| (0, place)).chain(of_right.map(|place| (1, place))))?;
    }
    made.finish(&[left.values().clone(), right.values().clone()])
}

fn remove(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, elements) = (lists(call, 0)?, call.array(1)?);
    let comparer = RowComparer::new(elements.data_type())?;
    let (own, removed) = (comparer.rows(list.values())?, comparer.rows(&elements)?);
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        if list.is_null(row) {
            made.push_null();
            continue;
        }
        let kept = range(&list, row).filter(|place| own.row(*place) != removed.row(row));
        made.push(kept.map(|place| (0, place)))?;
    }
    made.finish(&[list.values().clone()])
}

fn replace(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, from, to) = (lists(call, 0)?, call.array(1)?, call.array(2)?);
    let comparer = RowComparer::new(from.data_type())?;
    let (own, replaced) = (comparer.rows(list.values())?, comparer.rows(&from)?);
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        if list.is_null(row) {
            made.push_null();
            continue;
        }
        let place_of = |place: usize| if own.row(place) == replaced.row(row) { (1, row) } else { (0, place) };
        made.push(range(&list, row).map(place_of))?;
    }
    made.finish(&[list.values().clone(), to])
}

fn trim(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, counts) = (lists(call, 0)?, call.array(1)?);
    let counts = counts.as_primitive::<Int64Type>();
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        if list.is_null(row) || counts.is_null(row) {
            made.push_null();
            continue;
        }
        let own = range(&list, row);
        let count = counts.value(row);
        if count < 0 || count > own.len() as i64 {
            return exec_err!("number of elements to trim must be between 0 and {}", own.len());
        }
        made.push((own.start..own.end - count as usize).map(|place| (0, place)))?;
    }
    made.finish(&[list.values().clone()])
}

fn or_empty(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = as_list(&call.array(0)?)?;
    let mut made = ListAssembler::new(call.rows);
    for row in 0..call.rows {
        let own = if list.is_valid(row) { range(&list, row) } else { 0..0 };
        made.push(own.map(|place| (0, place)))?;
    }
    made.finish(&[list.values().clone()])
}
