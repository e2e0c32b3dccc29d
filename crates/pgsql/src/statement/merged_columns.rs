//! The names of merged columns, in place of which their values stand.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SetExpr, VisitMut, VisitorMut};

use super::columns::{NameScope, qualifier_of};

/// A merged column.
#[derive(Debug, Clone)]
pub(super) struct MergedColumn {
    pub(super) name: String,
    pub(super) value: Expr,
}

/// Puts the values in place of the names in `part` of a query; in queries inside of it, where the names cannot mean
/// columns of those.
pub(super) fn put_values(part: &mut impl VisitMut, merged: &[MergedColumn], scope: &mut NameScope<'_>) -> Result<()> {
    if merged.is_empty() {
        return Ok(());
    }
    match VisitMut::visit(part, &mut MergedColumnRewriter { merged, scope, inner: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct MergedColumnRewriter<'a, 'b> {
    merged: &'a [MergedColumn],
    scope: &'a mut NameScope<'b>,
    /// The names of columns and tables in the enclosing queries; `None` where they are unknown.
    inner: Vec<Option<HashSet<String>>>,
}

impl VisitorMut for MergedColumnRewriter<'_, '_> {
    type Break = Box<DataFusionError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        let mut names = Some(HashSet::new());
        let mut left_to_see = vec![query.body.as_ref()];
        while let Some(body) = left_to_see.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => left_to_see.extend([left.as_ref(), right.as_ref()]),
                SetExpr::Select(select) => add_names(self.scope, select, &mut names),
                _ => {}
            }
        }
        self.inner.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.leave();
        self.inner.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        let Expr::Identifier(name) = &*expression else { return ControlFlow::Continue(()) };
        let Some(merge) = self.merged.iter().find(|merge| merge.name == name.value) else {
            return ControlFlow::Continue(());
        };
        let is_free = |names: &Option<HashSet<String>>| {
            names.as_ref().is_some_and(|names| {
                !names.contains(&merge.name) && !tables_of(&merge.value).iter().any(|table| names.contains(table))
            })
        };
        if self.inner.iter().all(is_free) {
            *expression = merge.value.clone();
        }
        ControlFlow::Continue(())
    }
}

fn add_names(scope: &mut NameScope<'_>, select: &Select, names: &mut Option<HashSet<String>>) {
    for from in &select.from {
        let columns = scope.join_columns(from);
        let (Some(columns), Some(known)) = (columns, names.as_mut()) else {
            *names = None;
            return;
        };
        known.extend(columns);
        let factors = std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation));
        known.extend(factors.filter_map(qualifier_of).map(|name| name.value));
    }
}

/// The tables of which a value is made.
fn tables_of(value: &Expr) -> Vec<String> {
    let mut value = value.clone();
    let mut tables = TableCollector(Vec::new());
    // The visitor never breaks.
    let _ = VisitMut::visit(&mut value, &mut tables);
    tables.0
}

struct TableCollector(Vec<String>);

impl VisitorMut for TableCollector {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expression
            && let Some(table) = parts.first()
        {
            self.0.push(table.value.clone());
        }
        ControlFlow::Continue(())
    }
}
