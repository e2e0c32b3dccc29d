//! Dates, times and intervals as text, as PostgreSQL writes them with the style ISO.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;

use super::calendar::{DateTimeParts, date_from_days};

/// Writes a date: `2013-01-05`, `0044-03-15 BC`.
pub(crate) fn write_date(days: i32, out: &mut String) {
    let (year, month, day) = date_from_days(i64::from(days));
    let written = if year > 0 { year } else { 1 - year };
    // Writing to a text never fails.
    let _ = write!(out, "{written:04}-{month:02}-{day:02}{}", era(year));
}

/// Writes a time of day: `07:08:09.25`.
pub(crate) fn write_time(micros: i64, out: &mut String) {
    let parts = DateTimeParts::from_time(micros);
    let _ = write!(out, "{:02}:{:02}:{:02}", parts.hour, parts.minute, parts.second);
    write_fraction(parts.micros, out);
}

/// Writes a time without a zone: `2013-01-05 07:08:09`.
pub(crate) fn write_timestamp(micros: i64, out: &mut String) {
    let year = write_moment(micros, out);
    out.push_str(era(year));
}

/// Writes an instant in UTC: `2013-01-05 07:08:09+00`.
pub(crate) fn write_timestamptz(micros: i64, out: &mut String) {
    let year = write_moment(micros, out);
    out.push_str("+00");
    out.push_str(era(year));
}

fn write_moment(micros: i64, out: &mut String) -> i64 {
    let parts = DateTimeParts::from_timestamp(micros);
    let year = if parts.year > 0 { parts.year } else { 1 - parts.year };
    let (month, day, hour, minute, second) = (parts.month, parts.day, parts.hour, parts.minute, parts.second);
    let _ = write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    write_fraction(parts.micros, out);
    parts.year
}

fn era(year: i64) -> &'static str {
    if year > 0 { "" } else { " BC" }
}

/// Writes the digits after the point without trailing zeros.
fn write_fraction(micros: i64, out: &mut String) {
    if micros != 0 {
        let digits = format!("{:06}", micros.abs());
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Writes an interval: `1 year 2 mons 3 days 04:05:06.7`.
pub(crate) fn write_interval(value: IntervalMonthDayNano, out: &mut String) {
    let start = out.len();
    // A positive field after a negative one has a sign.
    let mut is_negative_before = false;
    let units =
        [(i64::from(value.months / 12), "year"), (i64::from(value.months % 12), "mon"), (i64::from(value.days), "day")];
    for (count, unit) in units {
        if count != 0 {
            let space = if out.len() > start { " " } else { "" };
            let sign = if is_negative_before && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{count} {unit}{plural}");
            is_negative_before = count < 0;
        }
    }
    let micros = value.nanoseconds / 1_000;
    if micros != 0 || out.len() == start {
        let space = if out.len() > start { " " } else { "" };
        let sign = if micros < 0 {
            "-"
        } else if is_negative_before {
            "+"
        } else {
            ""
        };
        let parts = DateTimeParts::from_time(micros);
        let (hour, minute, second) = (parts.hour.abs(), parts.minute.abs(), parts.second.abs());
        let _ = write!(out, "{space}{sign}{hour:02}:{minute:02}:{second:02}");
        write_fraction(parts.micros, out);
    }
}
