//! `extract(field FROM time)`, a numeric, and `date_part(field, time)`, a double.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, DateTimeParts, HOUR, JULIAN_EPOCH, MINUTE, date_from_days, day_of_year, iso_year, weekday};
use super::function::{function, function_with_constant_args};
use super::interval::micros;
use super::kind::TimeKind;
use super::unit::{TimeUnitField, unsupported};
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
