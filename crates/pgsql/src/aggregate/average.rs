//! `avg` as a sum and a count, so that averages of integers and numerics are exact.

use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::{Expr, WindowFunctionDefinition};

use crate::number;

/// Plans `avg(x)` over the rows of a group.
pub(super) fn plan_aggregate(avg: &RawAggregateExpr) -> Expr {
    let RawAggregateExpr { args, distinct, filter, .. } = avg;
    let part = |func| {
        let (args, distinct, filter) = (args.clone(), *distinct, filter.clone());
        let params = AggregateFunctionParams { args, distinct, filter, order_by: Vec::new(), null_treatment: None };
        Expr::AggregateFunction(AggregateFunction { func, params })
    };
    number::plan_average(part(super::sum::function().into()), part(super::count_function()))
}

/// Plans `avg(x)` over a window.
pub(super) fn plan_window(avg: &RawWindowExpr) -> Expr {
    let part = |func| {
        let params = WindowFunctionParams {
            args: avg.args.clone(),
            partition_by: avg.partition_by.clone(),
            order_by: avg.order_by.clone(),
            window_frame: avg.window_frame.clone(),
            filter: avg.filter.clone(),
            null_treatment: None,
            distinct: avg.distinct,
        };
        let fun = WindowFunctionDefinition::AggregateUDF(func);
        Expr::WindowFunction(Box::new(WindowFunction { fun, params }))
    };
    number::plan_average(part(super::sum::function().into()), part(super::count_function()))
}
