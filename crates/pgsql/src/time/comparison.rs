//! Comparisons of times, dates and intervals.
//!
//! Intervals are compared and ordered by their length, where a month counts 30 days; Arrow compares their months first.
//!
//! Numbers beside dates, times and intervals are refused, as PostgreSQL does: DataFusion reads an integer beside a date as
//! days since 1970, such as 2021 if the quotes of '2025-03-01' are missing.
//!
//! Constants are kept apart that DataFusion takes for equal: a `timestamp` and a `timestamptz` of the same microseconds.
//! DataFusion compares such values without their types. So its optimizer would compute one expression for both
//! `timestamp '2020-01-01' AT TIME ZONE z` and `timestamptz '2020-01-01' AT TIME ZONE z`, and take them for equal in a
//! comparison. In a statement with both, the constants with a zone become calls that the optimizer does not compare
//! ([`separate_constants`]). `docs/decisions/upstream` has the text to be filed, and says when that can go.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Between, Cast, InList, InSubquery, SetComparison, Sort};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF, Signature, Volatility,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::function::{TimeKind, call};
use crate::data_type::postgres_type_name;
use crate::function::FieldFunction;
use crate::list::innermost_type;
use crate::operands::compared_operands;
use crate::plan_walk::rewrite_named;

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    expression.get_type(schema).is_ok_and(|data_type| TimeKind::from_data_type(&data_type) == TimeKind::Interval)
}

fn interval_key(expression: Expr) -> Result<Expr> {
    call("interval_cmp_value*", vec![expression])
}

/// `node` so that intervals are ordered by their length. Refused where their parts would distinguish intervals of equal
/// length.
pub(crate) fn order_intervals(node: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let refused = || {
        plan_err!(
            "grouping by an interval is not supported, as '1 day' and '24 hours' are equal; \
             group by extract(epoch FROM x) instead"
        )
    };
    match node {
        LogicalPlan::Sort(mut sort) => {
            sort.expr = order_by_length(sort.expr, schema)?;
            Ok(LogicalPlan::Sort(sort))
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.iter().any(|group| is_interval(group, schema)) => {
            refused()
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_interval(left, schema) && is_interval(right, schema) {
                    *left = interval_key(std::mem::take(left))?;
                    *right = interval_key(std::mem::take(right))?;
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Distinct(Distinct::All(input))
            if input
                .schema()
                .fields()
                .iter()
                .any(|field| TimeKind::from_data_type(field.data_type()) == TimeKind::Interval) =>
        {
            refused()
        }
        other => Ok(other),
    }
}

fn order_by_length(orders: Vec<Sort>, schema: &DFSchema) -> Result<Vec<Sort>> {
    let by_length = |mut order: Sort| {
        if is_interval(&order.expr, schema) {
            order.expr = interval_key(order.expr)?;
        }
        Ok(order)
    };
    orders.into_iter().map(by_length).collect()
}

/// `expression` as a comparison of lengths, if it compares intervals, or orders them.
pub(crate) fn compare(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.supports_propagation() && is_interval(&left, schema) && is_interval(&right, schema) =>
        {
            let (left, right) = (Box::new(interval_key(*left)?), Box::new(interval_key(*right)?));
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr, schema) => {
            let (low, high) = (Box::new(interval_key(*low)?), Box::new(interval_key(*high)?));
            Ok(Transformed::yes(Expr::Between(Between { expr: Box::new(interval_key(*expr)?), negated, low, high })))
        }
        Expr::InList(InList { expr, list, negated }) if is_interval(&expr, schema) => {
            let list = list.into_iter().map(interval_key).collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(interval_key(*expr)?), list, negated })))
        }
        Expr::Case(case) if case.expr.as_ref().is_some_and(|operand| is_interval(operand, schema)) => {
            let mut case = case;
            case.expr = case.expr.map(|operand| interval_key(*operand).map(Box::new)).transpose()?;
            for (when, _) in &mut case.when_then_expr {
                **when = interval_key(std::mem::take(when.as_mut()))?;
            }
            Ok(Transformed::yes(Expr::Case(case)))
        }
        Expr::WindowFunction(mut window)
            if window.params.order_by.iter().any(|by| is_interval(&by.expr, schema))
                || window.params.partition_by.iter().any(|by| is_interval(by, schema)) =>
        {
            window.params.order_by = order_by_length(window.params.order_by, schema)?;
            for partition in window.params.partition_by.iter_mut().filter(|by| is_interval(by, schema)) {
                *partition = interval_key(std::mem::take(partition))?;
            }
            Ok(Transformed::yes(Expr::WindowFunction(window)))
        }
        Expr::AggregateFunction(mut aggregate)
            if aggregate.params.distinct && aggregate.params.args.iter().any(|arg| is_interval(arg, schema)) =>
        {
            if aggregate.func.name() != "count" {
                return plan_err!(
                    "{}(DISTINCT …) of intervals is not supported, as '1 day' and '24 hours' are equal; write \
                     extract(epoch FROM x) instead",
                    aggregate.func.name()
                );
            }
            let lengths = aggregate.params.args.into_iter().map(interval_key);
            aggregate.params.args = lengths.collect::<Result<_>>()?;
            Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
        }
        // An aggregate of distinct values can be ordered only by these values.
        Expr::AggregateFunction(mut aggregate)
            if !aggregate.params.distinct
                && aggregate.params.order_by.iter().any(|by| is_interval(&by.expr, schema)) =>
        {
            aggregate.params.order_by = order_by_length(aggregate.params.order_by, schema)?;
            Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
        }
        Expr::InSubquery(subquery) if is_interval(&subquery.expr, schema) => {
            plan_err!("an interval IN (SELECT …) is not supported; write EXISTS (SELECT 1 FROM … WHERE x = y) instead")
        }
        other => Ok(Transformed::no(other)),
    }
}

