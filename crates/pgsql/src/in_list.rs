//! Values of `IN` that depend on the row.
//!
//! DataFusion evaluates such a list without any row, and takes it for constant if that gives values. `CASE` gives its first
//! value then, so that `n IN (1, CASE WHEN n > 3 THEN 2 END)` would compare each row with 2. A function prevents this.
//!
//! `docs/decisions/upstream` has the text to be filed, and says when the module can go.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::function::call;

/// The name of the function. The `*` keeps callers from writing it.
pub(crate) const VALUE_OF_ROW: &str = "value_of_row*";

/// Makes the values of a list that depend on columns no constants.
pub(crate) fn keep_values_of_rows(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr, list, negated }) = expression else { return Ok(Transformed::no(expression)) };
    let is_constant =
        |value: &Expr| !value.any_column_refs() || matches!(value, Expr::Column(_)) || is_value_of_row(value);
    let is_changed = !list.iter().all(is_constant);
    let list = list.into_iter().map(|value| match is_constant(&value) {
        true => value,
        false => call(function(), vec![value]),
    });
    let list = Expr::InList(InList { expr, list: list.collect(), negated });
    Ok(Transformed::new_transformed(list, is_changed))
}

/// Returns the function, which statements also call to make an expression another one with the same values.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(ValueOfRow::new())
}

fn is_value_of_row(value: &Expr) -> bool {
    matches!(value, Expr::ScalarFunction(function) if function.func.name() == VALUE_OF_ROW)
}

/// Its argument, as an array.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ValueOfRow {
    signature: Signature,
}

impl ValueOfRow {
    fn new() -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for ValueOfRow {
    fn name(&self) -> &str {
        VALUE_OF_ROW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        args.args[0].to_array(args.number_rows).map(ColumnarValue::Array)
    }
}
