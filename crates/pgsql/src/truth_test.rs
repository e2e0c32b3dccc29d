//! `IS TRUE`, `IS UNKNOWN` and their like, which are never NULL.
//!
//! DataFusion's logical plan knows this. Its physical plan computes them as `IS NOT DISTINCT FROM`, which it takes for
//! nullable, and an aggregate over such a column would be refused, because both plans disagree.
//!
//! DataFusion's issue 24096, which is solved, but not in 55.2; `docs/decisions/upstream` says when the module can go.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{Expr, LogicalPlan, lit, when};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::plan_walk::{any_node, any_part, rewrite_named};

/// Returns DataFusion's planner of physical plans, for plans whose columns of truth tests are not nullable.
pub fn query_planner() -> Arc<dyn QueryPlanner + Send + Sync> {
    Arc::new(TruthTestPlanner)
}

#[derive(Debug)]
struct TruthTestPlanner;

#[async_trait]
impl QueryPlanner for TruthTestPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::default();
        if !any_node(plan, |node| Ok(returns_values(node) && any_part(node, is_truth_test)?))? {
            return planner.create_physical_plan(plan, state).await;
        }
        let plan = plan.clone().transform_up_with_subqueries(rewrite_node).data()?;
        planner.create_physical_plan(&plan, state).await
    }
}

/// Whether `node` returns the values of its expressions.
fn returns_values(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
}

fn is_truth_test(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
    )
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !returns_values(&node) {
        return Ok(Transformed::no(node));
    }
    rewrite_named(node, |expression| expression.transform_up(rewrite_expression))
}

fn rewrite_expression(expression: Expr) -> Result<Transformed<Expr>> {
    let choose = |condition: Expr, value: bool| when(condition, lit(value)).otherwise(lit(!value));
    let plain = match expression {
        Expr::IsTrue(tested) => choose(*tested, true)?,
        Expr::IsNotTrue(tested) => choose(*tested, false)?,
        Expr::IsFalse(tested) => choose(Expr::Not(tested), true)?,
        Expr::IsNotFalse(tested) => choose(Expr::Not(tested), false)?,
        Expr::IsUnknown(tested) => Expr::IsNull(tested),
        Expr::IsNotUnknown(tested) => Expr::IsNotNull(tested),
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(plain))
}
