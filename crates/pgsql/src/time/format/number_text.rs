//! Numbers of any type as the digits that patterns write, and back.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::{Result, exec_err, plan_err};

use super::number_pattern::{NumberField, NumberPattern, SignPlace};
use super::pattern::PatternNode;
use super::write_number;
use crate::function::FunctionCall;

/// Digits that a double has for certain.
const DOUBLE_DIGITS: usize = 15;
/// Digits that a real has for certain.
const REAL_DIGITS: usize = 6;

/// The numbers of an argument.
pub(super) enum NumberValues {
    Decimals { values: ArrayRef, scale: usize },
    Floats { values: ArrayRef, digits: usize },
}

impl NumberValues {
    pub(super) fn new(args: &FunctionCall<'_>, position: usize) -> Result<Self> {
        let values = args.array(position)?;
        match values.data_type() {
            DataType::Decimal128(_, scale) if *scale >= 0 => {
                let scale = usize::from(scale.unsigned_abs());
                Ok(Self::Decimals { values, scale })
            }
            DataType::Float32 | DataType::Float16 => {
                Ok(Self::Floats { values: cast(&values, &DataType::Float64)?, digits: REAL_DIGITS })
            }
            DataType::Float64 => Ok(Self::Floats { values, digits: DOUBLE_DIGITS }),
            integer if integer.is_integer() => {
                Ok(Self::Decimals { values: cast(&values, &DataType::Decimal128(38, 0))?, scale: 0 })
            }
            other => plan_err!("to_char() does not take {other}; cast it to numeric"),
        }
    }

    /// Writes the number of a row; false where it is null.
    pub(super) fn write(&self, row: usize, pattern: &NumberPattern, out: &mut String) -> Result<bool> {
        let (digits, is_negative, after) = match self {
            Self::Decimals { values, scale } => {
                let values = values.as_primitive::<Decimal128Type>();
                if values.is_null(row) {
                    return Ok(false);
                }
                let (digits, is_negative) = decimal_digits(values.value(row), *scale, pattern)?;
                (digits, is_negative, pattern.after)
            }
            Self::Floats { values, digits } => {
                let values = values.as_primitive::<Float64Type>();
                if values.is_null(row) {
                    return Ok(false);
                }
                float_digits(values.value(row), *digits, pattern)?
            }
        };
        if pattern.has_exponent {
            out.push(if is_negative { '-' } else { ' ' });
            out.push_str(&digits);
        } else if let Some(is_upper) = pattern.roman {
            write_roman(&digits, is_negative, is_upper, pattern, out);
        } else if pattern.has_shift || after != pattern.after {
            let before = pattern.before + pattern.shift;
            // Digits follow after `V`, so that `S` is not behind all of them.
            let sign_place = if pattern.shift > 0 { SignPlace::Before } else { pattern.sign_place };
            let moved = NumberPattern { before, after, sign_place, ..pattern.clone() };
            write_number::write_number(&digits, is_negative, &moved, out);
        } else {
            write_number::write_number(&digits, is_negative, pattern, out);
        }
        Ok(true)
    }
}

fn write_roman(digits: &str, is_negative: bool, is_upper: bool, pattern: &NumberPattern, out: &mut String) {
    let number = if is_negative { None } else { digits.parse().ok() };
    let roman = write_number::roman(number);
    let roman = if is_upper { roman } else { roman.to_ascii_lowercase() };
    for node in &pattern.nodes {
        match node {
            PatternNode::Text(character) | PatternNode::Separator(character) | PatternNode::Space(character) => {
                out.push(*character)
            }
            PatternNode::Field(node) if matches!(node.field, NumberField::Roman { .. }) => {
                let width = if pattern.is_filled { 0 } else { 15 };
                out.push_str(&format!("{roman:>width$}"));
            }
            PatternNode::Field(_) => {}
        }
    }
}

/// Returns the number of digits after the point of a pattern.
fn digits_after_point(pattern: &NumberPattern) -> usize {
    if pattern.roman.is_some() { 0 } else { pattern.after }
}

