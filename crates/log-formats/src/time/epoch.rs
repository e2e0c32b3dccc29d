//! Numbers of seconds, milliseconds, microseconds or nanoseconds since 1970.

use super::{Cursor, nanoseconds};

/// Numbers below this are seconds, which reach the year 5138. The next three powers of 1,000 bound the other units.
const SECONDS_END: u64 = 100_000_000_000;

/// The time that a decimal number means, by its magnitude: seconds below 10^11, milliseconds below 10^14, microseconds
/// below 10^17, else nanoseconds. All of them agree for times after 1973-03-03.
pub(crate) fn time_from_number(text: &str) -> Option<i64> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let mut cursor = Cursor::new(digits.as_bytes());
    let number = cursor.number(1, 19)?;
    let fraction = if cursor.take(b'.') { cursor.fraction_digits()? } else { 0 };
    if !cursor.is_at_end() {
        return time_from_exponent(text);
    }
    let time = from_magnitude(number, fraction)?;
    if is_negative { time.checked_neg() } else { Some(time) }
}

fn from_magnitude(number: i64, fraction: u32) -> Option<i64> {
    let magnitude = number.unsigned_abs();
    // How many of the smallest units a nanosecond has, and a second.
    let (per_second, nanoseconds_per_unit): (i64, i64) = if magnitude < SECONDS_END {
        return nanoseconds(number, fraction);
    } else if magnitude < SECONDS_END * 1_000 {
        (1_000, 1_000_000)
    } else if magnitude < SECONDS_END * 1_000_000 {
        (1_000_000, 1_000)
    } else {
        return Some(number);
    };
    let below_second = number % per_second * nanoseconds_per_unit;
    let of_fraction = i64::from(fraction) * nanoseconds_per_unit / 1_000_000_000;
    nanoseconds(number / per_second, 0)?.checked_add(below_second + of_fraction)
}

/// `1.7092944e9`, which some JSON writers produce.
fn time_from_exponent(text: &str) -> Option<i64> {
    let is_number = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    let number: f64 = text.parse().ok().filter(|_| is_number)?;
    // Larger numbers lose their nanoseconds anyway.
    let is_in_range = number.is_finite() && number.abs() < 9.2e18;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    let parts = is_in_range.then(|| (number.trunc() as i64, (number.fract().abs() * 1e9) as u32));
    let (whole, fraction) = parts?;
    if whole < 0 {
        return from_magnitude(-whole, fraction)?.checked_neg();
    }
    from_magnitude(whole, fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_magnitude_gives_the_unit() {
        let time = 1_709_294_400_123_456_789;
        assert_eq!(time_from_number("1709294400.123456789"), Some(time));
        assert_eq!(time_from_number("1709294400123.456789"), Some(time));
        assert_eq!(time_from_number("1709294400123456.789"), Some(time));
        assert_eq!(time_from_number("1709294400123456789"), Some(time));
        assert_eq!(time_from_number("-1.5"), Some(-1_500_000_000));
        assert_eq!(time_from_number("1.7092944e9"), Some(1_709_294_400_000_000_000));
        for text in ["", "1.", "x", "12:00", "1e400", "99999999999999999999"] {
            assert_eq!(time_from_number(text), None, "{text}");
        }
    }
}
