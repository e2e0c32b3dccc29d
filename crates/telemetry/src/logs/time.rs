//! Points in time and ranges of them, as callers write them, and the times of the rows of a batch. All times are nanoseconds
//! since 1970-01-01 in UTC.

use arrow::array::{Array, ArrowPrimitiveType, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowTimestampType, DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::{DateTime, NaiveDate, NaiveTime};
use thiserror::Error;

use super::value::borrowed_text;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Nanoseconds in a day of UTC.
const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// Writes a time in nanoseconds as RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second.
pub fn format_time(nanos: i64) -> String {
    format!("{:?}Z", DateTime::from_timestamp_nanos(nanos).naive_utc())
}

/// The maximum length of a time as text; longer text is no time.
const TIME_TEXT_BYTES_MAX: usize = 100;

/// A time as a caller writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeInput<'a> {
    /// Text, in one of the forms that [`parse_time`] lists.
    Text(&'a str),
    /// A number without a fraction.
    Integer(i64),
    /// A number with a fraction.
    Decimal(f64),
}

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeParseError {
    /// No form of a time fits.
    #[error(
        "{text:?} is not a time; write for example -15m, now-1d, today, 2026-03-01, 2026-03-01T12:00:00Z, or an epoch \
         number"
    )]
    UnknownForm {
        /// The text, cut if it is long.
        text: String,
    },
    /// A number has a unit that does not exist.
    #[error("unknown unit {unit:?} in {text:?}; the units are ns, us, ms, s, m, h, d and w")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// The time is before 1677 or after 2262.
    #[error("{text} is outside of the years 1678 to 2261")]
    OutOfRange {
        /// The time as it was written.
        text: String,
    },
}

/// Parses a point in time into nanoseconds since 1970-01-01 in UTC. `now` is the current time in the same unit.
///
/// | form | meaning |
/// |---|---|
/// | `now`, `today`, `yesterday` | the current time; midnight in UTC at the beginning of this day or the day before |
/// | `-15m`, `-2h30m`, `15m ago` | relative to `now`; units: `ns`, `us`, `ms`, `s`, `m`, `h`, `d`, `w`, or their names |
/// | `now-1d`, `today+6h` | relative to a name |
/// | a number | the time since 1970: seconds below 10^11, milliseconds below 10^14, microseconds below 10^17, else nanoseconds |
/// | a negative number | seconds relative to `now` |
/// | `2026-03-01T12:00:00+01:00` | RFC 3339; a blank may replace `T`, seconds may be left out |
/// | `2026-03-01 12:00`, `2026-03-01` | without a zone: UTC; a date is its first instant |
/// | `12:30`, `12:30:15` | today, in UTC |
///
/// # Errors
/// If the text has none of these forms, or the time does not fit 64 bits of nanoseconds.
pub fn parse_time(input: TimeInput<'_>, now: i64) -> Result<i64, TimeParseError> {
    match input {
        TimeInput::Integer(number) => {
            epoch(i128::from(number), 0, now).ok_or_else(|| TimeParseError::OutOfRange { text: number.to_string() })
        }
        TimeInput::Decimal(number) => parse_text(&number.to_string(), now),
        TimeInput::Text(text) => parse_text(text, now),
    }
}

fn parse_text(original: &str, now: i64) -> Result<i64, TimeParseError> {
    let text = original.trim();
    let unknown = || TimeParseError::UnknownForm { text: original.chars().take(TIME_TEXT_BYTES_MAX).collect() };
    if text.is_empty() || text.len() > TIME_TEXT_BYTES_MAX {
        return Err(unknown());
    }
    let out_of_range = || TimeParseError::OutOfRange { text: text.to_owned() };
    if let Some((whole, fraction)) = decimal(text) {
        return epoch(whole, fraction, now).ok_or_else(out_of_range);
    }
    let lower = text.to_ascii_lowercase();
    let midnight = now.saturating_sub(now.rem_euclid(NANOS_PER_DAY));
    let names = [("now", now), ("today", midnight), ("yesterday", midnight.saturating_sub(NANOS_PER_DAY))];
    for (name, base) in names {
        if let Some(rest) = lower.strip_prefix(name) {
            return match rest.trim() {
                "" => Ok(base),
                offset if offset.starts_with(['+', '-']) => relative(offset, base, text)?.ok_or_else(unknown),
                _ => Err(unknown()),
            };
        }
    }
    if let Some(time) = date_time(text, midnight) {
        return time.ok_or_else(out_of_range);
    }
    if let Some(amount) = lower.strip_suffix("ago") {
        return relative(&format!("-{}", amount.trim()), now, text)?.ok_or_else(unknown);
    }
    if lower.starts_with(['+', '-']) {
        return relative(&lower, now, text)?.ok_or_else(unknown);
    }
    let is_amount = lower.starts_with(|first: char| first.is_ascii_digit());
    if is_amount && matches!(relative(&format!("-{lower}"), now, text), Ok(Some(_))) {
        // `15m` may mean before or after now; the message names the form that is clear.
        return Err(TimeParseError::UnknownForm { text: format!("{text} (without a sign)") });
    }
    Err(unknown())
}

