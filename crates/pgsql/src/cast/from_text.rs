//! PostgreSQL's input functions: values from text.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{Result, exec_err, plan_err};

use crate::json_type::json_kind;
use crate::text::byte_format;
use crate::time::input;
use crate::{list, number};

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
