//! A temporary node that stops projections at a filter.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};

use super::is_computed;

/// A filter that computing projections cannot pass. It is never executed.
#[derive(Debug)]
pub(super) struct ProjectionBoundary {
    filter: Arc<dyn ExecutionPlan>,
}

impl ProjectionBoundary {
    pub(super) fn new(filter: Arc<dyn ExecutionPlan>) -> Self {
        Self { filter }
    }

    pub(super) fn filter(&self) -> &Arc<dyn ExecutionPlan> {
        &self.filter
    }
}

impl DisplayAs for ProjectionBoundary {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for ProjectionBoundary {
    fn name(&self) -> &str {
        "FilterBarrier"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.filter]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { filter: children.pop().unwrap_or_else(|| self.filter.clone()) }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a projection boundary of the optimizer is still in the plan")
    }

    fn try_swapping_with_projection(&self, projection: &ProjectionExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        for column in projection.expr() {
            if is_computed(&column.expr)? {
                return Ok(None);
            }
        }
        let swapped = self.filter.try_swapping_with_projection(projection)?;
        Ok(swapped.map(|plan| if plan.is::<FilterExec>() { Arc::new(Self::new(plan)) as _ } else { plan }))
    }
}
