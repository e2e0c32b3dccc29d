//! Conversions between the types of times, and from and to text: `date(x)`, `timestamp(x)` and their siblings.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};

use super::arguments::TimeArguments;
use super::calendar::{DAY, checked_timestamp, timestamp};
use super::function::{function, undefined_function_error};
use super::input::{build_interval, round_to_digits};
use super::kind::TimeKind;
use super::{interval, output};
use crate::data_type::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "date",
            |types| check_conversion("date", types, &MOMENTS, DATE),
            |args| {
                let values = args.dates(0)?;
                args.collect::<Date32Type>(&DATE, |row| Ok(values.get(row)))
            },
        ),
        function("timestamp", |types| check_conversion("timestamp", types, &MOMENTS, TIMESTAMP), moments),
        function("timestamptz", |types| check_conversion("timestamptz", types, &MOMENTS, timestamptz()), moments),
        function("time", |types| check_conversion("time", types, &TIMES, TIME), times),
        function(
            "interval",
            |types| check_conversion("interval", types, &[TimeKind::Time, TimeKind::Interval], INTERVAL),
            intervals,
        ),
        function("timestamp_out", text_result, write),
    ]
}

/// Whether a conversion between types of times is one that Arrow lacks, or one that DataFusion takes for one that keeps
/// the order.
pub(crate) fn is_conversion(from: &DataType, to: &DataType) -> bool {
    let is_moment = |kind: TimeKind| matches!(kind, TimeKind::Timestamp | TimeKind::Timestamptz);
    match (TimeKind::from_data_type(from), TimeKind::from_data_type(to)) {
        (TimeKind::Time, TimeKind::Interval) | (TimeKind::Interval, TimeKind::Time) => true,
        (moment, TimeKind::Time) => is_moment(moment),
        _ => false,
    }
}

/// Values of one type of times as values of another.
pub(crate) fn convert(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let rows = values.len();
    let args = TimeArguments::new("cast", vec![ColumnarValue::Array(values.clone())], rows, to.clone());
    let converted = if TimeKind::from_data_type(to) == TimeKind::Time { times(&args)? } else { intervals(&args)? };
    Ok(cast(&converted, to)?)
}

const MOMENTS: [TimeKind; 3] = [TimeKind::Date, TimeKind::Timestamp, TimeKind::Timestamptz];
const TIMES: [TimeKind; 4] = [TimeKind::Time, TimeKind::Timestamp, TimeKind::Timestamptz, TimeKind::Interval];

/// `result`, if there is a conversion: of one value, with the digits of its seconds perhaps; or of a date and a time.
fn check_conversion(name: &str, types: &[DataType], kinds: &[TimeKind], result: DataType) -> Result<DataType> {
    let is_source = |data_type: &DataType| {
        kinds.contains(&TimeKind::from_data_type(data_type))
            || TimeKind::from_data_type(data_type).accepts_untyped_literal()
    };
    match types {
        [value] if is_source(value) => Ok(result),
        [value, digits] if is_source(value) && TimeKind::from_data_type(digits) == TimeKind::Integer => Ok(result),
        [day, time]
            if name.starts_with("timestamp")
                && (TimeKind::from_data_type(day), TimeKind::from_data_type(time))
                    == (TimeKind::Date, TimeKind::Time) =>
        {
            Ok(result)
        }
        _ => Err(undefined_function_error(name, types)),
    }
}

fn moments(args: &TimeArguments) -> Result<ArrayRef> {
    let is_zoned = TimeKind::from_data_type(args.return_type()) == TimeKind::Timestamptz;
    let values = if is_zoned { args.moments(0)? } else { args.local_moments(0)? };
    if args.len() > 1 && args.kind(1) == TimeKind::Time {
        let times = args.times(1)?;
        return args.collect_micros(args.return_type(), |row| match (values.get(row), times.get(row)) {
            (Some(day), Some(time)) => timestamp(day.div_euclid(DAY), time).map(Some),
            _ => Ok(None),
        });
    }
    let digits = digits(args)?;
    args.collect_micros(args.return_type(), |row| match values.get(row) {
        Some(value) => checked_timestamp(round_to_digits(value, digits)?).map(Some),
        None => Ok(None),
    })
}

/// The digits of seconds that are kept.
fn digits(args: &TimeArguments) -> Result<u32> {
    if args.len() < 2 {
        return Ok(6);
    }
    match args.integers(1)?.get(0).map(u32::try_from) {
        Some(Ok(digits)) => Ok(digits.min(6)),
        _ => exec_err!("the precision of a time must be a number from 0 to 6"),
    }
}

fn times(args: &TimeArguments) -> Result<ArrayRef> {
    let digits = digits(args)?;
    let last = |time: i64| {
        if time == DAY {
            return exec_err!(
                "time out of range: 24:00:00; the last time of a day is 23:59:59.999999, write that instead"
            );
        }
        Ok(Some(time))
    };
    if args.kind(0) == TimeKind::Interval {
        let values = args.intervals(0)?;
        return args.collect_micros(&TIME, |row| match values.get(row) {
            Some(value) => last(round_to_digits(interval::micros(value).rem_euclid(DAY), digits)?),
            None => Ok(None),
        });
    }
    let values = args.times(0)?;
    args.collect_micros(&TIME, |row| match values.get(row) {
        Some(value) => last(round_to_digits(value, digits)?),
        None => Ok(None),
    })
}

fn intervals(args: &TimeArguments) -> Result<ArrayRef> {
    if args.kind(0) == TimeKind::Time {
        let values = args.times(0)?;
        return args.collect_intervals(|row| values.get(row).map(interval::from_micros).transpose());
    }
    let (values, digits) = (args.intervals(0)?, digits(args)?);
    args.collect_intervals(|row| match values.get(row) {
        Some(value) => {
            let micros = round_to_digits(interval::micros(value), digits)?;
            build_interval(i64::from(value.months), i64::from(value.days), micros).map(Some)
        }
        None => Ok(None),
    })
}

fn text_result(types: &[DataType]) -> Result<DataType> {
    match types {
        [value]
            if TimeKind::from_data_type(value).is_moment()
                || matches!(TimeKind::from_data_type(value), TimeKind::Time | TimeKind::Interval) =>
        {
            Ok(DataType::Utf8)
        }
        _ => Err(undefined_function_error("timestamp_out", types)),
    }
}

fn write(args: &TimeArguments) -> Result<ArrayRef> {
    match args.kind(0) {
        TimeKind::Date => {
            let values = args.dates(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::write_date(value, out)).is_some()))
        }
        TimeKind::Time => {
            let values = args.times(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::write_time(value, out)).is_some()))
        }
        TimeKind::Interval => {
            let values = args.intervals(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::write_interval(value, out)).is_some()))
        }
        kind => {
            let write = if kind == TimeKind::Timestamptz { output::write_timestamptz } else { output::write_timestamp };
            let values = args.moments(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| write(value, out)).is_some()))
        }
    }
}
