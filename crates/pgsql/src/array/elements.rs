//! Functions of the elements of arrays: subscripts and slices; arrays built from other arrays (`array_append`,
//! `array_prepend`, `array_cat`, `array_remove`, `array_replace`, `trim_array`, and the array of a subquery); searches
//! (`array_position`, `array_positions`, `@>`, `<@`, `&&`); `value = ANY (array)` and `value <> ALL (array)`, with all
//! comparison operators; and arrays as text.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, Int32Builder, Int64Array, ListArray, ListBuilder,
    StringArray, UInt64Array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::kernels::cmp;
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;

use crate::data_type::{is_text_or_null, json_kind, texts};
use crate::function::{
    BoundedTexts, ColumnarFunction, FunctionCall, Invoke, boolean_type, first_type, int4_type, text_type,
};
use crate::json::{self, key_text};
use crate::list::{
    RowComparer, as_list, assemble_lists, cast_arrays, dimensions, innermost_type, item_type, list_type, lists, range,
    range_or_empty, require_item, write_element,
};
use crate::number::common_float;
use crate::time::number_advice;

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

pub(super) fn edit_functions() -> Vec<ScalarUDF> {
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
fn flat_types(types: &[DataType]) -> Result<Vec<DataType>> {
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

pub(super) fn search_functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("array_position", position_types, int4_type, position),
        ColumnarFunction::new("array_positions", positions_types, |_| Ok(list_type(DataType::Int32)), positions),
    ]
}

/// Returns the function of `@>`.
pub(super) fn contains() -> ScalarUDF {
    ColumnarFunction::new("array_contains_all", pair_types, boolean_type, |call| compare(call, false))
}

/// Returns the function of `&&`.
pub(super) fn overlaps() -> ScalarUDF {
    ColumnarFunction::new("array_overlaps", pair_types, boolean_type, |call| compare(call, true))
}

fn position_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_, _] => flat_types(types),
        [array, element, start] if start.is_integer() || start.is_null() => {
            Ok([flat_types(&[array.clone(), element.clone()])?, vec![DataType::Int64]].concat())
        }
        _ => plan_err!("array_position takes an array, an element and a start position"),
    }
}

fn positions_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [_, _] => flat_types(types),
        _ => plan_err!("array_positions takes an array and an element"),
    }
}

/// Coerces the arguments to two arrays of one type.
pub(super) fn pair_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [left, right] = types else { return plan_err!("the operator has two arrays as its operands") };
    let items = [require_item("of arrays", left)?, require_item("of arrays", right)?];
    let item = common_type("the operator", &items)?;
    Ok(vec![list_type(item.clone()), list_type(item)])
}

fn position(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, elements) = (lists(call, 0)?, call.array(1)?);
    let starts = if call.args.len() == 3 { Some(call.array(2)?) } else { None };
    let comparer = RowComparer::new(elements.data_type())?;
    let (own, target) = (comparer.rows(list.values())?, comparer.rows(&elements)?);
    let find = |row: usize| -> Result<Option<i32>> {
        let start = match &starts {
            Some(starts) if starts.is_null(row) => return exec_err!("initial position must not be null"),
            Some(starts) => starts.as_primitive::<Int64Type>().value(row),
            None => 1,
        };
        if list.is_null(row) {
            return Ok(None);
        }
        let positions = range(&list, row);
        let skipped = usize::try_from(start - 1).unwrap_or(0);
        let position = positions.clone().skip(skipped).find(|index| own.row(*index) == target.row(row));
        Ok(position.and_then(|index| i32::try_from(index - positions.start + 1).ok()))
    };
    Ok(Arc::new((0..call.rows).map(find).collect::<Result<Int32Array>>()?))
}

fn positions(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (list, elements) = (lists(call, 0)?, call.array(1)?);
    let comparer = RowComparer::new(elements.data_type())?;
    let (own, target) = (comparer.rows(list.values())?, comparer.rows(&elements)?);
    let mut builder = ListBuilder::new(Int32Builder::new());
    for row in 0..call.rows {
        if list.is_null(row) {
            builder.append(false);
            continue;
        }
        for (index, position) in range(&list, row).enumerate() {
            if own.row(position) == target.row(row) {
                builder.values().append_option(i32::try_from(index + 1).ok());
            }
        }
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}

/// Whether any element of the right side, or all of them, are among those of the left side. NULL is equal to nothing.
fn compare(call: &FunctionCall<'_>, is_any: bool) -> Result<ArrayRef> {
    let (left, right) = (lists(call, 0)?, lists(call, 1)?);
    if item_type(&left.value_type()).is_some() {
        return exec_err!("comparing elements of multidimensional arrays is not supported; unnest the arrays");
    }
    let comparer = RowComparer::new(&left.value_type())?;
    let (left_rows, right_rows) = (comparer.rows(left.values())?, comparer.rows(right.values())?);
    let one = |row: usize| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let own = range(&left, row).filter(|index| left.values().is_valid(*index));
        let own: HashSet<&[u8]> = own.map(|index| left_rows.row(index).data()).collect();
        let is_among = |index: usize| right.values().is_valid(index) && own.contains(right_rows.row(index).data());
        let mut others = range(&right, row);
        Some(if is_any { others.any(is_among) } else { others.all(is_among) })
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<BooleanArray>()))
}

