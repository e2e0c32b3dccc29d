//! Aggregates that differ only in casts, such as `sum(x)` and `sum(x::bigint)`. DataFusion gives both the same name.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::{
    Expr, Function as Call, FunctionArg, FunctionArgExpr, FunctionArguments, Select, Value, VisitMut, VisitorMut,
};

use crate::function::ColumnarFunction;
use crate::syntax::call;

/// The name of the function. The `*` keeps callers from writing it.
const NAME: &str = "named_cast_function*";
/// Aggregates that are checked for ambiguous names.
const AGGREGATES: &[&str] = &[
    "array_agg",
    "avg",
    "bool_and",
    "bool_or",
    "count",
    "every",
    "max",
    "min",
    "mode",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Returns its first argument. The second one makes the name of the call unique.
pub(crate) fn named_cast_function() -> ScalarUDF {
    ColumnarFunction::new(
        NAME,
        |types| if types.len() == 2 { Ok(types.to_vec()) } else { plan_err!("a cast has an operand and a type") },
        |fields| Ok(fields[0].data_type().clone()),
        |call| call.array(0),
    )
}

/// Names the casts in aggregates of `select` that would otherwise have the name of another aggregate.
pub(crate) fn disambiguate_casts(select: &mut Select) {
    let mut calls = AggregateCalls(HashMap::new());
    let mut copy = select.projection.clone();
    // Neither visitor breaks.
    let _ = VisitMut::visit(&mut copy, &mut calls);
    let ambiguous: HashSet<String> =
        calls.0.into_iter().filter(|(_, texts)| texts.len() > 1).map(|(key, _)| key).collect();
    if !ambiguous.is_empty() {
        let _ = VisitMut::visit(select, &mut CastNamer { ambiguous });
    }
}

fn is_aggregate(function: &Call) -> bool {
    let name = function.name.to_string();
    AGGREGATES.iter().any(|aggregate| aggregate.eq_ignore_ascii_case(&name))
}

/// Returns the text of `function` without casts.
fn text_without_casts(function: &Call) -> String {
    let mut function = function.clone();
    let _ = VisitMut::visit(&mut function, &mut CastRemover);
    function.to_string()
}

struct CastRemover;

impl VisitorMut for CastRemover {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expression {
            *expression = std::mem::replace(inner, Expr::Value(Value::Null.into()));
        }
        ControlFlow::Continue(())
    }
}

/// The texts of the aggregates, by their text without casts.
struct AggregateCalls(HashMap<String, HashSet<String>>);

impl VisitorMut for AggregateCalls {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && is_aggregate(function)
        {
            self.0.entry(text_without_casts(function)).or_default().insert(function.to_string());
        }
        ControlFlow::Continue(())
    }
}

struct CastNamer {
    ambiguous: HashSet<String>,
}

impl VisitorMut for CastNamer {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expression
            && is_aggregate(function)
            && self.ambiguous.contains(&text_without_casts(function))
            && let FunctionArguments::List(list) = &mut function.args
        {
            for arg in &mut list.args {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else { continue };
                if !matches!(arg, Expr::Cast { .. } | Expr::BinaryOp { .. } | Expr::Nested(_)) {
                    continue;
                }
                let text = Expr::Value(Value::SingleQuotedString(arg.to_string()).into());
                let value = std::mem::replace(arg, Expr::Value(Value::Null.into()));
                *arg = call(NAME, vec![value, text]);
            }
        }
        ControlFlow::Continue(())
    }
}
