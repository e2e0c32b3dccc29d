//! Rules of the logical optimizer.
//!
//! `docs/decisions/upstream` has the texts to be filed for what [`joins_nulls`], [`contains_joined_nulls`] and
//! [`filters_single_row`] prevent, and says when these can go.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::aggregate::without_alias;
use crate::cast::ConstantCastRule;
use crate::in_list;
use crate::plan_walk::any_node;

const SIMPLIFY: &str = "simplify_expressions";
const SINGLE_DISTINCT: &str = "single_distinct_aggregation_to_group_by";
const EQUIJOIN: &str = "extract_equijoin_predicate";
const CROSS_JOIN: &str = "eliminate_cross_join";
const PUSH_DOWN_FILTER: &str = "push_down_filter";

type SharedRule = Arc<dyn OptimizerRule + Send + Sync>;

/// Returns DataFusion's rules, except where they would change answers, after the rule that casts constants.
pub fn optimizer_rules() -> Vec<SharedRule> {
    let guard = |rule: SharedRule| -> SharedRule {
        match rule.name() {
            // The rule would put lists of `IN` with the same operand together as if all their values were different.
            SIMPLIFY => Arc::new(GuardedRule { rule, is_wrong_for: |_| false, prepare: in_list::separate_lists }),
            SINGLE_DISTINCT => guarded(rule, adds_sums),
            EQUIJOIN => guarded(rule, joins_nulls),
            CROSS_JOIN => guarded(rule, contains_joined_nulls),
            PUSH_DOWN_FILTER => guarded(rule, filters_single_row),
            _ => rule,
        }
    };
    let first: SharedRule = Arc::new(ConstantCastRule);
    std::iter::once(first).chain(Optimizer::new().rules.into_iter().map(guard)).collect()
}

fn guarded(rule: SharedRule, is_wrong_for: fn(&LogicalPlan) -> bool) -> SharedRule {
    Arc::new(GuardedRule { rule, is_wrong_for, prepare: |plan| Ok(Transformed::no(plan)) })
}

/// A rule that leaves some nodes as they are, and gets others prepared.
#[derive(Debug)]
struct GuardedRule {
    rule: SharedRule,
    is_wrong_for: fn(&LogicalPlan) -> bool,
    prepare: fn(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
}

impl OptimizerRule for GuardedRule {
    crate::delegate_to! { rule =>
        fn name(&self) -> &str;
        fn apply_order(&self) -> Option<ApplyOrder>;
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if (self.is_wrong_for)(&plan) {
            return Ok(Transformed::no(plan));
        }
        (self.prepare)(plan)?.transform_data(|plan| self.rule.rewrite(plan, config))
    }
}

/// The rule would compute `sum(x), count(DISTINCT y)` as a sum of sums, but the sum of integers has another type here than
/// the integers.
fn adds_sums(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_sum))
}

/// The rule would make an equality a key of the join, where NULL equals NULL.
fn joins_nulls(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

/// The rule, which is applied to whole plans, would let NULL equal NULL in all joins that it puts together, or in none.
fn contains_joined_nulls(plan: &LogicalPlan) -> bool {
    // The closure returns no error.
    any_node(plan, |node| Ok(joins_nulls(node))).unwrap_or_default()
}

/// The rule would move a condition without columns, such as one on a subquery, below an aggregate that has a row even
/// if it has no rows to aggregate.
fn filters_single_row(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = plan else { return false };
    let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref() else { return false };
    let has_row = aggregate.group_expr.iter().all(|key| matches!(key, Expr::GroupingSet(_)));
    has_row && split_conjunction(&filter.predicate).into_iter().any(|condition| !condition.any_column_refs())
}

fn is_sum(expr: &Expr) -> bool {
    let Expr::AggregateFunction(call) = without_alias(expr) else { return false };
    call.func.name() == "sum" && !call.params.distinct
}