/// The functions, each with its operator and whether it is ANY.
pub(super) const QUANTIFIED: [(&str, &str, bool, Invoke); 12] = [
    ("any_eq*", "=", true, |call| compare_quantified(call, true, |left, right| cmp::eq(left, right))),
    ("any_ne*", "<>", true, |call| compare_quantified(call, true, |left, right| cmp::neq(left, right))),
    ("any_lt*", "<", true, |call| compare_quantified(call, true, |left, right| cmp::lt(left, right))),
    ("any_le*", "<=", true, |call| compare_quantified(call, true, |left, right| cmp::lt_eq(left, right))),
    ("any_gt*", ">", true, |call| compare_quantified(call, true, |left, right| cmp::gt(left, right))),
    ("any_ge*", ">=", true, |call| compare_quantified(call, true, |left, right| cmp::gt_eq(left, right))),
    ("all_eq*", "=", false, |call| compare_quantified(call, false, |left, right| cmp::eq(left, right))),
    ("all_ne*", "<>", false, |call| compare_quantified(call, false, |left, right| cmp::neq(left, right))),
    ("all_lt*", "<", false, |call| compare_quantified(call, false, |left, right| cmp::lt(left, right))),
    ("all_le*", "<=", false, |call| compare_quantified(call, false, |left, right| cmp::lt_eq(left, right))),
    ("all_gt*", ">", false, |call| compare_quantified(call, false, |left, right| cmp::gt(left, right))),
    ("all_ge*", ">=", false, |call| compare_quantified(call, false, |left, right| cmp::gt_eq(left, right))),
];

pub(super) fn quantified_functions() -> Vec<ScalarUDF> {
    let function = |(name, _, _, invoke)| ColumnarFunction::new(name, operand_types, boolean_type, invoke);
    QUANTIFIED.into_iter().map(function).collect()
}

fn operand_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [value, array] = types else { return plan_err!("ANY and ALL take a value and an array") };
    match item_type(array) {
        // An untyped literal is the text of an array with elements of this type.
        None if is_text_or_null(array) => {
            Ok(vec![if value.is_null() { DataType::Utf8 } else { value.clone() }, DataType::Utf8])
        }
        None => plan_err!("op ANY/ALL (array) requires array on right side, not {array}"),
        Some(item) if item_type(item).is_some() => {
            plan_err!("ANY and ALL of multidimensional arrays are not supported; unnest the array")
        }
        Some(item) => {
            // A floating-point number and another number are compared as doubles.
            let are_mixed = item.is_numeric() && value.is_numeric() && item.is_floating() != value.is_floating();
            let common = match are_mixed {
                true => DataType::Float64,
                false => common_type("ANY", &[item.clone(), value.clone()])?,
            };
            Ok(vec![common.clone(), list_type(common)])
        }
    }
}

/// Compares the value with each element. ANY is true, and ALL is false, if one element decides.
fn compare_quantified(
    call: &FunctionCall<'_>,
    is_any: bool,
    compare_elements: fn(&ArrayRef, &ArrayRef) -> Result<BooleanArray, ArrowError>,
) -> Result<ArrayRef> {
    let value = call.array(0)?;
    let array = call.array(1)?;
    let array = match array.data_type() {
        DataType::Utf8 => cast_arrays(&texts(&array)?, &list_type(value.data_type().clone()))?,
        _ => array,
    };
    let list = as_list(&array)?;
    let (mut rows, mut positions) = (Vec::new(), Vec::new());
    for row in 0..call.rows {
        if list.is_valid(row) {
            for position in range(&list, row) {
                rows.push(row as u64);
                positions.push(position as u64);
            }
        }
    }
    let left = take(&value, &UInt64Array::from(rows), None)?;
    let right = take(list.values(), &UInt64Array::from(positions), None)?;
    let (left, right) = match value.data_type() {
        DataType::Struct(_) => (row_bytes(&left)?, row_bytes(&right)?),
        _ => (left, right),
    };
    let results = compare_elements(&left, &right)?;
    let mut position = 0;
    let mut one = |row: usize| {
        if list.is_null(row) {
            return None;
        }
        let length = range(&list, row).len();
        let own = position..position + length;
        position += length;
        let mut has_null = false;
        for position in own {
            if results.is_null(position) {
                has_null = true;
            } else if results.value(position) == is_any {
                return Some(is_any);
            }
        }
        (!has_null).then_some(!is_any)
    };
    Ok(Arc::new((0..call.rows).map(&mut one).collect::<BooleanArray>()))
}

