//! Declared forms of times, in the letters of strftime that chrono has.
//!
//! Where logs have more forms than chrono accepts, a part is read here: fractions of any length, abbreviations of zones,
//! offsets such as `Z` and `+01`, days of the week in any language, and months with further letters.

use chrono::Datelike;
use chrono::format::{Fixed, Item, Numeric, ParseErrorKind, Parsed, StrftimeItems, parse_and_remainder};
use thiserror::Error;

use super::{CivilTime, Cursor, TimeResolver, ZoneInText, nanoseconds};

const FORMAT_BYTES_MAX: usize = 256;

/// The form of the times in a group of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryTimeFormat(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// One of the forms that the fixed formats have, or a number since 1970.
    Any,
    /// A number since 1970, see [`super::time_from_number`].
    Epoch,
    Items(Vec<Item<'static>>),
}

/// A form of times that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the time format \"{format}\" {reason} at character {position}")]
pub struct TimeFormatError {
    /// The format as it was given.
    pub format: String,
    /// The position of the wrong letter, counted from 1.
    pub position: usize,
    reason: &'static str,
}

impl EntryTimeFormat {
    /// Recognises ISO 8601, the times of access logs and of syslog, and numbers since 1970.
    #[must_use]
    pub fn any() -> Self {
        Self(Form::Any)
    }

    /// The form with the letters of strftime, such as `%d/%b/%Y:%H:%M:%S %z`, or one of the words `any` and `epoch`.
    /// The fraction of a second is `%f` (its digits, also as `%L` and `%N`) or `%.f` (with the point). A form without a
    /// year takes it from the reference of the [`super::TimeContext`].
    ///
    /// # Errors
    ///
    /// If a letter is unknown or the form has no date; with the position.
    pub fn parse(format: &str) -> Result<Self, TimeFormatError> {
        match format {
            "any" => return Ok(Self(Form::Any)),
            "epoch" => return Ok(Self(Form::Epoch)),
            _ => {}
        }
        let error = |position: usize, reason| TimeFormatError { format: format.to_owned(), position, reason };
        if format.len() > FORMAT_BYTES_MAX {
            return Err(error(FORMAT_BYTES_MAX + 1, "is too long"));
        }
        let fractions = ["%L", "%N", "%3L", "%3N", "%6L", "%6N", "%9L", "%9N"];
        let letters = format.split("%%").map(|part| {
            let with_point = part.replace("%.3N", "%.f").replace("%.6N", "%.f").replace("%.9N", "%.f");
            fractions.iter().fold(with_point, |part, fraction| part.replace(fraction, "%f"))
        });
        let letters = letters.collect::<Vec<_>>().join("%%");
        let Ok(items) = StrftimeItems::new(&letters).parse_to_owned() else {
            let (known, wrong) = letters.split_at(known_length(&letters));
            let is_incomplete = wrong.chars().all(|character| "%-_0#.:369".contains(character));
            let reason = if is_incomplete { "ends with an incomplete letter" } else { "has an unknown letter" };
            return Err(error(known.chars().count() + 1, reason));
        };
        let has =
            |numeric: &Numeric| items.iter().any(|item| matches!(item, Item::Numeric(other, _) if other == numeric));
        let is_month_name = |item: &Item<'_>| matches!(item, Item::Fixed(Fixed::ShortMonthName | Fixed::LongMonthName));
        let has_month = has(&Numeric::Month) || items.iter().any(is_month_name);
        let is_whole = |item: &Item<'_>| matches!(item, Item::Fixed(Fixed::RFC2822 | Fixed::RFC3339));
        let has_date = items.iter().any(is_whole)
            || has(&Numeric::Timestamp)
            || has(&Numeric::Ordinal)
            || (has_month && has(&Numeric::Day));
        if has_date { Ok(Self(Form::Items(items))) } else { Err(error(1, "has no month and day")) }
    }
}

/// The number of bytes before the first letter that is unknown or incomplete.
fn known_length(format: &str) -> usize {
    let is_known = |start: &str| StrftimeItems::new(start).all(|item| item != Item::Error);
    (0..format.len()).rev().find(|end| format.get(..*end).is_some_and(is_known)).unwrap_or(0)
}

impl TimeResolver {
    /// The time that `text` has in this form.
    pub(crate) fn formatted_time(&mut self, text: &str, format: &EntryTimeFormat) -> Option<i64> {
        let items = match &format.0 {
            Form::Any => return self.any_time(text),
            Form::Epoch => return super::time_from_number(text),
            Form::Items(items) => items,
        };
        let (mut rest, mut parsed, mut zone) = (text, Parsed::new(), ZoneInText::Missing);
        for item in items {
            rest = read_item(item, rest, &mut parsed, &mut zone)?;
        }
        if !rest.is_empty() {
            return None;
        }
        if let Some(seconds) = parsed.timestamp() {
            return nanoseconds(seconds, parsed.nanosecond().unwrap_or(0));
        }
        // `%#z` and `%+` are read by chrono.
        let zone = parsed.offset().map_or(zone, ZoneInText::Offset);
        self.resolve(civil_time(&parsed)?, zone)
    }
}

