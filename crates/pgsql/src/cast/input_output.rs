//! PostgreSQL's input functions, values from text, and its output functions, values as text.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, StringBuilder, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_err};

use crate::byte_format;
use crate::data_type::json_kind;
use crate::number::{self, write_float};
use crate::time::{conversion, input};
use crate::{array, list};

/// Whether this module parses values of this type.
pub(super) fn is_parsed_here(to: &DataType) -> bool {
    to.is_integer()
        || to.is_floating()
        || to.is_temporal()
        || matches!(to, DataType::Decimal128(..) | DataType::Boolean)
        || matches!(to, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Interval(_))
        || matches!(to, DataType::List(_))
}

/// Parses each text as a value of type `to`.
pub(crate) fn parse_texts(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        integer if integer.is_integer() => {
            let integers: Int64Array = parse_each(texts, |text| number::parse_integer(text, to))?;
            number::convert_integers_exactly(&integers, to)?
        }
        float if float.is_floating() => {
            let floats: Float64Array = parse_each(texts, |text| number::parse_float(text, to))?;
            cast(&floats, to)?
        }
        DataType::Decimal128(precision, scale) => {
            let decimals: Decimal128Array = parse_each(texts, |text| parse_decimal(text, *precision, *scale, to))?;
            Arc::new(decimals.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Boolean => Arc::new(parse_each::<_, BooleanArray>(texts, parse_boolean)?),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let values: Vec<Option<Vec<u8>>> =
                texts.iter().map(|text| text.map(byte_format::parse).transpose()).collect::<Result<_>>()?;
            cast(&BinaryArray::from_iter(values), to)?
        }
        DataType::Date32 | DataType::Date64 => cast(&parse_each::<_, Date32Array>(texts, input::parse_date)?, to)?,
        DataType::Time32(_) | DataType::Time64(_) => {
            cast(&parse_each::<_, Time64MicrosecondArray>(texts, input::parse_time)?, to)?
        }
        DataType::Timestamp(_, None) => {
            cast(&parse_each::<_, TimestampMicrosecondArray>(texts, input::parse_timestamp)?, to)?
        }
        DataType::Timestamp(_, Some(_)) => {
            let instants: TimestampMicrosecondArray = parse_each(texts, input::parse_timestamptz)?;
            cast(&instants.with_timezone("UTC"), to)?
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Arc::new(parse_each::<_, IntervalMonthDayNanoArray>(texts, input::parse_interval)?)
        }
        DataType::List(_) => list::parse_arrays(texts, to, &|elements, to| {
            if to.is_string() { Ok(cast(&elements, to)?) } else { parse_texts(elements.as_string(), to) }
        })?,
        other => match json_kind(other) {
            Some(kind) => crate::json::parse_json_texts(texts, kind)?,
            None => return plan_err!("text cannot be cast to {other}"),
        },
    })
}

fn parse_each<T, A: FromIterator<Option<T>>>(texts: &StringArray, parse: impl Fn(&str) -> Result<T>) -> Result<A> {
    texts.iter().map(|text| text.map(&parse).transpose()).collect()
}

fn parse_decimal(text: &str, precision: u8, scale: i8, to: &DataType) -> Result<i128> {
    let Some((value, written)) = number::parse_decimal(text) else { return numeric_error(text, to) };
    let shift = u32::from((i16::from(scale) - i16::from(written)).unsigned_abs());
    let overflow =
        || format!("numeric field overflow: \"{text}\" has more digits than numeric({precision},{scale}) holds");
    let units = if written > scale {
        let unit = 10_i128.pow(shift);
        if number::has_unconstrained_scale(to) && value % unit != 0 {
            return exec_err!(
                "\"{text}\" has more digits after the point than the type keeps; cast it to numeric(38, {written})"
            );
        }
        number::round_half_away_from_zero(value, unit)
    } else {
        match 10_i128.checked_pow(shift).and_then(|factor| value.checked_mul(factor)) {
            Some(units) => units,
            None => return exec_err!("{}", overflow()),
        }
    };
    if units.unsigned_abs() < 10_u128.pow(u32::from(precision)) { Ok(units) } else { exec_err!("{}", overflow()) }
}

