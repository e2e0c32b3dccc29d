//! The fields of times, by the names that PostgreSQL has for them: `extract(field FROM time)`, a numeric;
//! `date_part(field, time)`, a double; `date_trunc(unit, time)` and `date_trunc(unit, time, zone)`.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, IntervalMonthDayNano};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{
    DAY, DateTimeParts, HOUR, JULIAN_EPOCH, MINUTE, SECOND, date_from_days, day_of_year, days, iso_year, timestamp,
    weekday,
};
use super::function::{TimeKind, function, function_with_constant_args};
use super::input::build_interval;
use super::interval::micros;
use super::zone::TimeZoneSpec;
use crate::data_type::{INTERVAL, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn extract() -> ScalarUDF {
    function_with_constant_args("extract", numeric, |args| {
        let scale = if let DataType::Decimal128(_, scale) = args.returns { *scale } else { 6 };
        let unit = 10_i128.pow(u32::try_from(6 - scale).unwrap_or(0));
        extract_fields(args, |args, value| {
            args.collect::<Decimal128Type>(|row| Ok(value(row)?.map(|value| value / unit)))
        })
    })
}

/// Returns a numeric with as many digits as PostgreSQL gives the field.
fn numeric(kinds: &[TimeKind], values: &[Option<&ScalarValue>]) -> Result<Option<DataType>> {
    let (precision, scale) = match values.first() {
        Some(Some(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)))) => {
            let is_date = kinds.get(1) == Some(&TimeKind::Date);
            match TimeUnitField::find(name, "timestamp") {
                Ok(TimeUnitField::Second) => (8, 6),
                Ok(TimeUnitField::Milliseconds) => (8, 3),
                Ok(TimeUnitField::Epoch | TimeUnitField::Julian) if is_date => (18, 0),
                Ok(TimeUnitField::Epoch | TimeUnitField::Julian) | Err(_) => (24, 6),
                Ok(_) => (10, 0),
            }
        }
        _ => (24, 6),
    };
    Ok(returns(kinds, DataType::Decimal128(precision, scale)))
}

pub(super) fn date_part() -> ScalarUDF {
    function(
        "date_part",
        |kinds| returns(kinds, DataType::Float64),
        |args| {
            extract_fields(args, |args, value| {
                args.collect::<Float64Type>(|row| {
                    Ok(value(row)?.map(|millionths| {
                        let (whole, rest) = (millionths / MILLION, millionths % MILLION);
                        if rest == 0 { whole as f64 } else { millionths as f64 / 1e6 }
                    }))
                })
            })
        },
    )
}

fn returns(kinds: &[TimeKind], data_type: DataType) -> Option<DataType> {
    match kinds {
        [_, TimeKind::Integer | TimeKind::Number | TimeKind::Other] => None,
        [field, _] if field.accepts_untyped_literal() => Some(data_type),
        _ => None,
    }
}

