//! Text as dates, times and intervals, as PostgreSQL reads it: ISO order, else month before day.

mod interval;
mod moment;

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};

use super::calendar::{self, DAY, DateTimeParts, invalid_input_error, out_of_range_error, text_out_of_range};
use super::zone::TimeZoneSpec;
use moment::{ParsedInput, ParsedMoment};

pub(crate) use interval::{IntervalRestriction, RestrictionUnit, parse_interval, parse_restricted_interval};

/// Words that mean another time each time; they are rewritten where they are constants.
pub(crate) const RELATIVE_WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// Parses a date as days since 1970-01-01.
pub(crate) fn parse_date(text: &str) -> Result<i32> {
    match read("date", text)? {
        ParsedInput::Epoch => Ok(0),
        ParsedInput::Moment(moment) => {
            let day = moment.day.ok_or_else(|| invalid_input_error("date", text))?;
            calendar::checked_date(day).map_err(|_| text_out_of_range("date", text))
        }
    }
}

/// Parses a time as microseconds of the day.
pub(crate) fn parse_time(text: &str) -> Result<i64> {
    if let Some(time) = moment::parse_compact_time(text.trim()) {
        return Ok(time);
    }
    match read("time", text)? {
        ParsedInput::Moment(ParsedMoment { time: Some(time), zone, day })
            if day.is_some() || !matches!(zone, Some(TimeZoneSpec::Named(_) | TimeZoneSpec::Moved(..))) =>
        {
            if time < DAY {
                return Ok(time);
            }
            Err(DataFusionError::Execution(format!(
                "time out of range: \"{text}\"; the last time of a day is 23:59:59.999999, write that instead"
            )))
        }
        _ => Err(invalid_input_error("time", text)),
    }
}

/// Parses a time without a zone as microseconds since 1970-01-01. A zone in the text is ignored.
pub(crate) fn parse_timestamp(text: &str) -> Result<i64> {
    match read("timestamp", text)? {
        ParsedInput::Epoch => Ok(0),
        ParsedInput::Moment(moment) => local_timestamp("timestamp", text, &moment),
    }
}

/// Parses a time with a zone as microseconds since 1970-01-01 00:00 UTC. The default zone is UTC.
pub(crate) fn parse_timestamptz(text: &str) -> Result<i64> {
    let kind = "timestamp with time zone";
    match read(kind, text)? {
        ParsedInput::Epoch => Ok(0),
        ParsedInput::Moment(moment) => {
            let local = local_timestamp(kind, text, &moment)?;
            let instant = moment.zone.map_or(local, |zone| zone.instant(local));
            calendar::checked_timestamp(instant).map_err(|_| text_out_of_range("timestamp", text))
        }
    }
}

fn local_timestamp(kind: &str, text: &str, moment: &ParsedMoment) -> Result<i64> {
    let day = moment.day.ok_or_else(|| invalid_input_error(kind, text))?;
    calendar::timestamp(day, moment.time.unwrap_or(0)).map_err(|_| text_out_of_range("timestamp", text))
}

fn read(kind: &str, text: &str) -> Result<ParsedInput> {
    if let Some(input) = parse_common_form(text) {
        return Ok(input);
    }
    let lower = text.trim().to_ascii_lowercase();
    if RELATIVE_WORDS.contains(&lower.as_str()) {
        return Err(DataFusionError::Execution(format!(
            "the text \"{text}\" is not a constant {kind}; write current_date, current_date + 1 or now() instead"
        )));
    }
    if matches!(lower.as_str(), "infinity" | "-infinity" | "+infinity") {
        return Err(DataFusionError::Execution(format!(
            "infinite values of type {kind} are not supported; use NULL, or a date such as 9999-12-31, instead"
        )));
    }
    moment::decode(kind, text)
}

