//! What the texts of files mean, and the values of a column of a text file or a sheet while its rows are read.
//!
//! A text becomes a value of a type only if the value, written out again, has the same digits. So `0870`, `+49` and
//! `12E5` stay text, and so do a number with more digits than its column holds, a time of day in a column of dates,
//! and nanoseconds. These differences of spelling are harmless: zeros at the end of a fraction, `.5` and `5.`, the
//! form of an exponent, where a sign or a point shows that it is one, `TRUE`, `T` or a blank between a date and its
//! time, a missing second, zeros after microseconds, and an offset in place of UTC.
//!
//! Where the configuration declares a type, [`TypeOrigin::Declared`], zeros before an integer and digits beyond those
//! of a float are harmless, too.

use std::fmt::Write;
use std::sync::Arc;

use chrono::{Datelike, NaiveDate, NaiveTime, Timelike};
use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use tidegate_log_formats::{EntryTimeFormat, WrittenTime};
use tidegate_query::type_name;

use super::column_type::{BIG_INTEGER, ColumnType, TEXT_INSTANT, TEXT_TIMESTAMP};
use super::number_format::NumberFormat;

/// Where the type of a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeOrigin {
    /// From its values.
    Inferred,
    /// From the configuration.
    Declared,
}

/// Significant digits that every double keeps.
const EXACT_DIGITS: usize = 15;
/// Beyond it, a number is not looked at digit by digit.
const DIGITS_MAX: usize = 800;
/// Powers of ten that are doubles.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Below it, doubles have fewer digits.
const SMALLEST_EXACT: f64 = 1e-290;
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Why a column has the type `wide` and not that of its earlier values, for callers who may see all rows. The line is 0 if
/// it is not known. `None` where nothing is odd: numbers with and without a fraction are often mixed.
pub(crate) fn type_note(earlier: &DataType, wide: &DataType, value: &str, line: u64, location: &str) -> Option<String> {
    if *earlier == DataType::Null || earlier == wide || (earlier, wide) == (&DataType::Int64, &DataType::Float64) {
        return None;
    }
    Some(type_reason(wide, value, line, location))
}

/// The type of a column, with the value of this line that decided it. The line is 0 if it is not known.
pub(crate) fn type_reason(data_type: &DataType, value: &str, line: u64, location: &str) -> String {
    let line = if line > 0 { format!("line {line} of ") } else { String::new() };
    format!("{}, because {line}{location} has {:?}", type_name(data_type), cut_value(value))
}

const VALUE_CHARACTERS_MAX: usize = 60;

/// The beginning of a value, for a message.
pub(crate) fn cut_value(value: &str) -> &str {
    let end = value.char_indices().nth(VALUE_CHARACTERS_MAX).map_or(value.len(), |(end, _)| end);
    value.get(..end).unwrap_or_default()
}

/// The narrowest type that holds what `text` means.
pub(crate) fn infer_type(text: &str, format: Option<NumberFormat>) -> DataType {
    let Some(format) = format else { return infer_plain_type(text) };
    if let Some(number) = format.normalize(text) {
        return infer_plain_type(&number);
    }
    match infer_plain_type(text) {
        // It would be read as a different number than the other values.
        DataType::Int64 | DataType::Float64 | DataType::Decimal128(..) => DataType::Utf8,
        other => other,
    }
}

fn infer_plain_type(text: &str) -> DataType {
    let origin = TypeOrigin::Inferred;
    match text.as_bytes() {
        [b'0'..=b'9' | b'-' | b'.', ..] => {
            if parse_integer(text, origin).is_some() {
                DataType::Int64
            } else if parse_decimal(text, BIG_INTEGER.0, BIG_INTEGER.1, origin).is_some() && !text.contains('.') {
                DataType::Decimal128(BIG_INTEGER.0, BIG_INTEGER.1)
            } else if parse_float(text, origin).is_some() {
                if is_code(text) { DataType::Utf8 } else { DataType::Float64 }
            } else if parse_date(text).is_some() {
                DataType::Date32
            } else {
                match parse_timestamp(text) {
                    Some(TextTime { has_zone: true, .. }) => TEXT_INSTANT.clone(),
                    Some(_) => TEXT_TIMESTAMP,
                    None => DataType::Utf8,
                }
            }
        }
        _ if parse_boolean(text).is_some() => DataType::Boolean,
        _ if parse_float(text, origin).is_some() => DataType::Float64,
        _ => DataType::Utf8,
    }
}

