//! What a member can do by itself: parts of a plan as one statement to the database that all their tables lie in.
//!
//! Pushed down is only what has the same outcome there as here: comparisons whose meaning does not hang on a collation,
//! joins on equal keys, the common aggregates. Everything else stays here, so that an answer never depends on how much
//! of it was pushed down.

mod aggregate;
mod comparison;
mod expression;
mod member_query;
mod query_builder;
mod translator;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{FetchType, LogicalPlan, SkipType};

pub(super) use member_query::{MemberQuery, MemberQueryContext};
pub(super) use translator::Translator;

/// `plan` with each part that one member can do replaced by what asks it.
pub(super) fn push_down(plan: LogicalPlan, asking: &MemberQueryContext) -> Result<LogicalPlan> {
    let pushed = plan.transform_down(|node| {
        let replaced = match push_limit(&node, asking)? {
            Some(limited) => Some(limited),
            None => Translator::push_node(&node, asking)?,
        };
        Ok(match replaced {
            // What is below is pushed already.
            Some(replaced) => Transformed::new(replaced, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })?;
    Ok(pushed.data)
}

/// A limit or a sort with a limit whose input can be pushed down: the member gives no more rows than are wanted, and
/// the node stays where it is.
fn push_limit(node: &LogicalPlan, asking: &MemberQueryContext) -> Result<Option<LogicalPlan>> {
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
    let Some(input) = Translator::push_limited(input, order, rows, asking)? else { return Ok(None) };
    node.with_new_exprs(node.expressions(), vec![input]).map(Some)
}
