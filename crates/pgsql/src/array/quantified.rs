//! `value = ANY (array)` and `value <> ALL (array)`, with all comparison operators.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::kernels::cmp;
use arrow::compute::take;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::function::{as_list, common_type, item_type, list_type, range};
use super::text::parse_arrays;
use crate::json::function::{ColumnarFunction, FunctionCall};
use crate::json::kind::texts;

/// The functions, each with its operator and whether it is ANY.
pub(super) const FUNCTIONS: [(&str, &str, bool); 12] = [
    ("any_eq*", "=", true),
    ("any_ne*", "<>", true),
    ("any_lt*", "<", true),
    ("any_le*", "<=", true),
    ("any_gt*", ">", true),
    ("any_ge*", ">=", true),
    ("all_eq*", "=", false),
    ("all_ne*", "<>", false),
    ("all_lt*", "<", false),
    ("all_le*", "<=", false),
    ("all_gt*", ">", false),
    ("all_ge*", ">=", false),
];

pub(super) fn functions() -> Vec<ScalarUDF> {
    let make = |name, invoke| ColumnarFunction::new(name, operand_types, |_| Ok(DataType::Boolean), invoke);
    vec![
        make("any_eq*", |call| compare(call, 0, true)),
        make("any_ne*", |call| compare(call, 1, true)),
        make("any_lt*", |call| compare(call, 2, true)),
        make("any_le*", |call| compare(call, 3, true)),
        make("any_gt*", |call| compare(call, 4, true)),
        make("any_ge*", |call| compare(call, 5, true)),
        make("all_eq*", |call| compare(call, 0, false)),
        make("all_ne*", |call| compare(call, 1, false)),
        make("all_lt*", |call| compare(call, 2, false)),
        make("all_le*", |call| compare(call, 3, false)),
        make("all_gt*", |call| compare(call, 4, false)),
        make("all_ge*", |call| compare(call, 5, false)),
    ]
}

fn operand_types(types: &[DataType]) -> Result<Vec<DataType>> {
    let [value, array] = types else { return plan_err!("ANY and ALL take a value and an array") };
    match item_type(array) {
        // An untyped literal is the text of an array with elements of this type.
        None if matches!(array, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null) => {
            Ok(vec![if value.is_null() { DataType::Utf8 } else { value.clone() }, DataType::Utf8])
        }
        None => plan_err!("op ANY/ALL (array) requires array on right side, not {array}"),
        Some(item) if item_type(item).is_some() => {
            plan_err!("ANY and ALL of multidimensional arrays are not supported; unnest the array")
        }
        Some(item) => {
            let common = common_type("ANY", &[item.clone(), value.clone()])?;
            Ok(vec![common.clone(), list_type(common)])
        }
    }
}

fn compare(call: &FunctionCall<'_>, operator: u8, is_any: bool) -> Result<ArrayRef> {
    let value = call.array(0)?;
    let array = call.array(1)?;
    let array = match array.data_type() {
        DataType::Utf8 => parse_arrays(&texts(&array)?, &list_type(value.data_type().clone()), &|values, item| {
            let options = arrow::compute::CastOptions { safe: false, ..Default::default() };
            Ok(arrow::compute::cast_with_options(&values, item, &options)?)
        })?,
        _ => array,
    };
    let list = as_list(&array)?;
    let (mut rows, mut positions) = (Vec::new(), Vec::new());
    for row in 0..call.rows {
        if list.is_valid(row) {
            for place in range(&list, row) {
                rows.push(row as u64);
                positions.push(place as u64);
            }
        }
    }
    let left = take(&value, &UInt64Array::from(rows), None)?;
    let right = take(list.values(), &UInt64Array::from(positions), None)?;
    let results = match operator {
        0 => cmp::eq(&left, &right)?,
        1 => cmp::neq(&left, &right)?,
        2 => cmp::lt(&left, &right)?,
        3 => cmp::lt_eq(&left, &right)?,
        4 => cmp::gt(&left, &right)?,
        5 => cmp::gt_eq(&left, &right)?,
        _ => return exec_err!("unknown comparison operator"),
    };
    let mut place = 0;
    let mut one = |row: usize| {
        if list.is_null(row) {
            return None;
        }
        let length = range(&list, row).len();
        let own = place..place + length;
        place += length;
        let mut has_null = false;
        for place in own {
            if results.is_null(place) {
                has_null = true;
            } else if results.value(place) == is_any {
                return Some(is_any);
            }
        }
        (!has_null).then_some(!is_any)
    };
    Ok(Arc::new((0..call.rows).map(&mut one).collect::<BooleanArray>()))
}
