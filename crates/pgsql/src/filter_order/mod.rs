//! Expressions are not computed for rows that a condition excludes, so they cannot fail the statement for these rows.
//! PostgreSQL behaves the same way.
//!
//! DataFusion computes output columns before a filter where that makes rows narrower, and evaluates all parts of a
//! condition for all rows. [`KeepProjectionAboveFilter`] keeps computed columns above the filter. [`OrderConditions`]
//! evaluates fallible parts only for rows that pass the other parts, and the right side of AND and OR only for rows
//! that the left side does not decide.
//!
//! DataFusion's issue 8927; `docs/decisions/upstream` says when the module can go.

mod condition;
mod projection;
mod short_circuit;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use self::condition::OrderConditions;
use self::projection::KeepProjectionAboveFilter;
use crate::outer_join::GuardOuterJoins;

/// Functions that never fail, so that their order in a condition does not matter.
const INFALLIBLE: &str = "\
    btrim coalesce date_part date_trunc ends_with get_field length lower ltrim rtrim starts_with text_like* upper";

/// Returns DataFusion's physical rules, changed so that excluded rows are not computed and columns filled by outer
/// joins are not treated as constant.
pub fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        // Before conditions are moved, and before required sorts are determined.
        if rule.name() == "FilterPushdown" {
            rules.push(Arc::new(GuardOuterJoins));
        }
        rules.push(match rule.name() {
            "ProjectionPushdown" => Arc::new(KeepProjectionAboveFilter::new(rule)),
            _ => rule,
        });
    }
    rules.push(Arc::new(OrderConditions));
    rules
}

/// Whether a part of `expression` satisfies `is`.
fn any_part(expression: &Arc<dyn PhysicalExpr>, is: impl Fn(&Arc<dyn PhysicalExpr>) -> bool) -> Result<bool> {
    let mut found = false;
    expression.apply(|part| {
        found = is(part);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether `expression` is more than a column or a constant.
fn is_computed(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    any_part(expression, |part| !part.is::<Column>() && !part.is::<Literal>())
}

/// Whether the evaluation of `expression` can fail for some values.
fn can_fail(expression: &Arc<dyn PhysicalExpr>) -> Result<bool> {
    any_part(expression, |part| {
        part.downcast_ref::<ScalarFunctionExpr>()
            .is_some_and(|call| !INFALLIBLE.split(' ').any(|name| name == call.name()))
    })
}
