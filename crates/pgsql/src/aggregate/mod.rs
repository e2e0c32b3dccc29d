//! Aggregate and window functions.
//!
//! DataFusion functions with PostgreSQL's meaning stay. Calls with another meaning are planned as other calls
//! ([`planner`]), or rewritten before planning ([`hypothetical`]).

mod average;
mod cast_names;
mod filter_arguments;
mod float_min_max;
mod frame_exclusion;
mod grouping_sets;
mod hypothetical;
mod lag_lead;
mod min_max;
mod named_window;
mod ordered;
mod planner;
mod regression;
mod single_distinct;
mod string_agg;
mod sum;
mod variance;
mod window_types;

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::nullif;
use datafusion::common::Result;
use datafusion::functions_aggregate::{bool_and_or, count as counts};
use datafusion::logical_expr::{AggregateUDF, WindowUDF};
use datafusion::sql::sqlparser::ast;

pub(crate) use cast_names::{disambiguate_casts, named_cast_function};
pub(crate) use filter_arguments::guard_arguments;
pub(crate) use planner::AggregatePlanner;
pub(crate) use single_distinct::optimizer_rules;
pub(crate) use window_types::WindowTypes;

/// The aggregate functions. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<AggregateUDF> {
    let mut functions = vec![sum::function(), every_function()];
    functions.extend(min_max::functions());
    functions.extend(ordered::functions());
    functions.extend(variance::functions());
    functions
}

/// The window functions. A function with the name of a DataFusion function replaces it.
pub(crate) fn window_functions() -> Vec<WindowUDF> {
    Vec::new()
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    hypothetical::rewrite_syntax(expression)?;
    grouping_sets::rewrite_syntax(expression)
}

/// Resolves references to named windows and column numbers, before expressions are rewritten.
pub(crate) fn rewrite_statement(statement: &mut ast::Statement) -> Result<()> {
    named_window::resolve_windows(statement)
}

/// Sets `array` to NULL where `filter` excludes the row.
fn apply_filter(array: &ArrayRef, filter: Option<&BooleanArray>) -> Result<ArrayRef> {
    let Some(filter) = filter else { return Ok(array.clone()) };
    let is_left_out: BooleanArray = filter.iter().map(|is_kept| Some(is_kept != Some(true))).collect();
    Ok(nullif(array.as_ref(), &is_left_out)?)
}

fn every_function() -> AggregateUDF {
    bool_and_or::bool_and_udaf().as_ref().clone().with_aliases(["every"])
}

fn count_function() -> Arc<AggregateUDF> {
    counts::count_udaf()
}
