//! Numbers as parameters beside a `real` or a `numeric`: PostgreSQL infers this type for them.
//!
//! A fraction that is bound as a double would differ from each `real`, because it has more digits, and so would an integer
//! with many digits. Beside a `numeric` it would make all its values doubles, which no file and no other engine can look for.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use tidegate_pgsql::rewrite_named;

use super::text_parameters::position;

/// Replaces the placeholders of numbers whose type the planner has inferred as `real` or `numeric`.
pub(super) fn bind_numbers(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    if !values.iter().any(is_number) {
        return Ok(plan);
    }
    let bind = |expression: Expr| expression.transform_up(|part| bind_number(part, values));
    plan.transform_up_with_subqueries(|node| rewrite_named(node, bind)).data()
}

fn bind_number(expression: Expr, values: &[ScalarValue]) -> Result<Transformed<Expr>> {
    let Expr::Placeholder(Placeholder { id, field: Some(field) }) = &expression else {
        return Ok(Transformed::no(expression));
    };
    let value = position(id).and_then(|position| values.get(position)).filter(|value| is_number(value));
    let bound = match (field.data_type(), value) {
        (DataType::Float32, Some(value)) => to_real(value)?,
        (DataType::Decimal128(..) | DataType::Decimal256(..), Some(ScalarValue::Float64(Some(value)))) => {
            // The fewest digits that mean this double are those that the caller has written.
            tidegate_pgsql::numeric_literal(&value.to_string())
        }
        _ => None,
    };
    Ok(bound.map_or(Transformed::no(expression), |bound| Transformed::yes(Expr::Literal(bound, None))))
}

/// Beyond the range of `real`, a number remains a double.
fn to_real(value: &ScalarValue) -> Result<Option<ScalarValue>> {
    let real = value.cast_to(&DataType::Float32)?;
    let is_exact = |real: f32| real.is_normal() || is_zero(value);
    Ok(Some(real).filter(|real| matches!(real, ScalarValue::Float32(Some(real)) if is_exact(*real))))
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
