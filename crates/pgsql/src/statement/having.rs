//! Rewrites HAVING: its names refer to columns of FROM, and without GROUP BY all rows are one group.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, OrderByExpr, Select, SelectItem, TableFactor, Visit,
};
use std::collections::HashSet;

use super::columns::{NameScope, qualifier_of};
use super::parse;
use crate::aggregate::is_aggregate;
use crate::syntax::factors;
use crate::walk::{any_expression, for_each_expression};

/// Rewrites HAVING of `select`.
pub(super) fn rewrite(select: &mut Select, order_by: &[OrderByExpr], scope: &mut NameScope<'_>) -> Result<()> {
    if select.having.is_none() {
        return Ok(());
    }
    qualify(select, scope)?;
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let has_aggregates =
        has_aggregate(&select.projection) || has_aggregate(&select.having) || order_by.iter().any(has_aggregate);
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

/// Whether `part` contains a call of an aggregate that is not a window function.
fn has_aggregate(part: &impl Visit) -> bool {
    any_expression(part, |expression| match expression {
        Expr::Function(Function { name, over: None, .. }) => is_aggregate(&name.to_string().to_lowercase()),
        _ => false,
    })
}
