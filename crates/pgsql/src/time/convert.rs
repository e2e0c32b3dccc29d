//! Conversions between the types of times, and from and to text: `date(x)`, `timestamp(x)` and their siblings.

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};

use super::calendar::{DAY, checked_timestamp, timestamp};
use super::column::Arguments;
use super::function::{function, no_function};
use super::input::{interval_of, rounded};
use super::kind::{DATE, INTERVAL, Kind, TIME, TIMESTAMP, timestamptz};
use super::{interval, output};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "date",
            |types| from("date", types, &MOMENTS, DATE),
            |args| {
                let values = args.dates(0)?;
                args.collect::<Date32Type>(&DATE, |row| Ok(values.get(row)))
            },
        ),
        function("timestamp", |types| from("timestamp", types, &MOMENTS, TIMESTAMP), moments),
        function("timestamptz", |types| from("timestamptz", types, &MOMENTS, timestamptz()), moments),
        function("time", |types| from("time", types, &TIMES, TIME), times),
        function("interval", |types| from("interval", types, &[Kind::Time, Kind::Interval], INTERVAL), intervals),
        function("timestamp_out", written, write),
    ]
}

/// Whether a conversion between types of times is one that Arrow lacks, or one that DataFusion takes for one that keeps
/// the order.
pub(crate) fn is_conversion(from: &DataType, to: &DataType) -> bool {
    let is_moment = |kind: Kind| matches!(kind, Kind::Timestamp | Kind::Timestamptz);
    match (Kind::of(from), Kind::of(to)) {
        (Kind::Time, Kind::Interval) | (Kind::Interval, Kind::Time) => true,
        (moment, Kind::Time) => is_moment(moment),
        _ => false,
    }
}

/// Values of one type of times as values of another.
pub(crate) fn convert(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let rows = values.len();
    let args = Arguments::new("cast", vec![ColumnarValue::Array(values.clone())], rows, to.clone());
    let converted = if Kind::of(to) == Kind::Time { times(&args)? } else { intervals(&args)? };
    Ok(cast(&converted, to)?)
}

const MOMENTS: [Kind; 3] = [Kind::Date, Kind::Timestamp, Kind::Timestamptz];
const TIMES: [Kind; 4] = [Kind::Time, Kind::Timestamp, Kind::Timestamptz, Kind::Interval];

/// `result`, if there is a conversion: of one value, with the digits of its seconds perhaps; or of a date and a time.
fn from(name: &str, types: &[DataType], kinds: &[Kind], result: DataType) -> Result<DataType> {
    let is_source = |data_type: &DataType| kinds.contains(&Kind::of(data_type)) || Kind::of(data_type).is_open();
    match types {
        [value] if is_source(value) => Ok(result),
        [value, digits] if is_source(value) && Kind::of(digits) == Kind::Integer => Ok(result),
        [day, time] if name.starts_with("timestamp") && (Kind::of(day), Kind::of(time)) == (Kind::Date, Kind::Time) => {
            Ok(result)
        }
        _ => Err(no_function(name, types)),
    }
}

fn moments(args: &Arguments) -> Result<ArrayRef> {
    let is_zoned = Kind::of(args.return_type()) == Kind::Timestamptz;
    let values = if is_zoned { args.moments(0)? } else { args.local_moments(0)? };
    if args.len() > 1 && args.kind(1) == Kind::Time {
        let times = args.times(1)?;
        return args.collect_micros(args.return_type(), |row| match (values.get(row), times.get(row)) {
            (Some(day), Some(time)) => timestamp(day.div_euclid(DAY), time).map(Some),
            _ => Ok(None),
        });
    }
    let digits = digits(args)?;
    args.collect_micros(args.return_type(), |row| match values.get(row) {
        Some(value) => checked_timestamp(rounded(value, digits)?).map(Some),
        None => Ok(None),
    })
}

/// The digits of seconds that are kept.
fn digits(args: &Arguments) -> Result<u32> {
    if args.len() < 2 {
        return Ok(6);
    }
    match args.integers(1)?.get(0).map(u32::try_from) {
        Some(Ok(digits)) => Ok(digits.min(6)),
        _ => exec_err!("the precision of a time is a number from 0 to 6"),
    }
}

fn times(args: &Arguments) -> Result<ArrayRef> {
    let digits = digits(args)?;
    let last = |time: i64| {
        if time == DAY {
            return exec_err!(
                "time out of range: 24:00:00; the last time of a day is 23:59:59.999999, write that instead"
            );
        }
        Ok(Some(time))
    };
    if args.kind(0) == Kind::Interval {
        let values = args.intervals(0)?;
        return args.collect_micros(&TIME, |row| match values.get(row) {
            Some(value) => last(rounded(interval::micros(value).rem_euclid(DAY), digits)?),
            None => Ok(None),
        });
    }
    let values = args.times(0)?;
    args.collect_micros(&TIME, |row| match values.get(row) {
        Some(value) => last(rounded(value, digits)?),
        None => Ok(None),
    })
}

fn intervals(args: &Arguments) -> Result<ArrayRef> {
    if args.kind(0) == Kind::Time {
        let values = args.times(0)?;
        return args.collect_intervals(|row| values.get(row).map(interval::of_micros).transpose());
    }
    let (values, digits) = (args.intervals(0)?, digits(args)?);
    args.collect_intervals(|row| match values.get(row) {
        Some(value) => {
            let micros = rounded(interval::micros(value), digits)?;
            interval_of(i64::from(value.months), i64::from(value.days), micros).map(Some)
        }
        None => Ok(None),
    })
}

fn written(types: &[DataType]) -> Result<DataType> {
    match types {
        [value] if Kind::of(value).is_moment() || matches!(Kind::of(value), Kind::Time | Kind::Interval) => {
            Ok(DataType::Utf8)
        }
        _ => Err(no_function("timestamp_out", types)),
    }
}

fn write(args: &Arguments) -> Result<ArrayRef> {
    match args.kind(0) {
        Kind::Date => {
            let values = args.dates(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::date(value, out)).is_some()))
        }
        Kind::Time => {
            let values = args.times(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::time(value, out)).is_some()))
        }
        Kind::Interval => {
            let values = args.intervals(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| output::interval(value, out)).is_some()))
        }
        kind => {
            let write = if kind == Kind::Timestamptz { output::timestamptz } else { output::timestamp };
            let values = args.moments(0)?;
            args.collect_texts(|row, out| Ok(values.get(row).map(|value| write(value, out)).is_some()))
        }
    }
}
