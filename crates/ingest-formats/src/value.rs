//! From the text of a value to the value, exactly or not at all: numbers from their digits, dates and times in ISO 8601 as
//! counts of a unit, and bytes.

use arrow::array::timezone::Tz;
use arrow::datatypes::{TimeUnit, i256};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};

use crate::options::BinaryText;

/// The longest part of a value that a message quotes, in bytes.
pub(crate) const QUOTED_BYTES_MAX: usize = 60;

/// The value as it is quoted in a message: cut if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let cut = cut_at(text, QUOTED_BYTES_MAX);
    if cut.len() < text.len() { format!("{cut:?}…") } else { format!("{cut:?}") }
}

/// The beginning of `text` with at most `bytes_max` bytes, which ends at the end of a character.
pub(crate) fn cut_at(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 76;
/// Numbers with at most so many digits fit into 64 bits.
const SHORT_DIGITS_MAX: usize = 18;

/// The parts of a number that has a valid form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberParts<'a> {
    is_negative: bool,
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
    fn is_zero(&self) -> bool {
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

const SECONDS_PER_DAY: i64 = 86_400;
const NANOSECOND_DIGITS: usize = 9;

/// Why a text has no exact value in a column of dates or times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeMisfit {
    /// It does not have the form.
    Form,
    /// It has the form, but there is no such date or time.
    NoSuchTime,
    /// It has digits below the unit of the column.
    Fraction,
    /// It does not fit into 64 bits of the unit.
    Range,
    /// It has an offset, and the column has no zone.
    OffsetWithoutZone,
    /// The local time is skipped or occurs twice when clocks change, and there is no offset.
    AmbiguousLocalTime,
}

/// Where the times of a column are that have no offset of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ColumnZone {
    /// The column has local times without zone: an offset is refused.
    None,
    /// UTC, which needs no table of zones.
    Utc,
    /// Any other zone.
    Zone(Tz),
}

/// A text that is read from its beginning.
struct TimeText<'a> {
    rest: &'a [u8],
}

/// Seconds in a day and nanoseconds in the second.
struct DayTime {
    seconds: i64,
    nanoseconds: i64,
}

/// How many units a second has.
pub(crate) fn units_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The number of decimal digits of the unit after the second.
pub(crate) fn unit_digits(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Days since 1970 of `2024-02-29`.
pub(crate) fn parse_date(text: &str) -> Result<i64, TimeMisfit> {
    let mut text = TimeText { rest: text.as_bytes() };
    let date = text.date()?;
    if text.rest.is_empty() { Ok(days(date)) } else { Err(TimeMisfit::Form) }
}

/// Units since midnight of `12:34` or `12:34:56.789`.
pub(crate) fn parse_time(text: &str, unit: TimeUnit) -> Result<i64, TimeMisfit> {
    let mut text = TimeText { rest: text.as_bytes() };
    let time = text.time()?;
    if text.rest.is_empty() { units(time.seconds, time.nanoseconds, unit) } else { Err(TimeMisfit::Form) }
}

/// Units since 1970 of `2024-02-29T12:34:56.789Z`, with an offset, or local in the zone of the column.
pub(crate) fn parse_timestamp(text: &str, unit: TimeUnit, zone: ColumnZone) -> Result<i64, TimeMisfit> {
    let mut text = TimeText { rest: text.as_bytes() };
    let date = text.date()?;
    text.separator()?;
    let time = text.time()?;
    let offset = text.offset()?;
    let local = days(date) * SECONDS_PER_DAY + time.seconds;
    let seconds = match (offset, zone) {
        (Some(_), ColumnZone::None) => return Err(TimeMisfit::OffsetWithoutZone),
        (Some(offset), _) => local - offset,
        (None, ColumnZone::None | ColumnZone::Utc) => local,
        (None, ColumnZone::Zone(zone)) => local - local_offset(date, &time, zone)?,
    };
    units(seconds, time.nanoseconds, unit)
}

/// The offset of a local time in a zone, in seconds.
fn local_offset(date: NaiveDate, time: &DayTime, zone: Tz) -> Result<i64, TimeMisfit> {
    let seconds = u32::try_from(time.seconds).map_err(|_| TimeMisfit::NoSuchTime)?;
    let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, 0).ok_or(TimeMisfit::NoSuchTime)?;
    let offset = zone.offset_from_local_datetime(&NaiveDateTime::new(date, time));
    let offset = offset.single().ok_or(TimeMisfit::AmbiguousLocalTime)?;
    Ok(i64::from(offset.fix().local_minus_utc()))
}

fn days(date: NaiveDate) -> i64 {
    i64::from(date.to_epoch_days())
}

fn units(seconds: i64, nanoseconds: i64, unit: TimeUnit) -> Result<i64, TimeMisfit> {
    let per_second = units_per_second(unit);
    let nanoseconds_per_unit = units_per_second(TimeUnit::Nanosecond) / per_second;
    if nanoseconds % nanoseconds_per_unit != 0 {
        return Err(TimeMisfit::Fraction);
    }
    // The seconds alone may be outside of 64 bits where the whole value is not.
    let value = i128::from(seconds) * i128::from(per_second) + i128::from(nanoseconds / nanoseconds_per_unit);
    i64::try_from(value).map_err(|_| TimeMisfit::Range)
}

