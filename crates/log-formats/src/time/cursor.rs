//! Reads the parts of times from a text, and times that are numbers since 1970, without allocation.

use super::nanoseconds;

const MONTHS: [&[u8; 3]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
const NANOSECOND_DIGITS: u32 = 9;
const OFFSET_HOURS_MAX: i32 = 23;

/// A position in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.position += bytes;
    }

    /// Whether the next byte is this one, which is then read.
    pub(crate) fn take(&mut self, expected: u8) -> bool {
        let found = self.peek() == Some(expected);
        self.position += usize::from(found);
        found
    }

    pub(crate) fn take_any(&mut self, expected: &[u8]) -> bool {
        let found = self.peek().is_some_and(|byte| expected.contains(&byte));
        self.position += usize::from(found);
        found
    }

    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte == b' ' || byte == b'\t') {
            self.position += 1;
        }
    }

    /// A number with `min` to `max` digits.
    pub(crate) fn number(&mut self, min: usize, max: usize) -> Option<i64> {
        let mut value: i64 = 0;
        let mut digits = 0;
        for byte in self.rest().iter().take(max).take_while(|byte| byte.is_ascii_digit()) {
            value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
            digits += 1;
        }
        if digits < min {
            return None;
        }
        self.position += digits;
        Some(value)
    }

    pub(crate) fn small(&mut self, min: usize, max: usize) -> Option<u32> {
        self.number(min, max).and_then(|value| u32::try_from(value).ok())
    }

    /// `HH:MM:SS` as seconds since midnight. The second may be a leap second.
    pub(crate) fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.number(2, 2)?;
        let minute = self.take(b':').then(|| self.number(2, 2)).flatten()?;
        let second = self.take(b':').then(|| self.number(2, 2)).flatten()?;
        (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3_600 + minute * 60 + second)
    }

    /// `HHMMSS` as seconds since midnight, which no further digit follows.
    pub(crate) fn compact_time_of_day(&mut self) -> Option<i64> {
        let mut ahead = *self;
        let (hour, minute, second) = (ahead.number(2, 2)?, ahead.number(2, 2)?, ahead.number(2, 2)?);
        if hour >= 24 || minute >= 60 || second > 60 || ahead.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *self = ahead;
        Some(hour * 3_600 + minute * 60 + second)
    }

    /// The nanoseconds of `.123456` or `,123456`, or 0 if there is no fraction. Digits after the ninth are ignored.
    pub(crate) fn fraction(&mut self) -> Option<u32> {
        if !self.rest().get(1).is_some_and(u8::is_ascii_digit) || !self.take_any(b".,") {
            return Some(0);
        }
        self.fraction_digits()
    }

    /// Digits after a decimal point as nanoseconds.
    pub(crate) fn fraction_digits(&mut self) -> Option<u32> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut value: u32 = 0;
        let mut read = 0;
        for byte in self.rest().iter().take(digits).take(NANOSECOND_DIGITS as usize) {
            value = value * 10 + u32::from(byte - b'0');
            read += 1;
        }
        self.position += digits;
        (digits > 0).then(|| value * 10_u32.pow(NANOSECOND_DIGITS - read))
    }

    /// `Z`, `+HH`, `+HHMM`, `+HH:MM` or with seconds, as seconds east of UTC.
    pub(crate) fn offset(&mut self) -> Option<i32> {
        if self.take_any(b"Zz") {
            return Some(0);
        }
        let sign = match self.peek()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.position += 1;
        let part = |cursor: &mut Self| cursor.number(2, 2).and_then(|value| i32::try_from(value).ok());
        let hours = part(self)?;
        let mut rest = [0, 0];
        for value in &mut rest {
            let mut ahead = *self;
            ahead.take(b':');
            if let Some(number) = part(&mut ahead) {
                *value = number;
                *self = ahead;
            }
        }
        let [minutes, seconds] = rest;
        (hours <= OFFSET_HOURS_MAX && minutes < 60 && seconds < 60)
            .then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
    }

    /// The abbreviated English name of a month, as its number.
    pub(crate) fn month_name(&mut self) -> Option<u32> {
        let [first, second, third, ..] = *self.rest() else { return None };
        let name = [first | 0x20, second | 0x20, third | 0x20];
        let month = (1..).zip(MONTHS).find(|(_, month)| **month == name)?.0;
        self.position += 3;
        Some(month)
    }

    /// Capital letters, as in the abbreviation of a zone.
    pub(crate) fn capitals(&mut self) -> Option<&'a str> {
        let length = self.rest().iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        let letters = self.rest().get(..length)?;
        self.position += length;
        std::str::from_utf8(letters).ok().filter(|letters| !letters.is_empty())
    }
}

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
