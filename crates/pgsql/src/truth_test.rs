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
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, lit, when};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

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
        if !has_truth_tests(plan)? {
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

fn has_truth_tests(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if returns_values(node) {
            node.apply_expressions(|expression| {
                found |= expression.exists(|part| Ok(is_truth_test(part)))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
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
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        let name = names.save(&expression);
        Ok(expression.transform_up(rewrite_expression)?.update_data(|expression| name.restore(expression)))
    })
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