/// Computes the field of each row, in millionths.
fn extract_fields(
    args: &FunctionCall<'_>,
    collect: impl Fn(&FunctionCall<'_>, &dyn Fn(usize) -> Result<Option<i128>>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let names = args.texts(0)?;
    let kind = args.time_kind(1);
    let type_name = kind.name(&args.args[1].data_type());
    let constant = names.is_constant.then(|| names.get(0)).flatten();
    let constant = constant.map(|name| TimeUnitField::find(name, &type_name)).transpose()?;
    let field = |name: &str| constant.map_or_else(|| TimeUnitField::find(name, &type_name), Ok);
    macro_rules! fields {
        ($values:expr, $compute:expr) => {{
            let values = $values;
            collect(args, &|row| match (names.get(row), values.get(row)) {
                (Some(name), Some(value)) => $compute(field(name)?, name, value).map(Some),
                _ => Ok(None),
            })
        }};
    }
    match kind {
        TimeKind::Interval => fields!(args.intervals(1)?, interval_field),
        TimeKind::Time => {
            fields!(args.times(1)?, |field, name, value| time_field(field, name, value, &type_name))
        }
        _ => {
            fields!(args.moments(1)?, |field, name, value| timestamp_field(field, name, value, kind, &type_name))
        }
    }
}

const MILLION: i128 = 1_000_000;

fn timestamp_field(unit: TimeUnitField, name: &str, value: i64, kind: TimeKind, type_name: &str) -> Result<i128> {
    let day = value.div_euclid(DAY);
    let time = value.rem_euclid(DAY);
    let (year, month, of_month) = date_from_days(day);
    let is_date = kind == TimeKind::Date;
    let is_zoned = !matches!(kind, TimeKind::Date | TimeKind::Timestamp);
    let whole = match unit {
        TimeUnitField::Day => of_month,
        TimeUnitField::Week => (day - iso_year(day).0) / 7 + 1,
        TimeUnitField::Month => month,
        TimeUnitField::Quarter => (month - 1) / 3 + 1,
        TimeUnitField::Year => without_year_zero(year),
        TimeUnitField::Decade => year.div_euclid(10),
        TimeUnitField::Century => numbered_period(year, 100),
        TimeUnitField::Millennium => numbered_period(year, 1_000),
        TimeUnitField::DayOfWeek => weekday(day),
        TimeUnitField::IsoDayOfWeek => (weekday(day) + 6) % 7 + 1,
        TimeUnitField::DayOfYear => day_of_year(day),
        TimeUnitField::IsoYear => without_year_zero(iso_year(day).1),
        TimeUnitField::Julian if is_date => day + JULIAN_EPOCH,
        TimeUnitField::Julian => {
            // Rounded to millionths, although PostgreSQL gives more digits.
            let fraction = (i128::from(time) * MILLION + i128::from(DAY / 2)) / i128::from(DAY);
            return Ok(i128::from(day + JULIAN_EPOCH) * MILLION + fraction);
        }
        TimeUnitField::Epoch => return Ok(i128::from(value)),
        TimeUnitField::Timezone | TimeUnitField::TimezoneHour | TimeUnitField::TimezoneMinute if is_zoned => 0,
        _ if is_date => return Err(unsupported(name, type_name)),
        _ => return time_field(unit, name, time, type_name),
    };
    Ok(i128::from(whole) * MILLION)
}

/// Returns the number of a year: the year before 1 is -1.
fn without_year_zero(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

/// Returns the century or millennium of a year. There is no period with the number 0.
fn numbered_period(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

fn time_field(unit: TimeUnitField, name: &str, value: i64, type_name: &str) -> Result<i128> {
    let parts = DateTimeParts::from_time(value);
    Ok(match unit {
        TimeUnitField::Microseconds => i128::from(value % MINUTE) * MILLION,
        TimeUnitField::Milliseconds => i128::from(value % MINUTE) * 1_000,
        TimeUnitField::Second => i128::from(value % MINUTE),
        TimeUnitField::Minute => i128::from(parts.minute) * MILLION,
        TimeUnitField::Hour => i128::from(parts.hour) * MILLION,
        TimeUnitField::Epoch => i128::from(value),
        _ => return Err(unsupported(name, type_name)),
    })
}

fn interval_field(unit: TimeUnitField, name: &str, value: arrow::datatypes::IntervalMonthDayNano) -> Result<i128> {
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), micros(value));
    let whole = match unit {
        TimeUnitField::Hour => micros / HOUR,
        TimeUnitField::Day => days,
        TimeUnitField::Month => months % 12,
        TimeUnitField::Quarter => months % 12 / 3 + 1,
        TimeUnitField::Year => months / 12,
        TimeUnitField::Decade => months / 120,
        TimeUnitField::Century => months / 1_200,
        TimeUnitField::Millennium => months / 12_000,
        TimeUnitField::Epoch => {
            // A year counts 365.25 days, a month 30.
            let days = i128::from(months / 12) * 1_461 + i128::from(months % 12) * 120 + i128::from(days) * 4;
            return Ok(days * i128::from(DAY / 4) + i128::from(micros));
        }
        TimeUnitField::Microseconds | TimeUnitField::Milliseconds | TimeUnitField::Second | TimeUnitField::Minute => {
            return time_field(unit, name, micros % HOUR, "interval");
        }
        _ => return Err(unsupported(name, "interval")),
    };
    Ok(i128::from(whole) * MILLION)
}

/// A field of a time, or the unit that a time is cut off to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeUnitField {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl TimeUnitField {
    /// Returns the unit with this name, for values of the type `kind`.
    fn find(name: &str, kind: &str) -> Result<Self> {
        Ok(match name.trim().to_ascii_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsec"
            | "microsecs" => Self::Microseconds,
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Self::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "cent" | "c" => Self::Century,
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "isoyear" => Self::IsoYear,
            "julian" | "j" | "jd" => Self::Julian,
            "epoch" => Self::Epoch,
            "timezone" => Self::Timezone,
            "timezone_hour" | "timezone_h" => Self::TimezoneHour,
            "timezone_minute" | "timezone_m" => Self::TimezoneMinute,
            _ => return Err(DataFusionError::Execution(format!("unit \"{name}\" not recognized for type {kind}"))),
        })
    }
}

/// Returns the error for a field that the type `kind` does not have.
fn unsupported(name: &str, kind: &str) -> DataFusionError {
    DataFusionError::Execution(format!("unit \"{name}\" not supported for type {kind}"))
}

pub(super) fn date_trunc() -> ScalarUDF {
    function("date_trunc", truncated_type, |args| match args.time_kind(1) {
        TimeKind::Interval => {
            let (units, values) = (args.texts(0)?, args.intervals(1)?);
            args.collect_intervals(|row| match (units.get(row), values.get(row)) {
                (Some(unit), Some(value)) => truncate_interval(unit, value).map(Some),
                _ => Ok(None),
            })
        }
        _ => truncate_moments(args),
    })
}

