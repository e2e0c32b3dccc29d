//! Dates, times and decimal numbers as the log writes them, for every value of their types, exactly.
//!
//! Years outside of 0 to 9999 get a sign: other readers may reject them, this one restores them.

use std::fmt::Write;

use tidegate_query::{date_from_days, days_from_date, write_date};

/// Microseconds of a day.
pub(super) const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// Microseconds of an hour.
pub(super) const HOUR_MICROSECONDS: i64 = 3_600_000_000;

/// Whether the day is in the years that other readers accept.
pub(super) fn is_common_year(days: i64) -> bool {
    (1..=9999).contains(&date_from_days(days).0)
}

/// `2026-01-31`.
pub(super) fn format_date(days: i64) -> String {
    let mut text = String::new();
    write_date(days, &mut text);
    text
}

/// The inverse of [`format_date`].
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, text.get(1..)?),
        b'+' => (1, text.get(1..)?),
        _ => (1, text),
    };
    let mut parts = digits.split('-');
    let year = i64::from(parse_digits(parts.next()?)?);
    let month = parse_digits(parts.next()?)?;
    let day = parse_digits(parts.next()?)?;
    if parts.next().is_some() { None } else { days_from_date(sign * year, month, day) }
}

/// `2026-01-31T23:59:59.123456`, with a final `Z` if `utc`.
pub(super) fn format_timestamp(microseconds: i64, utc: bool) -> String {
    let mut text = format_date(microseconds.div_euclid(DAY_MICROSECONDS));
    let time = microseconds.rem_euclid(DAY_MICROSECONDS);
    let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    // Writing to a String cannot fail.
    let _ = write!(text, "T{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}");
    if utc {
        text.push('Z');
    }
    text
}

/// Microseconds since the epoch of `2026-01-31T23:59:59.123Z`, `2026-01-31 23:59:59`, or a time with an offset. `None` if
/// it has finer parts than microseconds.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    let separator = text.find(['T', ' '])?;
    let days = parse_date(text.get(..separator)?)?;
    let rest = text.get(separator + 1..)?;
    let (clock, offset) = split_offset(rest)?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':');
    let hours = parse_digits(parts.next()?)?;
    let minutes = parse_digits(parts.next()?)?;
    let seconds = parse_digits(parts.next()?)?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let microseconds = parse_fraction(fraction)?;
    let clock = i64::from((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds - offset;
    i64::try_from(i128::from(days) * i128::from(DAY_MICROSECONDS) + i128::from(clock)).ok()
}

/// The clock of a time, and the microseconds of its offset from UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let Some(position) = text.rfind(['+', '-']) else { return Some((text, 0)) };
    let (hours, minutes) = text.get(position + 1..)?.split_once(':')?;
    let offset = i64::from(parse_digits(hours)? * 60 + parse_digits(minutes)?) * 60_000_000;
    let is_west = text.get(position..)?.starts_with('-');
    Some((text.get(..position)?, if is_west { -offset } else { offset }))
}

/// The microseconds of the digits after the point.
fn parse_fraction(digits: &str) -> Option<i64> {
    if digits.len() > 9 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: i64 = format!("{digits:0<9}").parse().ok()?;
    (nanoseconds % 1_000 == 0).then_some(nanoseconds / 1_000)
}

/// A number without sign, of at most nine digits.
fn parse_digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// The text of `value` × 10^-`scale`; the scale is not negative.
pub(super) fn format_decimal(value: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap_or_default();
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// The inverse of [`format_decimal`]. `None` if the text has an exponent or more digits than the scale.
pub(super) fn parse_decimal(text: &str, scale: i8) -> Option<i128> {
    let scale = usize::try_from(scale).ok()?;
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = if fraction.len() > scale { fraction.trim_end_matches('0') } else { fraction };
    let is_number = !whole.is_empty() && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number || fraction.len() > scale {
        return None;
    }
    let value: i128 = format!("{whole}{fraction:0<scale$}").parse().ok()?;
    Some(if is_negative { -value } else { value })
}
