//! Rewrites forms of queries and of FROM that DataFusion does not support, or refuses them with what to write instead. Forms
//! that DataFusion interprets differently from PostgreSQL are refused too.

use std::ops::ControlFlow;

use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::sql::sqlparser::ast::{
    Distinct, DuplicateTreatment, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, JoinOperator, LimitClause, ObjectName, OrderByExpr, Query, Select, SelectItem, SetExpr, SetQuantifier,
    TableAlias, TableFactor, Value, ValueWithSpan, VisitorMut,
};

use super::{call_forms, limit, relation, row_comparison, sorted_rows, whole_row};
use crate::set_returning::{find_set_returning, is_record_function, list_function};
use crate::syntax::{
    self, argument_value, body_and_order, call, factors, function, is_named, number, quoted, unnamed,
    without_parentheses,
};
use crate::walk::{Stop, any_expression, walk_mut};

/// The function name under which the parser stores ROWS FROM. Its arguments are functions.
pub const ROWS_FROM: &str = "rows_from";

/// Rewrites `query` itself, but not the queries in it.
pub(super) fn rewrite_query(query: &mut Query) -> Result<()> {
    sorted_rows::rewrite(query)?;
    if let Some(fetch) = query.fetch.take() {
        fetch_as_limit(query, fetch)?;
    }
    let (body, order_by) = body_and_order(query);
    if let SetExpr::Select(select) = body {
        return rewrite_select(select, order_by);
    }
    let mut bodies = vec![body];
    while let Some(body) = bodies.pop() {
        check_set_operation(body)?;
        relation::rewrite_multiset(body)?;
        match body {
            SetExpr::Select(select) => rewrite_select(select, &mut [])?,
            SetExpr::SetOperation { left, right, .. } => bodies.extend([left.as_mut(), right.as_mut()]),
            _ => {}
        }
    }
    Ok(())
}

fn fetch_as_limit(query: &mut Query, fetch: Fetch) -> Result<()> {
    if fetch.percent {
        return plan_err!("FETCH takes a number of rows, not PERCENT; write LIMIT n");
    }
    let mut rows = fetch.quantity.unwrap_or_else(|| number(1));
    if fetch.with_ties {
        rows = call(limit::WITH_TIES, vec![rows]);
    }
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: vec![] })
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(rows),
        Some(_) => return plan_err!("LIMIT and FETCH cannot be combined; remove one"),
    }
    Ok(())
}

fn rewrite_select(select: &mut Select, order_by: &mut [OrderByExpr]) -> Result<()> {
    if let Some(condition) = &mut select.selection {
        row_comparison::rewrite_condition(condition)?;
    }
    resolve_distinct_numbers(select)?;
    name_values_of_rows(select, order_by);
    whole_row::name_whole_rows(select, order_by, has_outer_join(select));
    check_counts(select)?;
    check_direct_arguments(select)?;
    crate::aggregate::disambiguate_casts(select, order_by);
    Ok(())
}

/// Replaces the numbers of output columns in DISTINCT ON, which the planner takes for constants.
fn resolve_distinct_numbers(select: &mut Select) -> Result<()> {
    let Some(Distinct::On(keys)) = &mut select.distinct else { return Ok(()) };
    for key in keys {
        let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = &*key else { continue };
        let position = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let items = position.and_then(|position| select.projection.get(..=position)).unwrap_or_default();
        let has_names =
            items.iter().all(|item| !matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
        match items.last() {
            Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) if has_names => {
                *key = expr.clone();
            }
            Some(_) => return plan_err!("DISTINCT ON ({digits}) of * is not supported; write the name of the column"),
            None => return plan_err!("DISTINCT ON position {digits} is not in select list"),
        }
    }
    Ok(())
}

/// Resolves `x` in `jsonb_array_elements(…) AS x`, which refers to the only column, `value`.
fn name_values_of_rows(select: &mut Select, order_by: &mut [OrderByExpr]) {
    let aliases: Vec<String> = select.from.iter().flat_map(factors).filter_map(alias_of_values).collect();
    if !aliases.is_empty() {
        // The visitor never breaks.
        let mut rows = RowValueRewriter { aliases };
        let _ = walk_mut(select, &mut rows);
        for order in order_by {
            let is_output = matches!(&order.expr, Expr::Identifier(name) if names_output(&select.projection, name));
            if !is_output {
                let _ = walk_mut(&mut order.expr, &mut rows);
            }
        }
    }
}

/// Whether `name`, alone in ORDER BY, refers to an output column.
fn names_output(projection: &[SelectItem], name: &Ident) -> bool {
    projection.iter().any(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name.value))
}

