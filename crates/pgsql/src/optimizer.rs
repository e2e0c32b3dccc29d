//! Rules of the logical optimizer.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

const NAME: &str = "single_distinct_aggregation_to_group_by";

/// Returns DataFusion's rules. The rule that computes `sum(x), count(DISTINCT y)` as a sum of sums does not apply to
/// sums here, because the sum of integers has another type than the integers.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let guard = |rule: Arc<dyn OptimizerRule + Send + Sync>| -> Arc<dyn OptimizerRule + Send + Sync> {
        if rule.name() == NAME { Arc::new(SingleDistinctExceptSums(rule)) } else { rule }
    };
    Optimizer::new().rules.into_iter().map(guard).collect()
}

#[derive(Debug)]
struct SingleDistinctExceptSums(Arc<dyn OptimizerRule + Send + Sync>);

impl OptimizerRule for SingleDistinctExceptSums {
    fn name(&self) -> &str {
        NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_sum) => Ok(Transformed::no(plan)),
            _ => self.0.rewrite(plan, config),
        }
    }
}

fn is_sum(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_sum(&alias.expr),
        Expr::AggregateFunction(call) => call.func.name() == "sum" && !call.params.distinct,
        _ => false,
    }
}
