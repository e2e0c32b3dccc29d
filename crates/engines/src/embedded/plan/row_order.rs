//! Whether the order of a file's rows can be seen in an answer.
//!
//! Rows of one file come in its order as long as the answer is only chosen from them: then the
//! plan has one part and reads the files one after the other, and the first row comes as soon as
//! the first batch is read. Where rows are sorted, aggregated or joined, their order says nothing,
//! and the plan is split over all threads.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Whether `plan` only chooses rows and computes from each by itself.
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

/// Whether `plan` numbers rows as they come, which has a meaning only where all of them come one after the other.
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

/// Whether rows are joined by the values of arrays.
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

/// Whether a window goes along the rows as they come, like `row_number() OVER ()`.
fn depends_on_row_order(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => depends_on_row_order(&alias.expr),
        Expr::WindowFunction(function) => {
            function.params.partition_by.is_empty() && function.params.order_by.is_empty()
        }
        _ => false,
    }
}
