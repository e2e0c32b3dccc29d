//! Conditions below the security barrier: those of the policy, and those of a caller that cannot fail.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, binary_expr, cast, lit};
use tidegate_query::{RowFilter, RowValue};

use crate::embedded::comparison_operator::comparison_operator;

pub(super) fn build_policy_filter(filter: &RowFilter, schema: &Schema) -> Expr {
    let column = |position: &usize| unqualified_column(schema.field(*position).name());
    let joined = |filters: &[RowFilter], operator: Operator, of_none: bool| {
        let parts = filters.iter().map(|one| build_policy_filter(one, schema));
        parts.reduce(|all, one| binary_expr(all, operator, one)).unwrap_or_else(|| lit(of_none))
    };
    let negated = |expr: Expr, is_negated: bool| if is_negated { Expr::Not(Box::new(expr)) } else { expr };
    match filter {
        RowFilter::All(filters) => joined(filters, Operator::And, true),
        RowFilter::Any(filters) => joined(filters, Operator::Or, false),
        RowFilter::Not(filter) => negated(build_policy_filter(filter, schema), true),
        RowFilter::Compare { column: position, comparator, value } => {
            let value = comparison_literal(value, schema.field(*position).data_type());
            binary_expr(column(position), comparison_operator(*comparator), value)
        }
        RowFilter::CompareColumns { left, comparator, right } => {
            binary_expr(column(left), comparison_operator(*comparator), column(right))
        }
        RowFilter::In { column: position, values, is_negated } => {
            let data_type = schema.field(*position).data_type();
            let values = values.iter().map(|value| comparison_literal(value, data_type)).collect();
            Expr::InList(InList::new(Box::new(column(position)), values, *is_negated))
        }
        RowFilter::IsNull { column: position, is_negated: true } => Expr::IsNotNull(Box::new(column(position))),
        RowFilter::IsNull { column: position, is_negated: false } => Expr::IsNull(Box::new(column(position))),
        RowFilter::Like { column: position, pattern, is_negated } => {
            Expr::Like(Like::new(*is_negated, Box::new(column(position)), Box::new(lit(pattern.as_str())), None, false))
        }
        RowFilter::IsTrue(position) => match schema.field(*position).data_type() {
            DataType::Boolean => column(position),
            _ => cast(column(position), DataType::Boolean),
        },
        RowFilter::Constant(value) => lit(*value),
    }
}

pub(super) fn unqualified_column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn comparison_literal(value: &RowValue, data_type: &DataType) -> Expr {
    let micros = |moment: &chrono::NaiveDateTime| Some(moment.and_utc().timestamp_micros());
    lit(match (value, data_type) {
        (RowValue::Boolean(value), _) => ScalarValue::Boolean(Some(*value)),
        (RowValue::Integer(value), _) => ScalarValue::Int64(Some(*value)),
        (RowValue::Number(value), _) => ScalarValue::Float64(Some(*value)),
        (RowValue::Text(text), _) => ScalarValue::Utf8(Some(text.clone())),
        (RowValue::Date(day), _) => {
            let days = day.signed_duration_since(chrono::NaiveDate::default()).num_days();
            // Every calendar date fits.
            ScalarValue::Date32(i32::try_from(days).ok())
        }
        (RowValue::Timestamp(moment), DataType::Timestamp(_, zone)) => {
            ScalarValue::TimestampMicrosecond(micros(moment), zone.clone())
        }
        (RowValue::Timestamp(moment), _) => ScalarValue::TimestampMicrosecond(micros(moment), None),
    })
}

/// Whether the caller's `condition` only compares columns with literals of the same type, so that it cannot fail for
/// any row. `type_of` returns the types of the columns.
pub(super) fn cannot_fail<'a>(condition: &Expr, type_of: &dyn Fn(&Column) -> Option<&'a DataType>) -> bool {
    let type_of_column = |expr: &Expr| if let Expr::Column(column) = expr { type_of(column) } else { None };
    let is_column = |expr: &Expr| type_of_column(expr).is_some();
    // With different types, one side would be cast, which may fail.
    let compares = |column: &Expr, literal: &Expr| match (type_of_column(column), literal) {
        (Some(data_type), Expr::Literal(value, _)) => value.data_type() == *data_type,
        _ => false,
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            cannot_fail(left, type_of) && cannot_fail(right, type_of)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
            let is_comparison = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
            is_comparison && (compares(left, right) || compares(right, left))
        }
        Expr::InList(InList { expr, list, .. }) => list.iter().all(|value| compares(expr, value)),
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_column(inner),
        _ => false,
    }
}