/// Returns why `text` is not a supported numeric: invalid syntax, or a value that PostgreSQL has and this engine does
/// not.
fn numeric_error(text: &str, to: &DataType) -> Result<i128> {
    let word = text.trim().trim_start_matches(['-', '+']).to_ascii_lowercase();
    if matches!(word.as_str(), "nan" | "inf" | "infinity") {
        return exec_err!("\"{text}\" is not supported as a numeric; write '{text}'::double precision instead");
    }
    if number::parse_float(text, &DataType::Float64).is_ok() {
        return exec_err!("\"{text}\" has more than the 38 digits of a numeric; write a double precision instead");
    }
    Err(number::invalid_input_error(text, to))
}

/// Parses a boolean from any unambiguous prefix of its names, as PostgreSQL does.
fn parse_boolean(text: &str) -> Result<bool> {
    let word = text.trim_matches(|character: char| character.is_ascii_whitespace()).to_ascii_lowercase();
    let begins = |name: &str, shortest: usize| word.len() >= shortest && name.starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == "on" || word == "1" {
        return Ok(true);
    }
    if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == "0" {
        return Ok(false);
    }
    exec_err!("invalid input syntax for type boolean: \"{text}\"")
}

/// Whether Arrow formats values of this type differently from PostgreSQL.
pub(super) fn is_formatted_here(from: &DataType) -> bool {
    from.is_floating()
        || from.is_temporal()
        || matches!(from, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
        || matches!(from, DataType::FixedSizeBinary(_) | DataType::Interval(_))
        || matches!(from, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// Formats each value as `value::text` does. NULL stays NULL.
pub(super) fn format_values(values: &ArrayRef) -> Result<StringArray> {
    Ok(match values.data_type() {
        DataType::Float32 => format_each::<Float32Type>(values, |value, out| {
            write_float(&format!("{value:e}"), f64::from(value), 6, out);
        }),
        DataType::Float64 => format_each::<Float64Type>(values, |value, out| {
            write_float(&format!("{value:e}"), value, 15, out);
        }),
        DataType::Date32 => format_each::<Date32Type>(values, conversion::write_date),
        DataType::Date64 => return format_values(&cast(values, &DataType::Date32)?),
        DataType::Time32(_) | DataType::Time64(_) => {
            let values = cast(values, &DataType::Time64(TimeUnit::Microsecond))?;
            format_each::<Time64MicrosecondType>(&values, conversion::write_time)
        }
        DataType::Timestamp(_, zone) => {
            let write = if zone.is_some() { conversion::write_timestamptz } else { conversion::write_timestamp };
            let values = cast(values, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?;
            format_each::<TimestampMicrosecondType>(&values, write)
        }
        DataType::Interval(_) => {
            let values = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            format_each::<IntervalMonthDayNanoType>(&values, conversion::write_interval)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let values = cast(values, &DataType::LargeBinary)?;
            values.as_binary::<i64>().iter().map(|value| value.map(byte_format::format)).collect()
        }
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => array::format_arrays(values)?,
        _ => cast(values, &DataType::Utf8)?.as_string().clone(),
    })
}

fn format_each<T: ArrowPrimitiveType>(values: &ArrayRef, write: impl Fn(T::Native, &mut String)) -> StringArray {
    let values = values.as_primitive::<T>();
    let mut texts = StringBuilder::with_capacity(values.len(), values.len() * 16);
    let mut text = String::new();
    for value in values {
        text.clear();
        match value {
            Some(value) => {
                write(value, &mut text);
                texts.append_value(&text);
            }
            None => texts.append_null(),
        }
    }
    texts.finish()
}
