//! `extract(field FROM time)`, a numeric, and `date_part(field, time)`, a double.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, HOUR, JULIAN_EPOCH, MINUTE, Parts, civil, day_of_year, iso_year, weekday};
use super::column::{Arguments, Texts};
use super::function::{function, function_of_values, no_function};
use super::interval::micros;
use super::kind::Kind;
use super::unit::{Unit, unsupported};

pub(super) fn extract() -> ScalarUDF {
    function_of_values("extract", numeric, |args| {
        let data_type = args.return_type().clone();
        let scale = if let DataType::Decimal128(_, scale) = data_type { scale } else { 6 };
        let unit = 10_i128.pow(u32::try_from(6 - scale).unwrap_or(0));
        parts(args, |args, value| {
            args.collect::<Decimal128Type>(&data_type, |row| Ok(value(row)?.map(|value| value / unit)))
        })
    })
}

/// A numeric with as many digits as PostgreSQL gives the field.
fn numeric(types: &[DataType], values: &[Option<&ScalarValue>]) -> Result<DataType> {
    let (precision, scale) = match values.first() {
        Some(Some(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)))) => {
            let is_date = types.get(1).is_some_and(|data_type| Kind::of(data_type) == Kind::Date);
            match Unit::find(name, "timestamp") {
                Ok(Unit::Second) => (8, 6),
                Ok(Unit::Milliseconds) => (8, 3),
                Ok(Unit::Epoch | Unit::Julian) if is_date => (18, 0),
                Ok(Unit::Epoch | Unit::Julian) | Err(_) => (24, 6),
                Ok(_) => (10, 0),
            }
        }
        _ => (24, 6),
    };
    returns("extract", types, DataType::Decimal128(precision, scale))
}

pub(super) fn date_part() -> ScalarUDF {
    function(
        "date_part",
        |types| returns("date_part", types, DataType::Float64),
        |args| {
            parts(args, |args, value| {
                args.collect::<Float64Type>(&DataType::Float64, |row| {
                    Ok(value(row)?.map(|millionths| {
                        let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
                        if rest == 0 { whole as f64 } else { millionths as f64 / 1e6 }
                    }))
                })
            })
        },
    )
}

fn returns(name: &str, types: &[DataType], data_type: DataType) -> Result<DataType> {
    let kinds: Vec<Kind> = types.iter().map(Kind::of).collect();
    match kinds.as_slice() {
        [field, time] if field.is_open() => match time {
            Kind::Integer | Kind::Number | Kind::Other => Err(no_function(name, types)),
            _ => Ok(data_type),
        },
        _ => Err(no_function(name, types)),
    }
}

/// The field of each row, in millionths.
fn parts(
    args: &Arguments,
    collect: impl Fn(&Arguments, &dyn Fn(usize) -> Result<Option<i128>>) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let names = args.texts(0)?;
    let kind = args.kind(1);
    let type_name = kind.name(&args.data_type(1));
    let constant = match &names {
        Texts::Constant(Some(name)) => Some(Unit::find(name, &type_name)?),
        _ => None,
    };
    let field = |name: &str| constant.map_or_else(|| Unit::find(name, &type_name), Ok);
    match kind {
        Kind::Interval => {
            let values = args.intervals(1)?;
            collect(args, &|row| match (names.get(row), values.get(row)) {
                (Some(name), Some(value)) => of_interval(field(name)?, name, value).map(Some),
                _ => Ok(None),
            })
        }
        Kind::Time => {
            let values = args.times(1)?;
            collect(args, &|row| match (names.get(row), values.get(row)) {
                (Some(name), Some(value)) => of_time(field(name)?, name, value, &type_name).map(Some),
                _ => Ok(None),
            })
        }
        _ => {
            let values = args.moments(1)?;
            collect(args, &|row| match (names.get(row), values.get(row)) {
                (Some(name), Some(value)) => of_moment(field(name)?, name, value, kind, &type_name).map(Some),
                _ => Ok(None),
            })
        }
    }
}

