//! Arguments of an aggregate are not computed for rows that its FILTER excludes.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Case, Expr};

/// Makes the arguments of an aggregate NULL where its filter excludes the row, if their evaluation can fail.
pub(crate) fn guard_arguments(expression: Expr) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(AggregateFunction { func, mut params }) = expression else {
        return Ok(Transformed::no(expression));
    };
    let mut is_changed = false;
    if let Some(filter) = &params.filter {
        for argument in &mut params.args {
            if argument.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_))))? {
                let then = Box::new(std::mem::take(argument));
                *argument = Expr::Case(Case::new(None, vec![(filter.clone(), then)], None));
                is_changed = true;
            }
        }
    }
    let expression = Expr::AggregateFunction(AggregateFunction { func, params });
    Ok(if is_changed { Transformed::yes(expression) } else { Transformed::no(expression) })
}
