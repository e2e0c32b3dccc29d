//! `round(x, digits)` and `trunc(x, digits)`, which PostgreSQL has for numerics alone.
//!
//! Some functions compute in double precision here what is a numeric in PostgreSQL, such as `ln(1.5)` and the standard
//! deviation of integers. So it is not the type that decides, but what the value is made of.

use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};

/// Functions that give a numeric of a numeric.
const NUMERIC_PRESERVING_FUNCTIONS: &[&str] = &[
    "abs", "average", "ceil", "ceiling", "coalesce", "exp", "floor", "greatest", "least", "ln", "log", "log10",
    "nullif", "pow", "power", "round", "sign", "sqrt", "trunc",
];
/// Aggregates that give a numeric of numerics or integers.
const NUMERIC_PRESERVING_AGGREGATES: &str = "\
    avg max mean min stddev stddev_pop stddev_samp sum var var_pop var_samp variance";

/// Refuses an expression of `node` that rounds a double to a number of digits.
pub(crate) fn check_rounding(expression: &Expr, node: &[&LogicalPlan]) -> Result<()> {
    let Expr::ScalarFunction(call) = expression else { return Ok(()) };
    let name = call.func.name();
    if let ("round" | "trunc", [value, _]) = (name, call.args.as_slice())
        && is_double(value, node)
    {
        return plan_err!(
            "function {name}(double precision, integer) does not exist; cast the number: {name}(x::numeric, 2)"
        );
    }
    Ok(())
}

/// Whether `expression` is a double in PostgreSQL, too; no where that is not known.
fn is_double(expression: &Expr, inputs: &[&LogicalPlan]) -> bool {
    match expression {
        Expr::Alias(alias) => is_double(&alias.expr, inputs),
        Expr::Cast(cast) => cast.field.data_type().is_floating(),
        Expr::Negative(operand) => is_double(operand, inputs),
        Expr::BinaryExpr(binary) => is_double(&binary.left, inputs) || is_double(&binary.right, inputs),
        Expr::Column(column) => inputs.iter().any(|input| is_double_column(input, column)),
        Expr::ScalarFunction(call) if NUMERIC_PRESERVING_FUNCTIONS.contains(&call.func.name()) => {
            call.args.iter().any(|argument| is_double(argument, inputs))
        }
        _ => false,
    }
}

fn is_double_column(plan: &LogicalPlan, column: &Column) -> bool {
    match plan.schema().maybe_index_of_column(column) {
        Some(index) => is_double_at(plan, index),
        None => false,
    }
}

/// Whether the column of `plan` at `index` is a double in PostgreSQL, too.
fn is_double_at(plan: &LogicalPlan, index: usize) -> bool {
    if !plan.schema().field(index).data_type().is_floating() {
        return false;
    }
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::Projection(projection) => {
            projection.expr.get(index).is_some_and(|expression| is_double(expression, &[&projection.input]))
        }
        LogicalPlan::SubqueryAlias(alias) => is_double_at(&alias.input, index),
        LogicalPlan::Filter(filter) => is_double_at(&filter.input, index),
        LogicalPlan::Sort(sort) => is_double_at(&sort.input, index),
        LogicalPlan::Limit(limit) => is_double_at(&limit.input, index),
        LogicalPlan::Distinct(Distinct::All(input)) => is_double_at(input, index),
        LogicalPlan::Window(window) => {
            index < window.input.schema().fields().len() && is_double_at(&window.input, index)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let input = aggregate.input.as_ref();
            match aggregate.group_expr.get(index) {
                Some(group) => is_double(group, &[input]),
                None => aggregate
                    .aggr_expr
                    .get(index - aggregate.group_expr.len())
                    .is_some_and(|expression| is_double_aggregate(expression, input)),
            }
        }
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            if index < left {
                is_double_at(&join.left, index)
            } else {
                index - left < join.right.schema().fields().len() && is_double_at(&join.right, index - left)
            }
        }
        _ => false,
    }
}

fn is_double_aggregate(expression: &Expr, input: &LogicalPlan) -> bool {
    match expression {
        Expr::Alias(alias) => is_double_aggregate(&alias.expr, input),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            if !NUMERIC_PRESERVING_AGGREGATES.split(' ').any(|name| name == func.name()) {
                // Such as corr: it has no numeric.
                return func.name().starts_with("regr_") || matches!(func.name(), "corr" | "covar_pop" | "covar_samp");
            }
            let is_float = |argument: &Expr| {
                argument.get_type(input.schema()).is_ok_and(|data_type: DataType| data_type.is_floating())
            };
            params.args.iter().any(|argument| is_float(argument) && is_double(argument, &[input]))
        }
        _ => false,
    }
}
