//! Refuses numbers beside dates, times and intervals, as PostgreSQL does: DataFusion reads an integer beside a date as days
//! since 1970, such as 2021 if the quotes of '2025-03-01' are missing.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::{Cast, InList, InSubquery, SetComparison};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

use super::kind::TimeKind;
use crate::data_type::postgres_type_name;
use crate::list::innermost_type;
use crate::operands::compared_operands;

/// Returns what to write instead if one of two types is a number, and the other a date, a time or an interval. The same
/// applies to arrays of them.
pub(crate) fn number_advice(left: &DataType, right: &DataType) -> Option<&'static str> {
    let kind = |data_type| TimeKind::from_data_type(innermost_type(data_type));
    let is_number = |kind: TimeKind| matches!(kind, TimeKind::Integer | TimeKind::Number);
    let (left, right) = (kind(left), kind(right));
    let other = if is_number(left) { right } else { left };
    if !is_number(left) && !is_number(right) {
        return None;
    }
    match other {
        TimeKind::Date => {
            Some("a date is written in quotes, such as '2025-03-01'; for seconds since 1970 write to_timestamp(x)")
        }
        TimeKind::Timestamp | TimeKind::Timestamptz => Some(
            "a timestamp is written in quotes, such as '2025-03-01 10:00:00'; for seconds since 1970 write \
             to_timestamp(x)",
        ),
        TimeKind::Time => Some("a time is written in quotes, such as '10:00:00'"),
        TimeKind::Interval => Some("an interval is written in quotes, such as '1 day'"),
        TimeKind::Integer | TimeKind::Number | TimeKind::Text | TimeKind::Null | TimeKind::Other => None,
    }
}

/// Fails if the operator compares a number with a date, a time or an interval.
pub(crate) fn check_comparable(left: &DataType, op: Operator, right: &DataType) -> Result<()> {
    let Some(advice) = number_advice(left, right) else { return Ok(()) };
    let op = if op == Operator::NotEq { "<>".to_owned() } else { op.to_string() };
    plan_err!("operator does not exist: {} {op} {}; {advice}", postgres_type_name(left), postgres_type_name(right))
}

/// Fails if `expression` makes such a comparison. Its parts are not checked.
pub(crate) fn check_comparison(expression: &Expr, schema: &DFSchema) -> Result<()> {
    let (_, types) = compared_operands(expression, schema)?;
    let [compared, others @ ..] = types.as_slice() else { return Ok(()) };
    for (position, other) in others.iter().enumerate() {
        check_comparable(compared, comparison_operator(expression, position), other)?;
    }
    Ok(())
}

/// Returns the operator that compares the first operand of `expression` with the one at `position` after it.
fn comparison_operator(expression: &Expr, position: usize) -> Operator {
    match expression {
        Expr::BinaryExpr(BinaryExpr { op, .. }) | Expr::SetComparison(SetComparison { op, .. }) => *op,
        Expr::Between(_) if position == 0 => Operator::GtEq,
        Expr::Between(_) => Operator::LtEq,
        Expr::InList(InList { negated: true, .. }) | Expr::InSubquery(InSubquery { negated: true, .. }) => {
            Operator::NotEq
        }
        _ => Operator::Eq,
    }
}

/// Fails if a key of a join in `node`, or a column of its recursive query, makes such a comparison.
pub(crate) fn check_node(node: &LogicalPlan) -> Result<()> {
    match node {
        LogicalPlan::Join(join) => join.on.iter().try_for_each(|(left, right)| {
            let (left, right) = (left.get_type(join.left.schema())?, right.get_type(join.right.schema())?);
            check_comparable(&left, Operator::Eq, &right)
        }),
        LogicalPlan::RecursiveQuery(query) => check_recursive_term(&query.recursive_term),
        _ => Ok(()),
    }
}

/// Fails if a recursive term has a number in a column of dates, times or intervals, or one of these in a column of numbers.
/// The planner has cast them.
fn check_recursive_term(term: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Projection(term) = term else { return Ok(()) };
    for mut column in &term.expr {
        while let Expr::Alias(alias) = column {
            column = &alias.expr;
        }
        let Expr::Cast(Cast { expr, field }) = column else { continue };
        let (column, value) = (field.data_type(), expr.get_type(term.input.schema())?);
        if let Some(advice) = number_advice(column, &value) {
            let (column, value) = (postgres_type_name(column), postgres_type_name(&value));
            return plan_err!("UNION types {column} and {value} cannot be matched; {advice}");
        }
    }
    Ok(())
}
