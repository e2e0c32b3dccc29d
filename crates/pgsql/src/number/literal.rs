//! Numbers that are written as text.

use std::fmt::Write;
use std::num::ParseFloatError;

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::scalar::ScalarValue;

use super::out_of_range_error;
use crate::data_type::number_type_name;

/// Parses `text` as a numeric with the scale that it is written with; `None` if it is not a number or has more than 38
/// digits.
pub fn numeric_literal(text: &str) -> Option<ScalarValue> {
    let (value, scale) = parse_decimal(text)?;
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let precision = u8::try_from(digits).ok()?.max(u8::try_from(scale).ok()?).max(1);
    (precision <= 38).then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

/// Parses a decimal such as `-12.50` or `1.5e3`. Returns the number of units of `10^-scale`, and the scale.
pub(crate) fn parse_decimal(text: &str) -> Option<(i128, i8)> {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let mut value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let mut scale = i32::try_from(fraction.len()).ok()? - exponent;
    if scale < 0 {
        value = value.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
        scale = 0;
    }
    let value = if mantissa.starts_with('-') { -value } else { value };
    Some((value, i8::try_from(scale).ok().filter(|scale| *scale <= 38)?))
}

/// Parses an untyped literal as a number of type `data_type`.
pub(crate) fn parse_number(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if data_type.is_decimal() {
        return numeric_literal(text).ok_or_else(|| invalid_input_error(text, data_type));
    }
    if data_type.is_floating() {
        return Ok(float_scalar(parse_float(text, data_type)?, data_type));
    }
    let value = ScalarValue::Int64(Some(parse_integer(text, data_type)?));
    // PostgreSQL has no other types of fewer bits.
    if matches!(data_type, DataType::Int16 | DataType::Int32) { value.cast_to(data_type) } else { Ok(value) }
}

fn float_scalar(value: f64, data_type: &DataType) -> ScalarValue {
    if is_real(data_type) { ScalarValue::Float32(Some(value as f32)) } else { ScalarValue::Float64(Some(value)) }
}

/// Whether `data_type` is `real`, or a narrower floating-point number.
fn is_real(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32)
}

/// Converts a numeric to the nearest number of a floating-point type; other values stay unchanged.
pub(crate) fn to_float(value: ScalarValue, data_type: &DataType) -> ScalarValue {
    match &value {
        ScalarValue::Decimal128(None, ..) if is_real(data_type) => ScalarValue::Float32(None),
        ScalarValue::Decimal128(None, ..) => ScalarValue::Float64(None),
        // Parses the digits, so that the result is the number that a literal of the same digits has.
        ScalarValue::Decimal128(Some(units), _, scale) => {
            match parse_nearest(&format!("{units}e-{scale}"), data_type) {
                Ok(nearest) => float_scalar(nearest, data_type),
                Err(_) => value,
            }
        }
        _ => value,
    }
}

/// Parses the digits of a number as the nearest one of a floating-point type, which is not always that of the nearest double.
fn parse_nearest(digits: &str, data_type: &DataType) -> Result<f64, ParseFloatError> {
    if is_real(data_type) { digits.parse::<f32>().map(f64::from) } else { digits.parse() }
}

/// Returns PostgreSQL's error for a text that is not a value of a type.
pub(crate) fn invalid_input_error(text: &str, data_type: &DataType) -> DataFusionError {
    let name = number_type_name(data_type);
    DataFusionError::Execution(format!("invalid input syntax for type {name}: \"{text}\""))
}

/// Parses `text` as an integer of type `data_type`.
pub(crate) fn parse_integer(text: &str, data_type: &DataType) -> Result<i64> {
    let digits = trimmed(text);
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_input_error(text, data_type));
    }
    let out_of_range = || out_of_range_error(data_type);
    let value: i64 = digits.parse().map_err(|_| out_of_range())?;
    let fits = match data_type {
        DataType::Int8 => i8::try_from(value).is_ok(),
        DataType::UInt8 => u8::try_from(value).is_ok(),
        DataType::Int16 => i16::try_from(value).is_ok(),
        DataType::UInt16 => u16::try_from(value).is_ok(),
        DataType::Int32 => i32::try_from(value).is_ok(),
        DataType::UInt32 => u32::try_from(value).is_ok(),
        DataType::UInt64 => value >= 0,
        _ => true,
    };
    if fits { Ok(value) } else { Err(out_of_range()) }
}

/// Parses `text` as a floating-point number.
pub(crate) fn parse_float(text: &str, data_type: &DataType) -> Result<f64> {
    let written = trimmed(text);
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written).to_ascii_lowercase();
    let is_special = matches!(unsigned.as_str(), "nan" | "inf" | "infinity");
    if unsigned.is_empty()
        || !(is_special || unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
    {
        return Err(invalid_input_error(text, data_type));
    }
    let value = parse_nearest(written, data_type).map_err(|_| invalid_input_error(text, data_type))?;
    // Overflow to infinity and underflow to zero are out of range.
    let mantissa = unsigned.split('e').next().unwrap_or_default();
    let has_digit = mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    let is_lost = !is_special && (value.is_infinite() || (value == 0.0 && has_digit));
    if is_lost {
        return exec_err!("\"{text}\" is out of range for type {}", number_type_name(data_type));
    }
    Ok(value)
}

/// Strips the surrounding white space that PostgreSQL ignores.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace())
}

/// Writes a floating-point number from its shortest representation (`-1.5e20`). It has an exponent from `10^digits` on
/// and below `0.0001`.
pub(crate) fn write_float(shortest: &str, value: f64, digits: i32, out: &mut String) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..digits).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a string never fails.
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.abs());
        return;
    }
    let (sign, unsigned) = mantissa.strip_prefix('-').map_or(("", mantissa), |unsigned| ("-", unsigned));
    let all = unsigned.replace('.', "");
    out.push_str(sign);
    match usize::try_from(exponent) {
        Ok(before) if before + 1 >= all.len() => {
            let _ = write!(out, "{all}{}", "0".repeat(before + 1 - all.len()));
        }
        Ok(before) => {
            let _ = write!(out, "{}.{}", &all[..=before], &all[before + 1..]);
        }
        Err(_) => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            let _ = write!(out, "0.{}{all}", "0".repeat(zeros));
        }
    }
}
