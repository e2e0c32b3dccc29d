//! Walks over plans that several rules share.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Rewrites the expressions of `node`, whose columns keep their names.
pub fn rewrite_named(
    node: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        let name = names.save(&expression);
        Ok(rewrite(expression)?.update_data(|expression| name.restore(expression)))
    })
}

/// Whether `is` holds for a node of `plan` or of its subqueries.
pub(crate) fn any_node(plan: &LogicalPlan, mut is: impl FnMut(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= is(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether `is` holds for a part of the expressions of `node`.
pub(crate) fn any_part(node: &LogicalPlan, is: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    for_each_part(node, |part| {
        found |= is(part);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` for each part of the expressions of `node`.
pub fn for_each_part(node: &LogicalPlan, mut visit: impl FnMut(&Expr) -> Result<()>) -> Result<TreeNodeRecursion> {
    node.apply_expressions(|expression| expression.apply(|part| visit(part).map(|()| TreeNodeRecursion::Continue)))
}
