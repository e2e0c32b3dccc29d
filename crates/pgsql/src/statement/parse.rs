//! Builds parts of statements from text.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Parses a query.
pub(super) fn parse_query(text: &str) -> Result<Query> {
    let failed = |error| DataFusionError::Internal(format!("a generated query cannot be parsed: {error}"));
    match Parser::parse_sql(&PostgreSqlDialect {}, text).map_err(failed)?.pop() {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(DataFusionError::Internal("a generated statement is not a query".to_owned())),
    }
}

/// Makes `query` the only table of a query.
pub(super) fn select_from(inner: &mut Query) -> Result<()> {
    let mut outer = parse_query("SELECT * FROM (SELECT 1) AS \"rows of the subquery\"")?;
    put_subquery(&mut outer, inner);
    // It holds `inner` now, in whose place it goes.
    *inner = outer;
    Ok(())
}

/// Builds `SELECT *` of `from`.
pub(super) fn select_all(from: TableWithJoins) -> Result<Query> {
    let mut outer = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = outer.body.as_mut() {
        select.from = vec![from];
    }
    Ok(outer)
}

/// Puts `inner` in place of the subquery in FROM of `outer`; what was there is `inner` then.
pub(super) fn put_subquery(outer: &mut Query, inner: &mut Query) {
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(subquery.as_mut(), inner);
    }
}

/// Parses an expression.
pub(super) fn parse_expression(text: &str) -> Result<Expr> {
    let failed = |error| DataFusionError::Internal(format!("a generated expression cannot be parsed: {error}"));
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).map_err(failed)?;
    parser.parse_expr().map_err(failed)
}

/// Changes the SELECT of `query`.
pub(super) fn change_select(query: &mut Query, change: impl FnOnce(&mut Select)) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        change(select);
    }
}

/// Returns the alias `name` with names of columns.
pub(super) fn table_alias(name: &str, columns: &[String]) -> TableAlias {
    let columns =
        columns.iter().map(|column| TableAliasColumnDef { name: Ident::with_quote('"', column), data_type: None });
    TableAlias { name: Ident::with_quote('"', name), columns: columns.collect(), explicit: true, at: None }
}
