//! Keeps projections that compute values above filters.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::condition::short_circuit_projection;
use super::is_computed;

/// Pushes projections towards the tables, but keeps those that compute values above filters.
#[derive(Debug)]
pub(super) struct KeepProjectionAboveFilter {
    pushdown: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl KeepProjectionAboveFilter {
    pub(super) fn new(pushdown: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { pushdown }
    }
}

impl PhysicalOptimizerRule for KeepProjectionAboveFilter {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let with_boundaries = plan.transform_up(|node| {
            // Runs before the projection can become part of a scan.
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                return short_circuit_projection(projection, &node);
            }
            Ok(if node.is::<FilterExec>() {
                Transformed::yes(Arc::new(ProjectionBoundary { input: node }) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::no(node)
            })
        });
        let pushed = self.pushdown.optimize(with_boundaries.data()?, config)?;
        let without_boundaries = pushed.transform_up(|node| {
            Ok(match node.downcast_ref::<ProjectionBoundary>() {
                Some(boundary) => Transformed::yes(boundary.input.clone()),
                None => Transformed::no(node),
            })
        });
        without_boundaries.data()
    }

    fn name(&self) -> &str {
        self.pushdown.name()
    }

    fn schema_check(&self) -> bool {
        self.pushdown.schema_check()
    }
}

/// A filter that computing projections cannot pass. It is never executed.
#[derive(Debug)]
struct ProjectionBoundary {
    input: Arc<dyn ExecutionPlan>,
}

crate::display_as_name!(ProjectionBoundary);

impl ExecutionPlan for ProjectionBoundary {
    fn name(&self) -> &str {
        "FilterBarrier"
    }

    crate::operator_methods!(input, |_, input| Self { input });

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
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
        let swapped = self.input.try_swapping_with_projection(projection)?;
        Ok(swapped.map(|plan| if plan.is::<FilterExec>() { Arc::new(Self { input: plan }) as _ } else { plan }))
    }
}
