//! Whether the row order of a file is visible in a result.
//!
//! If a plan only selects rows, the result has the row order of the file. Then the plan has one partition and reads the
//! files one after the other, and the first row is available after the first batch. If rows are sorted, aggregated or
//! joined, their order is irrelevant, and the plan is split over all threads.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Whether `plan` only selects rows and computes from each row alone.
pub(crate) fn preserves_file_order(plan: &LogicalPlan) -> Result<bool> {
    let mut seen = true;
    plan.apply_with_subqueries(|node| {
        seen = match node {
            LogicalPlan::Aggregate(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::Union(_) => false,
            LogicalPlan::Window(window) => window.window_expr.iter().all(depends_on_row_order),
            _ => true,
        };
        Ok(if seen { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(seen)
}

/// Whether `plan` numbers rows in input order, which requires a single partition.
pub(crate) fn numbers_rows(plan: &LogicalPlan) -> Result<bool> {
    let mut counted = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Window(window) = node {
            counted |= window.window_expr.iter().any(depends_on_row_order);
        }
        Ok(if counted { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(counted)
}

/// Whether `plan` joins on arrays.
pub(crate) fn joins_arrays(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            let schema = join.left.schema();
            found |= join.on.iter().any(|(left, _)| left.get_type(schema).is_ok_and(|kind| kind.is_nested()));
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a window function depends on input order, like `row_number() OVER ()`.
fn depends_on_row_order(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => depends_on_row_order(&alias.expr),
        Expr::WindowFunction(function) => {
            function.params.partition_by.is_empty() && function.params.order_by.is_empty()
        }
        _ => false,
    }
}
