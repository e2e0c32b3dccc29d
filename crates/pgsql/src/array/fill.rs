//! `array_fill(value, ARRAY[2, 3])`, as an array repeated for each dimension.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Array, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
};

use crate::syntax::call;

/// What is called in place of `function`, which is `array_fill`.
pub(super) fn repeated(function: &Function) -> Result<Expr> {
    let FunctionArguments::List(list) = &function.args else { return takes_dimensions() };
    let [value, dimensions] = list.args.as_slice() else { return takes_dimensions() };
    let (
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(Array { elem: dimensions, .. }))),
    ) = (value, dimensions)
    else {
        return takes_dimensions();
    };
    if dimensions.is_empty() {
        return takes_dimensions();
    }
    if dimensions.iter().any(|length| matches!(length, Expr::UnaryOp { op: UnaryOperator::Minus, .. })) {
        return plan_err!("array size cannot be negative in array_fill");
    }
    let filled = |inner: Expr, length: &Expr| call("array_repeat", vec![inner, length.clone()]);
    Ok(dimensions.iter().rev().fold(value.clone(), filled))
}

fn takes_dimensions<T>() -> Result<T> {
    plan_err!("array_fill takes a value and its lengths, written out: array_fill(0, ARRAY[3]); indexes begin at 1")
}