fn alias_of_values(factor: &TableFactor) -> Option<String> {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias: Some(alias), args: Some(_), .. }
        | TableFactor::Function { name, alias: Some(alias), .. } => (name, alias),
        _ => return None,
    };
    let function = find_set_returning(&name.to_string().to_lowercase())?;
    let is_value = function.columns == ["value"] && alias.columns.is_empty() && alias.name.value != "value";
    is_value.then(|| alias.name.value.clone())
}

struct RowValueRewriter {
    aliases: Vec<String>,
}

impl VisitorMut for RowValueRewriter {
    type Break = Stop;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Stop> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(Expr::Identifier(name)) = item
                && self.aliases.contains(&name.value)
            {
                let alias = name.clone();
                *item = SelectItem::ExprWithAlias { expr: Expr::Identifier(alias.clone()), alias };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Stop> {
        if let Expr::Identifier(name) = expression
            && self.aliases.contains(&name.value)
        {
            *expression = Expr::CompoundIdentifier(vec![name.clone(), Ident::new("value")]);
        }
        ControlFlow::Continue(())
    }
}

/// Normalises functions in FROM, and lets them refer to earlier tables, as PostgreSQL does without LATERAL.
pub(super) fn rewrite_factor(factor: &mut TableFactor) -> Result<()> {
    if let TableFactor::Table { args: Some(_), sample: Some(_), .. } = factor {
        return plan_err!("TABLESAMPLE takes a table, not a function; write WHERE random() < 0.1");
    }
    if let TableFactor::Table { name, args: Some(_), .. } = factor
        && name.to_string().eq_ignore_ascii_case("range")
    {
        return Ok(());
    }
    let (name, mut args, with_ordinality, alias) = match factor {
        TableFactor::Table { name, args: Some(args), with_ordinality, alias, .. } => {
            (name.clone(), args.args.clone(), *with_ordinality, alias.clone())
        }
        TableFactor::Function { name, args, with_ordinality, alias, .. } => {
            (name.clone(), args.clone(), *with_ordinality, alias.clone())
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            let args = array_exprs.iter().cloned().map(unnamed);
            (vec![Ident::new("unnest")].into(), args.collect(), *with_ordinality, alias.clone())
        }
        _ => return Ok(()),
    };
    call_forms::position_arguments(&name.to_string().to_lowercase(), &mut args)?;
    let is_column = |expression: &Expr| matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let lateral = any_expression(&args, is_column);
    let function = name.to_string().to_lowercase();
    *factor = if function == "unnest" || returns_rows(&function) {
        TableFactor::Function { lateral, name, args, with_ordinality, alias }
    } else {
        scalar_function_as_table(lateral, name, args, with_ordinality, alias)?
    };
    Ok(())
}

fn returns_rows(function: &str) -> bool {
    function == ROWS_FROM || find_set_returning(function).is_some()
}

/// Turns a function of one value into a table of one row.
fn scalar_function_as_table(
    lateral: bool,
    name: ObjectName,
    args: Vec<FunctionArg>,
    with_ordinality: bool,
    alias: Option<TableAlias>,
) -> Result<TableFactor> {
    let own_name = quoted(name.to_string().to_lowercase());
    let table = alias.as_ref().map_or(own_name, |alias| alias.name.clone());
    let expr = Expr::Function(Function { name, ..function("f", args) });
    let mut projection = vec![SelectItem::ExprWithAlias { expr, alias: table.clone() }];
    if with_ordinality {
        projection
            .push(SelectItem::ExprWithAlias { expr: syntax::parse_expression("1")?, alias: Ident::new("ordinality") });
    }
    let mut subquery = Box::new(syntax::parse_query("SELECT 1")?);
    syntax::change_select(&mut subquery, |select| select.projection = projection);
    let columns = alias.map(|alias| alias.columns).unwrap_or_default();
    let alias = Some(TableAlias { name: table, columns, explicit: true, at: None });
    Ok(TableFactor::Derived { lateral, subquery, alias, sample: None })
}

/// Turns set-returning functions in an expression into unnested lists.
pub(super) fn rewrite_rows(expression: &mut Expr) -> Result<()> {
    if let Expr::Function(function) = &*expression
        && let Some(rewritten) = rows_in_expression(function)?
    {
        *expression = rewritten;
    }
    Ok(())
}

/// Rewrites subqueries and calls in forms that the planner does not support.
pub(super) fn rewrite_expression(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
            call_forms::position_arguments(&name.to_string().to_lowercase(), &mut list.args)?;
        }
        Expr::Exists { subquery, .. } => {
            if let SetExpr::Select(select) = subquery.body.as_mut()
                && select.projection.is_empty()
            {
                select.projection.push(SelectItem::UnnamedExpr(number(1)));
            }
        }
        Expr::InSubquery { expr, .. } if super::row_comparison::row_values(expr).is_some() => {
            row_comparison::rewrite_value(expression)?
        }
        Expr::BinaryOp { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            row_comparison::rewrite_subquery_comparison(expression)?
        }
        Expr::InSubquery { subquery, .. } if matches!(*subquery.body, SetExpr::Values(_)) => {
            syntax::select_from(subquery)?;
        }
        _ => {}
    }
    Ok(())
}

