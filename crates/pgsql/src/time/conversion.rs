//! Conversions between the types of times, and from and to text, such as `date(x)` and `timestamp(x)`; the text is
//! PostgreSQL's with the style ISO.

use std::fmt::Write;

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, IntervalMonthDayNano};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};

use super::calendar::{DAY, DateTimeParts, checked_timestamp, date_from_days, timestamp};
use super::function::{TimeColumn, TimeKind, function, map, zip};
use super::input::{build_interval, round_moment, round_to_digits};
use super::interval;
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
        TimeKind::Date => write_column(args, args.dates(0)?, write_date),
        TimeKind::Time => write_column(args, args.times(0)?, write_time),
        TimeKind::Interval => write_column(args, args.intervals(0)?, write_interval),
        TimeKind::Timestamptz => write_column(args, args.moments(0)?, write_timestamptz),
        _ => write_column(args, args.moments(0)?, write_timestamp),
    }
}

fn write_column<P: ArrowPrimitiveType>(
    args: &FunctionCall<'_>,
    values: TimeColumn<P>,
    write: fn(P::Native, &mut String),
) -> Result<ArrayRef> {
    args.collect_texts(|row, out| Ok(values.get(row).map(|value| write(value, out)).is_some()))
}

/// Writes a date: `2013-01-05`, `0044-03-15 BC`.
pub(crate) fn write_date(days: i32, out: &mut String) {
    let (year, month, day) = date_from_days(i64::from(days));
    let written = if year > 0 { year } else { 1 - year };
    // Writing to a text never fails.
    let _ = write!(out, "{written:04}-{month:02}-{day:02}{}", era(year));
}

/// Writes a time of day: `07:08:09.25`.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    let parts = DateTimeParts::from_time(micros);
    let _ = write!(out, "{:02}:{:02}:{:02}", parts.hour, parts.minute, parts.second);
    write_fraction(parts.micros, out);
}

/// Writes a time without a zone: `2013-01-05 07:08:09`.
pub(crate) fn write_timestamp(micros: i64, out: &mut String) {
    let year = write_moment(micros, out);
    out.push_str(era(year));
}

/// Writes an instant in UTC: `2013-01-05 07:08:09+00`.
pub(crate) fn write_timestamptz(micros: i64, out: &mut String) {
    let year = write_moment(micros, out);
    out.push_str("+00");
    out.push_str(era(year));
}

fn write_moment(micros: i64, out: &mut String) -> i64 {
    let parts = DateTimeParts::from_timestamp(micros);
    let year = if parts.year > 0 { parts.year } else { 1 - parts.year };
    let (month, day, hour, minute, second) = (parts.month, parts.day, parts.hour, parts.minute, parts.second);
    let _ = write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    write_fraction(parts.micros, out);
    parts.year
}

fn era(year: i64) -> &'static str {
    if year > 0 { "" } else { " BC" }
}

/// Writes the digits after the point without trailing zeros.
fn write_fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let digits = format!("{:06}", micros.abs());
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Writes an interval: `1 year 2 mons 3 days 04:05:06.7`.
pub(crate) fn write_interval(value: IntervalMonthDayNano, out: &mut String) {
    let start = out.len();
    // A positive field after a negative one has a sign.
    let mut is_negative_before = false;
    let units =
        [(i64::from(value.months / 12), "year"), (i64::from(value.months % 12), "mon"), (i64::from(value.days), "day")];
    for (count, unit) in units {
        if count != 0 {
            let space = if out.len() > start { " " } else { "" };
            let sign = if is_negative_before && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{count} {unit}{plural}");
            is_negative_before = count < 0;
        }
    }
    let micros = value.nanoseconds / 1_000;
    if micros != 0 || out.len() == start {
        let space = if out.len() > start { " " } else { "" };
        let sign = if micros < 0 {
            "-"
        } else if is_negative_before {
            "+"
        } else {
            ""
        };
        let parts = DateTimeParts::from_time(micros);
        let (hour, minute, second) = (parts.hour.abs(), parts.minute.abs(), parts.second.abs());
        let _ = write!(out, "{space}{sign}{hour:02}:{minute:02}:{second:02}");
        write_fraction(parts.micros, out);
    }
}
