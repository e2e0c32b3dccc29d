//! `ARRAY(SELECT …)` as an aggregate over the subquery.

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    GroupByExpr, Ident, ObjectName, OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor,
    Value,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::in_list::VALUE_OF_ROW;
use crate::set_returning::list_function;
use crate::syntax::{call, function, unnamed};
use crate::walk::any_expression;

/// The name of the subquery's column.
const COLUMN: &str = "array_element_of_subquery";

/// Returns the array of the rows of `query`, or an empty array if there are none.
pub(super) fn rewrite_array_subquery(query: &Query) -> Result<Expr> {
    let mut query = query.clone();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return not_impl_err!(
            "ARRAY (…) of a query that is not a simple SELECT; write ARRAY(SELECT x FROM (…) AS t(x))"
        );
    };
    let [item] = select.projection.as_slice() else {
        return not_impl_err!("subquery must return only one column");
    };
    let value = match item {
        SelectItem::UnnamedExpr(value) => value.clone(),
        SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
        _ => return not_impl_err!("ARRAY(SELECT *); name the column instead"),
    };
    let alias = match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    };
    let makes_rows = list_argument(&value).is_some();
    if let (true, true, None, Some(list)) =
        (select.from.is_empty(), select.selection.is_none(), &query.order_by, list_argument(&value))
    {
        return Ok(call("array_of_subquery*", vec![list]));
    }
    let mut order = Vec::new();
    let is_grouped = is_grouped(select);
    if !makes_rows && query.limit_clause.is_none() && query.fetch.is_none() && select.distinct.is_none() && !is_grouped
    {
        if let Some(by) = query.order_by.take() {
            let OrderByKind::Expressions(expressions) = by.kind else {
                return not_impl_err!("ORDER BY ALL, which PostgreSQL does not have; name the columns");
            };
            order = expressions;
            order.iter_mut().filter(|by| is_column(&by.expr, alias.as_deref())).for_each(|by| by.expr = value.clone());
        }
        return Ok(replace_column(query, value, order));
    }
    let is_distinct = matches!(select.distinct, Some(Distinct::Distinct));
    select.projection[0] = SelectItem::ExprWithAlias { expr: value.clone(), alias: Ident::new(COLUMN) };
    // The aggregate repeats the order, because a correlated subquery returns its rows in any order.
    if let Some(OrderBy { kind: OrderByKind::Expressions(expressions), .. }) = &mut query.order_by {
        for (index, by) in expressions.iter_mut().enumerate() {
            let mut name = Ident::new(COLUMN);
            if !(by.expr == value || is_column(&by.expr, alias.as_deref())) {
                if is_distinct {
                    return not_impl_err!("for SELECT DISTINCT, ORDER BY expressions must appear in select list");
                }
                name = Ident::new(format!("{COLUMN}_order_{index}"));
                let key = SelectItem::ExprWithAlias { expr: by.expr.clone(), alias: name.clone() };
                select.projection.push(key);
            }
            by.expr = Expr::Identifier(name);
            order.push(by.clone());
        }
    }
    collect_query(&query, &order)
}

/// Whether `by` refers to the only column, by number or by name.
fn is_column(by: &Expr, alias: Option<&str>) -> bool {
    match by {
        Expr::Value(value) => matches!(&value.value, Value::Number(number, _) if number == "1"),
        Expr::Identifier(name) => alias == Some(name.value.as_str()),
        _ => false,
    }
}

/// Functions of JSON, without their prefix, that return a set in PostgreSQL, which is an array here.
const JSON_SETS: [&str; 7] =
    ["array_elements", "array_elements_text", "each", "each_text", "object_keys", "path_query", "path_query_tz"];

/// Returns the list that a set-returning function expands to rows.
fn list_argument(value: &Expr) -> Option<Expr> {
    let Expr::Function(function) = value else { return None };
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &function.args else { return None };
    match (name.as_str(), list.args.as_slice()) {
        ("unnest", [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))]) => Some(array.clone()),
        (name, _) if is_json_set(name) => {
            let mut function = function.clone();
            function.name = ObjectName::from(vec![Ident::new(list_function(name))]);
            Some(Expr::Function(function))
        }
        _ => None,
    }
}

fn is_json_set(name: &str) -> bool {
    let rest = ["json_", "jsonb_"].iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| JSON_SETS.contains(&rest))
}

/// Collects the rows of `query`, sorted by `order` if it is not empty.
fn collect_query(query: &Query, order: &[OrderByExpr]) -> Result<Expr> {
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    let text = format!("(SELECT array_agg({COLUMN}{order}) FROM (SELECT 1) AS subquery)");
    let mut collected = Parser::new(&PostgreSqlDialect {}).try_with_sql(&text)?.parse_expr()?;
    // The query is inserted as a tree: names of rewritten functions cannot be parsed.
    if let Expr::Subquery(outer) = &mut collected
        && let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation)
    {
        **subquery = query.clone();
    }
    Ok(call("array_of_subquery*", vec![collected]))
}

fn is_grouped(select: &Select) -> bool {
    !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty()) || select.having.is_some()
}

fn call_array_agg(value: Expr, clauses: Vec<FunctionArgumentClause>) -> Expr {
    let mut aggregate = function("array_agg", Vec::new());
    aggregate.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![unnamed(value)],
        clauses,
    });
    Expr::Function(aggregate)
}

/// Replaces the column with the aggregate, which is one of `query` even if the value has only columns of outer queries.
fn replace_column(mut query: Query, mut value: Expr, order: Vec<OrderByExpr>) -> Expr {
    if any_expression(&value, |part| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_))) {
        value = call(VALUE_OF_ROW, vec![value]);
    }
    let clauses = if order.is_empty() { Vec::new() } else { vec![FunctionArgumentClause::OrderBy(order)] };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(call_array_agg(value, clauses))];
    }
    call("array_of_subquery*", vec![Expr::Subquery(Box::new(query))])
}
