//! The number of rows in a batch, depending on the literals in a statement.
//!
//! `SELECT 'a long text' FROM t` repeats the text for each row of a batch. This memory is not accounted for, so the
//! batch must be short.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Maximum number of bytes that one literal, repeated for each row of a batch, may take.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// The number of rows in a batch, at most `rows_max`.
pub(crate) fn limit_batch_rows(plan: &LogicalPlan, rows_max: usize) -> Result<usize> {
    let mut largest_bytes = 0;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Literal(value, _) = expr {
                    largest_bytes = largest_bytes.max(value.size());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok((REPEATED_BYTES_MAX / largest_bytes.max(1)).clamp(1, rows_max))
}
