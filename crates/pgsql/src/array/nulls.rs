//! `num_nulls` and `num_nonnulls`, of arguments and of the elements of an array.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::ScalarUDF;

use crate::function::{ColumnarFunction, FunctionCall, int4_type};
use crate::list::{item_type, lists, range};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        ColumnarFunction::new("num_nulls", values_types, int4_type, |call| count_values(call, true)),
        ColumnarFunction::new("num_nonnulls", values_types, int4_type, |call| count_values(call, false)),
        ColumnarFunction::new("num_nulls*", array_types, int4_type, |call| count_elements(call, true)),
        ColumnarFunction::new("num_nonnulls*", array_types, int4_type, |call| count_elements(call, false)),
    ]
}

fn values_types(types: &[DataType]) -> Result<Vec<DataType>> {
    if types.is_empty() {
        return plan_err!("num_nulls and num_nonnulls take at least one argument");
    }
    Ok(types.to_vec())
}

fn array_types(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [array] if item_type(array).is_some() => Ok(types.to_vec()),
        _ => plan_err!("VARIADIC takes an array; write the arguments one by one, or cast NULL: NULL::text[]"),
    }
}

fn count_values(call: &FunctionCall<'_>, counts_nulls: bool) -> Result<ArrayRef> {
    let columns: Vec<Option<NullBuffer>> = call.arrays()?.iter().map(|column| column.logical_nulls()).collect();
    let count = |row| {
        let is_null = columns.iter().map(|nulls| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)));
        size(is_null.filter(|is_null| *is_null == counts_nulls).count())
    };
    Ok(Arc::new(Int32Array::from_iter_values((0..call.rows).map(count))))
}

/// Counts in arrays of one dimension.
fn count_elements(call: &FunctionCall<'_>, counts_nulls: bool) -> Result<ArrayRef> {
    let list = lists(call, 0)?;
    let nulls = list.values().logical_nulls();
    let is_null = |position: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(position));
    let count = |row| {
        let elements = range(&list, row).filter(|position| is_null(*position) == counts_nulls);
        list.is_valid(row).then(|| size(elements.count()))
    };
    Ok(Arc::new((0..call.rows).map(count).collect::<Int32Array>()))
}

fn size(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