const MILLION: i128 = 1_000_000;

fn of_moment(unit: Unit, name: &str, value: i64, kind: Kind, type_name: &str) -> Result<i128> {
    let day = value.div_euclid(DAY);
    let time = value.rem_euclid(DAY);
    let (year, month, of_month) = civil(day);
    let is_date = kind == Kind::Date;
    let is_zoned = !matches!(kind, Kind::Date | Kind::Timestamp);
    let whole = match unit {
        Unit::Day => of_month,
        Unit::Week => (day - iso_year(day).0) / 7 + 1,
        Unit::Month => month,
        Unit::Quarter => (month - 1) / 3 + 1,
        // The year before 1 is called -1.
        Unit::Year => {
            if year > 0 {
                year
            } else {
                year - 1
            }
        }
        Unit::Decade => year.div_euclid(10),
        Unit::Century => age_of(year, 100),
        Unit::Millennium => age_of(year, 1_000),
        Unit::DayOfWeek => weekday(day),
        Unit::IsoDayOfWeek => (weekday(day) + 6) % 7 + 1,
        Unit::DayOfYear => day_of_year(day),
        Unit::IsoYear => {
            let year = iso_year(day).1;
            if year > 0 { year } else { year - 1 }
        }
        Unit::Julian if is_date => day + JULIAN_EPOCH,
        Unit::Julian => {
            // Rounded to millionths, although PostgreSQL gives more digits.
            let fraction = (i128::from(time) * MILLION + i128::from(DAY / 2)) / i128::from(DAY);
            return Ok(i128::from(day + JULIAN_EPOCH) * MILLION + fraction);
        }
        Unit::Epoch => return Ok(i128::from(value)),
        Unit::Timezone | Unit::TimezoneHour | Unit::TimezoneMinute if is_zoned => 0,
        _ if is_date => return Err(unsupported(name, type_name)),
        _ => return of_time(unit, name, time, type_name),
    };
    Ok(i128::from(whole) * MILLION)
}

/// The century or millennium of a year, of which there is none with the number 0.
fn age_of(year: i64, length: i64) -> i64 {
    if year > 0 { (year + length - 1) / length } else { -((length - year) / length) }
}

fn of_time(unit: Unit, name: &str, value: i64, type_name: &str) -> Result<i128> {
    let parts = Parts::of_time(value);
    Ok(match unit {
        Unit::Microseconds => i128::from(value % MINUTE) * MILLION,
        Unit::Milliseconds => i128::from(value % MINUTE) * 1_000,
        Unit::Second => i128::from(value % MINUTE),
        Unit::Minute => i128::from(parts.minute) * MILLION,
        Unit::Hour => i128::from(parts.hour) * MILLION,
        Unit::Epoch => i128::from(value),
        _ => return Err(unsupported(name, type_name)),
    })
}

fn of_interval(unit: Unit, name: &str, value: arrow::datatypes::IntervalMonthDayNano) -> Result<i128> {
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), micros(value));
    let whole = match unit {
        Unit::Hour => micros / HOUR,
        Unit::Day => days,
        Unit::Month => months % 12,
        Unit::Quarter => months % 12 / 3 + 1,
        Unit::Year => months / 12,
        Unit::Decade => months / 120,
        Unit::Century => months / 1_200,
        Unit::Millennium => months / 12_000,
        Unit::Epoch => {
            // A year counts 365.25 days, a month 30.
            let days = i128::from(months / 12) * 1_461 + i128::from(months % 12) * 120 + i128::from(days) * 4;
            return Ok(days * i128::from(DAY / 4) + i128::from(micros));
        }
        Unit::Microseconds | Unit::Milliseconds | Unit::Second | Unit::Minute => {
            return of_time(unit, name, micros % HOUR, "interval");
        }
        _ => return Err(unsupported(name, "interval")),
    };
    Ok(i128::from(whole) * MILLION)
}