fn decimal_digits(value: i128, scale: usize, pattern: &NumberPattern) -> Result<(String, bool)> {
    let is_negative = value < 0;
    let mut digits = value.unsigned_abs().to_string();
    if pattern.has_exponent {
        return Ok((scientific(&digits, scale, pattern.after), is_negative));
    }
    // `V` moves the point.
    let point = scale as i64 - pattern.shift as i64;
    let after = digits_after_point(pattern);
    let surplus = point - after as i64;
    if surplus > 0 {
        digits = rounded(&digits, usize::try_from(surplus).unwrap_or(0));
    } else {
        digits.push_str(&"0".repeat(usize::try_from(-surplus).unwrap_or(0)));
    }
    let is_zero = digits.bytes().all(|digit| digit == b'0');
    Ok((with_point(&digits, after), is_negative && !is_zero))
}

/// Returns the digits without the last `surplus`, rounded half away from zero.
fn rounded(digits: &str, surplus: usize) -> String {
    let padded = format!("{:0>width$}", digits, width = surplus + 1);
    let (head, tail) = padded.split_at(padded.len() - surplus);
    if tail.as_bytes().first().is_some_and(|digit| *digit >= b'5') {
        let head: u128 = head.parse().unwrap_or(0);
        return (head + 1).to_string();
    }
    head.to_owned()
}

/// Writes digits with a point before the last `after`, and at least one digit before it.
fn with_point(digits: &str, after: usize) -> String {
    let trimmed = digits.trim_start_matches('0');
    let padded = format!("{:0>width$}", trimmed, width = after + 1);
    let (whole, fraction) = padded.split_at(padded.len() - after);
    if after == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Writes digits in scientific notation.
fn scientific(digits: &str, scale: usize, after: usize) -> String {
    let trimmed = digits.trim_start_matches('0');
    if trimmed.is_empty() {
        let fraction = if after > 0 { format!(".{}", "0".repeat(after)) } else { String::new() };
        return format!("0{fraction}e+00");
    }
    let mut exponent = trimmed.len() as i64 - 1 - scale as i64;
    let mut mantissa = if trimmed.len() > after + 1 {
        rounded(trimmed, trimmed.len() - after - 1)
    } else {
        format!("{trimmed:0<width$}", width = after + 1)
    };
    if mantissa.len() > after + 1 {
        mantissa.pop();
        exponent += 1;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", with_point(&mantissa, after), exponent.abs())
}

/// Returns the digits of a number, whether it is negative, and how many digits after the point the pattern has then: no more
/// than the type has for certain.
fn float_digits(value: f64, precision: usize, pattern: &NumberPattern) -> Result<(String, bool, usize)> {
    let is_negative = value.is_sign_negative() && !value.is_nan();
    if !value.is_finite() {
        if pattern.roman.is_some() {
            return exec_err!("to_char() does not write {value} as Roman numerals; select it without a pattern");
        }
        if pattern.has_exponent {
            let marks = format!("{}.{}", "#".repeat(pattern.before), "#".repeat(pattern.after + 4));
            return Ok((marks, false, pattern.after));
        }
        let word = if value.is_nan() { "NaN" } else { "Infinity" };
        return Ok((word.to_owned(), is_negative, pattern.after.min(precision.saturating_sub(word.len()))));
    }
    if pattern.has_exponent {
        let written = format!("{:.*e}", pattern.after, value.abs());
        let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        let digits = format!("{mantissa}e{sign}{:02}", exponent.abs());
        return Ok((digits, is_negative, pattern.after));
    }
    let shifted = value.abs() * 10_f64.powi(i32::try_from(pattern.shift).unwrap_or(0));
    let whole = format!("{shifted:.0}").len();
    let after = digits_after_point(pattern).min(precision.saturating_sub(whole));
    Ok((format!("{shifted:.after$}"), is_negative, after))
}

/// Converts the digits that were read to a number with `scale` digits after the point.
pub(super) fn parse_decimal(text: &str, pattern: &NumberPattern, scale: i8) -> Result<i128> {
    let unsigned = text.trim_start_matches(['-', '+']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.is_empty() && fraction.is_empty() {
        return exec_err!("invalid input syntax for type numeric: \"{text}\"");
    }
    if whole.trim_start_matches('0').len() > pattern.before + pattern.shift {
        return exec_err!("numeric field overflow: \"{text}\" has more digits before the point than the pattern");
    }
    // `V` defines how many of the digits are after the point.
    let positions = usize::from(scale.unsigned_abs()).saturating_sub(pattern.shift);
    let digits = format!("{whole}{fraction:0<positions$}");
    match digits.parse::<i128>() {
        Ok(value) if digits.len() <= 38 => Ok(if text.starts_with('-') { -value } else { value }),
        _ => exec_err!("a value of \"{text}\" is out of range for type numeric"),
    }
}
