//! Numbers as parameters beside a `real`: PostgreSQL infers this type for them.
//!
//! A fraction that is bound as a double would differ from each `real`, because it has more digits, and so would an integer
//! with many digits.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::text_parameters::position;

/// Replaces the placeholders of numbers whose type the planner has inferred as `real`.
pub(super) fn bind_reals(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    if !values.iter().any(is_number) {
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
    let value = position(id).and_then(|position| values.get(position)).filter(|value| is_number(value));
    let (DataType::Float32, Some(value)) = (field.data_type(), value) else {
        return Ok(Transformed::no(expression));
    };
    match value.cast_to(&DataType::Float32)? {
        // Beyond the range of `real`, it remains a double.
        ScalarValue::Float32(Some(real)) if real.is_normal() || is_zero(value) => {
            Ok(Transformed::yes(Expr::Literal(ScalarValue::Float32(Some(real)), None)))
        }
        _ => Ok(Transformed::no(expression)),
    }
}

fn is_number(value: &ScalarValue) -> bool {
    matches!(value, ScalarValue::Int64(Some(_)) | ScalarValue::Float64(Some(_)))
}

fn is_zero(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Int64(Some(value)) => *value == 0,
        ScalarValue::Float64(Some(value)) => *value == 0.0,
        _ => false,
    }
}
