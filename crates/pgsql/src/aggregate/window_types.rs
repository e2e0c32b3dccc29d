//! Types of windows: RANGE over types that DataFusion does not support, and values of different types.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

use super::frame_exclusion;
use crate::data_type::postgres_type_name;
use crate::plan_walk::{for_each_part, rewrite_named};
use crate::time;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Adapts windows to types.
///
/// A RANGE without offsets equals GROUPS, which works for any type: both frames end with a group of peers. This rule
/// runs before DataFusion's type coercion, which supports RANGE only for numbers, text, dates and timestamps.
pub(crate) fn adapt_windows(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !matches!(node, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(node));
    }
    let schema = merge_schema(&node.inputs());
    for_each_part(&node, |part| check_string_agg(part, &schema))?;
    if matches!(node, LogicalPlan::Aggregate(_)) {
        return Ok(Transformed::no(node));
    }
    let rewritten = rewrite_named(node, |expression| {
        expression.transform_up(|expression| rewrite_expression(expression, &schema))
    })?;
    if rewritten.transformed { rewritten.map_data(LogicalPlan::recompute_schema) } else { Ok(rewritten) }
}

/// Refuses `string_agg` of values that are not text, which DataFusion would convert to text.
fn check_string_agg(expression: &Expr, schema: &DFSchema) -> Result<()> {
    let args = match expression {
        Expr::AggregateFunction(call) if call.func.name() == "string_agg" => &call.params.args,
        Expr::WindowFunction(call) if call.fun.name() == "string_agg" => &call.params.args,
        _ => return Ok(()),
    };
    let Some(value) = args.first() else { return Ok(()) };
    match value.get_type(schema)? {
        text if text.is_string() || text.is_null() => Ok(()),
        DataType::Dictionary(_, text) if text.is_string() => Ok(()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            plan_err!("string_agg of bytea takes a delimiter that is bytea: string_agg(x, ','::bytea)")
        }
        other => {
            let name = postgres_type_name(&other);
            plan_err!("function string_agg({name}, text) does not exist; cast the value: string_agg(x::text, ', ')")
        }
    }
}

fn rewrite_expression(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expression else { return Ok(Transformed::no(expression)) };
    let is_widened = widen_shift_values(&mut call, schema)?;
    let is_reframed = range_to_groups(&mut call, schema)?;
    let is_excluded = frame_exclusion::apply_exclusion(&mut call)?;
    Ok(Transformed::new_transformed(Expr::WindowFunction(call), is_widened || is_reframed || is_excluded))
}

/// Widens the type of `lag` and `lead` so that it holds both the values and the default.
fn widen_shift_values(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let name = call.fun.name();
    let [value, _, default] = call.params.args.as_mut_slice() else { return Ok(false) };
    if !matches!(name, "lag" | "lead") {
        return Ok(false);
    }
    let (value_type, default_type) = (value.get_type(schema)?, default.get_type(schema)?);
    if let Some(advice) = time::number_advice(&value_type, &default_type) {
        let (value, default) = (postgres_type_name(&value_type), postgres_type_name(&default_type));
        return plan_err!("function {name}({value}, integer, {default}) does not exist; {advice}");
    }
    let Some(common) = common_type(&value_type, &default_type) else { return Ok(false) };
    for operand in [value, default] {
        *operand = cast(operand.clone(), common.clone());
    }
    Ok(true)
}

/// Turns a RANGE that DataFusion does not support into GROUPS. Returns whether it did.
fn range_to_groups(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let frame = &call.params.window_frame;
    let (WindowFrameUnits::Range, Some(key)) = (frame.units, call.params.order_by.first()) else { return Ok(false) };
    let key = key.expr.get_type(schema)?;
    if has_range(&key) {
        return Ok(false);
    }
    if !is_peer_bound(&frame.start_bound) || !is_peer_bound(&frame.end_bound) {
        if let (DataType::Time64(_) | DataType::Time32(_), Some(bounds)) = (&key, bounds_in_microseconds(frame)?) {
            let [start, end] = bounds;
            call.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Range, start, end);
            for key in &mut call.params.order_by {
                let time = cast(key.expr.clone(), DataType::Time64(TimeUnit::Microsecond));
                key.expr = cast(time, DataType::Int64);
            }
            return Ok(true);
        }
        let name = postgres_type_name(&key);
        return plan_err!(
            "RANGE with an offset over {name} is not supported; order by a number or a timestamp instead, for \
             instance extract(epoch FROM x) with an offset in seconds"
        );
    }
    let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
    call.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(true)
}

/// Converts the bounds of a frame over times, whose offsets are intervals, to microseconds.
fn bounds_in_microseconds(frame: &WindowFrame) -> Result<Option<[WindowFrameBound; 2]>> {
    let microseconds = |offset: &ScalarValue| -> Result<Option<ScalarValue>> {
        let ScalarValue::IntervalMonthDayNano(Some(interval)) = offset.cast_to(&INTERVAL)? else { return Ok(None) };
        if interval.nanoseconds < 0 {
            return plan_err!("invalid preceding or following size in window function");
        }
        // PostgreSQL uses only the time part of the interval.
        Ok(Some(ScalarValue::Int64(Some(interval.nanoseconds / 1_000))))
    };
    let mut bounds = Vec::new();
    for bound in [&frame.start_bound, &frame.end_bound] {
        let offset = match bound {
            WindowFrameBound::CurrentRow => None,
            WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) if offset.is_null() => None,
            WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => Some(offset),
        };
        let offset = match offset.map(microseconds).transpose()? {
            None => ScalarValue::Int64(None),
            Some(Some(offset)) => offset,
            Some(None) => return Ok(None),
        };
        bounds.push(match bound {
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
            WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(offset),
            WindowFrameBound::Following(_) => WindowFrameBound::Following(offset),
        });
    }
    Ok(<[WindowFrameBound; 2]>::try_from(bounds).ok())
}

/// Returns a type that holds both the column's values and the default; `None` if the column's type does.
fn common_type(value: &DataType, default: &DataType) -> Option<DataType> {
    let is_held = value == default || !value.is_numeric() || !default.is_numeric();
    if is_held || value.is_floating() || (value.is_integer() && default.is_integer()) {
        return None;
    }
    comparison_coercion(value, default)
}

fn is_peer_bound(bound: &WindowFrameBound) -> bool {
    matches!(bound, WindowFrameBound::CurrentRow) || bound.is_unbounded()
}

/// Whether DataFusion supports RANGE over the type.
fn has_range(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => has_range(value),
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(..)
        | DataType::Boolean
        | DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..) => true,
        other => other.is_numeric() || other.is_string() || other.is_null(),
    }
}
