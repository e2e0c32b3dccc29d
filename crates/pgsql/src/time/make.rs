//! Functions that build times from their parts, such as `make_date` and `make_interval`, and those that return the moment of
//! the statement: one for all of it, however often and wherever it is named.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Date32Type};
use chrono::Utc;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::calendar::{self, DAY, HOUR, MINUTE, days, is_date, out_of_range_error};
use super::function::{TimeKind, function};
use super::input::build_interval;
use super::zone::TimeZoneSpec;
use crate::data_type::{DATE, INTERVAL, TIME, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        function(
            "make_date",
            |kinds| numbers(kinds, &[3], DATE),
            |args| {
                let parts = [args.integers(0)?, args.integers(1)?, args.integers(2)?];
                args.collect::<Date32Type>(|row| {
                    let [Some(year), Some(month), Some(day)] = parts.each_ref().map(|part| part.get(row)) else {
                        return Ok(None);
                    };
                    calendar::checked_date(days_from_date(year, month, day)?).map(Some)
                })
            },
        ),
        function(
            "make_time",
            |kinds| numbers(kinds, &[3], TIME),
            |args| {
                let (hours, minutes, seconds) = (args.integers(0)?, args.integers(1)?, args.floats(2)?);
                args.collect_micros(|row| match (hours.get(row), minutes.get(row), seconds.get(row)) {
                    (Some(hour), Some(minute), Some(second)) => match micros_from_time(hour, minute, second)? {
                        DAY => exec_err!(
                            "time out of range: 24:00:00; the last time of a day is 23:59:59.999999, write that instead"
                        ),
                        time => Ok(Some(time)),
                    },
                    _ => Ok(None),
                })
            },
        ),
        function("make_timestamp", |kinds| numbers(kinds, &[6], TIMESTAMP), moments),
        function("make_timestamptz", |kinds| numbers(kinds, &[6, 7], timestamptz()), moments),
        function("make_interval", |kinds| numbers(kinds, &[0, 1, 2, 3, 4, 5, 6, 7], INTERVAL), intervals),
    ]
}

fn numbers(kinds: &[TimeKind], counts: &[usize], result: DataType) -> Option<DataType> {
    let made = TimeKind::from_data_type(&result);
    let is_number = |(position, kind): (usize, &TimeKind)| match kind {
        TimeKind::Integer | TimeKind::Null => true,
        // Seconds may have a fraction; the seventh argument of `make_timestamptz` is a zone.
        TimeKind::Number => matches!((made, position), (TimeKind::Time, 2) | (TimeKind::Interval, 6) | (_, 5)),
        TimeKind::Text => (made, position) == (TimeKind::Timestamptz, 6),
        _ => false,
    };
    (counts.contains(&kinds.len()) && kinds.iter().enumerate().all(is_number)).then_some(result)
}

fn days_from_date(year: i64, month: i64, day: i64) -> Result<i64> {
    // Year -1 is the year before year 1.
    let calendar_year = if year < 0 { year + 1 } else { year };
    if year == 0 || year.abs() > 6_000_000 || !is_date(calendar_year, month, day) {
        return exec_err!("date field value out of range: {year}-{month:02}-{day:02}");
    }
    Ok(days(calendar_year, month, day))
}

fn micros_from_time(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let micros = (second * 1e6).round_ties_even();
    let is_last = hour == 24 && minute == 0 && micros == 0.0;
    if !(0..24).contains(&hour) && !is_last || !(0..60).contains(&minute) || !(0.0..=60e6).contains(&micros) {
        return exec_err!("time field value out of range: {hour}:{minute:02}:{second:02}");
    }
    Ok(hour * HOUR + minute * MINUTE + micros as i64)
}

fn moments(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let parts = [args.integers(0)?, args.integers(1)?, args.integers(2)?, args.integers(3)?, args.integers(4)?];
    let seconds = args.floats(5)?;
    let zones = if args.args.len() > 6 { Some(args.texts(6)?) } else { None };
    args.collect_micros(|row| {
        let [Some(year), Some(month), Some(day), Some(hour), Some(minute)] = parts.each_ref().map(|part| part.get(row))
        else {
            return Ok(None);
        };
        let Some(second) = seconds.get(row) else { return Ok(None) };
        let local = calendar::timestamp(days_from_date(year, month, day)?, micros_from_time(hour, minute, second)?)?;
        let Some(zones) = &zones else { return Ok(Some(local)) };
        let Some(zone) = zones.get(row) else { return Ok(None) };
        calendar::checked_timestamp(TimeZoneSpec::find_or_offset(zone)?.instant(local)).map(Some)
    })
}

