//! Numbers: from their digits to integers, decimals and floats.

use arrow::datatypes::i256;

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 76;
/// Numbers with at most so many digits fit into 64 bits.
const SHORT_DIGITS_MAX: usize = 18;

/// The parts of a number that has a valid form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberParts<'a> {
    pub(crate) is_negative: bool,
    /// Digits before the point.
    pub(crate) integer: &'a [u8],
    /// Digits after the point.
    pub(crate) fraction: &'a [u8],
    pub(crate) exponent: i64,
}

/// Which form a number may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberSyntax {
    /// That of JSON: no plus sign, no leading zeros.
    Json,
    /// As JSON, but with a plus sign and leading zeros.
    Text,
}

/// Why a number has no exact value in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberMisfit {
    /// It has digits below the last one of the column.
    Fraction,
    /// It is too large or too small.
    Range,
}

impl<'a> NumberParts<'a> {
    /// The parts of `text`, or nothing if it is no number.
    pub(crate) fn parse(text: &'a [u8], syntax: NumberSyntax) -> Option<Self> {
        let (is_negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) if syntax == NumberSyntax::Text => (false, rest),
            _ => (false, text),
        };
        let (integer, rest) = split_digits(rest)?;
        if syntax == NumberSyntax::Json && integer.len() > 1 && integer.first() == Some(&b'0') {
            return None;
        }
        let (fraction, rest) = match rest.split_first() {
            Some((b'.', rest)) => split_digits(rest)?,
            _ => (&b""[..], rest),
        };
        let exponent = match rest.split_first() {
            None => 0,
            Some((b'e' | b'E', rest)) => parse_exponent(rest)?,
            Some(_) => return None,
        };
        Some(Self { is_negative, integer, fraction, exponent })
    }

    /// The value times `10^scale` as an integer, if it is one.
    pub(crate) fn scaled(&self, scale: i32) -> Result<i128, NumberMisfit> {
        if let Some(short) = self.short_scaled(scale) {
            return Ok(short);
        }
        let (digits, zeros) = self.significant_digits(scale)?;
        let mut magnitude: u128 = 0;
        for digit in digits.iter().map(|digit| u128::from(digit - b'0')).chain(std::iter::repeat_n(0, zeros)) {
            magnitude =
                magnitude.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NumberMisfit::Range)?;
        }
        if self.is_negative {
            0i128.checked_sub_unsigned(magnitude).ok_or(NumberMisfit::Range)
        } else {
            i128::try_from(magnitude).map_err(|_| NumberMisfit::Range)
        }
    }

    /// The same in 256 bits.
    pub(crate) fn scaled_256(&self, scale: i32) -> Result<i256, NumberMisfit> {
        if let Ok(value) = self.scaled(scale) {
            return Ok(i256::from_i128(value));
        }
        let (digits, zeros) = self.significant_digits(scale)?;
        let sign = if self.is_negative { "-" } else { "" };
        let digits = String::from_utf8_lossy(&digits);
        i256::from_string(&format!("{sign}{digits}{}", "0".repeat(zeros))).ok_or(NumberMisfit::Range)
    }

    /// Whether all digits are zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.integer.iter().chain(self.fraction).all(|digit| *digit == b'0')
    }

    /// The usual case: few digits, no exponent, and nothing to cut.
    fn short_scaled(&self, scale: i32) -> Option<i128> {
        let shift = u32::try_from(scale.checked_sub(i32::try_from(self.fraction.len()).ok()?)?).ok()?;
        if self.exponent != 0 || self.integer.len() + self.fraction.len() > SHORT_DIGITS_MAX {
            return None;
        }
        let digits = self.integer.iter().chain(self.fraction);
        let magnitude = digits.fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        let value = i128::from(if self.is_negative { -magnitude } else { magnitude });
        if shift == 0 { Some(value) } else { value.checked_mul(10i128.checked_pow(shift)?) }
    }

    /// The digits without zeros at both ends, and how many zeros follow the last one.
    fn significant_digits(&self, scale: i32) -> Result<(Vec<u8>, usize), NumberMisfit> {
        let all = || self.integer.iter().chain(self.fraction);
        let total = self.integer.len() + self.fraction.len();
        let leading = all().take_while(|digit| **digit == b'0').count();
        if leading == total {
            return Ok((Vec::new(), 0));
        }
        let trailing = all().rev().take_while(|digit| **digit == b'0').count();
        let count = total - leading - trailing;
        let shift = self.exponent.saturating_add(i64::from(scale)).saturating_add(length(trailing));
        let shift = shift.saturating_sub(length(self.fraction.len()));
        let Ok(zeros) = usize::try_from(shift) else { return Err(NumberMisfit::Fraction) };
        if count > DIGITS_MAX + 1 || zeros > DIGITS_MAX + 1 {
            return Err(NumberMisfit::Range);
        }
        Ok((all().skip(leading).take(count).copied().collect(), zeros))
    }
}