/// A number as its whole part and its fraction in billionths, both with the sign of the number.
fn decimal(text: &str) -> Option<(i128, i64)> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 30 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: i128 = whole.parse().ok()?;
    let fraction = billionths(fraction);
    Some(if is_negative { (-whole, -fraction) } else { (whole, fraction) })
}

/// The digits after a point in billionths; further digits are cut.
fn billionths(digits: &str) -> i64 {
    let digits = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    digits.fold(0, |sum, digit| sum * 10 + i64::from(digit.wrapping_sub(b'0')))
}

fn epoch(whole: i128, fraction: i64, now: i64) -> Option<i64> {
    let second = i128::from(NANOS_PER_SECOND);
    let scaled = |unit: i128| whole.checked_mul(unit)?.checked_add(i128::from(fraction) * unit / second);
    let nanos = match whole {
        _ if whole < 0 || fraction < 0 => scaled(second)?.checked_add(i128::from(now))?,
        0..=99_999_999_999 => scaled(second)?,
        100_000_000_000..=99_999_999_999_999 => scaled(1_000_000)?,
        100_000_000_000_000..=99_999_999_999_999_999 => scaled(1_000)?,
        _ => whole,
    };
    i64::try_from(nanos).ok()
}

/// `+1h30m` or `-2d` from `base`; `None` if the text is no duration.
fn relative(offset: &str, base: i64, original: &str) -> Result<Option<i64>, TimeParseError> {
    let mut characters = offset.chars();
    let sign: i128 = if characters.next() == Some('-') { -1 } else { 1 };
    let mut rest = characters.as_str().trim_start();
    let mut total: i128 = 0;
    if rest.is_empty() {
        return Ok(None);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let length = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(length);
        let Some((whole, fraction)) = decimal(number) else { return Ok(None) };
        if unit.is_empty() {
            return Ok(None);
        }
        let Some(nanos) = unit_nanos(unit) else {
            return Err(TimeParseError::UnknownUnit { unit: unit.to_owned(), text: original.to_owned() });
        };
        let part = whole.saturating_mul(nanos).saturating_add(i128::from(fraction) * nanos / 1_000_000_000);
        total = total.saturating_add(part);
        rest = after.trim_start();
    }
    let time = i128::from(base).saturating_add(sign * total);
    i64::try_from(time).map(Some).map_err(|_| TimeParseError::OutOfRange { text: original.to_owned() })
}

fn unit_nanos(unit: &str) -> Option<i128> {
    let second = i128::from(NANOS_PER_SECOND);
    Some(match unit {
        "ns" | "nanosecond" | "nanoseconds" => 1,
        "us" | "µs" | "μs" | "microsecond" | "microseconds" => 1_000,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => second,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * second,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * second,
        "d" | "day" | "days" => 86_400 * second,
        "w" | "week" | "weeks" => 7 * 86_400 * second,
        _ => return None,
    })
}

/// A date, a time of day, or both. `None` if the text is none; the inner `None` if it is out of range.
fn date_time(text: &str, midnight: i64) -> Option<Option<i64>> {
    let (date, rest) = match text.get(..10).and_then(|date| NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()) {
        Some(date) => (Some(date), text.get(10..)?),
        None => (None, text),
    };
    let Some(date) = date else {
        let (nanos, rest) = time_of_day(rest)?;
        return rest.is_empty().then(|| midnight.checked_add(nanos));
    };
    let days = i128::from(date.signed_duration_since(NaiveDate::default()).num_days()) * i128::from(NANOS_PER_DAY);
    if rest.is_empty() {
        return Some(i64::try_from(days).ok());
    }
    let (nanos, rest) = time_of_day(rest.strip_prefix(['T', 't', ' ', '_'])?.trim_start())?;
    let offset = zone_offset(rest.trim())?;
    Some(i64::try_from(days + i128::from(nanos) - i128::from(offset)).ok())
}