/// Returns bytes for each row, in the order of the rows. NULLs within rows are equal to each other, as in PostgreSQL.
fn row_bytes(rows: &ArrayRef) -> Result<ArrayRef> {
    let bytes = RowComparer::new(rows.data_type())?.rows(rows)?.try_into_binary()?;
    let (offsets, values, _) = bytes.into_parts();
    Ok(Arc::new(BinaryArray::try_new(offsets, values, rows.nulls().cloned())?))
}

/// Returns the common type of elements of `types`.
fn common_type(function: &str, types: &[DataType]) -> Result<DataType> {
    let typed: Vec<DataType> = types.iter().filter(|data_type| !data_type.is_null()).cloned().collect();
    let Some(first) = typed.first() else { return Ok(DataType::Utf8) };
    if typed.iter().all(|data_type| data_type == first) {
        return Ok(first.clone());
    }
    match common_float(&typed).or_else(|| type_union_resolution(&typed)) {
        // PostgreSQL does not convert text to a number here.
        Some(common) if !common.is_string() || typed.iter().all(DataType::is_string) => Ok(common),
        _ => {
            let names: Vec<String> = typed.iter().map(ToString::to_string).collect();
            let advice = typed.iter().find_map(|other| number_advice(first, other)).unwrap_or("cast one side");
            plan_err!("{function} of elements of {} does not exist; {advice}", names.join(" and "))
        }
    }
}

/// Returns the text of each array.
pub(crate) fn format_arrays(array: &ArrayRef) -> Result<StringArray> {
    let list = as_list(array)?;
    let text = |row: usize| {
        let mut out = String::new();
        write_array(&list, row, &mut out).map(|()| out)
    };
    let texts = BoundedTexts::of_rows(list.len(), |row| list.is_valid(row).then(|| text(row)).transpose())?;
    Ok(texts.finish())
}

fn write_array(list: &ListArray, row: usize, out: &mut String) -> Result<()> {
    let values = list.value(row);
    let inner = item_type(values.data_type()).map(|_| as_list(&values)).transpose()?;
    out.push('{');
    for position in 0..values.len() {
        if position > 0 {
            out.push(',');
        }
        match &inner {
            _ if values.is_null(position) => out.push_str("NULL"),
            Some(inner) => write_array(inner, position, out)?,
            None => write_element(&element_text(&values, position)?, out),
        }
    }
    out.push('}');
    Ok(())
}

/// Returns the unquoted text of an element, as the output function of its type writes it.
pub(crate) fn element_text(values: &ArrayRef, position: usize) -> Result<String> {
    match values.data_type() {
        DataType::Boolean => Ok(if values.as_boolean().value(position) { "t" } else { "f" }.to_owned()),
        other if json_kind(other).is_some() => Ok(texts(values)?.value(position).to_owned()),
        _ => key_text(values, position),
    }
}

pub(super) fn text_functions() -> Vec<ScalarUDF> {
    vec![ColumnarFunction::new("array_to_string", joined_types, text_type, join)]
}

fn joined_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [array, rest @ ..] = types else { return plan_err!("array_to_string takes 2 or 3 arguments") };
    if rest.is_empty() || rest.len() > 2 {
        return plan_err!("array_to_string takes 2 or 3 arguments");
    }
    let item = require_item("array_to_string", array)?;
    Ok([vec![list_type(item)], rest.iter().map(|_| DataType::Utf8).collect()].concat())
}

fn join(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let list = as_list(&call.array(0)?)?;
    let separators = call.texts(1)?;
    let placeholders = if call.args.len() == 3 { Some(call.texts(2)?) } else { None };
    let texts = BoundedTexts::of_rows(call.rows, |row| {
        let Some(separator) = separators.get(row).filter(|_| list.is_valid(row)) else { return Ok(None) };
        let placeholder = placeholders.as_ref().and_then(|texts| texts.get(row));
        let mut parts = Vec::new();
        collect_texts(&list, row, placeholder, &mut parts)?;
        Ok(Some(parts.join(separator)))
    })?;
    Ok(Arc::new(texts.finish()))
}

fn collect_texts(list: &ListArray, row: usize, placeholder: Option<&str>, parts: &mut Vec<String>) -> Result<()> {
    let values = list.value(row);
    let inner = item_type(values.data_type()).map(|_| as_list(&values)).transpose()?;
    for position in 0..values.len() {
        match &inner {
            Some(inner) => collect_texts(inner, position, placeholder, parts)?,
            None if values.is_null(position) => parts.extend(placeholder.map(str::to_owned)),
            None => parts.push(element_text(&values, position)?),
        }
    }
    Ok(())
}
