//! Exact numbers of any length, as PostgreSQL's `numeric`.

use std::fmt;

/// Relative difference of two quotients that were cut at different places.
const QUOTIENT_DIFFERENCE: f64 = 1e-15;
/// Number of digits from which on a number counts as a truncated quotient.
const QUOTIENT_DIGITS: usize = 16;

/// Digits, of which the last `scale` stand behind the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Without leading zeros; empty for zero.
    digits: Vec<u8>,
    scale: usize,
}

impl Decimal {
    /// Parses `-12.340`. `None` if `text` is not such a number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(Self::new(is_negative, digits, fraction.len()))
    }

    fn new(is_negative: bool, digits: Vec<u8>, scale: usize) -> Self {
        let digits: Vec<u8> = digits.into_iter().skip_while(|digit| *digit == b'0').collect();
        Self { is_negative: is_negative && !digits.is_empty(), digits, scale }
    }

    pub(crate) fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap()
    }

    /// Whether PostgreSQL's number is `ours`, which may have more digits behind the point.
    pub(crate) fn equals_postgres(&self, ours: &Self) -> bool {
        let scale = self.scale.max(ours.scale);
        if self.with_scale(scale).digits_equal(&ours.with_scale(scale))
            || self.digits_equal(&ours.with_scale(self.scale))
        {
            return true;
        }
        let is_cut = self.digits.len() >= QUOTIENT_DIGITS && ours.digits.len() >= QUOTIENT_DIGITS;
        let (theirs, ours) = (self.to_f64(), ours.to_f64());
        is_cut && self.scale > 0 && (theirs - ours).abs() <= theirs.abs() * QUOTIENT_DIFFERENCE
    }

    fn digits_equal(&self, other: &Self) -> bool {
        self.is_negative == other.is_negative && self.digits == other.digits
    }

    /// The same, rounded half away from zero.
    fn with_scale(&self, scale: usize) -> Self {
        if scale >= self.scale {
            let mut digits = self.digits.clone();
            digits.extend(std::iter::repeat_n(b'0', scale - self.scale));
            return Self::new(self.is_negative, digits, scale);
        }
        let cut = self.scale - scale;
        let mut digits = std::iter::repeat_n(b'0', (cut + 1).saturating_sub(self.digits.len())).collect::<Vec<_>>();
        digits.extend(&self.digits);
        let rest = digits.split_off(digits.len() - cut);
        if rest[0] >= b'5' {
            digits = increased(digits);
        }
        Self::new(self.is_negative, digits, scale)
    }

    /// Zeros at the end of the fraction do not count.
    pub(crate) fn key(&self) -> String {
        let text = self.to_string();
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }
}

fn increased(mut digits: Vec<u8>) -> Vec<u8> {
    for place in (0..digits.len()).rev() {
        if digits[place] < b'9' {
            digits[place] += 1;
            return digits;
        }
        digits[place] = b'0';
    }
    digits.insert(0, b'1');
    digits
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = String::from_utf8(self.digits.clone()).unwrap();
        let digits = format!("{digits:0>width$}", width = self.scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{whole}{}{fraction}", if self.scale > 0 { "." } else { "" })
    }
}

#[test]
fn numbers_are_equal_when_rounding_makes_them_so() {
    let is = |theirs: &str, ours: &str| Decimal::parse(theirs).unwrap().equals_postgres(&Decimal::parse(ours).unwrap());
    assert!(
        is("1.50", "1.5") && is("0", "-0.000") && is("0.33", "0.333333") && is("1.00", "0.995") && is("-2", "-1.5")
    );
    assert!(is("0.33333333333333333333", "0.3333333333333333"));
    assert!(!is("0.333", "0.33") && !is("1", "2") && !is("1", "-1") && !is("100", "10") && !is("0.33", "0.335"));
    assert!(!is("9223372036854775807", "9223372036854775806"));
    assert_eq!(Decimal::parse("-0.050").unwrap().key(), "-0.05");
    assert!(Decimal::parse("NaN").is_none() && Decimal::parse("-").is_none());
}
