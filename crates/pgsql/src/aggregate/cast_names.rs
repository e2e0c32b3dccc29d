//! Aggregates that differ only in casts, such as `sum(x)` and `sum(x::bigint)`. DataFusion gives both the same name.

use std::collections::{HashMap, HashSet};

use datafusion::common::plan_err;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Select};

use crate::function::{ColumnarFunction, first_type, keep_types};
use crate::syntax::{call, string, take};
use crate::walk::for_each_expression;

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "named_cast_function*";
/// Aggregates that are checked for ambiguous names.
const AGGREGATES: &str = "\
    array_agg avg bool_and bool_or count every max min mode stddev stddev_pop stddev_samp string_agg sum var_pop \
    var_samp variance";

/// Returns its first argument. The second one makes the name of the call unique.
pub(crate) fn named_cast_function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| if types.len() == 2 { keep_types(types) } else { plan_err!("a cast has an operand and a type") },
        first_type,
        |call| call.array(0),
    )
}

/// Names the casts in aggregates of `select` that would otherwise have the name of another aggregate.
pub(crate) fn disambiguate_casts(select: &mut Select) {
    let mut calls: HashMap<String, HashSet<String>> = HashMap::new();
    for_each_expression(&mut select.projection.clone(), |expression, _| {
        if let Some(function) = aggregate_call(expression) {
            calls.entry(text_without_casts(function)).or_default().insert(function.to_string());
        }
    });
    calls.retain(|_, texts| texts.len() > 1);
    if !calls.is_empty() {
        for_each_expression(select, |expression, _| {
            if let Some(function) = aggregate_call(expression)
                && calls.contains_key(&text_without_casts(function))
            {
                name_casts(function);
            }
        });
    }
}

fn aggregate_call(expression: &mut Expr) -> Option<&mut Function> {
    let Expr::Function(function) = expression else { return None };
    let name = function.name.to_string();
    AGGREGATES.split(' ').any(|aggregate| aggregate.eq_ignore_ascii_case(&name)).then_some(function)
}

/// Returns the text of `function` without casts.
fn text_without_casts(function: &Function) -> String {
    let mut function = function.clone();
    for_each_expression(&mut function, |expression, _| {
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expression {
            *expression = take(inner);
        }
    });
    function.to_string()
}

fn name_casts(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg
            && matches!(value, Expr::Cast { .. } | Expr::BinaryOp { .. } | Expr::Nested(_))
        {
            let text = string(value.to_string());
            *value = call(NAME, vec![take(value), text]);
        }
    }
}
