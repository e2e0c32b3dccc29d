//! Gives each column of each query the name that it has in PostgreSQL.
//!
//! DataFusion names columns after its own expressions, refuses two columns of one name, and resolves names in ORDER BY
//! in another order. So every expression gets an alias. Where PostgreSQL's name would occur twice, or would hide a
//! column that an expression of ORDER BY refers to, the alias is **hidden**: it contains a number and a mark that
//! callers cannot write. [`visible_name`] returns the name in the output.
//!
//! DataFusion also refuses an expression of an inner WITH that has the name of one of an outer WITH; it is renamed
//! ([`rename_ctes`]). `docs/decisions/upstream` has the text to be filed, and says when that can go.

use std::collections::HashSet;
use std::ops::ControlFlow;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, ObjectName, OrderByExpr, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableFactor, TableWithJoins, VisitorMut, With,
};

use crate::column_names::column_name;
use crate::syntax::{body_and_order, factors, last_identifier, quoted, single_identifier};
use crate::walk::{Stop, any_expression, for_each_expression, walk_mut};

/// Separates the name and the number of a hidden alias.
const HIDDEN_MARK: char = '\u{1}';

/// Returns the output name of the column `name`.
pub(super) fn visible_name(name: &str) -> &str {
    name.split_once(HIDDEN_MARK).map_or(name, |(visible, _)| visible)
}

/// Returns `schema` with the output names, several of which may be equal.
pub fn output_schema(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| field.name().contains(HIDDEN_MARK)) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| Field::clone(field).with_name(visible_name(field.name())));
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()).into()
}

/// Returns a name that is unique by its number, with the output name `name`.
pub(super) fn hidden_name(name: &str, number: usize) -> String {
    format!("{name}{HIDDEN_MARK}{number}")
}

fn hidden_alias(name: &str, number: usize) -> Ident {
    quoted(hidden_name(name, number))
}

/// Names the columns of `query` and of all queries in it.
pub(super) fn name_columns(query: &mut Query) {
    // The visitor never breaks.
    let _ = walk_mut(query, &mut ColumnNamer { depth: 0 });
}

struct ColumnNamer {
    depth: usize,
}

impl VisitorMut for ColumnNamer {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        name_query(query, self.depth == 0);
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Stop> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        if let TableFactor::Derived { lateral: true, subquery, .. } = factor
            && let SetExpr::Select(select) = subquery.body.as_mut()
        {
            name_plain_columns(select);
        }
        ControlFlow::Continue(())
    }
}

/// Names the columns of LATERAL that may be those of an outer query, for which DataFusion has a name of its own.
fn name_plain_columns(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expression @ Expr::Identifier(name)) = &*item {
            *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias: name.clone() };
        }
    }
}

/// Names the columns of `query`. The `outermost` query returns the result of the statement.
fn name_query(query: &mut Query, outermost: bool) {
    match body_and_order(query) {
        (SetExpr::Select(select), order_by) => name_select(select, order_by, outermost),
        (body, _) => name_set_operation(body),
    }
}

fn name_set_operation(body: &mut SetExpr) {
    // The depth of the tree is the length of the chain, so it is visited without recursion.
    let mut pending = vec![body];
    while let Some(body) = pending.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => pending.extend([right.as_mut(), left.as_mut()]),
            SetExpr::Select(select) => name_select(select, &mut [], false),
            // A query in parentheses is visited separately.
            _ => {}
        }
    }
}

fn name_select(select: &mut Select, order_by: &mut [OrderByExpr], outermost: bool) {
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let order_names = qualify_order(select, order_by, outermost);
    let tables = tables_of(&select.from);
    let mut seen: HashSet<String> = HashSet::new();
    let mut renamed: Vec<(String, Ident)> = Vec::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let (expression, name) = match &*item {
            SelectItem::UnnamedExpr(expression) => (expression, column_name(expression)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone()),
            _ => continue,
        };
        let is_column = column_of(expression).is_some_and(|column| *column == name);
        // The column names of an outer query differ.
        let is_own = is_column && may_belong_to(&tables, expression);
        let is_new = seen.insert(name.clone());
        let must_hide = !is_new || (outermost && (has_wildcard || (order_names.contains(&name) && !is_column)));
        if !must_hide && (is_own || matches!(item, SelectItem::ExprWithAlias { .. })) {
            continue;
        }
        let alias = if must_hide { hidden_alias(&name, index) } else { quoted(name.as_str()) };
        if must_hide && is_new {
            renamed.push((name, alias.clone()));
        }
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
    }
    rename_output_names(select, order_by, &renamed);
    if matches!(select.distinct, Some(Distinct::Distinct)) {
        name_repeated_expressions(&select.projection, order_by);
    }
}

/// Names expressions that occur in both ORDER BY and SELECT, because DISTINCT keeps only output columns.
fn name_repeated_expressions(projection: &[SelectItem], order_by: &mut [OrderByExpr]) {
    for order in order_by {
        let repeated = projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if *expr == order.expr => Some(alias.clone()),
            _ => None,
        });
        if let Some(alias) = repeated {
            order.expr = Expr::Identifier(alias);
        }
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Returns the name of the column if `expression` is only a column.
fn column_of(expression: &Expr) -> Option<&String> {
    match expression {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(parts) => parts.last().map(|part| &part.value),
        _ => None,
    }
}

