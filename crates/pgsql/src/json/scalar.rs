//! Values of SQL as scalars of JSON.

use chrono::{DateTime, Datelike, NaiveDateTime, NaiveTime, Timelike};
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// A value that is neither an array nor an object.
pub(super) enum JsonScalar {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

/// The value of `row`, which is of none of the types that hold others.
pub(super) fn read_scalar(array: &dyn Array, row: usize) -> Result<JsonScalar> {
    if array.is_null(row) {
        return Ok(JsonScalar::Null);
    }
    macro_rules! number {
        ($native:ty) => {
            Ok(JsonScalar::Number(array.as_primitive::<$native>().value(row).to_string()))
        };
    }
    match array.data_type() {
        DataType::Null => Ok(JsonScalar::Null),
        DataType::Boolean => Ok(JsonScalar::Bool(array.as_boolean().value(row))),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Decimal128(precision, scale) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            let text = Decimal128Type::format_decimal(value, *precision, *scale);
            if !crate::number::has_free_scale(array.data_type()) {
                return Ok(JsonScalar::Number(text));
            }
            let digits = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            Ok(JsonScalar::Number(digits.to_owned()))
        }
        DataType::Decimal256(precision, scale) => {
            let value = array.as_primitive::<Decimal256Type>().value(row);
            Ok(JsonScalar::Number(Decimal256Type::format_decimal(value, *precision, *scale)))
        }
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            Ok(float(value.is_finite(), f64::from(value), &format!("{value:e}"), 6))
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            Ok(float(value.is_finite(), value, &format!("{value:e}"), 15))
        }
        DataType::Utf8 => Ok(JsonScalar::Text(array.as_string::<i32>().value(row).to_owned())),
        DataType::LargeUtf8 => Ok(JsonScalar::Text(array.as_string::<i64>().value(row).to_owned())),
        DataType::Utf8View => Ok(JsonScalar::Text(array.as_string_view().value(row).to_owned())),
        DataType::Binary => Ok(hex(array.as_binary::<i32>().value(row))),
        DataType::LargeBinary => Ok(hex(array.as_binary::<i64>().value(row))),
        DataType::BinaryView => Ok(hex(array.as_binary_view().value(row))),
        DataType::FixedSizeBinary(_) => Ok(hex(array.as_fixed_size_binary().value(row))),
        _ => read_temporal(array, row),
    }
}

