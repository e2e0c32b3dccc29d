//! Reads the parts of times from a text, without allocation.

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
