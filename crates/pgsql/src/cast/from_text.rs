//! PostgreSQL's input functions: values from text.

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{Result, exec_err, plan_err};

use super::conversion::{convert_integers_exactly, into_array_ref, round_half_away_from_zero};
use crate::json_type::json_kind;
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
///
/// # Errors
/// PostgreSQL's error for the first text that is not a value of the type.
pub(crate) fn parse_texts(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    Ok(match to {
        integer if integer.is_integer() => {
            let integers: Int64Array = parse_each(texts, |text| number::parse_integer(text, to))?;
            convert_integers_exactly(&integers, to)?
        }
        float if float.is_floating() => {
            let floats: Float64Array = parse_each(texts, |text| number::parse_float(text, to))?;
            cast(&floats, to)?
        }
        DataType::Decimal128(precision, scale) => {
            let decimals: Decimal128Array = parse_each(texts, |text| parse_decimal(text, *precision, *scale, to))?;
            into_array_ref(decimals.with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Boolean => into_array_ref(parse_each::<_, BooleanArray>(texts, parse_boolean)?),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let values: Vec<Option<Vec<u8>>> =
                texts.iter().map(|text| text.map(parse_bytes).transpose()).collect::<Result<_>>()?;
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
            into_array_ref(parse_each::<_, IntervalMonthDayNanoArray>(texts, input::parse_interval)?)
        }
        DataType::List(_) => list::parse_arrays(texts, to, &|elements, to| {
            if super::is_text(to) { Ok(cast(&elements, to)?) } else { parse_texts(elements.as_string(), to) }
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
        if number::has_free_scale(to) && value % unit != 0 {
            return exec_err!(
                "\"{text}\" has more digits after the point than the type keeps; cast it to numeric(38, {written})"
            );
        }
        round_half_away_from_zero(value, unit)
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

/// Parses bytes in hex format (`\xdeadbeef`) or escape format (`\001abc\\`).
fn parse_bytes(text: &str) -> Result<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        if !digits.len().is_multiple_of(2) {
            return exec_err!("invalid hexadecimal data: odd number of digits");
        }
        let pairs = digits.chunks_exact(2).map(|pair| Some(value(pair[0])? * 16 + value(pair[1])?));
        return match pairs.collect::<Option<Vec<u8>>>() {
            Some(bytes) => Ok(bytes),
            None => exec_err!("invalid hexadecimal digit in \"{text}\""),
        };
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        (bytes, rest) = match (first, tail) {
            (b'\\', [b'\\', tail @ ..]) => (push_byte(bytes, b'\\'), tail),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                (push_byte(bytes, (a - b'0') * 64 + (b - b'0') * 8 + (c - b'0')), tail)
            }
            (b'\\', _) => return exec_err!("invalid input syntax for type bytea"),
            (byte, tail) => (push_byte(bytes, *byte), tail),
        };
    }
    Ok(bytes)
}

fn push_byte(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}
