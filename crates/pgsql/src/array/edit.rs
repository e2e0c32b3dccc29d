//! Functions that build arrays from other arrays: `array_append`, `array_prepend`, `array_cat`, `array_remove`,
//! `array_replace`, `trim_array`, and the array of a subquery.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{ColumnarFunction, FunctionCall, first_type};
use crate::list::{
    RowComparer, assemble_lists, common_type, item_type, list_type, lists, range, range_or_empty, require_item,
};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        array_append(),
        array_prepend(),
        array_cat(),
        ColumnarFunction::new("array_remove", flat_types, first_type, remove),
        ColumnarFunction::new("array_replace", replace_types, first_type, replace),
        ColumnarFunction::new("trim_array", trim_types, first_type, trim),
        ColumnarFunction::new("array_of_subquery*", subquery_types, first_type, empty_if_null),
    ]
}

pub(super) fn array_append() -> ScalarUDF {
    ColumnarFunction::new("array_append", append_types, first_type, append)
}

pub(super) fn array_prepend() -> ScalarUDF {
    ColumnarFunction::new("array_prepend", prepend_types, |fields| Ok(fields[1].data_type().clone()), prepend)
}

pub(super) fn array_cat() -> ScalarUDF {
    ColumnarFunction::new("array_cat", cat_types, first_type, concatenate)
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
    assemble_lists(call.rows, &[list.values().clone(), elements], |row| {
        Ok(Some(range_or_empty(&list, row).map(|position| (0, position)).chain([(1, row)])))
    })
}

fn prepend(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (elements, list) = (call.array(0)?, lists(call, 1)?);
    assemble_lists(call.rows, &[list.values().clone(), elements], |row| {
        Ok(Some([(1, row)].into_iter().chain(range_or_empty(&list, row).map(|position| (0, position)))))
    })
}

fn concatenate(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (left, right) = (lists(call, 0)?, lists(call, 1)?);
    assemble_lists(call.rows, &[left.values().clone(), right.values().clone()], |row| {
        let of_left = range_or_empty(&left, row).map(|position| (0, position));
        let of_right = range_or_empty(&right, row).map(|position| (1, position));
        Ok((left.is_valid(row) || right.is_valid(row)).then(|| of_left.chain(of_right)))
    })
}

fn remove(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, elements) = (lists(call, 0)?, call.array(1)?);
    let comparer = RowComparer::new(elements.data_type())?;
    let (own, removed) = (&comparer.rows(list.values())?, &comparer.rows(&elements)?);
    assemble_lists(call.rows, &[list.values().clone()], |row| {
        let is_kept = move |position: &usize| own.row(*position) != removed.row(row);
        Ok(list.is_valid(row).then(|| range(&list, row).filter(is_kept).map(|position| (0, position))))
    })
}

fn replace(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, from, to) = (lists(call, 0)?, call.array(1)?, call.array(2)?);
    let comparer = RowComparer::new(from.data_type())?;
    let (own, replaced) = (&comparer.rows(list.values())?, &comparer.rows(&from)?);
    assemble_lists(call.rows, &[list.values().clone(), to], |row| {
        let source_of = move |position| if own.row(position) == replaced.row(row) { (1, row) } else { (0, position) };
        Ok(list.is_valid(row).then(|| range(&list, row).map(source_of)))
    })
}

fn trim(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, counts) = (lists(call, 0)?, call.array(1)?);
    let counts = counts.as_primitive::<Int64Type>();
    assemble_lists(call.rows, &[list.values().clone()], |row| {
        if list.is_null(row) || counts.is_null(row) {
            return Ok(None);
        }
        let (own, count) = (range(&list, row), counts.value(row));
        if count < 0 || count > own.len() as i64 {
            return exec_err!("number of elements to trim must be between 0 and {}", own.len());
        }
        Ok(Some((own.start..own.end - count as usize).map(|position| (0, position))))
    })
}

fn empty_if_null(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    assemble_lists(call.rows, &[list.values().clone()], |row| {
        Ok(Some(range_or_empty(&list, row).map(|position| (0, position))))
    })
}