fn rows_in_expression(function: &Function) -> Result<Option<Expr>> {
    let name = function.name.to_string().to_lowercase();
    let Some(set_returning) = find_set_returning(&name).filter(|_| !is_record_function(&name)) else { return Ok(None) };
    if set_returning.columns.len() > 1 {
        return not_impl_err!("{name} in an expression; write it in FROM: FROM …, {name}(…) AS t(key, value)");
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let args = list.args.iter().map(|arg| match argument_value(arg) {
        Some(value) => Ok(value.clone()),
        None => plan_err!("{name} takes values, not {arg}"),
    });
    Ok(Some(call("unnest", vec![call(&list_function(&name), args.collect::<Result<_>>()?)])))
}

/// Whether rows of a table of `select` may be missing.
fn has_outer_join(select: &Select) -> bool {
    let joins = select.from.iter().flat_map(|from| &from.joins);
    joins.into_iter().any(|join| {
        matches!(
            join.join_operator,
            JoinOperator::Left(_)
                | JoinOperator::LeftOuter(_)
                | JoinOperator::Right(_)
                | JoinOperator::RightOuter(_)
                | JoinOperator::FullOuter(_)
        )
    })
}

/// Refuses `count(t.*)` where it is not the number of rows: beside an outer join, and of distinct rows.
fn check_counts(select: &Select) -> Result<()> {
    let has_outer_join = has_outer_join(select);
    let mut row_count = None;
    any_expression(select, |expression| {
        if let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expression
            && is_named(name, "count")
            && (has_outer_join || list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
            && let [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table))] = list.args.as_slice()
        {
            row_count = Some(table.to_string());
        }
        row_count.is_some()
    });
    match row_count {
        None => Ok(()),
        Some(table) => plan_err!(
            "count({table}.*) of rows that an outer join may fill with NULL, or of distinct rows, is not supported; \
             instead count a column that is never NULL, for instance count({table}.id)"
        ),
    }
}

/// Refuses columns as the values of a hypothetical row, or as fractions, beside grouping sets: they would be NULL in some sets.
fn check_direct_arguments(select: &Select) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = &select.group_by else { return Ok(()) };
    let is_set = |group: &Expr| matches!(group, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_));
    if !groups.iter().any(is_set) {
        return Ok(());
    }
    let is_column = |part: &Expr| matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let mut refused = None;
    any_expression(select, |expression| {
        if let Expr::Function(function) = expression
            && !function.within_group.is_empty()
            && any_expression(&function.args, is_column)
        {
            refused = Some(function.name.to_string());
        }
        refused.is_some()
    });
    match refused {
        Some(name) => plan_err!(
            "{name} of a column WITHIN GROUP, beside ROLLUP, CUBE or GROUPING SETS, is not supported; write a constant, \
             or GROUP BY the column without them"
        ),
        None => Ok(()),
    }
}

/// Refuses UNION, INTERSECT and EXCEPT of queries without columns, unless they keep all rows.
fn check_set_operation(body: &SetExpr) -> Result<()> {
    if let SetExpr::SetOperation { op, set_quantifier, left, .. } = body
        && *set_quantifier != SetQuantifier::All
        && matches!(left.as_ref(), SetExpr::Select(select) if select.projection.is_empty())
    {
        return plan_err!("{op} of queries without columns is not supported; write SELECT 1 FROM t instead");
    }
    Ok(())
}

/// Refuses rows as output columns.
pub(super) fn check_records(body: &SetExpr) -> Result<()> {
    let mut pending = vec![body];
    while let Some(body) = pending.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => pending.extend([left.as_ref(), right.as_ref()]),
            SetExpr::Select(select) => {
                for item in &select.projection {
                    if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } =
                        item
                        && is_record(expression)
                    {
                        return plan_err!(
                            "a row as a column, {expression}, is not supported; write its values as columns instead"
                        );
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_record(expression: &Expr) -> bool {
    match without_parentheses(expression) {
        Expr::Tuple(_) => true,
        Expr::Function(function) => is_named(&function.name, "row"),
        _ => false,
    }
}