/// Parses the most frequent forms, `2013-01-05` and `2013-01-05 07:08:09`, directly.
fn parse_common_form(text: &str) -> Option<ParsedInput> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        bytes
            .get(from..to)?
            .iter()
            .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    };
    let is = |position: usize, expected: u8| bytes.get(position) == Some(&expected);
    if !(is(4, b'-') && is(7, b'-') && (bytes.len() == 10 || bytes.len() == 19)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if year == 0 || !calendar::is_date(year, month, day) {
        return None;
    }
    let mut moment = ParsedMoment { day: Some(calendar::days(year, month, day)), ..ParsedMoment::default() };
    if bytes.len() == 19 {
        if !((is(10, b' ') || is(10, b'T')) && is(13, b':') && is(16, b':')) {
            return None;
        }
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        moment.time = Some(DateTimeParts { hour, minute, second, ..DateTimeParts::default() }.time());
    }
    Some(ParsedInput::Moment(moment))
}

/// Rounds microseconds to `digits` digits of a second, half away from zero.
pub(crate) fn round_to_digits(micros: i64, digits: u32) -> Result<i64> {
    let unit = 10_i64.pow(6 - digits.min(6));
    let half = if micros < 0 { -(unit / 2) } else { unit / 2 };
    let shifted = micros.checked_add(half).ok_or_else(|| out_of_range_error("timestamp"))?;
    Ok(shifted / unit * unit)
}

/// Rounds a moment to `digits` digits of a second. PostgreSQL counts from 2000, so halves before it are rounded down.
pub(crate) fn round_moment(micros: i64, digits: u32) -> Result<i64> {
    const TO_2000: i64 = 946_684_800 * 1_000_000;
    if digits >= 6 {
        return Ok(micros);
    }
    let since_2000 = micros.checked_sub(TO_2000).ok_or_else(|| out_of_range_error("timestamp"))?;
    Ok(round_to_digits(since_2000, digits)? + TO_2000)
}

/// Returns an interval of whole units; PostgreSQL's microseconds become nanoseconds.
pub(crate) fn build_interval(months: i64, days: i64, micros: i64) -> Result<IntervalMonthDayNano> {
    let parts = (i32::try_from(months), i32::try_from(days), micros.checked_mul(1_000));
    let (Ok(months), Ok(days), Some(nanoseconds)) = parts else { return Err(out_of_range_error("interval")) };
    Ok(IntervalMonthDayNano { months, days, nanoseconds })
}

