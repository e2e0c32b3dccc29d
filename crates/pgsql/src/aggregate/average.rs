//! `avg` as a sum and a count, so that averages of integers and numerics are exact.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;
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

const DAYS_PER_MONTH: f64 = 30.0;
const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOSECONDS_PER_MICROSECOND: f64 = 1_000.0;

/// Divides each sum of intervals or durations by its count.
///
/// # Errors
/// If a result is out of range.
#[allow(clippy::cast_precision_loss, reason = "as PostgreSQL divides")]
pub(crate) fn average_spans(sums: &ArrayRef, counts: &Int64Array) -> Result<ArrayRef> {
    if let DataType::Duration(_) = sums.data_type() {
        let sums_as_numbers = cast(sums, &DataType::Int64)?;
        let pairs = sums_as_numbers.as_primitive::<Int64Type>().iter().zip(counts.iter());
        let averages: Int64Array = pairs.map(|(sum, count)| Some(round_to_i64(sum? as f64 / count? as f64))).collect();
        return Ok(cast(&averages, sums.data_type())?);
    }
    let pairs = sums.as_primitive::<IntervalMonthDayNanoType>().iter().zip(counts.iter());
    let averages = pairs.map(|(sum, count)| match (sum, count) {
        (Some(sum), Some(count)) => scale_interval(sum, |part| part / count as f64).map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(averages.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

// An average of 64-bit numbers fits in 64 bits.
#[allow(clippy::cast_possible_truncation, reason = "no average is larger than what it is of")]
fn round_to_i64(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// Computes `span * factor` as PostgreSQL does.
///
/// # Errors
/// If the result is out of range.
pub(super) fn multiply_interval(span: IntervalMonthDayNano, factor: f64) -> Result<IntervalMonthDayNano> {
    scale_interval(span, |part| part * factor)
}

// The range of each part is checked before it becomes an integer again.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as PostgreSQL computes")]
fn scale_interval(span: IntervalMonthDayNano, scale: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let out_of_range = || datafusion::common::DataFusionError::Execution("interval out of range".to_owned());
    let whole = |part: f64| {
        let fits = part.is_finite() && part.abs() <= f64::from(i32::MAX);
        fits.then_some(part.trunc() as i32).ok_or_else(out_of_range)
    };
    // Digits below a microsecond are rounding noise of the division.
    let settled = |part: f64| (part * 1e6).round() / 1e6;
    let (months, days) = (scale(f64::from(span.months)), scale(f64::from(span.days)));
    let whole_months = whole(months)?;
    let mut whole_days = whole(days)?;
    let month_days = settled((months - f64::from(whole_months)) * DAYS_PER_MONTH);
    let mut seconds = settled((days - f64::from(whole_days) + month_days - month_days.trunc()) * SECONDS_PER_DAY);
    if seconds.abs() >= SECONDS_PER_DAY {
        let more = (seconds / SECONDS_PER_DAY).trunc();
        whole_days = whole_days.checked_add(whole(more)?).ok_or_else(out_of_range)?;
        seconds -= more * SECONDS_PER_DAY;
    }
    whole_days = whole_days.checked_add(whole(month_days)?).ok_or_else(out_of_range)?;
    let microseconds = scale(span.nanoseconds as f64 / NANOSECONDS_PER_MICROSECOND) + seconds * 1e6;
    let microseconds = microseconds.round_ties_even();
    if !microseconds.is_finite() || microseconds.abs() > 9.2e15 {
        return Err(out_of_range());
    }
    Ok(IntervalMonthDayNano::new(whole_months, whole_days, microseconds as i64 * 1_000))
}
