//! Keeps projections that compute values above filters.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::condition::short_circuit_projection;
use super::projection_boundary::ProjectionBoundary;

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
        let with_barriers = plan.transform_up(|node| {
            // Runs before the projection can become part of a scan.
            if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
                return short_circuit_projection(projection, &node);
            }
            Ok(if node.is::<FilterExec>() {
                Transformed::yes(Arc::new(ProjectionBoundary::new(node)) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::no(node)
            })
        });
        let execution_plan = self.pushdown.optimize(with_barriers.data()?, config)?;
        let without_barriers = execution_plan.transform_up(|node| {
            Ok(match node.downcast_ref::<ProjectionBoundary>() {
                Some(projection_boundary) => Transformed::yes(projection_boundary.filter().clone()),
                None => Transformed::no(node),
            })
        });
        without_barriers.data()
    }

    fn name(&self) -> &str {
        self.pushdown.name()
    }

    fn schema_check(&self) -> bool {
        self.pushdown.schema_check()
    }
}
