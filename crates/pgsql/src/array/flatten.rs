//! The elements of a multidimensional array, as `unnest` returns them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast;

use crate::function::{ColumnarFunction, FunctionCall, call};
use crate::list::{as_list, assemble_lists, dimensions, innermost_type, item_type, list_type, range};
use crate::syntax;

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "array_elements*";

/// Flattens an array to one dimension; other values stay unchanged.
pub(super) fn function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| if types.len() == 1 { Ok(types.to_vec()) } else { plan_err!("unnest takes one array") },
        |fields| Ok(flattened_type(fields[0].data_type())),
        flatten_arrays,
    )
}

/// Flattens `array` for `unnest`, which expands only one dimension.
pub(crate) fn with_one_dimension(array: Expr) -> Expr {
    call(function(), vec![array])
}

/// Flattens the argument of `unnest(array)`.
pub(super) fn rewrite_unnest(function: &mut ast::Function) {
    let ast::FunctionArguments::List(list) = &mut function.args else { return };
    if let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] = list.args.as_mut_slice()
        && !is_list_function(array)
    {
        *array = syntax::call(NAME, vec![syntax::take(array)]);
    }
}

/// Whether `value` is a call of a list function, whose elements are rows.
fn is_list_function(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Function(function) if function.name.to_string().ends_with(['*', '"']))
}

fn flattened_type(data_type: &DataType) -> DataType {
    match item_type(data_type) {
        Some(item) if dimensions(item) > 0 => list_type(innermost_type(item).clone()),
        _ => data_type.clone(),
    }
}

fn flatten_arrays(call: &FunctionCall<'_>) -> Result<ArrayRef> {
    let mut array = call.array(0)?;
    while dimensions(array.data_type()) > 1 {
        array = remove_dimension(&array)?;
    }
    Ok(array)
}

fn remove_dimension(array: &ArrayRef) -> Result<ArrayRef> {
    let outer = as_list(array)?;
    let inner = as_list(outer.values())?;
    assemble_lists(outer.len(), &[Arc::clone(inner.values())], |row| {
        let arrays = range(&outer, row).filter(|position| inner.is_valid(*position));
        let elements = arrays.flat_map(|position| range(&inner, position)).map(|position| (0, position));
        Ok(outer.is_valid(row).then_some(elements))
    })
}
