//! Replaces names of merged columns with their values.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SetExpr, VisitMut, VisitorMut};

use super::columns::{NameScope, qualifier_of};
use crate::syntax::factors;
use crate::walk::{Stop, any_expression, walk_mut};

/// A merged column.
#[derive(Debug, Clone)]
pub(super) struct MergedColumn {
    pub(super) name: String,
    pub(super) value: Expr,
}

/// Replaces the names in `part` of a query with the values. In subqueries, this excludes names that may refer to columns
/// of the subquery.
pub(super) fn put_values(part: &mut impl VisitMut, merged: &[MergedColumn], scope: &mut NameScope<'_>) {
    if !merged.is_empty() {
        // The visitor never breaks.
        let _ = walk_mut(part, &mut MergedColumnRewriter { merged, scope, inner: Vec::new() });
    }
}

struct MergedColumnRewriter<'a, 'b> {
    merged: &'a [MergedColumn],
    scope: &'a mut NameScope<'b>,
    /// The names of columns and tables in the enclosing queries; `None` where they are unknown.
    inner: Vec<Option<HashSet<String>>>,
}

impl VisitorMut for MergedColumnRewriter<'_, '_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.scope.enter(query);
        let mut names = Some(HashSet::new());
        let mut pending = vec![query.body.as_ref()];
        while let Some(body) = pending.pop() {
            match body {
                SetExpr::SetOperation { left, right, .. } => pending.extend([left.as_ref(), right.as_ref()]),
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
        let (Some(columns), Some(all)) = (columns, names.as_mut()) else {
            *names = None;
            return;
        };
        all.extend(columns);
        all.extend(factors(from).filter_map(qualifier_of).map(|name| name.value));
    }
}

/// Returns the tables that a value refers to.
fn tables_of(value: &Expr) -> Vec<String> {
    let mut tables = Vec::new();
    any_expression(value, |expression| {
        if let Expr::CompoundIdentifier(parts) = expression {
            tables.extend(parts.first().map(|table| table.value.clone()));
        }
        false
    });
    tables
}