/// As PostgreSQL prints it: the fewest digits that mean the same number, with an exponent from so many digits on.
fn float(is_finite: bool, value: f64, shortest: &str, digits_max: i32) -> JsonScalar {
    if !is_finite {
        let name = if value.is_nan() {
            "NaN"
        } else if value > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return JsonScalar::Text(name.to_owned());
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    if exponent < -4 || exponent >= digits_max {
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return JsonScalar::Number(format!("{sign}{mantissa}e{exponent_sign}{:02}", exponent.unsigned_abs()));
    }
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let plain = if exponent < 0 {
        format!("0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1))
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            format!("{digits}{}", "0".repeat(whole - digits.len()))
        } else {
            format!("{}.{}", &digits[..whole], &digits[whole..])
        }
    };
    JsonScalar::Number(format!("{sign}{plain}"))
}

fn hex(bytes: &[u8]) -> JsonScalar {
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    JsonScalar::Text(text)
}

/// Dates, times and intervals.
fn read_temporal(array: &dyn Array, row: usize) -> Result<JsonScalar> {
    let out_of_range = || exec_datafusion_err!("date or time out of range");
    let text = match array.data_type() {
        DataType::Date32 => {
            let days = i64::from(array.as_primitive::<Date32Type>().value(row));
            date(&DateTime::from_timestamp(days * 86_400, 0).ok_or_else(out_of_range)?.naive_utc())
        }
        DataType::Timestamp(unit, zone) => {
            let moment = timestamp(array, row, *unit).ok_or_else(out_of_range)?;
            let (day, era) = match date(&moment) {
                day if day.ends_with(" BC") => (day.trim_end_matches(" BC").to_owned(), " BC"),
                day => (day, ""),
            };
            let zone = if zone.is_some() { "+00:00" } else { "" };
            format!("{day}T{}{zone}{era}", time(&moment.time()))
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let nanoseconds = match array.data_type() {
                DataType::Time32(TimeUnit::Second) => {
                    i64::from(array.as_primitive::<Time32SecondType>().value(row)) * 1_000_000_000
                }
                DataType::Time32(_) => i64::from(array.as_primitive::<Time32MillisecondType>().value(row)) * 1_000_000,
                DataType::Time64(TimeUnit::Microsecond) => {
                    array.as_primitive::<Time64MicrosecondType>().value(row) * 1_000
                }
                _ => array.as_primitive::<Time64NanosecondType>().value(row),
            };
            let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            if seconds == 86_400 {
                "24:00:00".to_owned()
            } else {
                let time_of_day = NaiveTime::from_num_seconds_from_midnight_opt(seconds as u32, rest as u32);
                time(&time_of_day.ok_or_else(out_of_range)?)
            }
        }
        DataType::Interval(unit) => interval(array, row, *unit),
        other => return exec_err!("{other} has no JSON representation; cast it to text"),
    };
    Ok(JsonScalar::Text(text))
}

fn timestamp(array: &dyn Array, row: usize, unit: TimeUnit) -> Option<NaiveDateTime> {
    let moment = match unit {
        TimeUnit::Second => DateTime::from_timestamp(array.as_primitive::<TimestampSecondType>().value(row), 0),
        TimeUnit::Millisecond => {
            DateTime::from_timestamp_millis(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        TimeUnit::Microsecond => {
            DateTime::from_timestamp_micros(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        TimeUnit::Nanosecond => {
            Some(DateTime::from_timestamp_nanos(array.as_primitive::<TimestampNanosecondType>().value(row)))
        }
    };
    moment.map(|moment| moment.naive_utc())
}

fn date(moment: &NaiveDateTime) -> String {
    let year = moment.year();
    let (year, era) = if year <= 0 { (1 - year, " BC") } else { (year, "") };
    format!("{year:04}-{:02}-{:02}{era}", moment.month(), moment.day())
}

fn time(time: &NaiveTime) -> String {
    let whole = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    whole + &fraction(time.nanosecond() / 1_000)
}

/// Microseconds behind a point, if there are any.
fn fraction(microseconds: u32) -> String {
    if microseconds == 0 { String::new() } else { format!(".{microseconds:06}").trim_end_matches('0').to_owned() }
}

fn interval(array: &dyn Array, row: usize, unit: IntervalUnit) -> String {
    let (months, days, microseconds) = match unit {
        IntervalUnit::YearMonth => (array.as_primitive::<IntervalYearMonthType>().value(row), 0, 0),
        IntervalUnit::DayTime => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            (0, value.days, i64::from(value.milliseconds) * 1_000)
        }
        IntervalUnit::MonthDayNano => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            (value.months, value.days, value.nanoseconds / 1_000)
        }
    };
    let mut text = String::new();
    let mut was_negative = false;
    for (count, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count == 0 {
            continue;
        }
        let space = if text.is_empty() { "" } else { " " };
        let plus = if was_negative && count > 0 { "+" } else { "" };
        let plural = if count == 1 { "" } else { "s" };
        text.push_str(&format!("{space}{plus}{count} {unit}{plural}"));
        was_negative = count < 0;
    }
    if microseconds != 0 || text.is_empty() {
        let space = if text.is_empty() { "" } else { " " };
        let sign = if microseconds < 0 {
            "-"
        } else if was_negative {
            "+"
        } else {
            ""
        };
        let total = microseconds.unsigned_abs();
        let (seconds, rest) = (total / 1_000_000, (total % 1_000_000) as u32);
        let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        text.push_str(&format!("{space}{sign}{hours:02}:{minutes:02}:{seconds:02}{}", fraction(rest)));
    }
    text
}