/// Nanoseconds since midnight, and the text after the time.
fn time_of_day(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(text.len());
    let (clock, mut rest) = text.split_at(end);
    let form = if clock.len() == 5 { "%H:%M" } else { "%H:%M:%S" };
    let time = NaiveTime::parse_from_str(clock, form).ok()?;
    let mut nanos = time.signed_duration_since(NaiveTime::MIN).num_nanoseconds()?;
    if clock.len() == 8
        && let Some(fraction) = rest.strip_prefix(['.', ','])
    {
        let digits = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        let (fraction, after) = fraction.split_at(digits);
        if fraction.is_empty() {
            return None;
        }
        nanos += billionths(fraction);
        rest = after;
    }
    Some((nanos, rest))
}

/// The offset of a zone from UTC in nanoseconds: `Z`, `UTC`, `+01:00`, `+0100`, `+01`, or nothing, which is UTC.
fn zone_offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || ["z", "utc", "gmt"].contains(&zone.to_ascii_lowercase().as_str()) {
        return Some(0);
    }
    let sign = match zone.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits: String = zone.get(1..)?.chars().filter(|c| *c != ':').collect();
    if !matches!(digits.len(), 2 | 4) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..).filter(|rest| !rest.is_empty()).map_or(Some(0), |rest| rest.parse().ok())?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60) * NANOS_PER_SECOND)
}

/// The times from `start` (included) to `end` (excluded), in nanoseconds UTC. A bound that is absent is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first time of the range.
    pub start: Option<i64>,
    /// The first time after the range.
    pub end: Option<i64>,
}

/// Two bounds that are no range of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeRangeError {
    /// A bound is no time.
    #[error("{bound}: {error}")]
    Bound {
        /// `after` or `before`.
        bound: &'static str,
        /// What is wrong with it.
        error: TimeParseError,
    },
    /// The range ends before it starts, or at the same time.
    #[error("the range of time is empty: after ({after}) is not earlier than before ({before}){covered}")]
    Reversed {
        /// The start.
        after: String,
        /// The end.
        before: String,
        /// The time covered by the source, as the end of a sentence.
        covered: String,
    },
    /// The range starts after the current time.
    #[error("the range of time is in the future: after is {after}, and now is {now}{covered}")]
    Future {
        /// The start.
        after: String,
        /// The current time.
        now: String,
        /// The time covered by the source, as the end of a sentence.
        covered: String,
    },
}

impl TimeRange {
    /// Reads the bounds of a call. `now` is the current time; `covered` is the time of the first and the last entry of
    /// the source, if it is known, which the messages contain. All are nanoseconds UTC.
    ///
    /// # Errors
    /// If a bound is no time, or the range is empty, or it starts after `now`.
    pub fn parse(
        after: Option<TimeInput<'_>>,
        before: Option<TimeInput<'_>>,
        now: i64,
        covered: Option<(i64, i64)>,
    ) -> Result<Self, TimeRangeError> {
        let parse = |bound, input: Option<TimeInput<'_>>| {
            let time = input.map(|input| parse_time(input, now)).transpose();
            time.map_err(|error| TimeRangeError::Bound { bound, error })
        };
        let range = Self { start: parse("after", after)?, end: parse("before", before)? };
        let covered = || match covered {
            Some((first, last)) => {
                format!("; the source covers {} to {}", format_time(first), format_time(last))
            }
            None => String::new(),
        };
        if let (Some(start), Some(end)) = (range.start, range.end)
            && start >= end
        {
            let (after, before) = (format_time(start), format_time(end));
            return Err(TimeRangeError::Reversed { after, before, covered: covered() });
        }
        match range.start {
            Some(start) if start > now => {
                let (after, now) = (format_time(start), format_time(now));
                Err(TimeRangeError::Future { after, now, covered: covered() })
            }
            _ => Ok(range),
        }
    }

    /// Whether `time` is in the range.
    pub fn contains(&self, time: i64) -> bool {
        self.start.is_none_or(|start| time >= start) && self.end.is_none_or(|end| time < end)
    }

    /// Whether every time is in the range; only then entries without a time are in it too.
    pub fn is_unbounded(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }
}

