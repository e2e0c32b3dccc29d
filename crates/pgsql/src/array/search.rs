//! Functions and operators that search for elements: `array_position`, `array_positions`, `@>`, `<@`, `&&`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int32Builder, ListBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::edit::flat_types;
use crate::function::{ColumnarFunction, FunctionCall, boolean_type, int4_type};
use crate::list::{RowComparer, common_type, item_type, list_type, lists, range, require_item};

pub(super) fn functions() -> Vec<ScalarUDF> {
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
