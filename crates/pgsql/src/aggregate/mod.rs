//! Aggregate and window functions.
//!
//! DataFusion functions with PostgreSQL's meaning stay. Calls with another meaning are planned as other calls
//! ([`planner`]), or rewritten before planning ([`hypothetical`]).

mod cast_names;
mod float_min_max;
mod frame_exclusion;
mod frame_offset;
mod frame_queue;
mod grouping_keys;
mod grouping_sets;
mod hypothetical;
mod lag_lead;
mod min_max;
mod moments;
mod named_window;
mod ordered;
mod planner;
mod regression;
mod string_agg;
mod sum;
mod tdigest;
mod variance;
mod window_types;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::SessionStateDefaults;
use datafusion::functions_aggregate::bool_and_or;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{AggregateUDF, Case, Expr};
use datafusion::sql::sqlparser::ast;

pub(crate) use cast_names::{disambiguate_casts, named_cast_function};
pub(crate) use frame_exclusion::is_exclusion_mark;
pub(crate) use grouping_keys::compute_grouping_keys;
pub(crate) use planner::AggregatePlanner;
pub use regression::{MergedMoments, merged_moments};
pub use tdigest::{PART_DIGEST, merged_percentile, part_digest};
pub(crate) use window_types::adapt_windows;

/// Returns the aggregate functions. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    let mut functions = vec![sum::function(), bool_and_or::bool_and_udaf().as_ref().clone().with_aliases(["every"])];
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
pub(crate) fn is_aggregate(name: &str) -> bool {
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