/// Whether a number with an exponent may as well be a code: `12E5`. A sign or a point makes it a number.
fn is_code(text: &str) -> bool {
    text.contains(['e', 'E']) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether `text` may be a year. Columns are often named after years.
pub(crate) fn is_year(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year: i32| (1800..2200).contains(&year))
}

fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

pub(crate) fn parse_integer(text: &str, origin: TypeOrigin) -> Option<i64> {
    let (is_negative, digits) = split_sign(text, origin);
    if !is_whole_number(digits, origin) || digits.len() > 19 && origin == TypeOrigin::Inferred {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        // Negative, because the smallest integer has no positive counterpart.
        value = value.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))?;
    }
    match (is_negative, value) {
        // The sign would be lost.
        (true, 0) if origin == TypeOrigin::Inferred => None,
        (true, value) => Some(value),
        (false, value) => value.checked_neg(),
    }
}

/// The sign and what follows it. Where the type is declared, there may be a plus.
fn split_sign(text: &str, origin: TypeOrigin) -> (bool, &[u8]) {
    match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] if origin == TypeOrigin::Declared => (false, rest),
        all => (false, all),
    }
}

/// Whether the digits are those of a whole number and not of a code, which has zeros at its beginning.
fn is_whole_number(digits: &[u8], origin: TypeOrigin) -> bool {
    let is_code = matches!(digits, [b'0', _, ..]) && origin == TypeOrigin::Inferred;
    !digits.is_empty() && !is_code && digits.iter().all(u8::is_ascii_digit)
}

/// A number in the notation of programs.
struct FloatText<'t> {
    is_negative: bool,
    /// The digits before the point.
    whole: &'t [u8],
    /// The digits after it.
    fraction: &'t [u8],
    exponent: i32,
}

impl<'t> FloatText<'t> {
    fn parse(text: &'t str, origin: TypeOrigin) -> Option<Self> {
        let (is_negative, rest) = split_sign(text, origin);
        let digits = |bytes: &'t [u8]| bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
        let (whole, rest) = rest.split_at(digits(rest));
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at(digits(rest)),
            rest => (&rest[..0], rest),
        };
        if whole.is_empty() && fraction.is_empty() || !whole.is_empty() && !is_whole_number(whole, origin) {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', exponent @ ..] => {
                if exponent.len() > 6 {
                    return None;
                }
                std::str::from_utf8(exponent).ok()?.parse().ok()?
            }
            _ => return None,
        };
        Some(Self { is_negative, whole, fraction, exponent })
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).map(|digit| digit - b'0')
    }

    /// The significant digits, and the exponent of ten of the first one.
    fn significant(&self) -> (impl Iterator<Item = u8>, usize, i32) {
        let zeros = self.digits().take_while(|digit| *digit == 0).count();
        let all = self.whole.len() + self.fraction.len();
        let trailing = self.fraction.iter().rev().chain(self.whole.iter().rev()).take_while(|digit| **digit == b'0');
        let count = all.saturating_sub(zeros).saturating_sub(trailing.count());
        let exponent = self.exponent + self.whole.len() as i32 - zeros as i32 - 1;
        (self.digits().skip(zeros).take(count), count, exponent)
    }

    /// The value, if multiplying or dividing once gives the nearest double.
    fn quick_value(&self) -> Option<f64> {
        if self.whole.len() + self.fraction.len() > EXACT_DIGITS {
            return None;
        }
        let mantissa = self.digits().fold(0_u64, |mantissa, digit| mantissa * 10 + u64::from(digit));
        let exponent = self.exponent - self.fraction.len() as i32;
        let power = *EXACT_POWERS.get(exponent.unsigned_abs() as usize)?;
        let value = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
        Some(if self.is_negative { -value } else { value })
    }

    /// Whether `value`, written with as many digits as this number has, has these digits.
    fn is_exactly(&self, value: f64) -> bool {
        let (_, count, exponent) = self.significant();
        if count == 0 || count <= EXACT_DIGITS && value.abs() >= SMALLEST_EXACT {
            return true;
        }
        if count > DIGITS_MAX {
            return false;
        }
        // Programs write the shortest text of a float, or one with a fixed number of digits.
        let is_written = |text: &str| {
            text.split_once('e').is_some_and(|(mantissa, power)| {
                let written = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0');
                power.parse() == Ok(exponent) && written.eq(self.significant().0)
            })
        };
        let mut shortest = ShortText::default();
        let is_shortest = write!(shortest, "{:e}", value.abs()).is_ok() && is_written(shortest.as_str());
        is_shortest || is_written(&format!("{:.*e}", count - 1, value.abs()))
    }
}

