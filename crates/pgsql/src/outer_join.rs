//! What is known of the columns of an outer join.
//!
//! Columns that it fills with NULL are not constant above it, even if they are constant below. DataFusion keeps the
//! equivalences of both sides (`EquivalenceGroup::join`) and therefore omits the sort of
//! `(SELECT 1 AS x) a FULL JOIN b … ORDER BY a.x`.
//!
//! If both sides have a column of the same name, DataFusion moves a condition on one of them below a projection as a
//! condition on the other (`ProjectionExec::gather_filters_for_pushdown`): `a RIGHT JOIN b … WHERE a.id IS NULL` has no rows.
//!
//! DataFusion's issue 21246, and a text to be filed, in `docs/decisions/upstream`, which says when the module can go.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::JoinType;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

/// Places [`OuterJoinGuardExec`] above outer joins whose inputs have constant or equal columns, or columns of the same name.
#[derive(Debug)]
pub(crate) struct GuardOuterJoins;

impl PhysicalOptimizerRule for GuardOuterJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let filled = plan.transform_up(|plan| {
            let knows = !plan.equivalence_properties().eq_group().is_empty();
            Ok(if (knows || has_equal_names(&plan)) && is_outer_join(&plan) {
                Transformed::yes(Arc::new(OuterJoinGuardExec::new(plan)) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::no(plan)
            })
        })?;
        Ok(filled.data)
    }

    fn name(&self) -> &str {
        "GuardOuterJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_outer_join(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let nested = plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let merge = plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type());
    matches!(hash.or(nested).or(merge), Some(JoinType::Left | JoinType::Right | JoinType::Full))
}

fn has_equal_names(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut names = HashSet::new();
    !plan.schema().fields().iter().all(|field| names.insert(field.name().clone()))
}

/// Passes on the rows of an outer join without any equivalence properties. No condition passes through it.
#[derive(Debug)]
struct OuterJoinGuardExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OuterJoinGuardExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

crate::display_as_name!(OuterJoinGuardExec);

impl ExecutionPlan for OuterJoinGuardExec {
    fn name(&self) -> &str {
        "OuterJoinGuardExec"
    }

    crate::operator_methods!(input, |_, input| Self::new(input));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// A required sort must stay above this node.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
