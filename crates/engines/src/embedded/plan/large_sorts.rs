//! Sorts of which very many rows are wanted.
//!
//! A sort with a limit keeps its best rows in memory and cannot spill, which is right for the few
//! rows that people want. For more of them an ordinary sort, which can, is limited afterwards.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Rows that a sort may keep in memory because only so many are wanted.
const KEPT_ROWS_MAX: usize = 100_000;

/// `plan` with sorts that can spill where many of their rows are wanted.
pub(crate) fn replace_large_top_k(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let Some((sort, rows)) = node
            .downcast_ref::<SortExec>()
            .and_then(|sort| Some((sort, sort.fetch().filter(|rows| *rows > KEPT_ROWS_MAX)?)))
        else {
            return Ok(Transformed::no(node));
        };
        let sorted = Arc::new(sort.with_fetch(None));
        Ok(Transformed::yes(Arc::new(LocalLimitExec::new(sorted, rows)) as Arc<dyn ExecutionPlan>))
    })
    .data()
}
