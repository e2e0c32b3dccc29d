//! `numeric`: any number of digits of base 10,000.
//!
//! The binary form: the number of digits, the weight of the first (its power of 10,000), the sign, the number of decimal
//! digits after the point, the digits; 16 bits each.

use arrow::datatypes::{ArrowNativeType, ArrowNativeTypeOp, ArrowPrimitiveType, DecimalType};

use super::raw::{ValueError, ValueReader};

const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xc000;
const INFINITY: u16 = 0xd000;
const NEGATIVE_INFINITY: u16 = 0xf000;

const DIGITS: usize = 4;
const BASE: u16 = 10_000;

struct FiniteNumeric<'a> {
    is_negative: bool,
    weight: i16,
    scale: u16,
    /// Two bytes each, all below 10,000.
    digits: &'a [[u8; 2]],
}

enum NumericValue<'a> {
    Finite(FiniteNumeric<'a>),
    Special(&'static str),
}

fn parse_numeric(bytes: &[u8]) -> Result<NumericValue<'_>, ValueError> {
    let mut reader = ValueReader(bytes);
    let (count, weight, sign, scale) = (reader.uint16()?, reader.int16()?, reader.uint16()?, reader.uint16()?);
    let (digits, rest) = reader.0.as_chunks::<2>();
    let are_digits = || digits.iter().all(|digit| u16::from_be_bytes(*digit) < BASE);
    if digits.len() != usize::from(count) || !rest.is_empty() || !are_digits() {
        return Err(ValueError::Malformed);
    }
    match sign {
        0 | NEGATIVE => {
            Ok(NumericValue::Finite(FiniteNumeric { is_negative: sign == NEGATIVE, weight, scale, digits }))
        }
        NOT_A_NUMBER => Ok(NumericValue::Special("NaN")),
        INFINITY => Ok(NumericValue::Special("Infinity")),
        NEGATIVE_INFINITY => Ok(NumericValue::Special("-Infinity")),
        _ => Err(ValueError::Malformed),
    }
}

/// Writes the number with all its digits; never with an exponent.
pub(super) fn write_numeric(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let number = match parse_numeric(bytes)? {
        NumericValue::Finite(number) => number,
        NumericValue::Special(name) => {
            out.extend_from_slice(name.as_bytes());
            return Ok(());
        }
    };
    let weight = i32::from(number.weight);
    let digit = |power: i32| {
        let index = usize::try_from(weight - power).ok()?;
        number.digits.get(index).map(|digit| u16::from_be_bytes(*digit))
    };
    if number.is_negative {
        out.push(b'-');
    }
    let whole = out.len();
    for power in (0..=weight).rev() {
        write_digit(digit(power).unwrap_or_default(), out);
    }
    let zeros = out[whole..].iter().take_while(|byte| **byte == b'0').count();
    out.drain(whole..whole + zeros);
    if out.len() == whole {
        out.push(b'0');
    }
    let scale = usize::from(number.scale);
    if scale > 0 {
        out.push(b'.');
        let fraction = out.len();
        // The scale has 16 bits.
        for position in 1..=scale.div_ceil(DIGITS) as i32 {
            write_digit(digit(-position).unwrap_or_default(), out);
        }
        out.truncate(fraction + scale);
    }
    Ok(())
}

fn write_digit(digit: u16, out: &mut Vec<u8>) {
    let [high, low] = [digit / 100, digit % 100];
    // Each is a decimal digit.
    out.extend([high / 10, high % 10, low / 10, low % 10].map(|digit| b'0' + digit as u8));
}

