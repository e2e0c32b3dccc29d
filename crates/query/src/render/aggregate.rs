//! Aggregate functions, with the names of each dialect.

use sqlparser::ast::{Expr, FunctionArgExpr};
use tidegate_sql::SqlDialect;

use super::build::{call_expression, function_call, number_text, order_by_unspecified};
use crate::spec::AggregateFunction;

/// The call of an aggregate function; without an argument it counts rows.
pub(super) fn aggregate_call(
    function: AggregateFunction,
    argument: Option<Expr>,
    distinct: bool,
    dialect: SqlDialect,
) -> Result<Expr, String> {
    let distinct = distinct || function == AggregateFunction::CountDistinct;
    let name = match (function, dialect) {
        (AggregateFunction::Count | AggregateFunction::CountDistinct, _) => "count",
        (AggregateFunction::Sum, _) => "sum",
        (AggregateFunction::Avg, _) => "avg",
        (AggregateFunction::Min, _) => "min",
        (AggregateFunction::Max, _) => "max",
        (AggregateFunction::Median | AggregateFunction::Stddev | AggregateFunction::Variance, SqlDialect::Sqlite) => {
            let name = function.name();
            return Err(format!("SQLite has no {name}; it has count, count_distinct, sum, avg, min and max"));
        }
        (AggregateFunction::Median, SqlDialect::Postgres) => return median(argument, distinct),
        (AggregateFunction::Median, SqlDialect::DataFusion) => "median",
        (AggregateFunction::Stddev, _) => "stddev_samp",
        (AggregateFunction::Variance, _) => "var_samp",
    };
    let argument = argument.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
    Ok(call_expression(name, vec![argument], distinct))
}

/// PostgreSQL's median is a percentile of the ordered values.
fn median(argument: Option<Expr>, distinct: bool) -> Result<Expr, String> {
    if distinct {
        return Err("PostgreSQL has no median of distinct values; leave out \"distinct\"".to_owned());
    }
    let half = FunctionArgExpr::Expr(number_text("0.5"));
    let mut call = function_call("percentile_cont", vec![half], false);
    call.within_group = argument.into_iter().map(order_by_unspecified).collect();
    Ok(Expr::Function(call))
}