/// What each text is read as, and written back as; the expected texts are PostgreSQL's answers.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::conversion;

    fn written<T>(value: Result<T>, write: impl Fn(T, &mut String)) -> String {
        let mut out = String::new();
        match value {
            Ok(value) => write(value, &mut out),
            Err(error) => out = format!("error: {error}"),
        }
        out
    }

    #[test]
    fn dates() {
        for (text, expected) in [
            ("2013-01-05", "2013-01-05"),
            ("2013-1-5", "2013-01-05"),
            ("20130105", "2013-01-05"),
            ("130105", "2013-01-05"),
            ("Jan 5, 2013", "2013-01-05"),
            ("5 January 2013", "2013-01-05"),
            ("5-Jan-2013", "2013-01-05"),
            ("Jan-05-2013", "2013-01-05"),
            ("2013-Jan-05", "2013-01-05"),
            ("1/5/2013", "2013-01-05"),
            ("1/5/99", "1999-01-05"),
            ("2013.005", "2013-01-05"),
            ("J2456298", "2013-01-05"),
            ("Saturday, 5 Jan 2013", "2013-01-05"),
            ("0044-03-15 BC", "0044-03-15 BC"),
            ("January 5, 99 BC", "0099-01-05 BC"),
            ("2013-01-05 23:59:59+14", "2013-01-05"),
            ("epoch", "1970-01-01"),
        ] {
            assert_eq!(written(parse_date(text), conversion::write_date), expected, "{text}");
        }
        for text in
            ["", "2013-13-01", "2013-02-29", "13/13/2013", "hello", "2013", "2013-01", "12:00", "infinity", "now"]
        {
            assert!(parse_date(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, expected) in [
            ("07:08", "07:08:00"),
            ("07:08:09.96", "07:08:09.96"),
            ("10:30 PM", "22:30:00"),
            ("12:05 am", "00:05:00"),
            (
                "23:59:60",
                "error: Execution error: time out of range: \"23:59:60\"; the last time of a day is 23:59:59.999999, \
             write that instead",
            ),
            ("070809", "07:08:09"),
            ("0708", "07:08:00"),
            ("2013-01-05 07:08", "07:08:00"),
            ("allballs", "00:00:00"),
            ("07:08+02", "07:08:00"),
        ] {
            assert_eq!(written(parse_time(text), conversion::write_time), expected, "{text}");
        }
        for text in ["25:00", "10:60", "13:00 pm", "2013-01-05", "07:08 Europe/Berlin"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn timestamps() {
        for (text, expected) in [
            ("2013-01-05", "2013-01-05 00:00:00"),
            ("2013-01-05 10:30 PM", "2013-01-05 22:30:00"),
            ("2013-01-05T07:08:09Z", "2013-01-05 07:08:09"),
            ("20130105T070809", "2013-01-05 07:08:09"),
            ("2013-01-05 24:00", "2013-01-06 00:00:00"),
            ("2013-01-05 07:08:60", "2013-01-05 07:09:00"),
            ("2013-01-05 07:08:09.9999999", "2013-01-05 07:08:10"),
            ("2013-01-05 07:08:09+02", "2013-01-05 07:08:09"),
            ("Sat Jan 5 07:08:09 2013 PST", "2013-01-05 07:08:09"),
            ("0044-03-15 10:00 BC", "0044-03-15 10:00:00 BC"),
            ("epoch", "1970-01-01 00:00:00"),
        ] {
            assert_eq!(written(parse_timestamp(text), conversion::write_timestamp), expected, "{text}");
        }
    }

    #[test]
    fn instants() {
        for (text, expected) in [
            ("2013-01-05 07:08:09", "2013-01-05 07:08:09+00"),
            ("2013-01-05 07:08:09+02", "2013-01-05 05:08:09+00"),
            ("2013-01-05 07:08:09-0330", "2013-01-05 10:38:09+00"),
            ("2013-01-05 07:08:09 Europe/Berlin", "2013-01-05 06:08:09+00"),
            ("2013-07-05 07:08:09 EST", "2013-07-05 12:08:09+00"),
            ("2013-01-05 07:08:09 pst8pdt", "2013-01-05 15:08:09+00"),
            ("2013-01-05Z", "2013-01-05 00:00:00+00"),
            ("2013-01-05 12:00 +02:30:10", "2013-01-05 09:29:50+00"),
        ] {
            assert_eq!(written(parse_timestamptz(text), conversion::write_timestamptz), expected, "{text}");
        }
        for text in ["2013-01-05 10:00 Mars/Olympus", "2013-01-05 10:00+16", "10:00", "tomorrow", "-infinity"] {
            assert!(parse_timestamptz(text).is_err(), "{text}");
        }
    }

    #[test]
    fn intervals() {
        for (text, expected) in [
            ("1 year 2 months 3 days 04:05:06.789", "1 year 2 mons 3 days 04:05:06.789"),
            ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("PT-1.5S", "-00:00:01.5"),
            ("1-2", "1 year 2 mons"),
            ("-1-2", "-1 years -2 mons"),
            ("1 02:03:04", "1 day 02:03:04"),
            ("3 4:05", "3 days 04:05:00"),
            ("90", "00:01:30"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("2 weeks ago", "-14 days"),
            ("@ 1 minute", "00:01:00"),
            ("1 month - 1 day", "1 mon -1 days"),
            ("-1 day +02:00", "-1 days +02:00:00"),
            ("1 day -2 hours", "1 day -02:00:00"),
            ("1day2h", "1 day 02:00:00"),
            ("0", "00:00:00"),
            ("-1.5 seconds", "-00:00:01.5"),
            ("1 century 1 decade", "110 years"),
            ("-3 days -04:05:06", "-3 days -04:05:06"),
            ("1.234 s", "00:00:01.234"),
        ] {
            assert_eq!(written(parse_interval(text), conversion::write_interval), expected, "{text}");
        }
        for text in ["", "day", "1 fortnight", "1 day 2 days", "P", "PT", "1-13", "10:99", "9999999999 years"] {
            assert!(parse_interval(text).is_err(), "{text}");
        }
    }
}
