//! Arithmetic on decimal texts with the results of PostgreSQL's `numeric`.

use std::cmp::Ordering;

use arrow::datatypes::i256;
use datafusion::common::{DataFusionError, exec_datafusion_err};

use super::super::value;
use super::budget::{PathError, PathResult, suppressible_error};
use super::path::ArithmeticOperator;

/// Digits after the point of a quotient, at least as many in all.
const QUOTIENT_DIGITS: i64 = 16;

/// Digits of a group, by which PostgreSQL counts.
const GROUP: i64 = 4;

/// Significant digits of double precision that a `numeric` is made of.
const DOUBLE_DIGITS: usize = 15;

/// `mantissa` without the last `scale` digits, which stand after the point.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    mantissa: i256,
    scale: u32,
}

fn overflow() -> PathError {
    let error: DataFusionError = exec_datafusion_err!("a number in a jsonpath has too many digits to compute with");
    PathError::Error(error)
}

fn power_of_ten(exponent: u32) -> PathResult<i256> {
    i256::from_i128(10).checked_pow(exponent).ok_or_else(overflow)
}

impl Decimal {
    fn parse(number: &str) -> PathResult<Self> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let mantissa = i256::from_string(&format!("{whole}{fraction}")).ok_or_else(overflow)?;
        Ok(Self { mantissa, scale: u32::try_from(fraction.len()).map_err(|_| overflow())? })
    }

    fn with_scale(self, scale: u32) -> PathResult<Self> {
        let more = power_of_ten(scale.saturating_sub(self.scale))?;
        Ok(Self { mantissa: self.mantissa.checked_mul(more).ok_or_else(overflow)?, scale })
    }

    fn text(self) -> String {
        let negative = self.mantissa < i256::ZERO;
        let digits = self.mantissa.to_string();
        let digits = digits.trim_start_matches('-');
        let scale = self.scale as usize;
        let padded = format!("{}{digits}", "0".repeat((scale + 1).saturating_sub(digits.len())));
        let (whole, fraction) = padded.split_at(padded.len() - scale);
        let sign = if negative { "-" } else { "" };
        if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }
}

/// Computes `left operator right`.
pub(super) fn compute(operator: ArithmeticOperator, left: &str, right: &str) -> PathResult<String> {
    let (a, b) = (Decimal::parse(left)?, Decimal::parse(right)?);
    let scale = a.scale.max(b.scale);
    let is_quotient = matches!(operator, ArithmeticOperator::Divide | ArithmeticOperator::Modulo);
    if is_quotient && b.mantissa == i256::ZERO {
        return suppressible_error("division by zero");
    }
    let result = match operator {
        ArithmeticOperator::Multiply => {
            let mantissa = a.mantissa.checked_mul(b.mantissa).ok_or_else(overflow)?;
            Decimal { mantissa, scale: a.scale + b.scale }
        }
        ArithmeticOperator::Divide => divide(a, b, quotient_scale(left, right).max(scale))?,
        _ => {
            let (a, b) = (a.with_scale(scale)?.mantissa, b.with_scale(scale)?.mantissa);
            let mantissa = match operator {
                ArithmeticOperator::Add => a.checked_add(b),
                ArithmeticOperator::Subtract => a.checked_sub(b),
                _ => a.checked_rem(b),
            };
            Decimal { mantissa: mantissa.ok_or_else(overflow)?, scale }
        }
    };
    Ok(result.text())
}

fn divide(a: Decimal, b: Decimal, scale: u32) -> PathResult<Decimal> {
    let times = |value: i256, exponent: u32| value.checked_mul(power_of_ten(exponent)?).ok_or_else(overflow);
    let more = i64::from(scale) + i64::from(b.scale) - i64::from(a.scale);
    let exponent = u32::try_from(more.unsigned_abs()).map_err(|_| overflow())?;
    let (dividend, divisor) =
        if more < 0 { (a.mantissa, times(b.mantissa, exponent)?) } else { (times(a.mantissa, exponent)?, b.mantissa) };
    let quotient = dividend.checked_div(divisor).ok_or_else(overflow)?;
    let rest = dividend.checked_rem(divisor).ok_or_else(overflow)?;
    let twice = rest.wrapping_abs().checked_mul(i256::from_i128(2)).ok_or_else(overflow)?;
    let is_negative = (dividend < i256::ZERO) != (divisor < i256::ZERO);
    let one = i256::from_i128(if is_negative { -1 } else { 1 });
    let rounds = twice >= divisor.wrapping_abs();
    let mantissa = if rounds { quotient.checked_add(one).ok_or_else(overflow)? } else { quotient };
    Ok(Decimal { mantissa, scale })
}