/// The number as a decimal with `scale` digits after the point.
pub(super) fn decode_decimal<T: DecimalType + ArrowPrimitiveType>(
    bytes: &[u8],
    scale: i8,
) -> Result<T::Native, ValueError> {
    let number = match parse_numeric(bytes)? {
        NumericValue::Finite(number) => number,
        NumericValue::Special("NaN") => return Err(ValueError::NotANumber),
        NumericValue::Special(_) => return Err(ValueError::Malformed),
    };
    let native = |number: u32| T::Native::usize_as(number as usize);
    let too_long = |_| ValueError::Malformed;
    let mut value = T::Native::ZERO;
    // The power of ten by which the value is still to be multiplied.
    let mut missing_power = 0;
    let mut power = i32::from(number.weight) * DIGITS as i32 + i32::from(scale);
    for digit in number.digits {
        let digit = u32::from(u16::from_be_bytes(*digit));
        // The last digit of base 10,000 may contain zeros after the last decimal digit.
        let excess = u32::try_from(-power).unwrap_or_default();
        let divisor = 10_u32.pow(excess.min(DIGITS as u32));
        if digit % divisor != 0 {
            return Err(ValueError::Malformed);
        }
        let shift = native(u32::from(BASE) / divisor);
        value =
            value.mul_checked(shift).and_then(|value| value.add_checked(native(digit / divisor))).map_err(too_long)?;
        missing_power = power.max(0);
        power -= DIGITS as i32;
    }
    // Not negative.
    let value =
        native(10).pow_checked(missing_power as u32).and_then(|tens| value.mul_checked(tens)).map_err(too_long)?;
    if number.is_negative { value.neg_checked().map_err(too_long) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Decimal128Type, Decimal256Type, i256};
    use proptest::prelude::*;

    use super::*;

    fn wire(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
        let head = [digits.len() as u16, weight as u16, sign, scale];
        head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
    }

    fn text(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> String {
        let mut out = Vec::new();
        write_numeric(&wire(weight, sign, scale, digits), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_has_every_digit() {
        assert_eq!(text(0, 0, 0, &[]), "0");
        assert_eq!(text(0, 0, 3, &[]), "0.000");
        assert_eq!(text(1, 0, 0, &[1]), "10000");
        assert_eq!(text(1, NEGATIVE, 2, &[12, 3_004, 5_000]), "-123004.50");
        assert_eq!(text(-2, 0, 8, &[1]), "0.00000001");
        assert_eq!(text(-1, NEGATIVE, 1, &[5_000]), "-0.5");
        assert_eq!(text(0, NOT_A_NUMBER, 0, &[]), "NaN");
        assert_eq!(text(0, NEGATIVE_INFINITY, 0, &[]), "-Infinity");
    }

    #[test]
    fn decimals_have_their_scale() {
        let decimal = |bytes: &[u8], scale| decode_decimal::<Decimal128Type>(bytes, scale);
        assert_eq!(decimal(&wire(1, NEGATIVE, 2, &[12, 3_004, 5_000]), 2), Ok(-12_300_450));
        assert_eq!(decimal(&wire(2, 0, 0, &[1]), 1), Ok(1_000_000_000));
        assert_eq!(decimal(&wire(0, 0, 0, &[]), 5), Ok(0));
        assert_eq!(decimal(&wire(-1, 0, 3, &[1_230]), 3), Ok(123));
        // With more digits than the scale allows, the number would change.
        assert_eq!(decimal(&wire(-1, 0, 4, &[1_234]), 3), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(-2, 0, 8, &[1]), 3), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(20, 0, 0, &[1]), 0), Err(ValueError::Malformed));
        assert_eq!(decimal(&wire(0, NOT_A_NUMBER, 0, &[]), 0), Err(ValueError::NotANumber));
        assert_eq!(decimal(&wire(0, 0, 0, &[10_000]), 0), Err(ValueError::Malformed));
    }

    proptest! {
        #[test]
        fn decimals_and_text_agree(weight in -3..3_i16, digits in prop::collection::vec(0..10_000_u16, 0..6)) {
            let bytes = wire(weight, 0, 40, &digits);
            let mut out = Vec::new();
            write_numeric(&bytes, &mut out).unwrap();
            let printed = String::from_utf8(out).unwrap();
            let value: i256 = decode_decimal::<Decimal256Type>(&bytes, 40).unwrap();
            prop_assert_eq!(Decimal256Type::format_decimal(value, 76, 40), printed);
        }
    }
}
