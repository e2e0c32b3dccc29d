//! `value = ANY (array)` and `value <> ALL (array)`, with all comparison operators.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanArray, UInt64Array};
use arrow::compute::kernels::cmp;
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::data_type::is_text_or_null;
use crate::function::{ColumnarFunction, FunctionCall, Invoke, boolean_type};
use crate::json_type::texts;
use crate::list::{RowComparer, as_list, cast_arrays, common_type, item_type, list_type, range};

/// The functions, each with its operator and whether it is ANY.
pub(super) const FUNCTIONS: [(&str, &str, bool, Invoke); 12] = [
    ("any_eq*", "=", true, |call| compare(call, true, |left, right| cmp::eq(left, right))),
    ("any_ne*", "<>", true, |call| compare(call, true, |left, right| cmp::neq(left, right))),
    ("any_lt*", "<", true, |call| compare(call, true, |left, right| cmp::lt(left, right))),
    ("any_le*", "<=", true, |call| compare(call, true, |left, right| cmp::lt_eq(left, right))),
    ("any_gt*", ">", true, |call| compare(call, true, |left, right| cmp::gt(left, right))),
    ("any_ge*", ">=", true, |call| compare(call, true, |left, right| cmp::gt_eq(left, right))),
    ("all_eq*", "=", false, |call| compare(call, false, |left, right| cmp::eq(left, right))),
    ("all_ne*", "<>", false, |call| compare(call, false, |left, right| cmp::neq(left, right))),
    ("all_lt*", "<", false, |call| compare(call, false, |left, right| cmp::lt(left, right))),
    ("all_le*", "<=", false, |call| compare(call, false, |left, right| cmp::lt_eq(left, right))),
    ("all_gt*", ">", false, |call| compare(call, false, |left, right| cmp::gt(left, right))),
    ("all_ge*", ">=", false, |call| compare(call, false, |left, right| cmp::gt_eq(left, right))),
];

pub(super) fn functions() -> Vec<ScalarUDF> {
    let function = |(name, _, _, invoke)| ColumnarFunction::new(name, operand_types, boolean_type, invoke);
    FUNCTIONS.into_iter().map(function).collect()
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
fn compare(
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