/// A text on the stack.
#[derive(Default)]
struct ShortText {
    bytes: [u8; 32],
    length: usize,
}

impl ShortText {
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for ShortText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

pub(crate) fn parse_float(text: &str, origin: TypeOrigin) -> Option<f64> {
    match text {
        "NaN" | "nan" => return Some(f64::NAN),
        "inf" => return Some(f64::INFINITY),
        "-inf" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let number = FloatText::parse(text, origin)?;
    if let Some(value) = number.quick_value() {
        return Some(value);
    }
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    (origin == TypeOrigin::Declared || number.is_exactly(value)).then_some(value)
}

/// The decimal number in units of its last digit after the point.
fn parse_decimal(text: &str, precision: u8, scale: i8, origin: TypeOrigin) -> Option<i128> {
    let scale = usize::from(scale.unsigned_abs());
    let number = FloatText::parse(text, origin).filter(|number| number.exponent == 0)?;
    if text.bytes().any(|byte| matches!(byte, b'e' | b'E')) {
        return None;
    }
    let kept = number.fraction.get(..scale).unwrap_or(number.fraction);
    if number.fraction.iter().skip(scale).any(|digit| *digit != b'0') {
        return None;
    }
    let zeros = std::iter::repeat_n(&b'0', scale - kept.len());
    let digits = number.whole.iter().chain(kept).chain(zeros).skip_while(|digit| **digit == b'0');
    let mut value: i128 = 0;
    for (count, digit) in digits.enumerate() {
        if count >= usize::from(precision) {
            return None;
        }
        value = value * 10 + i128::from(digit - b'0');
    }
    match number.is_negative {
        true if value == 0 && origin == TypeOrigin::Inferred => None,
        true => Some(-value),
        false => Some(value),
    }
}

/// The days from 1970-01-01 to a date such as `2024-02-29`.
fn parse_date(text: &str) -> Option<i32> {
    let days = |date: NaiveDate| date.num_days_from_ce() - DAYS_TO_1970;
    if text.len() == DATE_BYTES { read_date(text.as_bytes()).map(days) } else { None }
}

const DATE_BYTES: usize = 10;
/// The days from 0000-12-31 to 1970-01-01.
const DAYS_TO_1970: i32 = 719_163;

fn read_date(bytes: &[u8]) -> Option<NaiveDate> {
    let [a, b, c, d, b'-', month @ .., b'-', e, f] = bytes.first_chunk::<DATE_BYTES>()? else { return None };
    let year = two_digits([*a, *b])? * 100 + two_digits([*c, *d])?;
    // There is no year 0.
    let year = i32::try_from(year).ok().filter(|year| *year > 0)?;
    NaiveDate::from_ymd_opt(year, two_digits(*month)?, two_digits([*e, *f])?)
}

fn two_digits(digits: [u8; 2]) -> Option<u32> {
    let [tens, ones] = digits;
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

/// A time of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextTime {
    /// Microseconds since 1970-01-01: in UTC if the text has a zone.
    microseconds: i64,
    /// Whether the text ends with an offset or `Z`.
    has_zone: bool,
}

impl TextTime {
    /// Whether a column with or without a zone holds it. A time with an offset is that of UTC where the type is declared.
    fn fits(self, has_zone: bool, origin: TypeOrigin) -> bool {
        self.has_zone == has_zone || self.has_zone && origin == TypeOrigin::Declared
    }
}

/// A time such as `2024-02-29 12:30:00.5`, `2024-02-29T12:30Z` or `2024-02-29 12:30:00 +02:00`.
fn parse_timestamp(text: &str) -> Option<TextTime> {
    let (date, rest) = text.as_bytes().split_at_checked(DATE_BYTES)?;
    let date = read_date(date)?;
    let [b'T' | b't' | b' ', h1, h2, b':', m1, m2, rest @ ..] = rest else { return None };
    let (hour, minute) = (two_digits([*h1, *h2])?, two_digits([*m1, *m2])?);
    let (second, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (two_digits([*s1, *s2])?, rest),
        rest => (0, rest),
    };
    let (microsecond, rest) = match rest {
        [b'.' | b',', rest @ ..] => read_fraction(rest)?,
        rest => (0, rest),
    };
    let offset = read_offset(rest)?;
    let local = date.and_hms_micro_opt(hour, minute, second, microsecond)?.and_utc().timestamp_micros();
    let offset_microseconds = i64::from(offset.unwrap_or(0)) * 60 * MICROSECONDS_PER_SECOND;
    Some(TextTime { microseconds: local.checked_sub(offset_microseconds)?, has_zone: offset.is_some() })
}

/// The microseconds that a fraction begins with. Further digits must be zeros.
fn read_fraction(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let length = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    let (digits, rest) = bytes.split_at(length);
    if digits.is_empty() || digits.iter().skip(6).any(|digit| *digit != b'0') {
        return None;
    }
    let kept = digits.iter().chain(std::iter::repeat_n(&b'0', 6)).take(6);
    Some((kept.fold(0, |value, digit| value * 10 + u32::from(digit - b'0')), rest))
}

/// The offset from UTC in minutes; `Some(None)` if there is none.
fn read_offset(bytes: &[u8]) -> Option<Option<i32>> {
    let zone = match bytes {
        [] => return Some(None),
        [b' ', zone @ ..] => zone,
        zone => zone,
    };
    let (sign, hours, minutes) = match zone {
        [b'Z' | b'z'] | b"UTC" => return Some(Some(0)),
        [sign @ (b'+' | b'-'), h1, h2] => (sign, [*h1, *h2], [b'0'; 2]),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] | [sign @ (b'+' | b'-'), h1, h2, m1, m2] => {
            (sign, [*h1, *h2], [*m1, *m2])
        }
        _ => return None,
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    if hours > 18 || minutes > 59 {
        return None;
    }
    let offset = i32::try_from(hours * 60 + minutes).ok()?;
    Some(Some(if *sign == b'-' { -offset } else { offset }))
}

const NANOSECONDS_PER_MICROSECOND: u32 = 1_000;

/// How the texts of a column are written.
#[derive(Debug, Clone)]
pub(crate) struct TextReading {
    origin: TypeOrigin,
    /// The format of numbers, if it is not that of programs.
    numbers: Option<NumberFormat>,
    /// The declared form of times.
    form: Option<Arc<EntryTimeFormat>>,
}

impl TextReading {
    /// That of a column of the type `data_type`, which is `declared` or inferred.
    pub(crate) fn new(declared: Option<&ColumnType>, data_type: &DataType, numbers: Option<NumberFormat>) -> Self {
        Self {
            origin: if declared.is_some() { TypeOrigin::Declared } else { TypeOrigin::Inferred },
            numbers: declared.and_then(ColumnType::number_format).or(numbers).filter(|_| data_type.is_numeric()),
            form: declared.and_then(ColumnType::form).cloned(),
        }
    }
}

/// The values of a column, by its type.
pub(crate) enum ColumnValues {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Boolean(BooleanBuilder),
    Date(Date32Builder),
    /// With the type, and whether it has a zone.
    Timestamp(TimestampMicrosecondBuilder, bool),
}

impl ColumnValues {
    pub(crate) fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), *precision, *scale)
            }
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()), zone.is_some())
            }
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends what `text` means. Nothing if the column does not hold it.
    #[inline]
    pub(crate) fn append(&mut self, text: &str, reading: &TextReading) -> Option<()> {
        match reading.numbers {
            Some(format) => self.append_plain(&format.normalize(text)?, reading),
            None => self.append_plain(text, reading),
        }
    }

    /// As [`ColumnValues::append`], for a number in the notation of programs, whatever format texts have.
    #[inline]
    pub(crate) fn append_plain(&mut self, text: &str, TextReading { origin, form, .. }: &TextReading) -> Option<()> {
        match self {
            Self::Text(values) => values.append_value(text),
            Self::Integer(values) => values.append_value(parse_integer(text, *origin)?),
            Self::Float(values) => values.append_value(parse_float(text, *origin)?),
            Self::Decimal(values, precision, scale) => {
                values.append_value(parse_decimal(text, *precision, *scale, *origin)?);
            }
            Self::Boolean(values) => values.append_value(parse_boolean(text)?),
            Self::Date(values) => values.append_value(match form {
                Some(form) => parse_date_in(text, form)?,
                None => parse_date(text)?,
            }),
            Self::Timestamp(values, has_zone) => {
                let time = match form {
                    Some(form) => parse_timestamp_in(text, form),
                    None => parse_timestamp(text).or_else(|| Self::midnight(text)),
                };
                values.append_value(time.filter(|time| time.fits(*has_zone, *origin))?.microseconds);
            }
        }
        Some(())
    }

    /// A date is its midnight where times have no zone.
    fn midnight(text: &str) -> Option<TextTime> {
        const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
        let microseconds = i64::from(parse_date(text)?).checked_mul(MICROSECONDS_PER_DAY)?;
        Some(TextTime { microseconds, has_zone: false })
    }

    pub(crate) fn append_null(&mut self) {
        match self {
            Self::Text(values) => values.append_null(),
            Self::Integer(values) => values.append_null(),
            Self::Float(values) => values.append_null(),
            Self::Decimal(values, ..) => values.append_null(),
            Self::Boolean(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Timestamp(values, _) => values.append_null(),
        }
    }

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Decimal(values, ..) => values.len(),
            Self::Boolean(values) => values.len(),
            Self::Date(values) => values.len(),
            Self::Timestamp(values, _) => values.len(),
        }
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Decimal(values, ..) => Arc::new(values.finish()),
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::Date(values) => Arc::new(values.finish()),
            Self::Timestamp(values, _) => Arc::new(values.finish()),
        }
    }
}

