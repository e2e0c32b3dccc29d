//! Aggregate functions: each by the name that its database has for it.

use sqlparser::ast::{Expr, FunctionArgExpr};

use super::build::{call, number_text, of_name, order_by_plain};
use crate::dialect::SqlDialect;
use crate::spec::Function;

/// The call of an aggregate function; without an argument it counts rows.
///
/// # Errors
/// Why the database cannot answer it.
pub(super) fn aggregate(
    function: Function,
    argument: Option<Expr>,
    distinct: bool,
    dialect: SqlDialect,
) -> Result<Expr, String> {
    let distinct = distinct || function == Function::CountDistinct;
    let name = match (function, dialect) {
        (Function::Count | Function::CountDistinct, _) => "count",
        (Function::Sum, _) => "sum",
        (Function::Avg, _) => "avg",
        (Function::Min, _) => "min",
        (Function::Max, _) => "max",
        (Function::Median | Function::Stddev | Function::Variance, SqlDialect::Sqlite) => {
            let name = function.name();
            return Err(format!("SQLite has no {name}; it has count, count_distinct, sum, avg, min and max"));
        }
        (Function::Median, SqlDialect::Postgres) => return median(argument, distinct),
        (Function::Median, SqlDialect::DataFusion) => "median",
        (Function::Stddev, _) => "stddev_samp",
        (Function::Variance, _) => "var_samp",
    };
    let argument = argument.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
    Ok(call(name, vec![argument], distinct))
}

/// PostgreSQL's median is a percentile of the ordered values.
fn median(argument: Option<Expr>, distinct: bool) -> Result<Expr, String> {
    if distinct {
        return Err("PostgreSQL has no median of distinct values; leave out \"distinct\"".to_owned());
    }
    let half = FunctionArgExpr::Expr(number_text("0.5"));
    let mut call = of_name("percentile_cont", vec![half], false);
    call.within_group = argument.into_iter().map(order_by_plain).collect();
    Ok(Expr::Function(call))
}
