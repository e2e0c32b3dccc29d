//! Cancels a query within the time of one batch, at any point of its plan.
//!
//! DataFusion's operators yield only when they emit a batch, and only every 128 batches. A join whose filter rejects
//! all rows emits nothing for minutes. So the leaves and the joins of a plan are wrapped, and the filters of joins as
//! well: each batch and each evaluation first checks for cancellation. This is DataFusion's issue 19358; see
//! `docs/decisions/upstream`.

mod expression;
mod operator;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ReplaceChildrenOptions};

use self::expression::CancellableExpr;
use self::operator::{BatchCheck, CancellationExec};
use super::query_cancellation::QueryCancellation;
use super::repeated_rows::RepeatedRows;
use super::windows::WindowRows;

/// Rows that an aggregate with grouping sets groups at once: each row of its input counts once for each set. It takes memory
/// for the groups of a batch before it asks for it, and cannot be interrupted.
const GROUPED_ROWS_MAX: usize = 131_072;

/// Wraps operators of `plan`, so that it stops with its next batch after cancellation, and when a repeated row is too
/// wide for batches of `batch_rows`.
pub(crate) fn add_cancellation(
    plan: Arc<dyn ExecutionPlan>,
    query_cancellation: &QueryCancellation,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let node = wrap_join_filter(node, query_cancellation)?;
        if node.children().is_empty() {
            return Ok(Transformed::yes(wrap_operator(node, BatchCheck::CancellationOnly, query_cancellation)));
        }
        let (below, above) = batch_checks(&node, batch_rows);
        if below.is_none() && above.is_none() {
            return Ok(Transformed::no(node));
        }
        // The first input of a scalar subquery operator is the plan that contains it; its rows are not repeated.
        let first = usize::from(node.is::<ScalarSubqueryExec>());
        let wrap_child = |(position, child): (usize, &Arc<dyn ExecutionPlan>)| match &below {
            Some(check) if position >= first => wrap_operator(child.clone(), check.clone(), query_cancellation),
            _ => child.clone(),
        };
        let children = node.children().into_iter().enumerate().map(wrap_child).collect();
        let node = node.replace_children(children, ReplaceChildrenOptions::new(Recompute))?;
        Ok(Transformed::yes(match above {
            Some(batch_check) => wrap_operator(node, batch_check, query_cancellation),
            None => node,
        }))
    })
    .data()
}

fn wrap_operator(
    input: Arc<dyn ExecutionPlan>,
    batch_check: BatchCheck,
    query_cancellation: &QueryCancellation,
) -> Arc<dyn ExecutionPlan> {
    // An existing wrapper that only checks for cancellation is replaced.
    let input = match input.downcast_ref::<CancellationExec>() {
        Some(existing) if matches!(existing.batch_check, BatchCheck::CancellationOnly) => existing.input.clone(),
        _ => input,
    };
    Arc::new(CancellationExec { input, cancellation: query_cancellation.clone(), batch_check })
}

fn batch_checks(node: &Arc<dyn ExecutionPlan>, batch_rows: usize) -> (Option<BatchCheck>, Option<BatchCheck>) {
    let is_streaming = node.is::<BoundedWindowAggExec>();
    if is_streaming || node.is::<WindowAggExec>() {
        let rows = WindowRows::default();
        let below = BatchCheck::BelowWindow { rows: rows.clone(), is_streaming };
        return (Some(below), Some(BatchCheck::AboveWindow { rows, is_streaming }));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let rows = (GROUPED_ROWS_MAX / groups.groups().len().max(1)).max(1);
        return (groups.has_grouping_set().then_some(BatchCheck::BelowGroupingSets { rows }), None);
    }
    let is_unnested = node.is::<UnnestExec>();
    let repeated = BatchCheck::Repeated(RepeatedRows { batch_rows, is_unnested });
    if node.is::<ScalarSubqueryExec>() {
        return (Some(repeated), None);
    }
    let joins = is_unnested
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<CrossJoinExec>();
    if !joins {
        return (None, None);
    }
    // A semi, anti or mark join emits each row at most once.
    ((!emits_each_row_once(node)).then_some(repeated), Some(BatchCheck::CancellationOnly))
}

fn emits_each_row_once(node: &Arc<dyn ExecutionPlan>) -> bool {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    let of_hash = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let of_merge = node.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type);
    let of_loop = node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let join = of_hash.or(of_merge).or(of_loop);
    matches!(join, Some(LeftAnti | LeftMark | LeftSemi | RightAnti | RightMark | RightSemi))
}

fn wrap_join_filter(
    node: Arc<dyn ExecutionPlan>,
    query_cancellation: &QueryCancellation,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = cancellable_filter(filter, query_cancellation);
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = cancellable_filter(filter, query_cancellation);
        return HashJoinExecBuilder::from(join).with_filter(Some(filter)).build_exec();
    }
    Ok(node)
}

fn cancellable_filter(filter: &JoinFilter, query_cancellation: &QueryCancellation) -> JoinFilter {
    let expression = CancellableExpr { inner: filter.expression().clone(), cancellation: query_cancellation.clone() };
    JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), filter.schema().clone())
}
