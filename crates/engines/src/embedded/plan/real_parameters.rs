//! Numbers as parameters beside a `real`: PostgreSQL infers this type for them.
//!
//! A fraction that is bound as a double would differ from each `real`, because it has more digits.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::text_parameters::position;

/// Replaces the placeholders of doubles whose type the planner has inferred as `real`.
pub(super) fn bind_reals(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    if !values.iter().any(|value| matches!(value, ScalarValue::Float64(Some(_)))) {
        return Ok(plan);
    }
    let in_node = |node: LogicalPlan| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            let bound = expression.transform_up(|part| bind_real(part, values))?;
            Ok(bound.update_data(|expression| name.restore(expression)))
        })
    };
    plan.transform_up_with_subqueries(in_node).data()
}

fn bind_real(expression: Expr, values: &[ScalarValue]) -> Result<Transformed<Expr>> {
    let Expr::Placeholder(Placeholder { id, field: Some(field) }) = &expression else {
        return Ok(Transformed::no(expression));
    };
    let value = position(id).and_then(|position| values.get(position));
    let (DataType::Float32, Some(ScalarValue::Float64(Some(double)))) = (field.data_type(), value) else {
        return Ok(Transformed::no(expression));
    };
    match ScalarValue::Float64(Some(*double)).cast_to(&DataType::Float32)? {
        // Beyond the range of `real`, it remains a double.
        ScalarValue::Float32(Some(real)) if real.is_normal() || *double == 0.0 => {
            Ok(Transformed::yes(Expr::Literal(ScalarValue::Float32(Some(real)), None)))
        }
        _ => Ok(Transformed::no(expression)),
    }
}