/// Returns the names of the tables in `from`; `None` if some are unknown.
fn tables_of(from: &[TableWithJoins]) -> Option<Vec<String>> {
    let tables = from.iter().flat_map(factors);
    tables.map(|table| super::columns::qualifier_of(table).map(|name| name.value)).collect()
}

/// Whether `expression` is a column that may belong to `tables`.
fn may_belong_to(tables: &Option<Vec<String>>, expression: &Expr) -> bool {
    let Some(tables) = tables else { return true };
    match expression {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., table, _] => tables.contains(&table.value),
            _ => true,
        },
        _ => !tables.is_empty(),
    }
}

/// Updates expressions of ORDER BY and DISTINCT ON that are names: they refer to an output column, if there is one.
fn rename_output_names(select: &mut Select, order_by: &mut [OrderByExpr], renamed: &[(String, Ident)]) {
    let rename = |expression: &mut Expr| {
        if let Expr::Identifier(name) = expression
            && let Some((_, alias)) = renamed.iter().find(|(output, _)| *output == name.value)
        {
            *name = alias.clone();
        }
    };
    order_by.iter_mut().for_each(|order| rename(&mut order.expr));
    if let Some(Distinct::On(expressions)) = &mut select.distinct {
        expressions.iter_mut().for_each(rename);
    }
}

/// Returns the names within expressions of ORDER BY, which refer to columns of FROM and never to output columns. In a
/// subquery they are qualified if they can belong to only one table.
fn qualify_order(select: &Select, order_by: &mut [OrderByExpr], outermost: bool) -> HashSet<String> {
    let mut names = HashSet::new();
    for order in order_by.iter().filter(|order| !matches!(order.expr, Expr::Identifier(_) | Expr::Value(_))) {
        any_expression(&order.expr, |expression| {
            names.extend(column_of(expression).cloned());
            false
        });
    }
    if !outermost && let Some(table) = only_table(select) {
        let outputs: HashSet<String> = select.projection.iter().filter_map(computed_alias).collect();
        for order in order_by.iter_mut().filter(|order| !matches!(order.expr, Expr::Identifier(_))) {
            for_each_expression(&mut order.expr, |expression, _| {
                if let Expr::Identifier(name) = &*expression
                    && names.contains(&name.value)
                    && outputs.contains(&name.value)
                {
                    *expression = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
                }
            });
        }
    }
    names
}

/// Returns the alias, if it is not the name of its own column.
fn computed_alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } if column_of(expr) != Some(&alias.value) => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) if column_of(expr).is_none() => Some(column_name(expr)),
        _ => None,
    }
}

/// Returns the name of the only table in FROM.
fn only_table(select: &Select) -> Option<Ident> {
    let [from] = select.from.as_slice() else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    match &from.relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, args: None, .. } => last_identifier(name).cloned(),
        _ => None,
    }
}

/// Gives each such expression a unique name.
pub(super) fn rename_ctes(statement: &mut Statement) {
    // The visitor never breaks.
    let _ = walk_mut(statement, &mut ShadowedCteRenamer { outer: Vec::new(), count: 0 });
}

struct ShadowedCteRenamer {
    /// The names of each enclosing WITH.
    outer: Vec<Vec<String>>,
    count: usize,
}

impl VisitorMut for ShadowedCteRenamer {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| cte.alias.name.value.clone());
        self.outer.push(names.collect());
        ControlFlow::Continue(())
    }

    /// Inner queries are visited first, so that the remaining uses of a name refer to the expression of this WITH.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Stop> {
        let Some(names) = self.outer.pop() else { return ControlFlow::Continue(()) };
        for (index, name) in names.into_iter().enumerate() {
            if !self.outer.iter().flatten().any(|other| *other == name) {
                continue;
            }
            self.count += 1;
            let mut renaming = TableRenamer { to: hidden_name(&name, self.count), from: name };
            let Some(With { cte_tables, recursive, .. }) = &mut query.with else { continue };
            let first = index + usize::from(!*recursive);
            for cte in cte_tables.iter_mut().skip(first) {
                let _ = walk_mut(&mut cte.query, &mut renaming);
            }
            if let Some(cte) = cte_tables.get_mut(index) {
                cte.alias.name = quoted(renaming.to.as_str());
            }
            let _ = walk_mut(&mut query.body, &mut renaming);
            let _ = walk_mut(&mut query.order_by, &mut renaming);
            let _ = walk_mut(&mut query.limit_clause, &mut renaming);
        }
        ControlFlow::Continue(())
    }
}

struct TableRenamer {
    from: String,
    to: String,
}

impl VisitorMut for TableRenamer {
    type Break = Stop;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Stop> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Some(table) = single_identifier(name).cloned().filter(|table| table.value == self.from)
        {
            alias.get_or_insert_with(|| TableAlias { name: table, columns: Vec::new(), explicit: true, at: None });
            *name = ObjectName::from(vec![quoted(self.to.as_str())]);
        }
        ControlFlow::Continue(())
    }
}
