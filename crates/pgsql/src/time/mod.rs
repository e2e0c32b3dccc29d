//! Dates, times, intervals and time zones.
//!
//! A `timestamp` is microseconds since 1970 without a zone, and a `timestamptz` the same in UTC. A `date` is days, a
//! `time` microseconds of the day, and an `interval` months, days and nanoseconds, used as whole microseconds. The
//! session's zone is UTC. Functions accept columns of any unit and return PostgreSQL's unit.

mod abbreviations;
mod arguments;
mod calendar;
mod comparable;
mod convert;
mod equal_constants;
mod field;
mod format;
mod function;
pub(crate) mod input;
mod interval;
mod kind;
mod make;
mod now;
mod operator;
mod order;
pub(crate) mod output;
mod span;
mod syntax;
mod timezone;
mod truncate;
mod unit;
mod zone;

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast;

use crate::operands::Operands;

pub(crate) use comparable::{check_comparable, check_comparison, check_node, number_advice};
pub(crate) use convert::{convert, is_conversion};
pub(crate) use equal_constants::separate_constants;
pub(crate) use interval::{average_spans, multiply as multiply_interval};
pub(crate) use order::{compare, order_intervals};

/// Returns the scalar functions of this module. A function with the name of a DataFusion function replaces it.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let mut functions = vec![truncate::date_trunc(), field::extract(), field::date_part(), timezone::timezone()];
    functions.extend(operator::functions());
    functions.extend(now::functions());
    functions.extend(make::functions());
    functions.extend(span::functions());
    functions.extend(convert::functions());
    functions.extend(format::functions());
    functions
}

/// Plans an operator on operands of these types; `None` if this module does not handle the operator.
pub(crate) fn plan_operator(operands: &Operands<'_>) -> Result<Option<Expr>> {
    operator::plan_operator(operands)
}

/// Rewrites syntax that DataFusion's planner does not support, or interprets differently, into calls of functions of
/// this module. Inner expressions are already rewritten.
pub(crate) fn rewrite_syntax(expression: &mut ast::Expr) -> Result<()> {
    syntax::rewrite(expression)
}
