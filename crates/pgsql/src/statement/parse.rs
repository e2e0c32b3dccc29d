//! Statements of ours, from text.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{Query, SetExpr, Statement, TableFactor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// The query that `text` is.
fn query(text: &str) -> Result<Query> {
    let failed = |error| DataFusionError::Internal(format!("a query of ours cannot be read: {error}"));
    match Parser::parse_sql(&PostgreSqlDialect {}, text).map_err(failed)?.pop() {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(DataFusionError::Internal("a query of ours is none".to_owned())),
    }
}

/// Makes `query` the only table of a query.
pub(super) fn select_from(inner: &mut Query) -> Result<()> {
    let mut outer = query("SELECT * FROM (SELECT 1) AS \"rows of the subquery\"")?;
    put_subquery(&mut outer, inner);
    // It holds `inner` now, in whose place it goes.
    *inner = outer;
    Ok(())
}

/// Puts `inner` in place of the subquery in FROM of `outer`; what was there is `inner` then.
fn put_subquery(outer: &mut Query, inner: &mut Query) {
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(subquery.as_mut(), inner);
    }
}
