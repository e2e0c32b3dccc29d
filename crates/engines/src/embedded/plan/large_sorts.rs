//! Sorts with a large limit.
//!
//! A sort with a limit keeps its best rows in memory and cannot spill, which suits the usual small limits. For larger
//! limits, a sort that can spill is used, followed by a limit.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

/// Maximum number of rows that a sort with a limit may keep in memory.
const KEPT_ROWS_MAX: usize = 100_000;

/// Replaces sorts with a large limit in `plan` by sorts that can spill.
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
