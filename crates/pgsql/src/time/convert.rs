//! Conversions between the types of times, and from and to text, such as `date(x)` and `timestamp(x)`.

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};

use super::arguments::{TimeColumn, map, zip};
use super::calendar::{DAY, checked_timestamp, timestamp};
use super::function::function;
use super::input::{build_interval, round_moment, round_to_digits};
use super::kind::TimeKind;
use super::{interval, output};
use crate::data_type::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "date",
            |kinds| check_conversion(kinds, &MOMENTS, DATE),
            |args| args.collect::<Date32Type>(map(args.dates(0)?, Ok)),
        ),
        function("timestamp", |kinds| check_conversion(kinds, &MOMENTS, TIMESTAMP), moments),
        function("timestamptz", |kinds| check_conversion(kinds, &MOMENTS, timestamptz()), moments),
        function("time", |kinds| check_conversion(kinds, &TIMES, TIME), times),
        function(
            "interval",
            |kinds| check_conversion(kinds, &[TimeKind::Time, TimeKind::Interval], INTERVAL),
            intervals,
        ),
        function("timestamp_out", text_result, write),
    ]
}

/// Whether Arrow does not support a conversion between types of times, or DataFusion wrongly assumes that it keeps the
/// order.
pub(crate) fn is_conversion(from: &DataType, to: &DataType) -> bool {
    let is_moment = |kind: TimeKind| matches!(kind, TimeKind::Timestamp | TimeKind::Timestamptz);
    match (TimeKind::from_data_type(from), TimeKind::from_data_type(to)) {
        (TimeKind::Time, TimeKind::Interval) | (TimeKind::Interval, TimeKind::Time) => true,
        (moment, TimeKind::Time) => is_moment(moment),
        _ => false,
    }
}

/// Converts values of one type of times to another.
pub(crate) fn convert(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let is_time = TimeKind::from_data_type(to) == TimeKind::Time;
    let returns = if is_time { TIME } else { INTERVAL };
    let args = [ColumnarValue::Array(values.clone())];
    let args = FunctionCall { args: &args, fields: &[], rows: values.len(), returns: &returns };
    let converted = if is_time { times(&args)? } else { intervals(&args)? };
    Ok(cast(&converted, to)?)
}

const MOMENTS: [TimeKind; 3] = [TimeKind::Date, TimeKind::Timestamp, TimeKind::Timestamptz];
const TIMES: [TimeKind; 4] = [TimeKind::Time, TimeKind::Timestamp, TimeKind::Timestamptz, TimeKind::Interval];

/// Returns `result` if there is a conversion of one value, with or without a number of digits, or of a date and a time.
fn check_conversion(kinds: &[TimeKind], sources: &[TimeKind], result: DataType) -> Option<DataType> {
    let is_source = |kind: TimeKind| sources.contains(&kind) || kind.accepts_untyped_literal();
    match *kinds {
        [value] | [value, TimeKind::Integer] if is_source(value) => Some(result),
        [TimeKind::Date, TimeKind::Time] if matches!(result, DataType::Timestamp(..)) => Some(result),
        _ => None,
    }
}

fn moments(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let is_zoned = TimeKind::from_data_type(args.returns) == TimeKind::Timestamptz;
    let values = if is_zoned { args.moments(0)? } else { args.local_moments(0)? };
    if args.args.len() > 1 && args.time_kind(1) == TimeKind::Time {
        return args.collect_micros(zip(values, args.times(1)?, |day, time| timestamp(day.div_euclid(DAY), time)));
    }
    let digits = digits(args)?;
    args.collect_micros(map(values, |value| checked_timestamp(round_moment(value, digits)?)))
}

/// Returns the number of digits of seconds.
fn digits(args: &FunctionCall<'_>) -> Result<u32> {
    if args.args.len() < 2 {
        return Ok(6);
    }
    match args.integers(1)?.get(0).map(u32::try_from) {
        Some(Ok(digits)) => Ok(digits.min(6)),
        _ => exec_err!("the precision of a time must be a number from 0 to 6"),
    }
}

fn times(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let digits = digits(args)?;
    let check = |time: i64| {
        if time == DAY {
            return exec_err!(
                "time out of range: 24:00:00; the last time of a day is 23:59:59.999999, write that instead"
            );
        }
        Ok(time)
    };
    if args.time_kind(0) == TimeKind::Interval {
        let time = |value| check(round_to_digits(interval::micros(value).rem_euclid(DAY), digits)?);
        return args.collect_micros(map(args.intervals(0)?, time));
    }
    args.collect_micros(map(args.times(0)?, |value| check(round_to_digits(value, digits)?)))
}

fn intervals(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    if args.time_kind(0) == TimeKind::Time {
        return args.collect_intervals(map(args.times(0)?, interval::from_micros));
    }
    let digits = digits(args)?;
    args.collect_intervals(map(args.intervals(0)?, |value| {
        let micros = round_to_digits(interval::micros(value), digits)?;
        build_interval(i64::from(value.months), i64::from(value.days), micros)
    }))
}

fn text_result(kinds: &[TimeKind]) -> Option<DataType> {
    let is_time = |kind: TimeKind| kind.is_moment() || matches!(kind, TimeKind::Time | TimeKind::Interval);
    matches!(kinds, [value] if is_time(*value)).then_some(DataType::Utf8)
}

fn write(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    match args.time_kind(0) {
        TimeKind::Date => write_column(args, args.dates(0)?, output::write_date),
        TimeKind::Time => write_column(args, args.times(0)?, output::write_time),
        TimeKind::Interval => write_column(args, args.intervals(0)?, output::write_interval),
        TimeKind::Timestamptz => write_column(args, args.moments(0)?, output::write_timestamptz),
        _ => write_column(args, args.moments(0)?, output::write_timestamp),
    }
}

fn write_column<P: ArrowPrimitiveType>(
    args: &FunctionCall<'_>,
    values: TimeColumn<P>,
    write: fn(P::Native, &mut String),
) -> Result<ArrayRef> {
    args.collect_texts(|row, out| Ok(values.get(row).map(|value| write(value, out)).is_some()))
}
