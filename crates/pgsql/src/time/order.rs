//! Intervals are compared and ordered by their length, where a month counts 30 days; Arrow compares their months first.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::{Between, InList, Sort};
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan};

use super::function::call;
use super::kind::TimeKind;

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