/// The name of the function. The `*` keeps callers from writing it.
const CONSTANT: &str = "constant*";

/// The rule. It runs when all types are known, and before constants are evaluated.
pub(crate) fn separate_constants(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (instants, others): (Vec<Expr>, Vec<Expr>) = constants_of(&plan)?.into_iter().partition(has_zone);
    if instants.is_empty() || others.is_empty() {
        return Ok(plan);
    }
    let others: HashSet<i64> = others.into_iter().filter_map(microseconds).collect();
    let is_equal = |instant: &Expr| microseconds(instant.clone()).is_some_and(|value| others.contains(&value));
    let equal: Vec<Expr> = instants.into_iter().filter(is_equal).collect();
    if equal.is_empty() {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| separate(node, &equal)).data()
}

/// Replaces the constants `equal` in the expressions of `node`.
fn separate(node: LogicalPlan, equal: &[Expr]) -> Result<Transformed<LogicalPlan>> {
    let separated = rewrite_named(node, |expression| {
        expression.transform_down(|part| {
            if compares_column(&part) {
                return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
            }
            if !has_zone(&part) || !equal.contains(&part) {
                return Ok(Transformed::no(part));
            }
            let call = separate_constant().call(vec![part]);
            Ok(Transformed::new(call, true, TreeNodeRecursion::Jump))
        })
    })?;
    separated.map_data(LogicalPlan::recompute_schema)
}

/// Returns the constants of `plan` that are a `timestamp` or a `timestamptz`.
fn constants_of(plan: &LogicalPlan) -> Result<Vec<Expr>> {
    let mut constants = Vec::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if compares_column(part) {
                    return Ok(TreeNodeRecursion::Jump);
                }
                if constant_type(part).is_some() {
                    constants.push(part.clone());
                    return Ok(TreeNodeRecursion::Jump);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(constants)
}

/// Whether `expression` compares a column with constants, which have its type. A constant of another type would be beside
/// another column.
fn compares_column(expression: &Expr) -> bool {
    let is_column = |operand: &Expr| matches!(operand, Expr::Column(_));
    let is_constant = |operand: &Expr| constant_type(operand).is_some();
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            op.supports_propagation()
                && (is_column(left) && is_constant(right) || is_constant(left) && is_column(right))
        }
        Expr::Between(Between { expr, low, high, .. }) => is_column(expr) && is_constant(low) && is_constant(high),
        Expr::InList(InList { expr, list, .. }) => is_column(expr) && list.iter().all(is_constant),
        _ => false,
    }
}

/// Returns the type of `expression` if it is a constant `timestamp` or `timestamptz`.
fn constant_type(expression: &Expr) -> Option<DataType> {
    let is_value =
        matches!(expression, Expr::Literal(..) | Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::BinaryExpr(_));
    if !is_value || expression.any_column_refs() {
        return None;
    }
    let data_type = expression.get_type(&DFSchema::empty()).ok()?;
    matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond, _)).then_some(data_type)
}

fn has_zone(expression: &Expr) -> bool {
    matches!(constant_type(expression), Some(DataType::Timestamp(_, Some(_))))
}

/// Evaluates a constant.
fn microseconds(constant: Expr) -> Option<i64> {
    match ExprSimplifier::new(SimplifyContext::default()).simplify(constant).ok()? {
        Expr::Literal(ScalarValue::TimestampMicrosecond(value, _), _) => value,
        _ => None,
    }
}

/// Returns the function of its argument. It is volatile, so that no call equals another.
fn separate_constant() -> ScalarUDF {
    FieldFunction::new(
        CONSTANT,
        Signature::any(1, Volatility::Volatile),
        |args| Ok(Arc::new(Field::new(CONSTANT, args.arg_fields[0].data_type().clone(), true))),
        |args| Ok(args.args[0].clone()),
    )
}

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