/// Reads one part of a time, and returns the text after it.
fn read_item<'a>(
    item: &Item<'static>,
    text: &'a str,
    parsed: &mut Parsed,
    zone: &mut ZoneInText<'a>,
) -> Option<&'a str> {
    use Fixed::*;
    let mut cursor = Cursor::new(text.as_bytes());
    match item {
        Item::Numeric(Numeric::Nanosecond, _) => {
            parsed.set_nanosecond(i64::from(cursor.fraction_digits()?)).ok()?;
        }
        Item::Fixed(Nanosecond | Nanosecond3 | Nanosecond6 | Nanosecond9) => {
            parsed.set_nanosecond(i64::from(cursor.fraction()?)).ok()?;
        }
        Item::Fixed(TimezoneOffset | TimezoneOffsetColon | TimezoneOffsetDoubleColon | TimezoneOffsetTripleColon) => {
            *zone = ZoneInText::Offset(cursor.offset()?);
        }
        Item::Fixed(TimezoneName) => *zone = ZoneInText::Abbreviation(cursor.capitals()?),
        Item::Fixed(ShortMonthName | LongMonthName) => {
            parsed.set_month(i64::from(cursor.month_name()?)).ok()?;
            skip_letters(&mut cursor);
        }
        Item::Fixed(ShortWeekdayName | LongWeekdayName) => skip_letters(&mut cursor),
        _ => return parse_and_remainder(parsed, text, std::iter::once(item)).ok(),
    }
    text.get(cursor.position()..)
}

fn skip_letters(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        cursor.advance(1);
    }
}

fn civil_time(parsed: &Parsed) -> Option<CivilTime> {
    let (year, month, day) = match parsed.to_naive_date() {
        Ok(date) => (Some(i64::from(date.year())), date.month(), date.day()),
        Err(error) if error.kind() == ParseErrorKind::NotEnough => (None, parsed.month()?, parsed.day()?),
        Err(_) => return None,
    };
    let part = |value: Option<u32>| i64::from(value.unwrap_or(0));
    let hour = part(parsed.hour_div_12()) * 12 + part(parsed.hour_mod_12());
    let second_of_day = hour * 3_600 + part(parsed.minute()) * 60 + part(parsed.second());
    Some(CivilTime { year, month, day, second_of_day, nanosecond: parsed.nanosecond().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::{LogTimeZone, TimeContext};
    use super::*;

    fn time(format: &str, text: &str) -> Option<String> {
        // 2024-03-10.
        let reference = SystemTime::UNIX_EPOCH + Duration::from_secs(1_710_028_800);
        let format = EntryTimeFormat::parse(format).expect("a format");
        let time = TimeResolver::new(TimeContext::new(LogTimeZone::utc(), reference)).formatted_time(text, &format)?;
        Some(chrono::DateTime::from_timestamp_nanos(time).to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
    }

    #[test]
    fn letters_read_their_parts() {
        let table = [
            ("%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("%+", "2024-03-01T12:00:00.25+00:00", "2024-03-01T12:00:00.250Z"),
            ("%Y-%m-%d %H:%M:%S%.3N", "2024-03-01 12:00:00.250", "2024-03-01T12:00:00.250Z"),
            ("%Y-%m-%d %H:%M:%S,%3f", "2024-03-01 12:00:00,250", "2024-03-01T12:00:00.250Z"),
            ("%F %T%.f %Z", "2024-03-01 12:00:00.5 CET", "2024-03-01T11:00:00.500Z"),
            ("%F %T%.6f", "2024-03-01 12:00:00", "2024-03-01T12:00:00Z"),
            ("%a %b %e %H:%M:%S %Y", "Fri Mar  1 12:00:00 2024", "2024-03-01T12:00:00Z"),
            ("%B %d, %Y %I:%M:%S %p", "March 1, 2024 12:05:00 AM", "2024-03-01T00:05:00Z"),
            ("%m/%d/%y %H:%M", "03/01/24 12:00", "2024-03-01T12:00:00Z"),
            ("%m%d %H:%M:%S.%f", "0301 12:00:00.000001", "2024-03-01T12:00:00.000001Z"),
            ("%s.%f", "1709294400.5", "2024-03-01T12:00:00.500Z"),
            ("%Y %j", "2024 061", "2024-03-01T00:00:00Z"),
            ("%Y-%m-%dT%H:%M:%S.%L%z", "2024-03-01T12:00:00.25Z", "2024-03-01T12:00:00.250Z"),
            ("%A, %d. %b %Y", "Freitag, 01. March 2024", "2024-03-01T00:00:00Z"),
            ("%c", "Fri Mar  1 12:00:00 2024", "2024-03-01T12:00:00Z"),
            ("100%% %F", "100% 2024-03-01", "2024-03-01T00:00:00Z"),
            ("epoch", "1709294400000", "2024-03-01T12:00:00Z"),
        ];
        for (format, text, expected) in table {
            assert_eq!(time(format, text).as_deref(), Some(expected), "{format} {text}");
        }
        assert_eq!(time("%F", "2024-03-01 12:00"), None);
        assert_eq!(time("%F %T", "2024-02-30 12:00:00"), None);
    }

    #[test]
    fn errors_have_a_position() {
        let error = |format| EntryTimeFormat::parse(format).expect_err("an error").to_string();
        assert_eq!(error("%Y-%Q"), "the time format \"%Y-%Q\" has an unknown letter at character 4");
        assert_eq!(error("%H:%M"), "the time format \"%H:%M\" has no month and day at character 1");
        assert_eq!(error("%d %b %"), "the time format \"%d %b %\" ends with an incomplete letter at character 7");
    }
}
