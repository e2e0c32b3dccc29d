//! Numbers written as text.

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::scalar::ScalarValue;

/// Parses `text` as a numeric with the scale that it is written with; `None` if it is not a number or has more than 38
/// digits.
pub(crate) fn numeric_literal(text: &str) -> Option<ScalarValue> {
    let (value, scale) = parse_decimal(text)?;
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let precision = u8::try_from(digits).ok()?.max(u8::try_from(scale).ok()?).max(1);
    (precision <= 38).then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

/// The units of `10^-scale`, and the scale, of a decimal such as `-12.50` or `1.5e3`.
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

/// The number of type `data_type` that the untyped literal `text` names.
///
/// # Errors
/// PostgreSQL's words when it names none.
pub(crate) fn parse_number(text: &str, data_type: &DataType) -> Result<ScalarValue> {
    if data_type.is_decimal() {
        return numeric_literal(text).ok_or_else(|| invalid_input_error(text, data_type));
    }
    if data_type.is_floating() {
        return Ok(ScalarValue::Float64(Some(super::parse_float(text, data_type)?)));
    }
    let value = super::parse_integer(text, data_type)?;
    Ok(ScalarValue::Int64(Some(value)))
}

/// The double next to a numeric; other values as they are.
pub(crate) fn to_double(value: ScalarValue) -> ScalarValue {
    match &value {
        ScalarValue::Decimal128(None, ..) => ScalarValue::Float64(None),
        // By its digits, so that it is the double that the same digits name.
        ScalarValue::Decimal128(Some(units), _, scale) => match format!("{units}e-{scale}").parse() {
            Ok(double) => ScalarValue::Float64(Some(double)),
            Err(_) => value,
        },
        _ => value,
    }
}

/// PostgreSQL's error for a text that names no value of a type.
pub(crate) fn invalid_input_error(text: &str, data_type: &DataType) -> DataFusionError {
    let name = super::postgres_type_name(data_type);
    DataFusionError::Execution(format!("invalid input syntax for type {name}: \"{text}\""))
}
