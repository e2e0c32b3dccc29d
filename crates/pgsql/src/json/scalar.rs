//! Converts values of SQL to scalars of JSON.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, IntervalDayTimeType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::common::{Result, exec_datafusion_err, exec_err};

use crate::number::write_float;
use crate::text::byte_format;
use crate::time::output;

/// A value that is neither an array nor an object.
pub(super) enum JsonScalar {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
}

/// Reads the value of `row`, which is not of a nested type.
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
            if !crate::number::has_unconstrained_scale(array.data_type()) {
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
            Ok(float(&format!("{value:e}"), f64::from(value), 6))
        }
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            Ok(float(&format!("{value:e}"), value, 15))
        }
        DataType::Utf8 => Ok(JsonScalar::Text(array.as_string::<i32>().value(row).to_owned())),
        DataType::LargeUtf8 => Ok(JsonScalar::Text(array.as_string::<i64>().value(row).to_owned())),
        DataType::Utf8View => Ok(JsonScalar::Text(array.as_string_view().value(row).to_owned())),
        DataType::Binary => Ok(JsonScalar::Text(byte_format::format(array.as_binary::<i32>().value(row)))),
        DataType::LargeBinary => Ok(JsonScalar::Text(byte_format::format(array.as_binary::<i64>().value(row)))),
        DataType::BinaryView => Ok(JsonScalar::Text(byte_format::format(array.as_binary_view().value(row)))),
        DataType::FixedSizeBinary(_) => {
            Ok(JsonScalar::Text(byte_format::format(array.as_fixed_size_binary().value(row))))
        }
        _ => read_temporal(array, row),
    }
}

/// Writes a floating-point number. JSON has no infinity and no NaN, so these are text.
fn float(shortest: &str, value: f64, digits_max: i32) -> JsonScalar {
    let mut text = String::new();
    write_float(shortest, value, digits_max, &mut text);
    if value.is_finite() { JsonScalar::Number(text) } else { JsonScalar::Text(text) }
}

/// Reads a date, a time or an interval.
fn read_temporal(array: &dyn Array, row: usize) -> Result<JsonScalar> {
    macro_rules! value {
        ($data_type:ty) => {
            array.as_primitive::<$data_type>().value(row)
        };
    }
    let mut text = String::new();
    match array.data_type() {
        DataType::Date32 => output::write_date(value!(Date32Type), &mut text),
        DataType::Timestamp(unit, zone) => {
            let micros = match unit {
                TimeUnit::Second => value!(TimestampSecondType).checked_mul(1_000_000),
                TimeUnit::Millisecond => value!(TimestampMillisecondType).checked_mul(1_000),
                TimeUnit::Microsecond => Some(value!(TimestampMicrosecondType)),
                TimeUnit::Nanosecond => Some(value!(TimestampNanosecondType).div_euclid(1_000)),
            };
            output::write_timestamp(micros.ok_or_else(|| exec_datafusion_err!("timestamp out of range"))?, &mut text);
            let zone = if zone.is_some() { "+00:00" } else { "" };
            let (day, time) = text.split_once(' ').unwrap_or((&text, ""));
            text = match time.strip_suffix(" BC") {
                Some(time) => format!("{day}T{time}{zone} BC"),
                None => format!("{day}T{time}{zone}"),
            };
        }
        DataType::Time32(TimeUnit::Second) => {
            output::write_time(i64::from(value!(Time32SecondType)) * 1_000_000, &mut text);
        }
        DataType::Time32(_) => output::write_time(i64::from(value!(Time32MillisecondType)) * 1_000, &mut text),
        DataType::Time64(TimeUnit::Microsecond) => output::write_time(value!(Time64MicrosecondType), &mut text),
        DataType::Time64(_) => output::write_time(value!(Time64NanosecondType) / 1_000, &mut text),
        DataType::Interval(unit) => {
            let interval = match unit {
                IntervalUnit::YearMonth => IntervalMonthDayNano::new(value!(IntervalYearMonthType), 0, 0),
                IntervalUnit::DayTime => {
                    let value = value!(IntervalDayTimeType);
                    IntervalMonthDayNano::new(0, value.days, i64::from(value.milliseconds) * 1_000_000)
                }
                IntervalUnit::MonthDayNano => value!(IntervalMonthDayNanoType),
            };
            output::write_interval(interval, &mut text);
        }
        other => return exec_err!("{other} has no JSON representation; cast it to text"),
    }
    Ok(JsonScalar::Text(text))
}