/// The days from 1970-01-01 to a date in a declared form, which has no time of day but midnight.
fn parse_date_in(text: &str, form: &EntryTimeFormat) -> Option<i32> {
    let local = form.read(text)?.local;
    (local.time() == NaiveTime::MIN).then(|| local.date().num_days_from_ce() - DAYS_TO_1970)
}

/// A time in a declared form. Nanoseconds would be lost.
fn parse_timestamp_in(text: &str, form: &EntryTimeFormat) -> Option<TextTime> {
    let WrittenTime { local, offset_seconds } = form.read(text)?;
    if local.nanosecond() % NANOSECONDS_PER_MICROSECOND != 0 {
        return None;
    }
    let offset = i64::from(offset_seconds.unwrap_or(0)) * MICROSECONDS_PER_SECOND;
    let microseconds = local.and_utc().timestamp_micros().checked_sub(offset)?;
    Some(TextTime { microseconds, has_zone: offset_seconds.is_some() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn infers_types_from_values() {
        let integer = DataType::Decimal128(BIG_INTEGER.0, BIG_INTEGER.1);
        let cases = [
            ("12", DataType::Int64),
            ("-7", DataType::Int64),
            ("0", DataType::Int64),
            ("9223372036854775807", DataType::Int64),
            ("-9223372036854775808", DataType::Int64),
            ("9223372036854775808", integer.clone()),
            ("99999999999999999999999999999999999999", integer),
            ("999999999999999999999999999999999999999", DataType::Utf8),
            ("007", DataType::Utf8),
            ("+1", DataType::Utf8),
            ("-0", DataType::Float64),
            ("1.5", DataType::Float64),
            ("1.50", DataType::Float64),
            (".5", DataType::Float64),
            ("5.", DataType::Float64),
            ("-1e+3", DataType::Float64),
            ("1.5E3", DataType::Float64),
            ("12E5", DataType::Utf8),
            ("00e1", DataType::Utf8),
            ("00.5", DataType::Utf8),
            ("-1e3", DataType::Float64),
            ("0.1000000000000000056", DataType::Float64),
            ("0.30000000000000004", DataType::Float64),
            ("5.999999999999999999", DataType::Utf8),
            ("1e+400", DataType::Utf8),
            ("1.5e-400", DataType::Utf8),
            ("NaN", DataType::Float64),
            ("-inf", DataType::Float64),
            ("infinity", DataType::Utf8),
            ("True", DataType::Boolean),
            ("2024-02-29", DataType::Date32),
            ("2024-02-30", DataType::Utf8),
            ("2024-2-29", DataType::Utf8),
            ("2024-02-29 10:00:00", TEXT_TIMESTAMP),
            ("2024-02-29 10:00:00.123456000", TEXT_TIMESTAMP),
            ("2024-02-29 10:00:00.123456789", DataType::Utf8),
            ("2024-02-29T10:00:00.123456Z", TEXT_INSTANT.clone()),
            ("2024-02-29 10:00:00+02", TEXT_INSTANT.clone()),
            ("2024-02-29 24:00:00", DataType::Utf8),
            ("-", DataType::Utf8),
            (".", DataType::Utf8),
            (" 1", DataType::Utf8),
            ("NA", DataType::Utf8),
        ];
        for (text, expected) in cases {
            assert_eq!(infer_type(text, None), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_another_format_stay_text() {
        let german = Some(NumberFormat { decimal: ',', thousands: Some('.') });
        assert_eq!(infer_type("1.234,5", german), DataType::Float64);
        assert_eq!(infer_type("1.234", german), DataType::Int64);
        assert_eq!(infer_type("12.34", german), DataType::Utf8);
        assert_eq!(infer_type("2024-02-29", german), DataType::Date32);
    }

    #[test]
    fn declared_types_take_spellings_that_inference_does_not() {
        let declared = TypeOrigin::Declared;
        assert_eq!(parse_integer("0870", declared), Some(870));
        assert_eq!(parse_integer("+5", declared), Some(5));
        assert_eq!(parse_float("5.999999999999999999", declared), Some(6.0));
        assert_eq!(parse_decimal("007.50", 5, 1, declared), Some(75));
        assert_eq!(parse_decimal("7.55", 5, 1, declared), None, "a digit would be lost");
        assert_eq!(parse_decimal("12345.6", 5, 1, declared), None, "it has too many digits");
    }

    #[test]
    fn times_are_microseconds_of_utc() {
        let read = |text: &str| parse_timestamp(text).map(|time| (time.microseconds, time.has_zone));
        assert_eq!(read("1970-01-02T00:00"), Some((86_400_000_000, false)));
        assert_eq!(read("1970-01-01 02:00:00.000001+02:00"), Some((1, true)));
        assert_eq!(read("1969-12-31 23:59:59,5 -0030"), Some((1_799_500_000, true)));
        assert_eq!(parse_date("1970-01-02"), Some(1));
        assert_eq!(parse_date("0001-01-01"), Some(-719_162));
    }

    /// The digits of a number without what is a difference of spelling only.
    fn digits(text: &str) -> (bool, Vec<u8>, i32) {
        let number = FloatText::parse(text, TypeOrigin::Inferred).unwrap();
        let (digits, count, exponent) = number.significant();
        (number.is_negative, digits.collect(), if count == 0 { 0 } else { exponent })
    }

    /// A number in Rust's notation with a sign before its exponent.
    fn with_sign(text: &str) -> String {
        text.replace('e', "e+").replace("+-", "-")
    }

    proptest! {
        #[test]
        fn a_number_has_the_digits_of_its_text(text in "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,20})?(e[+-][0-9]{1,2})?") {
            match infer_type(&text, None) {
                DataType::Int64 => prop_assert_eq!(parse_integer(&text, TypeOrigin::Inferred).unwrap().to_string(), text),
                DataType::Float64 => {
                    let value = parse_float(&text, TypeOrigin::Inferred).unwrap();
                    prop_assert_eq!(Ok(value), text.parse::<f64>());
                    let count = digits(&text).1.len().max(1);
                    let written = with_sign(&format!("{value:.*e}", count - 1));
                    prop_assert_eq!(digits(&written), digits(&text));
                }
                _ => {}
            }
        }

        #[test]
        fn every_float_is_read_as_itself(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            for text in [with_sign(&format!("{value:e}")), with_sign(&format!("{value:.17e}"))] {
                prop_assert_eq!(parse_float(&text, TypeOrigin::Inferred), Some(value), "{}", text);
            }
        }
    }
}