fn truncated_type(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [unit, ..] if !unit.accepts_untyped_literal() => None,
        [_, TimeKind::Timestamp] => Some(TIMESTAMP),
        [_, TimeKind::Date | TimeKind::Timestamptz | TimeKind::Null] => Some(timestamptz()),
        [_, TimeKind::Interval] => Some(INTERVAL),
        [_, moment, zone] if zone.accepts_untyped_literal() => {
            (moment.is_moment() || moment.accepts_untyped_literal()).then(timestamptz)
        }
        _ => None,
    }
}

fn truncate_moments(args: &FunctionCall<'_>) -> Result<arrow::array::ArrayRef> {
    let (units, values) = (args.texts(0)?, args.moments(1)?);
    let zones = if args.args.len() > 2 { Some(args.texts(2)?) } else { None };
    let kind = TimeKind::from_data_type(args.returns).name(args.returns);
    // In most calls all rows have the same unit and zone, so the last ones are cached.
    let last_unit = std::cell::RefCell::new((String::new(), TimeUnitField::Epoch));
    let last_zone = std::cell::RefCell::new((String::new(), TimeZoneSpec::Fixed(0)));
    args.collect_micros(|row| {
        let (Some(name), Some(value)) = (units.get(row), values.get(row)) else { return Ok(None) };
        if last_unit.borrow().0 != name || name.is_empty() {
            last_unit.replace((name.to_owned(), TimeUnitField::find(name, &kind)?));
        }
        let unit = last_unit.borrow().1;
        let Some(zones) = &zones else { return truncate_moment(unit, value, name, &kind).map(Some) };
        let Some(zone) = zones.get(row) else { return Ok(None) };
        if last_zone.borrow().0 != zone || zone.is_empty() {
            last_zone.replace((zone.to_owned(), TimeZoneSpec::find(zone)?));
        }
        let zone = last_zone.borrow().1;
        let local = truncate_moment(unit, zone.local(value), name, &kind)?;
        // Units within a day keep the offset of the moment, because a local time may occur twice.
        let is_short = matches!(
            unit,
            TimeUnitField::Microseconds
                | TimeUnitField::Milliseconds
                | TimeUnitField::Second
                | TimeUnitField::Minute
                | TimeUnitField::Hour
        );
        Ok(Some(if is_short { local - (zone.local(value) - value) } else { zone.instant(local) }))
    })
}

/// Returns the start of the unit that contains a moment.
fn truncate_moment(unit: TimeUnitField, value: i64, name: &str, kind: &str) -> Result<i64> {
    let step = |micros: i64| Ok(value - value.rem_euclid(micros));
    let day = value.div_euclid(DAY);
    let (year, month, _) = date_from_days(day);
    // Centuries and millennia begin with the years 1, 101, …; there is no year 0.
    let first_year = |length: i64| (year - 1).div_euclid(length) * length + 1;
    let at = |year: i64, month: i64| timestamp(days(year, month, 1), 0);
    match unit {
        TimeUnitField::Microseconds => Ok(value),
        TimeUnitField::Milliseconds => step(1_000),
        TimeUnitField::Second => step(SECOND),
        TimeUnitField::Minute => step(MINUTE),
        TimeUnitField::Hour => step(HOUR),
        TimeUnitField::Day => step(DAY),
        TimeUnitField::Week => timestamp(day - (weekday(day) + 6).rem_euclid(7), 0),
        TimeUnitField::Month => at(year, month),
        TimeUnitField::Quarter => at(year, (month - 1) / 3 * 3 + 1),
        TimeUnitField::Year => at(year, 1),
        TimeUnitField::Decade => at(year.div_euclid(10) * 10, 1),
        TimeUnitField::Century => at(first_year(100), 1),
        TimeUnitField::Millennium => at(first_year(1_000), 1),
        _ => Err(unsupported(name, kind)),
    }
}

fn truncate_interval(name: &str, value: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let unit = TimeUnitField::find(name, "interval")?;
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), micros(value));
    let of_months = |length: i64| build_interval(months / length * length, 0, 0);
    let of_time = |step: i64| build_interval(months, days, micros / step * step);
    match unit {
        TimeUnitField::Microseconds => Ok(value),
        TimeUnitField::Milliseconds => of_time(1_000),
        TimeUnitField::Second => of_time(SECOND),
        TimeUnitField::Minute => of_time(MINUTE),
        TimeUnitField::Hour => of_time(HOUR),
        TimeUnitField::Day => build_interval(months, days, 0),
        TimeUnitField::Month => of_months(1),
        TimeUnitField::Quarter => of_months(3),
        TimeUnitField::Year => of_months(12),
        TimeUnitField::Decade => of_months(120),
        TimeUnitField::Century => of_months(1_200),
        TimeUnitField::Millennium => of_months(12_000),
        _ => Err(unsupported(name, "interval")),
    }
}
