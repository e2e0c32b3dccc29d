//! Numbers from text.

use arrow::datatypes::DataType;
use datafusion::common::Result;

use super::literal::invalid_input_error;
use super::{out_of_range_error, postgres_type_name};

/// Parses `text` as an integer of type `data_type`.
///
/// # Errors
/// PostgreSQL's error if the text is not an integer or is out of range.
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
///
/// # Errors
/// PostgreSQL's error if the text is not a number or is out of range.
pub(crate) fn parse_float(text: &str, data_type: &DataType) -> Result<f64> {
    let written = trimmed(text);
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written).to_ascii_lowercase();
    let is_special = matches!(unsigned.as_str(), "nan" | "inf" | "infinity");
    if unsigned.is_empty()
        || !(is_special || unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.'))
    {
        return Err(invalid_input_error(text, data_type));
    }
    let value: f64 = written.parse().map_err(|_| invalid_input_error(text, data_type))?;
    // Overflow to infinity and underflow to zero are out of range.
    #[allow(clippy::cast_possible_truncation, reason = "the next lines check what is lost")]
    let is_lost = !is_special
        && match data_type {
            DataType::Float32 => (value as f32).is_infinite() || (value != 0.0 && value as f32 == 0.0),
            _ => {
                value.is_infinite()
                    || (value == 0.0
                        && unsigned.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
                        && !unsigned.starts_with("0e"))
            }
        };
    if is_lost {
        return datafusion::common::exec_err!("\"{text}\" is out of range for type {}", postgres_type_name(data_type));
    }
    Ok(value)
}

/// Strips the surrounding white space that PostgreSQL ignores.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace())
}
