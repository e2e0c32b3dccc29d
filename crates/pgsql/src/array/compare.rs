//! Comparison of arrays: element by element, then by length. NULL elements are equal to each other and greater than
//! values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::function::{RowComparer, lists, range};
use super::search::pair_types;
use crate::json::function::{ColumnarFunction, FunctionCall};

/// Returns the function for a comparison operator between arrays.
pub(super) fn comparison(symbol: &str) -> Option<ScalarUDF> {
    let make = |name, invoke| Some(ColumnarFunction::new(name, pair_types, |_| Ok(DataType::Boolean), invoke));
    match symbol {
        "=" => make("array_eq", |call| compare(call, Ordering::is_eq)),
        "<>" => make("array_ne", |call| compare(call, Ordering::is_ne)),
        "<" => make("array_lt", |call| compare(call, Ordering::is_lt)),
        "<=" => make("array_le", |call| compare(call, Ordering::is_le)),
        ">" => make("array_gt", |call| compare(call, Ordering::is_gt)),
        ">=" => make("array_ge", |call| compare(call, Ordering::is_ge)),
        _ => None,
    }
}

fn compare(call: &FunctionCall<'_>, is_expected: fn(Ordering) -> bool) -> Result<ArrayRef> {
    let (left, right) = (lists(call, 0)?, lists(call, 1)?);
    let comparer = RowComparer::new(&left.value_type())?;
    let (left_rows, right_rows) = (comparer.rows(left.values())?, comparer.rows(right.values())?);
    let one = |row: usize| {
        if left.is_null(row) || right.is_null(row) {
            return None;
        }
        let own = range(&left, row).map(|place| left_rows.row(place));
        Some(is_expected(own.cmp(range(&right, row).map(|place| right_rows.row(place)))))
    };
    Ok(Arc::new((0..call.rows).map(one).collect::<BooleanArray>()))
}
