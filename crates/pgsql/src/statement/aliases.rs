//! Gives each column of each query the name that it has in PostgreSQL.
//!
//! DataFusion names columns after its own expressions, refuses two columns of one name, and resolves names in ORDER BY
//! in another order. So every expression gets an alias. Where the right name would occur twice, or would hide a column
//! that an expression of ORDER BY refers to, the alias is **hidden**: it contains a number and a mark that callers
//! cannot write. [`visible_name`] returns the name in the output.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Visit, VisitMut, Visitor, VisitorMut,
};

use crate::column_names::column_name;

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
    Ident::with_quote('"', hidden_name(name, number))
}

fn visible_alias(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Names the columns of `query` and of all queries in it.
pub(super) fn name_columns(query: &mut Query) {
    // The visitor never breaks.
    let _ = VisitMut::visit(query, &mut ColumnNamer { depth: 0 });
}

struct ColumnNamer {
    depth: usize,
}

impl VisitorMut for ColumnNamer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        name_query(query, self.depth == 0);
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Names the columns of `query`. The `outermost` query returns the result of the statement.
fn name_query(query: &mut Query, outermost: bool) {
    let order_by = query.order_by.as_mut().map(|order_by| &mut order_by.kind);
    let order_by: &mut [OrderByExpr] = match order_by {
        Some(OrderByKind::Expressions(expressions)) => expressions,
        _ => &mut [],
    };
    match query.body.as_mut() {
        SetExpr::Select(select) => name_select(select, order_by, outermost),
        body => name_set_operation(body),
    }
}

fn name_set_operation(body: &mut SetExpr) {
    // A chain can be as deep as it is long, so this loop replaces recursion.
    let mut left_to_see = vec![body];
    while let Some(body) = left_to_see.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => left_to_see.extend([right.as_mut(), left.as_mut()]),
            SetExpr::Select(select) => name_select(select, &mut [], false),
            // A query in parentheses is visited separately.
            _ => {}
        }
    }
}

fn name_select(select: &mut Select, order_by: &mut [OrderByExpr], outermost: bool) {
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let meant_by_order = qualify_order(select, order_by, outermost);
    let tables = tables_of(&select.from);
    let mut taken: HashSet<String> = HashSet::new();
    let mut respelt: Vec<(String, Ident)> = Vec::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let (expression, name) = match &*item {
            SelectItem::UnnamedExpr(expression) => (expression, column_name(expression)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.value.clone()),
            _ => continue,
        };
        let is_column = column_of(expression).is_some_and(|column| *column == name);
        // The column names of an outer query differ.
        let is_own = is_column && may_belong_to(&tables, expression);
        let is_new = taken.insert(name.clone());
        let must_hide = !is_new || (outermost && (has_wildcard || (meant_by_order.contains(&name) && !is_column)));
        if !must_hide && (is_own || matches!(item, SelectItem::ExprWithAlias { .. })) {
            continue;
        }
        let alias = if must_hide { hidden_alias(&name, index) } else { visible_alias(&name) };
        if must_hide && is_new {
            respelt.push((name, alias.clone()));
        }
        *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
    }
    respell_output_names(select, order_by, &respelt);
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
    let factors = from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    factors.map(|factor| super::columns::qualifier_of(factor).map(|name| name.value)).collect()
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

/// Updates names in ORDER BY and DISTINCT ON that stand alone: they refer to an output column, if there is one.
fn respell_output_names(select: &mut Select, order_by: &mut [OrderByExpr], respelt: &[(String, Ident)]) {
    let respell = |expression: &mut Expr| {
        if let Expr::Identifier(name) = expression
            && let Some((_, alias)) = respelt.iter().find(|(output, _)| *output == name.value)
        {
            *name = alias.clone();
        }
    };
    order_by.iter_mut().for_each(|order| respell(&mut order.expr));
    if let Some(Distinct::On(expressions)) = &mut select.distinct {
        expressions.iter_mut().for_each(respell);
    }
}

/// Returns the names within expressions of ORDER BY, which refer to columns of FROM and never to output columns. In a
/// subquery they are qualified if they can belong to only one table.
fn qualify_order(select: &Select, order_by: &mut [OrderByExpr], outermost: bool) -> HashSet<String> {
    let mut names = NameCollector(HashSet::new());
    for order in order_by.iter().filter(|order| !matches!(order.expr, Expr::Identifier(_) | Expr::Value(_))) {
        // The visitor never breaks.
        let _ = order.expr.visit(&mut names);
    }
    if !outermost && let Some(table) = only_table(select) {
        let outputs: HashSet<String> = select.projection.iter().filter_map(computed_alias).collect();
        let mut qualifier = Qualifier { table, names: names.0.intersection(&outputs).cloned().collect() };
        for order in order_by.iter_mut().filter(|order| !matches!(order.expr, Expr::Identifier(_))) {
            let _ = VisitMut::visit(&mut order.expr, &mut qualifier);
        }
    }
    names.0
}

/// Returns the alias, if it is not the name of the column that it stands for.
fn computed_alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } if column_of(expr) != Some(&alias.value) => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) if column_of(expr).is_none() => Some(column_name(expr)),
        _ => None,
    }
}

/// Returns the name of the only table in FROM.
fn only_table(select: &Select) -> Option<Vec<Ident>> {
    let [from] = select.from.as_slice() else { return None };
    if !from.joins.is_empty() {
        return None;
    }
    match &from.relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(vec![alias.name.clone()])
        }
        TableFactor::Table { name, args: None, .. } => {
            name.0.last().and_then(|part| part.as_ident()).map(|name| vec![name.clone()])
        }
        _ => None,
    }
}

struct NameCollector(HashSet<String>);

impl Visitor for NameCollector {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Some(name) = column_of(expr) {
            self.0.insert(name.clone());
        }
        ControlFlow::Continue(())
    }
}

struct Qualifier {
    table: Vec<Ident>,
    names: HashSet<String>,
}

impl VisitorMut for Qualifier {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.names.contains(&name.value)
        {
            let parts = self.table.iter().chain(std::iter::once(&*name)).cloned().collect();
            *expr = Expr::CompoundIdentifier(parts);
        }
        ControlFlow::Continue(())
    }
}
