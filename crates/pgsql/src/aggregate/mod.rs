//! Aggregate and window functions.
//!
//! DataFusion functions with PostgreSQL's meaning stay. Calls with another meaning are planned as other calls
//! ([`planner`]), or rewritten before planning ([`hypothetical`]).
//!
//! Keys of grouping sets that are no columns become columns of the input ([`compute_grouping_keys`]). Rules that rewrite an
//! expression keep its name by an alias. Grouping sets can have none, and DataFusion compares their keys with the arguments
//! of `grouping`. `docs/decisions/upstream` has the text to be filed, and says when these columns can go.

mod array_agg;
mod cast_names;
mod grouping_sets;
mod hypothetical;
mod min_max;
mod moments;
mod named_window;
mod ordered;
mod planner;
mod regression;
mod sum;
mod tdigest;
mod variance;
mod window_frames;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::execution::SessionStateDefaults;
use datafusion::functions_aggregate::bool_and_or;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, AggregateUDF, Case, Expr, LogicalPlan, Projection};
use datafusion::sql::sqlparser::ast;

pub(crate) use cast_names::{disambiguate_casts, named_cast_function};
pub(crate) use planner::AggregatePlanner;
pub use regression::{MergedMoments, merged_moments};
pub use tdigest::{PART_DIGEST, merged_percentile, part_digest};
pub(crate) use window_frames::{adapt_windows, is_exclusion_mark};

/// Returns the aggregate functions. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    let mut functions = vec![sum::function(), bool_and_or::bool_and_udaf().as_ref().clone().with_aliases(["every"])];
    functions.push(array_agg::function());
    functions.extend(min_max::functions());
    functions.extend(ordered::functions());
    functions.extend(variance::functions());
    functions.extend(regression::functions());
    functions.extend(tdigest::functions());
    functions
}

/// Returns what to write if an aggregate of numbers has an argument `x` of the type `data_type`, which is none.
fn argument_advice(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => {
            "count the rows with count(*) FILTER (WHERE x), or cast the argument to an integer: x::int"
        }
        time if time.is_temporal() => "use a number as the argument, for instance extract(epoch FROM x)",
        _ => "cast the argument to a number, for instance x::numeric",
    }
}

/// Whether `name`, in lower case, is the name of an aggregate function.
fn is_aggregate(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let functions = functions().into_iter().map(Arc::new);
        let functions = functions.chain(SessionStateDefaults::default_aggregate_functions());
        let names = functions.flat_map(|function| [&[function.name().to_owned()], function.aliases()].concat());
        names.collect()
    });
    NAMES.contains(name)
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    hypothetical::rewrite_syntax(expression)?;
    grouping_sets::rewrite_syntax(expression);
    Ok(())
}

/// Counts grouping sets, and resolves references to named windows and column numbers, before expressions are rewritten.
pub(crate) fn rewrite_statement(statement: &mut ast::Statement) -> Result<()> {
    grouping_sets::rewrite_statement(statement)?;
    named_window::resolve_windows(statement)
}

/// Sets `array` to NULL where `filter` excludes the row.
fn apply_filter(array: &ArrayRef, filter: Option<&BooleanArray>) -> Result<ArrayRef> {
    let Some(filter) = filter else { return Ok(array.clone()) };
    let is_left_out: BooleanArray = filter.iter().map(|is_kept| Some(is_kept != Some(true))).collect();
    Ok(nullif(array.as_ref(), &is_left_out)?)
}

/// Converts a call without changes.
fn to_aggregate_expr(call: &RawAggregateExpr) -> Expr {
    let RawAggregateExpr { func, args, distinct, filter, order_by, null_treatment } = call.clone();
    let params = AggregateFunctionParams { args, distinct, filter, order_by, null_treatment };
    Expr::AggregateFunction(AggregateFunction { func, params })
}

fn to_window_expr(call: &RawWindowExpr) -> Expr {
    let RawWindowExpr { func_def, args, partition_by, order_by, window_frame, filter, null_treatment, distinct } =
        call.clone();
    let params = WindowFunctionParams { args, partition_by, order_by, window_frame, filter, null_treatment, distinct };
    Expr::WindowFunction(Box::new(WindowFunction { fun: func_def, params }))
}

/// Returns the expression that `expression` names.
pub(crate) fn without_alias(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

/// Makes the arguments of an aggregate NULL where its filter excludes the row, if their evaluation can fail.
pub(crate) fn guard_arguments(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(AggregateFunction { func, mut params }) = expression else {
        return Ok(Transformed::no(expression));
    };
    let mut is_changed = false;
    if let Some(filter) = &params.filter {
        for argument in &mut params.args {
            if argument.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_))))? {
                let then = Box::new(std::mem::take(argument));
                *argument = Expr::Case(Case::new(None, vec![(filter.clone(), then)], None));
                is_changed = true;
            }
        }
    }
    let expression = Expr::AggregateFunction(AggregateFunction { func, params });
    Ok(Transformed::new_transformed(expression, is_changed))
}

/// Computes keys below the aggregate. It runs before the rules that rewrite expressions.
pub(crate) fn compute_grouping_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &node else { return Ok(Transformed::no(node)) };
    let keys = computed_keys(aggregate)?;
    if keys.is_empty() {
        return Ok(Transformed::no(node));
    }
    let key_name = |position: usize| format!("key\u{1}{position}");
    let named = keys.iter().enumerate().map(|(position, key)| key.clone().alias(key_name(position)));
    let columns = aggregate.input.schema().columns().into_iter().map(Expr::Column);
    let input = Projection::try_new(columns.chain(named).collect(), aggregate.input.clone())?;
    // Whole keys, not parts of keys.
    let replace = |expression: Expr| {
        let replaced = expression.transform_down(|part| {
            Ok(match keys.iter().position(|key| *key == part) {
                Some(position) => {
                    let column = Expr::Column(Column::new_unqualified(key_name(position)));
                    Transformed::new(column, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(part),
            })
        });
        replaced.data()
    };
    let groups = aggregate.group_expr.iter().cloned().map(replace).collect::<Result<Vec<_>>>()?;
    let names = NamePreserver::new(&node);
    let replace_arguments = |expression: &Expr| {
        let name = names.save(expression);
        let replaced = if is_grouping(expression) { replace(expression.clone())? } else { expression.clone() };
        Ok(name.restore(replaced))
    };
    let values = aggregate.aggr_expr.iter().map(replace_arguments).collect::<Result<Vec<_>>>()?;
    let grouped = Aggregate::try_new(Arc::new(LogicalPlan::Projection(input)), groups, values)?;
    // DataFusion removes the number of the set as it resolves `grouping`.
    let columns = grouped.schema.columns().into_iter().zip(aggregate.schema.iter());
    let columns = columns.filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID);
    let output = columns
        .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
    let output = Projection::try_new(output.collect(), Arc::new(LogicalPlan::Aggregate(grouped)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(output)))
}

/// Returns the keys of grouping sets that are no columns.
fn computed_keys(aggregate: &Aggregate) -> Result<Vec<Expr>> {
    if !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(Vec::new());
    }
    let keys = grouping_set_to_exprlist(&aggregate.group_expr)?;
    Ok(keys.into_iter().filter(|key| !matches!(key, Expr::Column(_))).cloned().collect())
}

fn is_grouping(expression: &Expr) -> bool {
    matches!(without_alias(expression), Expr::AggregateFunction(call) if call.func.name() == "grouping")
}