fn intervals(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let units = (0..args.args.len().min(6)).map(|position| args.integers(position)).collect::<Result<Vec<_>>>()?;
    let seconds = if args.args.len() > 6 { Some(args.floats(6)?) } else { None };
    args.collect_intervals(|row| {
        let mut counts = [0_i64; 6];
        for (position, unit) in units.iter().enumerate() {
            let Some(count) = unit.get(row) else { return Ok(None) };
            counts[position] = count;
        }
        let Some(second) = seconds.as_ref().map_or(Some(0.0), |seconds| seconds.get(row)) else { return Ok(None) };
        let [years, months, weeks, days, hours, minutes] = counts;
        let sum = |left: i64, factor: i64, right: i64| left.checked_mul(factor)?.checked_add(right);
        let micros = sum(hours, HOUR, 0).and_then(|micros| sum(minutes, MINUTE, micros));
        let fraction = (second * 1e6).round_ties_even();
        let micros =
            if fraction.abs() < 9e18 { micros.and_then(|micros| micros.checked_add(fraction as i64)) } else { None };
        match (sum(years, 12, months), sum(weeks, 7, days), micros) {
            (Some(months), Some(days), Some(micros)) => build_interval(months, days, micros).map(Some),
            _ => Err(out_of_range_error("interval")),
        }
    })
}

/// Returns the functions that return the current time.
pub(super) fn current_time_functions() -> Vec<ScalarUDF> {
    let stable = [
        ("now", timestamptz()),
        ("current_timestamp", timestamptz()),
        ("transaction_timestamp", timestamptz()),
        ("statement_timestamp", timestamptz()),
        ("localtimestamp", TIMESTAMP),
        ("localtime", TIME),
        ("current_date", DATE),
    ];
    let stable =
        stable.into_iter().map(|(name, data_type)| CurrentTimeFunction::new(name, data_type, Volatility::Stable));
    stable
        .chain([
            CurrentTimeFunction::new("clock_timestamp", timestamptz(), Volatility::Volatile),
            CurrentTimeFunction::new("timeofday", DataType::Utf8, Volatility::Volatile),
        ])
        .map(ScalarUDF::new_from_impl)
        .collect()
}

/// A function that gives a moment.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentTimeFunction {
    name: &'static str,
    data_type: DataType,
    signature: Signature,
}

impl CurrentTimeFunction {
    fn new(name: &'static str, data_type: DataType, volatility: Volatility) -> Self {
        Self { name, data_type, signature: Signature::nullary(volatility) }
    }

    fn value(&self, moment: chrono::DateTime<Utc>) -> ScalarValue {
        let micros = moment.timestamp_micros();
        match &self.data_type {
            DataType::Date32 => ScalarValue::Date32(i32::try_from(micros.div_euclid(DAY)).ok()),
            DataType::Time64(_) => ScalarValue::Time64Microsecond(Some(micros.rem_euclid(DAY))),
            DataType::Timestamp(_, zone) => ScalarValue::TimestampMicrosecond(Some(micros), zone.clone()),
            _ => ScalarValue::Utf8(Some(moment.format("%a %b %d %H:%M:%S%.6f %Y UTC").to_string())),
        }
    }
}

impl ScalarUDFImpl for CurrentTimeFunction {
    crate::name_and_signature!(.name);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match info.query_execution_start_time() {
            Some(start) if self.signature.volatility == Volatility::Stable => {
                Ok(ExprSimplifyResult::Simplified(lit(self.value(start))))
            }
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.signature.volatility == Volatility::Stable {
            let message = format!("the start time of the statement is missing for {}", self.name);
            return Err(DataFusionError::Internal(message));
        }
        Ok(ColumnarValue::Scalar(self.value(Utc::now())))
    }
}
