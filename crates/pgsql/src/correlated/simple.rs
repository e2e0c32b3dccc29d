//! Which correlated subqueries DataFusion plans correctly.

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, utils};

use super::outer_columns::{outer_columns, subquery_of};

/// What DataFusion's join for a subquery makes of an aggregate without GROUP BY, which has a row even if it has no rows
/// to aggregate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOfNone {
    Kept,
    Lost,
}

/// Whether DataFusion plans the subquery `plan`: its outer columns are all in `schema` and occur only in filters, below
/// projections and, if its row is kept, at most one aggregate. Below an aggregate they must be in equalities.
pub(super) fn is_simple(plan: &LogicalPlan, schema: &DFSchema, row_of_none: RowOfNone) -> Result<bool> {
    let columns = outer_columns(plan)?;
    if columns.is_empty() {
        return Ok(true);
    }
    if columns.iter().any(|column| !schema.has_column(column)) {
        return Ok(false);
    }
    let mut above = NodesAbove::default();
    let mut node = plan;
    loop {
        for expression in node.expressions() {
            if has_correlated_subquery(&expression)? {
                return Ok(false);
            }
            if expression.contains_outer() && !above.allows(node) {
                return Ok(false);
            }
        }
        match node {
            LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::Subquery(_) => {}
            LogicalPlan::Aggregate(aggregate) => {
                above.has_other |= !aggregate.group_expr.is_empty() || above.has_aggregate;
                above.has_other |= row_of_none == RowOfNone::Lost;
                above.has_aggregate = true;
            }
            // Also an alias: above it, DataFusion would look for the columns below by their own names.
            _ => above.has_other = true,
        }
        match node.inputs()[..] {
            [input] => node = input,
            _ => break,
        }
    }
    // If a node has several inputs, none of them may use outer columns.
    for input in node.inputs() {
        if !outer_columns(input)?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The nodes between a subquery and one of its nodes.
#[derive(Default)]
struct NodesAbove {
    has_aggregate: bool,
    has_other: bool,
}

impl NodesAbove {
    /// Whether `node`, below these, may use outer columns.
    fn allows(&self, node: &LogicalPlan) -> bool {
        let LogicalPlan::Filter(filter) = node else { return false };
        let mut conditions = utils::split_conjunction(&filter.predicate).into_iter();
        !self.has_other && conditions.all(|part| !part.contains_outer() || !self.has_aggregate || is_equality(part))
    }
}

/// Whether `expression` has a subquery that uses columns of its outer queries, or a comparison with ANY or ALL.
fn has_correlated_subquery(expression: &Expr) -> Result<bool> {
    expression.exists(|part| match (part, subquery_of(part)) {
        (Expr::SetComparison(_), _) => Ok(true),
        (_, Some(subquery)) => Ok(!outer_columns(&subquery.subquery)?.is_empty()),
        _ => Ok(false),
    })
}

/// Whether `expression` compares an outer column with a value of the subquery's rows.
fn is_equality(expression: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = expression else { return false };
    let is_outer = |side: &Expr| matches!(side, Expr::OuterReferenceColumn(..));
    let is_own = |side: &Expr| !side.contains_outer() && side.any_column_refs();
    binary.op == Operator::Eq
        && ((is_outer(&binary.left) && is_own(&binary.right)) || (is_outer(&binary.right) && is_own(&binary.left)))
}