impl TimeText<'_> {
    fn skip(&mut self, byte: u8) -> Option<()> {
        let rest = self.rest.strip_prefix(&[byte])?;
        self.rest = rest;
        Some(())
    }

    /// A number of exactly so many digits.
    fn digits(&mut self, count: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let mut value = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + u32::from(digit - b'0');
        }
        self.rest = rest;
        Some(value)
    }

    /// `2024-02-29`, or with a sign and six digits of the year, as Tidegate writes years outside of 1 to 9999.
    fn date(&mut self) -> Result<NaiveDate, TimeMisfit> {
        let parts = (|| {
            let year = match self.rest.first()? {
                b'+' => self.skip(b'+').and_then(|()| self.digits(6))?.cast_signed(),
                b'-' => -self.skip(b'-').and_then(|()| self.digits(6))?.cast_signed(),
                _ => self.digits(4)?.cast_signed(),
            };
            let month = self.skip(b'-').and_then(|()| self.digits(2))?;
            let day = self.skip(b'-').and_then(|()| self.digits(2))?;
            Some((year, month, day))
        })();
        let (year, month, day) = parts.ok_or(TimeMisfit::Form)?;
        NaiveDate::from_ymd_opt(year, month, day).ok_or(TimeMisfit::NoSuchTime)
    }

    fn separator(&mut self) -> Result<(), TimeMisfit> {
        let separator = [b'T', b't', b' '].into_iter().find_map(|separator| self.skip(separator));
        separator.ok_or(TimeMisfit::Form)
    }

    fn time(&mut self) -> Result<DayTime, TimeMisfit> {
        let parts = (|| {
            let hour = self.digits(2)?;
            let minute = self.skip(b':').and_then(|()| self.digits(2))?;
            let second = if self.skip(b':').is_some() { Some(self.digits(2)?) } else { None };
            Some((hour, minute, second))
        })();
        let (hour, minute, second) = parts.ok_or(TimeMisfit::Form)?;
        // A leap second has no place of its own among the seconds since 1970.
        if hour > 23 || minute > 59 || second.is_some_and(|second| second > 59) {
            return Err(TimeMisfit::NoSuchTime);
        }
        let nanoseconds = if second.is_some() && self.skip(b'.').is_some() { self.fraction()? } else { 0 };
        let seconds = i64::from(hour * 3_600 + minute * 60 + second.unwrap_or(0));
        Ok(DayTime { seconds, nanoseconds })
    }

    fn fraction(&mut self) -> Result<i64, TimeMisfit> {
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() {
            return Err(TimeMisfit::Form);
        }
        self.rest = rest;
        if digits.iter().skip(NANOSECOND_DIGITS).any(|digit| *digit != b'0') {
            return Err(TimeMisfit::Fraction);
        }
        let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(NANOSECOND_DIGITS);
        Ok(padded.fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    /// Seconds east of UTC of `Z`, `+02:00`, `+0200` or `+02`; nothing at the end of the text.
    fn offset(&mut self) -> Result<Option<i64>, TimeMisfit> {
        let sign = match self.rest {
            [] => return Ok(None),
            [b'Z' | b'z'] => return Ok(Some(0)),
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return Err(TimeMisfit::Form),
        };
        self.rest = self.rest.split_at_checked(1).map_or(&[], |(_, rest)| rest);
        let parts = (|| {
            let hours = self.digits(2)?;
            if self.rest.is_empty() {
                return Some((hours, 0));
            }
            let _ = self.skip(b':');
            let minutes = self.digits(2)?;
            self.rest.is_empty().then_some((hours, minutes))
        })();
        let (hours, minutes) = parts.ok_or(TimeMisfit::Form)?;
        if hours > 23 || minutes > 59 {
            return Err(TimeMisfit::NoSuchTime);
        }
        Ok(Some(sign * i64::from(hours * 3_600 + minutes * 60)))
    }
}

/// Accepts text with and without padding, as encoders differ there. Bits after the last byte must be zero.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends the bytes that `text` stands for. Returns whether it is valid.
pub(crate) fn append_binary(text: &str, encoding: BinaryText, bytes: &mut Vec<u8>) -> bool {
    match encoding {
        BinaryText::Base64 => BASE64.decode_vec(text, bytes).is_ok(),
        BinaryText::Hex => append_hex(text.strip_prefix("\\x").unwrap_or(text), bytes),
    }
}

fn append_hex(digits: &str, bytes: &mut Vec<u8>) -> bool {
    let start = bytes.len();
    bytes.resize(start + digits.len() / 2, 0);
    hex::decode_to_slice(digits, &mut bytes[start..]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        assert_eq!(quoted(&"ä".repeat(40)), format!("\"{}\"…", "ä".repeat(30)));
        assert_eq!(cut_at("äb", 1), "");
    }

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

    fn nanoseconds(text: &str) -> Result<i64, TimeMisfit> {
        parse_timestamp(text, TimeUnit::Nanosecond, ColumnZone::Utc)
    }

    #[test]
    fn dates() {
        assert_eq!(parse_date("1970-01-01"), Ok(0));
        assert_eq!(parse_date("2024-02-29"), Ok(19_782));
        assert_eq!(parse_date("-000043-03-15"), Ok(-735_160));
        assert_eq!(parse_date("+010000-01-01"), Ok(2_932_897));
        assert_eq!(parse_date("2023-02-29"), Err(TimeMisfit::NoSuchTime));
        for text in ["2024-2-29", "20240229", "2024-02-29T00:00:00", "29.02.2024", "", "2024-02-29 "] {
            assert_eq!(parse_date(text), Err(TimeMisfit::Form), "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(parse_time("12:34", TimeUnit::Second), Ok(45_240));
        assert_eq!(parse_time("12:34:56.789", TimeUnit::Millisecond), Ok(45_296_789));
        assert_eq!(parse_time("12:34:56.789", TimeUnit::Second), Err(TimeMisfit::Fraction));
        assert_eq!(parse_time("12:34:56.7890000000000", TimeUnit::Millisecond), Ok(45_296_789));
        assert_eq!(parse_time("24:00:00", TimeUnit::Second), Err(TimeMisfit::NoSuchTime));
        assert_eq!(parse_time("23:59:60", TimeUnit::Second), Err(TimeMisfit::NoSuchTime));
        assert_eq!(parse_time("12:34:56Z", TimeUnit::Second), Err(TimeMisfit::Form));
        assert_eq!(parse_time("12:34.5", TimeUnit::Second), Err(TimeMisfit::Form));
    }

    #[test]
    fn timestamps() {
        assert_eq!(nanoseconds("1970-01-01T00:00:00.000000001Z"), Ok(1));
        assert_eq!(nanoseconds("1970-01-01 02:00:00+02:00"), Ok(0));
        assert_eq!(nanoseconds("1970-01-01t00:00:00-0130"), Ok(5_400_000_000_000));
        assert_eq!(nanoseconds("1970-01-01T00:00:00"), Ok(0));
        assert_eq!(nanoseconds("1970-01-01T00:00Z"), Ok(0));
        assert_eq!(nanoseconds("1677-09-21T00:12:43.145224192Z"), Ok(i64::MIN));
        assert_eq!(nanoseconds("1677-09-21T00:12:43.145224191Z"), Err(TimeMisfit::Range));
        assert_eq!(nanoseconds("2262-04-11T23:47:16.854775807Z"), Ok(i64::MAX));
        assert_eq!(nanoseconds("1970-01-01T00:00:00.0000000001Z"), Err(TimeMisfit::Fraction));
        assert_eq!(nanoseconds("1970-01-01"), Err(TimeMisfit::Form));
        assert_eq!(nanoseconds("1970-01-01T00:00:00+25:00"), Err(TimeMisfit::NoSuchTime));
        assert_eq!(nanoseconds("1970-01-01T00:00:00 UTC"), Err(TimeMisfit::Form));
        assert_eq!(nanoseconds("1970-01-01T00:00:00.Z"), Err(TimeMisfit::Form));
    }

    #[test]
    fn local_times_have_the_zone_of_the_column() {
        let berlin = ColumnZone::Zone("Europe/Berlin".parse().expect("a zone"));
        let parse = |text: &str, zone| parse_timestamp(text, TimeUnit::Second, zone);
        assert_eq!(parse("2024-07-01T02:00:00", berlin), parse("2024-07-01T00:00:00Z", berlin));
        assert_eq!(parse("2024-10-27T02:30:00", berlin), Err(TimeMisfit::AmbiguousLocalTime));
        assert_eq!(parse("2024-10-27T02:30:00+01:00", berlin), Ok(1_729_992_600));
        assert_eq!(parse("2024-03-31T02:30:00", berlin), Err(TimeMisfit::AmbiguousLocalTime));
        assert_eq!(parse("2024-07-01T02:00:00Z", ColumnZone::None), Err(TimeMisfit::OffsetWithoutZone));
        assert!(parse("2024-07-01T02:00:00", ColumnZone::None).is_ok());
    }

    fn decode(text: &str, encoding: BinaryText) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        append_binary(text, encoding, &mut bytes).then_some(bytes)
    }

    #[test]
    fn bytes_are_exact_or_refused() {
        assert_eq!(decode("AAH/", BinaryText::Base64), Some(vec![0, 1, 255]));
        assert_eq!(decode("AA==", BinaryText::Base64), Some(vec![0]));
        assert_eq!(decode("AA", BinaryText::Base64), Some(vec![0]));
        assert_eq!(decode("AB==", BinaryText::Base64), None);
        assert_eq!(decode("A A=", BinaryText::Base64), None);
        assert_eq!(decode("_-8=", BinaryText::Base64), None);
        assert_eq!(decode("00fFaB", BinaryText::Hex), Some(vec![0, 255, 171]));
        assert_eq!(decode("\\x00", BinaryText::Hex), Some(vec![0]));
        assert_eq!(decode("0", BinaryText::Hex), None);
        assert_eq!(decode("0g", BinaryText::Hex), None);
    }
}
