//! Builds and reads nodes of the syntax tree, and builds parts of statements from text.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SetExpr, Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    TimezoneInfo, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::walk::Stop;

/// Builds the call of the function `name` with `args`.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, args.into_iter().map(unnamed).collect()))
}

/// Builds the call of the function `name`, which may have clauses, as a node that callers complete.
pub(crate) fn function(name: &str, args: Vec<FunctionArg>) -> Function {
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(crate) fn unnamed(argument: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
}

pub(crate) fn number(value: impl ToString) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

pub(crate) fn string(text: impl Into<String>) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

pub(crate) fn boolean(value: bool) -> Expr {
    Expr::value(Value::Boolean(value))
}

pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// Whether a type of times is one `with time zone`.
pub(crate) fn is_zoned(zone: &TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone)
}

/// Puts `expr` in parentheses.
pub(crate) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(crate) fn negative(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(expr) }
}

pub(crate) fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) }
}

/// Moves `expression` out of its tree, which has NULL in its place afterwards.
pub(crate) fn take(expression: &mut Expr) -> Expr {
    std::mem::replace(expression, Expr::value(Value::Null))
}

pub(crate) fn without_parentheses(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(inner) => without_parentheses(inner),
        other => other,
    }
}

/// Returns the value of an unnamed argument.
pub(crate) fn argument_value(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

/// Returns the arguments of `function`; `None` if some of them are not unnamed values.
pub(crate) fn argument_values(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args.iter().map(|argument| argument_value(argument).cloned()).collect()
}

/// Whether `name` is the unqualified name `expected`, ignoring case.
pub(crate) fn is_named(name: &ObjectName, expected: &str) -> bool {
    single_identifier(name).is_some_and(|ident| ident.value.eq_ignore_ascii_case(expected))
}

/// Returns `name` if it has one part.
pub(crate) fn single_identifier(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

pub(crate) fn last_identifier(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// Returns the name that an identifier means: without quotes it is one in lower case.
pub(crate) fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Returns an identifier that means `name` in exactly these characters.
pub(crate) fn quoted(name: impl Into<String>) -> Ident {
    Ident::with_quote('"', name)
}

/// Returns the tables of `from`.
pub(crate) fn factors(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

pub(crate) fn factors_mut(from: &mut TableWithJoins) -> impl Iterator<Item = &mut TableFactor> {
    std::iter::once(&mut from.relation).chain(from.joins.iter_mut().map(|join| &mut join.relation))
}

/// Returns the body of `query`, and the expressions of its ORDER BY.
pub(crate) fn body_and_order(query: &mut Query) -> (&mut SetExpr, &mut [OrderByExpr]) {
    let order_by: &mut [OrderByExpr] = match query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(expressions)) => expressions,
        _ => &mut [],
    };
    (query.body.as_mut(), order_by)
}

/// Lets a visitor stop at an error.
pub(crate) fn break_on_error(result: Result<()>) -> ControlFlow<Stop> {
    result.map_or_else(|error| ControlFlow::Break(Box::new(error)), ControlFlow::Continue)
}

/// Returns the error that stopped a visitor.
pub(crate) fn into_result(flow: ControlFlow<Stop>) -> Result<()> {
    flow.break_value().map_or(Ok(()), |error| Err(*error))
}

/// Orders an aggregate of distinct values as PostgreSQL does.
pub(crate) fn sort_distinct(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    let is_ordered = list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    if list.duplicate_treatment != Some(DuplicateTreatment::Distinct) || is_ordered {
        return;
    }
    if let [argument] = list.args.as_slice()
        && let Some(value) = argument_value(argument)
    {
        let options = OrderByOptions { asc: None, nulls_first: None };
        let order = OrderByExpr { expr: value.clone(), options, with_fill: None };
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![order]));
    }
}

/// Parses a query.
pub(crate) fn parse_query(text: &str) -> Result<Query> {
    let failed = |error| DataFusionError::Internal(format!("a generated query cannot be parsed: {error}"));
    match Parser::parse_sql(&PostgreSqlDialect {}, text).map_err(failed)?.pop() {
        Some(Statement::Query(query)) => Ok(*query),
        _ => Err(DataFusionError::Internal("a generated statement is not a query".to_owned())),
    }
}

/// Makes `query` the only table of a query.
pub(crate) fn select_from(inner: &mut Query) -> Result<()> {
    let mut outer = parse_query("SELECT * FROM (SELECT 1) AS \"rows of the subquery\"")?;
    put_subquery(&mut outer, inner);
    // It holds `inner` now, in whose place it goes.
    *inner = outer;
    Ok(())
}

/// Builds `SELECT *` of `from`.
pub(crate) fn select_all(from: TableWithJoins) -> Result<Query> {
    let mut outer = parse_query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = outer.body.as_mut() {
        select.from = vec![from];
    }
    Ok(outer)
}

/// Puts `inner` in place of the subquery in FROM of `outer`; what was there is `inner` then.
pub(crate) fn put_subquery(outer: &mut Query, inner: &mut Query) {
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        std::mem::swap(subquery.as_mut(), inner);
    }
}

/// Parses an expression.
pub(crate) fn parse_expression(text: &str) -> Result<Expr> {
    let failed = |error| DataFusionError::Internal(format!("a generated expression cannot be parsed: {error}"));
    let mut parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text).map_err(failed)?;
    parser.parse_expr().map_err(failed)
}

/// Changes the SELECT of `query`.
pub(crate) fn change_select(query: &mut Query, change: impl FnOnce(&mut Select)) {
    if let SetExpr::Select(select) = query.body.as_mut() {
        change(select);
    }
}

/// Returns the alias `name` with names of columns.
pub(crate) fn table_alias(name: &str, columns: &[String]) -> TableAlias {
    let columns =
        columns.iter().map(|column| TableAliasColumnDef { name: Ident::with_quote('"', column), data_type: None });
    TableAlias { name: Ident::with_quote('"', name), columns: columns.collect(), explicit: true, at: None }
}
