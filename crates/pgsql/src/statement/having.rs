//! Rewrites HAVING, whose names refer to columns of FROM, and groups of all rows: HAVING without GROUP BY, `GROUP BY ()`.

use std::collections::HashSet;

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, GroupByExpr, Select, SelectItem};

use super::columns::{NameScope, qualifier_of};
use crate::syntax::{binary, call, factors, nested, number};
use crate::walk::for_each_expression;

/// Rewrites HAVING of `select`, and GROUP BY of no columns.
pub(super) fn rewrite(select: &mut Select, scope: &mut NameScope<'_>) -> Result<()> {
    if select.having.is_some() {
        qualify(select, scope)?;
    }
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return Ok(()) };
    let count = groups.len();
    groups.retain(|group| !is_of_no_columns(group));
    if groups.is_empty() && (count > 0 || select.having.is_some()) {
        // The planner makes a group of all rows only for aggregates.
        let has_group = binary(call("count", vec![number(1)]), BinaryOperator::GtEq, number(0));
        select.having = Some(match select.having.take() {
            Some(condition) => binary(nested(condition), BinaryOperator::And, has_group),
            None => has_group,
        });
    }
    Ok(())
}

/// Whether `group` is `()`, or a list of only that grouping set.
fn is_of_no_columns(group: &Expr) -> bool {
    match group {
        Expr::Tuple(columns) => columns.is_empty(),
        Expr::GroupingSets(sets) => matches!(sets.as_slice(), [set] if set.is_empty()),
        _ => false,
    }
}

/// Qualifies names of columns that are also names of output columns, and refuses names that are only output columns.
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
        for factor in factors(from) {
            let (Some(name), Some(columns)) = (qualifier_of(factor), scope.factor_columns(factor)) else {
                return Ok(());
            };
            tables.push((name, columns));
        }
    }
    let mut unknown = None;
    for_each_expression(&mut select.having, |expression, depth| {
        let Expr::Identifier(name) = &*expression else { return };
        if depth > 0 || !computed.contains(&name.value) {
            return;
        }
        let mut having = tables.iter().filter(|(_, columns)| columns.contains(&name.value));
        match (having.next(), having.next()) {
            (Some((table, _)), None) => *expression = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]),
            (None, _) => unknown = Some(name.value.clone()),
            _ => {}
        }
    });
    match unknown {
        Some(name) => plan_err!(
            "column \"{name}\" does not exist; HAVING takes columns of FROM and aggregates: write the \
             expression of {name} instead"
        ),
        None => Ok(()),
    }
}
