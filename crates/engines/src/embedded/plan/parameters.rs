//! The types of parameters, as PostgreSQL infers them from the values beside them.
//!
//! Texts are like untyped literals. The type of a placeholder is not known when operators are resolved. A text that is
//! bound after that would be compared with a timestamp in nanoseconds, which reach from 1677 to 2262 only.
//!
//! Numbers beside a `real` or a `numeric` have this type. A fraction that is bound as a double would differ from each
//! `real`, because it has more digits, and so would an integer with many digits. Beside a `numeric` it would make all
//! its values doubles, which no file and no other engine can look for.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, Statement, Value, VisitMut, VisitorMut};
use tidegate_pgsql::rewrite_named;
use tidegate_sql::Parameter;

/// Replaces the placeholders of texts by literals.
pub(super) fn bind_texts(statement: &mut Statement, parameters: &[Parameter]) {
    if parameters.iter().any(|parameter| matches!(parameter, Parameter::Text(_))) {
        // The visitor never stops early.
        let _ = VisitMut::visit(statement, &mut TextBinder(parameters));
    }
}

struct TextBinder<'a>(&'a [Parameter]);

impl VisitorMut for TextBinder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(Parameter::Text(text)) = position(name).and_then(|position| self.0.get(position))
        {
            value.value = Value::SingleQuotedString(text.clone());
        }
        ControlFlow::Continue(())
    }
}

/// The position of the placeholder `$1` is 0.
pub(super) fn position(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

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
