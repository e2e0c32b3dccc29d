//! Plans calls of aggregate and window functions that PostgreSQL interprets differently or refuses.

use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr};
use datafusion::logical_expr::utils::COUNT_STAR_EXPANSION;
use datafusion::logical_expr::{Case, Expr, WindowFunctionDefinition, cast, lit};
use datafusion::scalar::ScalarValue;

use super::{lag_lead, ordered, string_agg, sum, to_aggregate_expr, to_window_expr};
use crate::number::{integer_value, plan_average};

#[derive(Debug)]
pub(crate) struct AggregatePlanner;

impl ExprPlanner for AggregatePlanner {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let name = call.func.name().to_owned();
        match name.as_str() {
            "avg" => {
                let visible = to_aggregate_expr(&call).schema_name().to_string();
                Ok(PlannerResult::Planned(plan_avg(&call).alias(visible)))
            }
            "count" if call.args.len() > 1 => {
                plan_err!("count takes one argument; count several columns as one row: count(DISTINCT (a, b))")
            }
            // Of this constant, DataFusion needs no column.
            "count" if !call.distinct && call.args.first().is_some_and(|value| integer_value(value).is_some()) => {
                let args = vec![lit(COUNT_STAR_EXPANSION)];
                Ok(PlannerResult::Original(RawAggregateExpr { args, ..call }))
            }
            "regr_count" => {
                let expr = to_aggregate_expr(&call);
                let visible = expr.schema_name().to_string();
                Ok(PlannerResult::Planned(cast(expr, DataType::Int64).alias(visible)))
            }
            "string_agg" => match string_agg::plan_aggregate(&call)? {
                Some(planned) => {
                    let visible = to_aggregate_expr(&call).schema_name().to_string();
                    Ok(PlannerResult::Planned(planned.alias(visible)))
                }
                None => Ok(PlannerResult::Original(call)),
            },
            "percentile_cont" | "percentile_disc" | "mode" => {
                let visible = to_aggregate_expr(&call).schema_name().to_string();
                let planned = ordered::with_direction(call)?;
                Ok(PlannerResult::Planned(to_aggregate_expr(&planned).alias(visible)))
            }
            _ => Ok(PlannerResult::Original(call)),
        }
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if call.distinct {
            return plan_err!(
                "DISTINCT is not implemented for window functions; aggregate in a subquery with GROUP BY and join it"
            );
        }
        let name = call.func_def.name().to_owned();
        if call.filter.is_some() && matches!(call.func_def, WindowFunctionDefinition::WindowUDF(_)) {
            return plan_err!(
                "FILTER is not implemented for non-aggregate window functions; use CASE in the argument instead"
            );
        }
        let expr = to_window_expr(&call);
        let visible = expr.schema_name().to_string();
        let planned = match name.as_str() {
            "avg" if call.null_treatment.is_none() => plan_window_avg(&call),
            "row_number" | "rank" | "dense_rank" => cast(expr, DataType::Int64),
            "regr_count" => cast(expr, DataType::Int64),
            "bool_and" | "bool_or" if !is_from_start(&call) => plan_bool_aggregate(&name, &call),
            "string_agg" if !is_from_start(&call) => string_agg::plan_window(&call)?,
            "bit_and" | "bit_or" if !is_from_start(&call) => {
                return plan_err!(
                    "{name} over a frame with a moving start is not supported; start it at UNBOUNDED PRECEDING, or \
                     join the table with itself and use GROUP BY"
                );
            }
            "ntile" => {
                check_positive(&name, call.args.first())?;
                cast(expr, DataType::Int32)
            }
            "lag" | "lead" if call.args.iter().skip(1).any(|arg| !is_constant(arg)) => plan_shift(&name, &call)?,
            "nth_value" => {
                check_positive(&name, call.args.get(1))?;
                return Ok(PlannerResult::Original(call));
            }
            "percentile_cont" | "percentile_disc" | "mode" => {
                return plan_err!(
                    "OVER is not supported for ordered-set aggregate {name}; aggregate in a subquery with GROUP BY \
                     and join it"
                );
            }
            "count" if call.args.len() > 1 => {
                return plan_err!("count takes one argument; count several columns as one row: count((a, b))");
            }
            _ => return Ok(PlannerResult::Original(call)),
        };
        Ok(PlannerResult::Planned(planned.alias(visible)))
    }
}

