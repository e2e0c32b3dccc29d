//! Pushdown: parts of a plan become one statement for the database that contains all their tables.
//!
//! Only parts with the same result in the member are pushed down: comparisons that do not depend on a collation, joins
//! on equal keys, common aggregates. Everything else is computed here. So a result never depends on how much was pushed
//! down.

mod aggregate;
mod argument;
mod comparison;
mod expression;
mod key;
mod member_query;
mod own_expression;
mod query_builder;
mod translator;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{FetchType, LogicalPlan, SkipType};

use super::member::MemberQueryContext;

pub(super) use comparison::{ComparisonSemantics, has_own_order, selected_type};
pub(super) use query_builder::MemberQueryBuilder;
pub(super) use translator::Translator;

pub(crate) fn push_down(plan: LogicalPlan, context: &MemberQueryContext) -> Result<LogicalPlan> {
    let pushed = plan.transform_down(|node| {
        let replaced = match push_limit(&node, context)? {
            Some(limited) => Some(limited),
            None => Translator::push_node(&node, context)?,
        };
        Ok(match replaced {
            // Its inputs are part of the member query already.
            Some(replaced) => Transformed::new(replaced, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(pushed.data)
}

/// Pushes down a limit, or a sort with a limit. The member returns no more rows than needed, and the node remains in
/// the plan.
fn push_limit(node: &LogicalPlan, context: &MemberQueryContext) -> Result<Option<LogicalPlan>> {
    let (input, order, rows) = match node {
        LogicalPlan::Limit(limit) => {
            let (SkipType::Literal(skip), FetchType::Literal(Some(fetch))) =
                (limit.get_skip_type()?, limit.get_fetch_type()?)
            else {
                return Ok(None);
            };
            (&limit.input, &[][..], skip.saturating_add(fetch))
        }
        LogicalPlan::Sort(sort) => match sort.fetch {
            Some(rows) => (&sort.input, &sort.expr[..], rows),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(input) = Translator::push_limited(input, order, rows, context)? else { return Ok(None) };
    node.with_new_exprs(node.expressions(), vec![input]).map(Some)
}