/// The times of `array` in nanoseconds UTC, null where a row has none. Times before 1677 and after 2262 become the first
/// and the last time that nanoseconds can express, so that their order stays right. `None` if the type has no times.
pub fn time_column(array: &dyn Array) -> Option<Int64Array> {
    Some(match array.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let times = array.as_primitive::<TimestampNanosecondType>();
            Int64Array::new(times.values().clone(), times.nulls().cloned())
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => scaled::<TimestampMicrosecondType>(array, 1_000),
        DataType::Timestamp(TimeUnit::Millisecond, _) => scaled::<TimestampMillisecondType>(array, 1_000_000),
        DataType::Timestamp(TimeUnit::Second, _) => scaled::<TimestampSecondType>(array, 1_000_000_000),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            days.unary(|days| i64::from(days).saturating_mul(NANOS_PER_DAY))
        }
        DataType::Date64 => {
            let milliseconds = cast(array, &DataType::Int64).ok()?;
            milliseconds
                .as_primitive::<arrow::datatypes::Int64Type>()
                .unary(|value: i64| value.saturating_mul(1_000_000))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => (0..array.len())
            .map(|row| borrowed_text(array, row).filter(|text| is_absolute(text)))
            .map(|text| parse_time(TimeInput::Text(text?), 0).ok())
            .collect(),
        DataType::Dictionary(_, value) => time_column(cast(array, value).ok()?.as_ref())?,
        kind if kind.is_integer() => {
            let integers = cast(array, &DataType::Int64).ok()?;
            let integers = integers.as_primitive::<arrow::datatypes::Int64Type>();
            let time = |number: Option<i64>| number.and_then(|number| parse_time(TimeInput::Integer(number), 0).ok());
            integers.iter().map(time).collect()
        }
        kind if kind.is_floating() => {
            let floats = cast(array, &DataType::Float64).ok()?;
            let floats = floats.as_primitive::<arrow::datatypes::Float64Type>();
            let time = |number: Option<f64>| number.and_then(|number| parse_time(TimeInput::Decimal(number), 0).ok());
            floats.iter().map(time).collect()
        }
        _ => return None,
    })
}

