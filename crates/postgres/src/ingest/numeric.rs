//! Decimals in the binary form of `numeric`: digits of base 10,000.

use arrow::datatypes::i256;

use super::encode::Misfit;

const NEGATIVE: u16 = 0x4000;
const BASE: u64 = 10_000;
const GROUP_DIGITS: u32 = 4;
/// More groups than 76 digits and a scale of 76 can have.
const GROUPS_MAX: usize = 48;

/// A magnitude that loses its last digits.
trait Magnitude: Copy {
    fn is_zero(self) -> bool;
    /// Divides by `divisor`, at most 10,000; returns the quotient and the remainder.
    fn split(self, divisor: u64) -> (Self, u64);
}

impl Magnitude for u128 {
    fn is_zero(self) -> bool {
        self == 0
    }

    fn split(self, divisor: u64) -> (Self, u64) {
        let divisor = Self::from(divisor);
        // The remainder is below 10,000.
        (self / divisor, (self % divisor) as u64)
    }
}

impl Magnitude for i256 {
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    fn split(self, divisor: u64) -> (Self, u64) {
        let divisor = Self::from_i128(i128::from(divisor));
        // Not negative, and the remainder is below 10,000.
        let remainder = self.wrapping_rem(divisor).to_i128().unwrap_or_default();
        (self.wrapping_div(divisor), u64::try_from(remainder).unwrap_or_default())
    }
}

/// Appends `value`, which has `scale` digits after the point, to a column with `scale_max` digits.
pub(super) fn write_decimal128(
    value: i128,
    scale: i8,
    scale_max: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    write(value.unsigned_abs(), value < 0, scale, scale_max, out)
}

/// As [`write_decimal128`].
pub(super) fn write_decimal256(
    value: i256,
    scale: i8,
    scale_max: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    let is_negative = value < i256::ZERO;
    match value.to_i128() {
        Some(value) => write(value.unsigned_abs(), is_negative, scale, scale_max, out),
        // A decimal has at most 76 digits, so it is not the minimum.
        None => write(value.wrapping_abs(), is_negative, scale, scale_max, out),
    }
}

fn write<M: Magnitude>(
    mut rest: M,
    is_negative: bool,
    scale: i8,
    scale_max: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    // Zeros before the point that a negative scale leaves out.
    let zeros = u32::from(scale.min(0).unsigned_abs());
    let fraction = u32::from(scale.max(0).unsigned_abs());
    // The groups, from the last one.
    let mut groups = [0_u16; GROUPS_MAX];
    let mut count = 0;
    let mut fraction_groups = fraction.div_ceil(GROUP_DIGITS) as i32;
    fraction_groups -= (zeros / GROUP_DIGITS) as i32;
    let mut partial = match (fraction % GROUP_DIGITS, zeros % GROUP_DIGITS) {
        (0, 0) => None,
        // The digits of the first group, and the zeros behind them.
        (0, zeros) => Some((GROUP_DIGITS - zeros, zeros)),
        (digits, _) => Some((digits, GROUP_DIGITS - digits)),
    };
    while !rest.is_zero() {
        let (digits, padding) = partial.take().unwrap_or((GROUP_DIGITS, 0));
        let (quotient, remainder) = rest.split(10_u64.pow(digits));
        rest = quotient;
        let slot = groups.get_mut(count).ok_or_else(|| Misfit::new("the number has too many digits"))?;
        // Below 10,000.
        *slot = (remainder * 10_u64.pow(padding)) as u16;
        debug_assert!(u64::from(*slot) < BASE);
        count += 1;
    }
    let digits = groups.get(..count).unwrap_or_default();
    let stripped = digits.iter().take_while(|group| **group == 0).count();
    let digits = digits.get(stripped..).unwrap_or_default();
    let fraction_groups = fraction_groups - stripped as i32;
    let digits_after_point = match digits.first() {
        Some(last) if fraction_groups > 0 => {
            let zeros = (1..GROUP_DIGITS).take_while(|power| last % 10_u16.pow(*power) == 0).count() as u32;
            fraction_groups.unsigned_abs() * GROUP_DIGITS - zeros
        }
        _ => 0,
    };
    if let Some(max) = scale_max.filter(|max| digits_after_point > *max) {
        return Err(Misfit::new(format!("the number has {digits_after_point} digits after the point; {max} fit")));
    }
    // The number of groups is at most 48, and a scale at most 1,000.
    let weight = if digits.is_empty() { 0 } else { digits.len() as i32 - fraction_groups - 1 };
    let sign = if is_negative && !digits.is_empty() { NEGATIVE } else { 0 };
    let head = [digits.len() as u16, weight as i16 as u16, sign, scale_max.unwrap_or(digits_after_point) as u16];
    head.iter().chain(digits.iter().rev()).for_each(|part| out.extend_from_slice(&part.to_be_bytes()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::write_numeric_text;

    fn text(value: i128, scale: i8, scale_max: Option<u32>) -> Result<String, String> {
        let mut out = Vec::new();
        write_decimal128(value, scale, scale_max, &mut out).map_err(|misfit| misfit.reason)?;
        let mut wide = Vec::new();
        write_decimal256(i256::from_i128(value), scale, scale_max, &mut wide).map_err(|misfit| misfit.reason)?;
        assert_eq!(out, wide);
        Ok(write_numeric_text(&out))
    }

    #[test]
    fn digits_have_their_weight() {
        let cases = [
            (0, 5, "0"),
            (1, 0, "1"),
            (-12_300_450, 2, "-123004.5"),
            (1, 8, "0.00000001"),
            (1, 5, "0.00001"),
            (100_000_000, 4, "10000"),
            (10_000, 0, "10000"),
            (7, -3, "7000"),
            (12, -5, "1200000"),
            (12_345, -4, "123450000"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ];
        for (value, scale, expected) in cases {
            assert_eq!(text(value, scale, None).as_deref(), Ok(expected), "{value} {scale}");
        }
        assert_eq!(text(1_250, 3, Some(2)).as_deref(), Ok("1.25"));
        assert_eq!(text(1_255, 3, Some(2)).unwrap_err(), "the number has 3 digits after the point; 2 fit");
    }

    #[test]
    fn widest_decimals_fit() {
        let nines = i256::from_string(&"9".repeat(76)).unwrap();
        for scale in [0, 1, 38, 75, 76] {
            let mut out = Vec::new();
            write_decimal256(nines.wrapping_neg(), scale, None, &mut out).unwrap();
            let digits: String = write_numeric_text(&out).chars().filter(|character| *character == '9').collect();
            assert_eq!(digits.len(), 76);
        }
    }

    proptest! {
        #[test]
        fn number_is_that_of_its_digits(value: i128, scale in 0..39_i8) {
            let printed = text(value, scale, Some(38)).unwrap();
            let (whole, fraction) = printed.split_once('.').unwrap();
            let digits = format!("{whole}{}", &fraction[..usize::from(scale.unsigned_abs())]);
            prop_assert_eq!(digits.parse::<i128>().unwrap(), value);
        }
    }
}
