//! `ARRAY[a, b]` of arrays, which must have equal lengths.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, exec_err, plan_err};
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};

use crate::function::{ColumnarFunction, FunctionCall, call, first_type};
use crate::list::{as_list, item_type, range};

/// Builds an array of arrays whose lengths are unknown at planning time.
pub(crate) fn plan_nested_array(elements: &[Expr], schema: &DFSchema) -> Option<Expr> {
    let is_written_out = |element: &Expr| {
        matches!(element, Expr::Literal(..))
            || matches!(element, Expr::ScalarFunction(call) if call.func.name() == "make_array")
    };
    let is_array =
        |element: &Expr| element.get_type(schema).is_ok_and(|data_type: DataType| item_type(&data_type).is_some());
    let has_unknown = elements.iter().any(|element| !is_written_out(element) && is_array(element));
    (has_unknown && elements.len() > 1).then(|| call(equal_lengths_function(), vec![make_array(elements.to_vec())]))
}

/// Returns its argument, an array of arrays, after it has checked that their lengths are equal.
pub(super) fn equal_lengths_function() -> ScalarUDF {
    ColumnarFunction::new(
        "array_matching*",
        |types| if types.len() == 1 { Ok(types.to_vec()) } else { plan_err!("the check takes one array") },
        first_type,
        check_lengths,
    )
}

fn check_lengths(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let array = call.array(0)?;
    let outer = as_list(&array)?;
    let inner = as_list(outer.values())?;
    let length = |position: usize| if inner.is_valid(position) { inner.value_length(position) } else { 0 };
    for row in (0..outer.len()).filter(|row| outer.is_valid(*row)) {
        let mut lengths = range(&outer, row).map(length);
        let first = lengths.next();
        if lengths.any(|other| Some(other) != first) {
            return exec_err!("multidimensional arrays must have array expressions with matching dimensions");
        }
    }
    Ok(array)
}