/// Whether `text` may be a date or an epoch number. Other forms, such as `now`, are no times of entries.
fn is_absolute(text: &str) -> bool {
    let text = text.trim();
    text.as_bytes().get(4) == Some(&b'-') || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn scaled<T: ArrowTimestampType + ArrowPrimitiveType<Native = i64>>(array: &dyn Array, nanos: i64) -> Int64Array {
    array.as_primitive::<T>().unary(|value: i64| value.saturating_mul(nanos))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Float64Array, StringViewArray, TimestampSecondArray, UInt32Array,
    };

    use super::*;

    /// 2026-03-01T12:30:00Z.
    const NOW: i64 = 1_772_368_200 * NANOS_PER_SECOND;

    fn parsed(text: &str) -> String {
        match parse_time(TimeInput::Text(text), NOW) {
            Ok(nanos) => format_time(nanos),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_and_relative_times() {
        assert_eq!(parsed("now"), "2026-03-01T12:30:00Z");
        assert_eq!(parsed("today"), "2026-03-01T00:00:00Z");
        assert_eq!(parsed("Yesterday"), "2026-02-28T00:00:00Z");
        assert_eq!(parsed("-15m"), "2026-03-01T12:15:00Z");
        assert_eq!(parsed("-2h30m"), "2026-03-01T10:00:00Z");
        assert_eq!(parsed("- 1.5 hours"), "2026-03-01T11:00:00Z");
        assert_eq!(parsed("now-1d"), "2026-02-28T12:30:00Z");
        assert_eq!(parsed("now - 1w"), "2026-02-22T12:30:00Z");
        assert_eq!(parsed("today+6h"), "2026-03-01T06:00:00Z");
        assert_eq!(parsed("90 seconds ago"), "2026-03-01T12:28:30Z");
        assert_eq!(parsed("-3600"), "2026-03-01T11:30:00Z");
    }

    #[test]
    fn epochs_by_magnitude() {
        for text in ["1772368200", "1772368200000", "1772368200000000", "1772368200000000000"] {
            assert_eq!(parsed(text), "2026-03-01T12:30:00Z");
        }
        assert_eq!(parsed("1772368200.25"), "2026-03-01T12:30:00.250Z");
        assert_eq!(parse_time(TimeInput::Integer(1_772_368_200), 0), Ok(NOW));
        assert_eq!(parse_time(TimeInput::Decimal(1_772_368_200.5), 0), Ok(NOW + 500_000_000));
        assert_eq!(parsed("0"), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn dates_times_and_zones() {
        assert_eq!(parsed("2026-03-01"), "2026-03-01T00:00:00Z");
        assert_eq!(parsed("2026-03-01 07:05"), "2026-03-01T07:05:00Z");
        assert_eq!(parsed("2026-03-01T07:05:09.1234Z"), "2026-03-01T07:05:09.123400Z");
        assert_eq!(parsed("2026-03-01T07:05:09+01:00"), "2026-03-01T06:05:09Z");
        assert_eq!(parsed("2026-03-01 07:05:09,5 -0530"), "2026-03-01T12:35:09.500Z");
        assert_eq!(parsed("07:05"), "2026-03-01T07:05:00Z");
    }

    #[test]
    fn errors_name_what_is_right() {
        assert!(parsed("2026-02-30").starts_with("\"2026-02-30\" is not a time; write for example"));
        assert_eq!(
            parsed("-5 fortnights"),
            "unknown unit \"fortnights\" in \"-5 fortnights\"; the units are ns, us, ms, s, m, h, d and w"
        );
        assert!(parsed("15m").contains("15m (without a sign)"));
        assert_eq!(parsed("9999-01-01"), "9999-01-01 is outside of the years 1678 to 2261");
        for text in ["", "  ", "nowhere", "12:3", "2026-03-01T", "2026-03-01X07:05", "-", "now-", "++1h", "1e9"] {
            assert!(parsed(text).contains("is not a time") || parsed(text).contains("unit"), "{text}");
        }
        assert!(parsed(&"9".repeat(400)).len() < 400);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}", now in proptest::prelude::any::<i64>()) {
            let _ = parse_time(TimeInput::Text(&text), now);
        }

        #[test]
        fn formatted_times_are_read_back(nanos in proptest::prelude::any::<i64>()) {
            proptest::prop_assert_eq!(parse_time(TimeInput::Text(&format_time(nanos)), 0), Ok(nanos));
        }
    }

    fn range(after: &str, before: &str, covered: Option<(i64, i64)>) -> Result<TimeRange, String> {
        let text = |text| Some(TimeInput::Text(text)).filter(|input| *input != TimeInput::Text(""));
        TimeRange::parse(text(after), text(before), NOW, covered).map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_are_half_open() {
        let range = range("-1h", "now", None).unwrap();
        assert!(range.contains(NOW - 1) && !range.contains(NOW));
        assert!(range.contains(NOW - 3_600_000_000_000) && !range.contains(NOW - 3_600_000_000_001));
        assert!(TimeRange::default().is_unbounded() && TimeRange::default().contains(i64::MIN));
    }

    #[test]
    fn impossible_ranges_are_errors() {
        let covered = Some((0, NOW));
        assert_eq!(
            range("now", "-1h", covered).unwrap_err(),
            "the range of time is empty: after (2026-03-01T12:30:00Z) is not earlier than before \
             (2026-03-01T11:30:00Z); the source covers 1970-01-01T00:00:00Z to 2026-03-01T12:30:00Z"
        );
        assert_eq!(
            range("+1h", "", None).unwrap_err(),
            "the range of time is in the future: after is 2026-03-01T13:30:00Z, and now is 2026-03-01T12:30:00Z"
        );
        assert!(range("", "soon", None).unwrap_err().starts_with("before: \"soon\" is not a time"));
        assert!(range("-1h", "+1h", None).is_ok());
    }

    #[test]
    fn every_type_of_time_becomes_nanoseconds() {
        let second = 1_000_000_000;
        let columns: Vec<(ArrayRef, i64)> = vec![
            (Arc::new(TimestampSecondArray::from(vec![5]).with_timezone("Europe/Berlin")), 5 * second),
            (Arc::new(Date32Array::from(vec![1])), NANOS_PER_DAY),
            (Arc::new(UInt32Array::from(vec![5])), 5 * second),
            (Arc::new(Float64Array::from(vec![5.5])), 5_500_000_000),
            (Arc::new(StringViewArray::from(vec!["1970-01-01 00:00:05"])), 5 * second),
            (Arc::new(TimestampSecondArray::from(vec![i64::MAX])), i64::MAX),
        ];
        for (array, expected) in columns {
            assert_eq!(time_column(array.as_ref()).unwrap().value(0), expected, "{:?}", array.data_type());
        }
        let relative = StringViewArray::from(vec!["now", "-15m", "12:30:00", "-5", "-"]);
        assert_eq!(time_column(&relative).unwrap().null_count(), 5);
        assert!(time_column(&BooleanArray::from(vec![true])).is_none());
    }
}