/// The nearest double, if the number is within its range.
pub(crate) fn nearest_f64(text: &str, parts: &NumberParts<'_>) -> Result<f64, NumberMisfit> {
    let value: f64 = text.parse().map_err(|_| NumberMisfit::Range)?;
    let is_lost = value == 0.0 && !parts.is_zero();
    if value.is_finite() && !is_lost { Ok(value) } else { Err(NumberMisfit::Range) }
}

/// The nearest float of 32 bits. It is not computed from the nearest double, which would round twice.
pub(crate) fn nearest_f32(text: &str, parts: &NumberParts<'_>) -> Result<f32, NumberMisfit> {
    let value: f32 = text.parse().map_err(|_| NumberMisfit::Range)?;
    let is_lost = value == 0.0 && !parts.is_zero();
    if value.is_finite() && !is_lost { Ok(value) } else { Err(NumberMisfit::Range) }
}

/// The words for floats that no number has, as Tidegate writes them.
pub(crate) fn special_float(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn split_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The exponent after its `e`. One that is too large for 64 bits is as large as they can be.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let (digits, rest) = split_digits(digits)?;
    if !rest.is_empty() {
        return None;
    }
    // Far beyond any column, and far from the ends of 64 bits.
    const EXPONENT_MAX: i64 = 1 << 40;
    let value = digits.iter().fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX));
    Some(if is_negative { -value } else { value })
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(text: &str, scale: i32) -> Result<i128, NumberMisfit> {
        NumberParts::parse(text.as_bytes(), NumberSyntax::Json).expect("a number").scaled(scale)
    }

    #[test]
    fn only_numbers_are_numbers() {
        let json = |text: &str| NumberParts::parse(text.as_bytes(), NumberSyntax::Json).is_some();
        for text in ["0", "-0", "1.5", "1e5", "-1.25E-3", "1e+05", "0.0"] {
            assert!(json(text), "{text}");
        }
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x1", "1 ", "1_0", "NaN", "--1", "1.5.1"] {
            assert!(!json(text), "{text}");
        }
        let text = |text: &str| NumberParts::parse(text.as_bytes(), NumberSyntax::Text).is_some();
        assert!(text("+1") && text("007") && !text("1.") && !text(" 1"));
    }

    #[test]
    fn scaled_numbers_are_exact_or_refused() {
        assert_eq!(scaled("9007199254740993", 0), Ok(9_007_199_254_740_993));
        assert_eq!(scaled("5.0", 0), Ok(5));
        assert_eq!(scaled("1e3", 0), Ok(1000));
        assert_eq!(scaled("1200e-2", 0), Ok(12));
        assert_eq!(scaled("0.1", 1), Ok(1));
        assert_eq!(scaled("-12.5", 3), Ok(-12_500));
        assert_eq!(scaled("12.345", 2), Err(NumberMisfit::Fraction));
        assert_eq!(scaled("12.3400", 2), Ok(1234));
        assert_eq!(scaled("1200", -2), Ok(12));
        assert_eq!(scaled("1250", -2), Err(NumberMisfit::Fraction));
        assert_eq!(scaled("1e99999999999999999999", 0), Err(NumberMisfit::Range));
        assert_eq!(scaled("1e-99999999999999999999", 0), Err(NumberMisfit::Fraction));
        assert_eq!(scaled("0e99999999999999999999", 0), Ok(0));
        assert_eq!(scaled("170141183460469231731687303715884105727", 0), Ok(i128::MAX));
        assert_eq!(scaled("-170141183460469231731687303715884105728", 0), Ok(i128::MIN));
        assert_eq!(scaled("170141183460469231731687303715884105728", 0), Err(NumberMisfit::Range));
        let zeros = format!("1.{}", "0".repeat(500));
        assert_eq!(scaled(&zeros, 0), Ok(1));
    }

    #[test]
    fn wide_numbers_have_256_bits() {
        let nines = "9".repeat(76);
        let parts = NumberParts::parse(nines.as_bytes(), NumberSyntax::Json).expect("a number");
        assert_eq!(parts.scaled_256(0).expect("it fits").to_string(), nines);
        assert_eq!(parts.scaled_256(5), Err(NumberMisfit::Range));
    }

    #[test]
    fn floats_are_the_nearest_or_refused() {
        let double =
            |text: &str| nearest_f64(text, &NumberParts::parse(text.as_bytes(), NumberSyntax::Json).expect("a number"));
        assert_eq!(double("0.1"), Ok(0.1));
        assert_eq!(double("1e999"), Err(NumberMisfit::Range));
        assert_eq!(double("1e-999"), Err(NumberMisfit::Range));
        assert_eq!(double("0e-999"), Ok(0.0));
        // Halfway between two floats of 32 bits once it is a double, but not before.
        let text = "1.000000059604644775390625000000001";
        let single = nearest_f32(text, &NumberParts::parse(text.as_bytes(), NumberSyntax::Json).expect("a number"));
        assert_eq!(single, Ok(1.000_000_1));
    }
}