fn is_constant(argument: &Expr) -> bool {
    match argument {
        Expr::Literal(..) => true,
        Expr::Negative(operand) => is_constant(operand),
        _ => false,
    }
}

/// Plans `lag(x, n, otherwise)` where an argument after the first is not constant.
///
/// There is no such row where `lag(true, n)` is NULL. A NULL offset gives NULL.
fn plan_shift(name: &str, call: &RawWindowExpr) -> Result<Expr> {
    let (value, offset, otherwise) = match call.args.as_slice() {
        [value, offset] => (value, offset, None),
        [value, offset, otherwise] => (value, offset, Some(otherwise)),
        _ => return plan_err!("{name} takes a value, an offset and a default"),
    };
    let func_def =
        if is_constant(offset) { call.func_def.clone() } else { lag_lead::lag_lead_function(name == "lead") };
    let of = |value: Expr| {
        to_window_expr(&RawWindowExpr { func_def: func_def.clone(), args: vec![value, offset.clone()], ..call.clone() })
    };
    let Some(otherwise) = otherwise else { return Ok(of(value.clone())) };
    let cases = vec![
        (Box::new(offset.clone().is_null()), Box::new(lit(ScalarValue::Null))),
        (Box::new(of(lit(true)).is_null()), Box::new(otherwise.clone())),
    ];
    Ok(Expr::Case(Case::new(None, cases, Some(Box::new(of(value.clone()))))))
}

/// Whether the frame of `call` starts at UNBOUNDED PRECEDING, so that no row leaves it.
fn is_from_start(call: &RawWindowExpr) -> bool {
    call.window_frame.start_bound.is_unbounded()
}

/// Plans `bool_and` or `bool_or` as the minimum or maximum of 0 and 1, from which rows can be retracted.
fn plan_bool_aggregate(name: &str, call: &RawWindowExpr) -> Expr {
    let func = if name == "bool_and" { min_udaf() } else { max_udaf() };
    let args = call.args.iter().map(|arg| cast(arg.clone(), DataType::Int32)).collect();
    let func_def = WindowFunctionDefinition::AggregateUDF(func);
    to_window_expr(&RawWindowExpr { func_def, args, ..call.clone() }).gt(lit(0_i32))
}

/// Refuses arguments below one, as PostgreSQL does; DataFusion would count from the end.
fn check_positive(name: &str, argument: Option<&Expr>) -> Result<()> {
    let is_negative = match argument {
        Some(Expr::Negative(_)) => true,
        Some(argument) => integer_value(argument).is_some_and(|value| value <= 0),
        None => false,
    };
    if is_negative { plan_err!("argument of {name} must be greater than zero") } else { Ok(()) }
}

/// Plans `avg(x)` over the rows of a group as a sum and a count, so that averages of integers and numerics are exact.
fn plan_avg(call: &RawAggregateExpr) -> Expr {
    let part = |func| {
        let order_by = Vec::new();
        to_aggregate_expr(&RawAggregateExpr { func, order_by, null_treatment: None, ..call.clone() })
    };
    plan_average(part(sum::function().into()), part(count_udaf()))
}

/// Plans `avg(x)` over a window.
fn plan_window_avg(call: &RawWindowExpr) -> Expr {
    let part = |func| {
        let func_def = WindowFunctionDefinition::AggregateUDF(func);
        to_window_expr(&RawWindowExpr { func_def, ..call.clone() })
    };
    plan_average(part(sum::function().into()), part(count_udaf()))
}