/// Returns the digits after the point that PostgreSQL gives a quotient.
fn quotient_scale(left: &str, right: &str) -> u32 {
    let ((left_weight, left_first), (right_weight, right_first)) = (first_digit_group(left), first_digit_group(right));
    let weight = left_weight - right_weight - i64::from(left_first <= right_first);
    u32::try_from((QUOTIENT_DIGITS - weight * GROUP).clamp(0, 1_000)).unwrap_or(0)
}

/// Returns the place of the first group of digits that is not zero, counted from the point, and its value.
fn first_digit_group(number: &str) -> (i64, u32) {
    let digits = number.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padding = whole.len().next_multiple_of(GROUP as usize) - whole.len();
    let end = fraction.len().next_multiple_of(GROUP as usize) - fraction.len();
    let aligned = format!("{}{whole}{fraction}{}", "0".repeat(padding), "0".repeat(end));
    let groups = aligned
        .as_bytes()
        .chunks(GROUP as usize)
        .map(|group| group.iter().fold(0_u32, |value, digit| value * 10 + u32::from(digit.saturating_sub(b'0'))));
    let weight = (whole.len() + padding) as i64 / GROUP - 1;
    match groups.enumerate().find(|(_, value)| *value > 0) {
        Some((index, value)) => (weight - index as i64, value),
        None => (0, 0),
    }
}

/// Computes `-number`.
pub(super) fn negated(number: &str) -> String {
    match number.strip_prefix('-') {
        Some(rest) => rest.to_owned(),
        None if value::compare_numbers(number, "0") == Ordering::Equal => number.to_owned(),
        None => format!("-{number}"),
    }
}

/// Returns the largest integer that is not above `number`.
pub(super) fn floor(number: &str) -> PathResult<String> {
    rounded(number, number.starts_with('-'), "-1")
}

/// Returns the smallest integer that is not below `number`.
pub(super) fn ceiling(number: &str) -> PathResult<String> {
    rounded(number, !number.starts_with('-'), "1")
}

/// Returns the whole part of `number`, and one more if `is_away` and there is a fraction.
fn rounded(number: &str, is_away: bool, one: &str) -> PathResult<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = if whole == "-0" { "0" } else { whole };
    let has_fraction = fraction.bytes().any(|digit| digit != b'0');
    if is_away && has_fraction { compute(ArithmeticOperator::Add, whole, one) } else { Ok(whole.to_owned()) }
}

/// Fails unless `number` is within the range of double precision.
pub(super) fn check_double(number: &str) -> PathResult<()> {
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && !is_underflow(value, number) => Ok(()),
        _ => suppressible_error(
            "numeric argument of jsonpath item method .double() is out of range for type double precision",
        ),
    }
}

fn is_underflow(value: f64, number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    value == 0.0 && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Parses a number in double precision.
pub(super) fn double(text: &str) -> PathResult<String> {
    let trimmed = text.trim_matches(|character: char| character.is_ascii_whitespace() || character == '\u{b}');
    let is_number = trimmed.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match trimmed.parse::<f64>() {
        Ok(value) if is_number && value.is_finite() && !is_underflow(value, trimmed) => {
            let shortest = format!("{value:.*e}", DOUBLE_DIGITS - 1);
            let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
            let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
            Ok(value::canonicalize_number(&format!("{mantissa}e{exponent}"))?)
        }
        _ => suppressible_error(
            "string argument of jsonpath item method .double() is not a valid representation of a double precision \
             number",
        ),
    }
}
