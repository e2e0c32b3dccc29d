//! HAVING, whose names are those of columns of FROM, and which makes one group of all rows.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, OrderByExpr, Query, Select, SelectItem, TableFactor, Visit, VisitMut, Visitor,
    VisitorMut,
};

use super::columns::{NameScope, qualifier_of};
use super::parse;

/// Gives HAVING of `select` the meaning that it has.
pub(super) fn rewrite(select: &mut Select, order_by: &[OrderByExpr], scope: &mut NameScope<'_>) -> Result<()> {
    if select.having.is_none() {
        return Ok(());
    }
    qualify(select, scope)?;
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let aggregates = |part: &dyn Fn(&mut AggregateFinder) -> ControlFlow<()>| part(&mut AggregateFinder).is_break();
    let has_aggregates = aggregates(&|find| select.projection.visit(find))
        || aggregates(&|find| select.having.visit(find))
        || aggregates(&|find| order_by.iter().try_for_each(|order| order.visit(find)));
    if is_grouped || has_aggregates {
        return Ok(());
    }
    let mut outer = parse::parse_query("SELECT 1 FROM (SELECT count(*) AS rows_of_group FROM t) AS groups")?;
    parse::change_select(&mut outer, |of_groups| {
        if let Some(TableFactor::Derived { subquery, .. }) = of_groups.from.first_mut().map(|from| &mut from.relation) {
            parse::change_select(subquery, |inner| {
                inner.from = std::mem::take(&mut select.from);
                inner.selection = select.selection.take();
            });
        }
        select.from = std::mem::take(&mut of_groups.from);
        select.selection = select.having.take();
    });
    Ok(())
}

/// Writes the table before the names of columns that are also names of the answer; refuses those that are nothing else.
fn qualify(select: &mut Select, scope: &mut NameScope<'_>) -> Result<()> {
    let computed = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } => match expr {
            Expr::Identifier(name) if name.value == alias.value => None,
            Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|part| part.value == alias.value) => None,
            _ => Some(alias.value.clone()),
        },
        _ => None,
    });
    let computed: HashSet<String> = computed.collect();
    if computed.is_empty() {
        return Ok(());
    }
    let mut tables = Vec::new();
    for from in &select.from {
        for factor in std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
            let (Some(name), Some(columns)) = (qualifier_of(factor), scope.factor_columns(factor)) else {
                return Ok(());
            };
            tables.push((name, columns));
        }
    }
    let mut names = HavingQualifier { computed, tables, depth: 0, unknown: None };
    // The visitor never breaks.
    let _ = VisitMut::visit(&mut select.having, &mut names);
    match names.unknown {
        Some(name) => plan_err!(
            "column \"{name}\" does not exist; HAVING takes columns of FROM and aggregates: write the \
             expression of {name} instead"
        ),
        None => Ok(()),
    }
}

struct HavingQualifier {
    computed: HashSet<String>,
    tables: Vec<(datafusion::sql::sqlparser::ast::Ident, Vec<String>)>,
    depth: usize,
    unknown: Option<String>,
}

impl VisitorMut for HavingQualifier {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let Expr::Identifier(name) = &*expression else { return ControlFlow::Continue(()) };
        if self.depth > 0 || !self.computed.contains(&name.value) {
            return ControlFlow::Continue(());
        }
        let mut having = self.tables.iter().filter(|(_, columns)| columns.contains(&name.value));
        match (having.next(), having.next()) {
            (Some((table, _)), None) => *expression = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]),
            (None, _) => self.unknown = Some(name.value.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Finds calls of aggregates that are none of windows, outside of subqueries.
struct AggregateFinder;

impl Visitor for AggregateFinder {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        static NAMES: LazyLock<HashSet<String>> = LazyLock::new(|| {
            let functions = crate::registry::aggregate_functions();
            let names = functions.iter().flat_map(|function| {
                function.aliases().iter().cloned().chain(std::iter::once(function.name().to_owned()))
            });
            names.collect()
        });
        match expression {
            Expr::Function(Function { name, over: None, .. }) if NAMES.contains(&name.to_string().to_lowercase()) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
