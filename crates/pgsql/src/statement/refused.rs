//! Forms that DataFusion would plan with another meaning than PostgreSQL's.

use datafusion::common::{Result, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr};

use crate::syntax::is_named;

/// Refuses rows as columns of an answer.
pub(super) fn check_records(body: &SetExpr) -> Result<()> {
    let mut left_to_see = vec![body];
    while let Some(body) = left_to_see.pop() {
        match body {
            SetExpr::SetOperation { left, right, .. } => left_to_see.extend([left.as_ref(), right.as_ref()]),
            SetExpr::Select(select) => {
                for item in &select.projection {
                    if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } =
                        item
                        && is_record(expression)
                    {
                        return plan_err!(
                            "a row as a column, {expression}, is not supported; write its values as columns instead"
                        );
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_record(expression: &Expr) -> bool {
    match expression {
        Expr::Tuple(_) => true,
        Expr::Nested(inner) => is_record(inner),
        Expr::Function(function) => is_named(&function.name, "row"),
        _ => false,
    }
}
