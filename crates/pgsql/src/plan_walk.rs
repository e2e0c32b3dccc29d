//! Walks over plans that several rules share.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
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

/// Returns the columns that expressions of `node` may name.
pub(crate) fn input_schema(node: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&node.inputs());
    if let LogicalPlan::TableScan(scan) = node {
        // The filters of a scan may name columns that its projection leaves out.
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    Ok(schema)
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
