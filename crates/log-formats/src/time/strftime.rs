//! Declared forms of times, in the letters of strftime that chrono has, or in those of PostgreSQL's `to_char`:
//! `DD.MM.YYYY HH24:MI`.
//!
//! Where logs have more forms than chrono accepts, a part is read here: fractions of any length, abbreviations of zones,
//! offsets such as `Z` and `+01`, days of the week in any language, and months with further letters.

use chrono::format::{Fixed, Item, Numeric, ParseErrorKind, Parsed, StrftimeItems, parse_and_remainder};
use chrono::{DateTime, Datelike, NaiveDateTime, NaiveTime, Utc};
use thiserror::Error;

use super::{CivilTime, Cursor, TimeResolver, ZoneInText, nanoseconds, time_from_number, zone};

const FORMAT_BYTES_MAX: usize = 256;
const YEAR_DIGITS: usize = 4;
const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// Digits of a fraction of a second that are read.
const FRACTION_DIGITS: usize = 9;

/// The form of times that is declared for a group of a pattern, or for a column of a text file.
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

/// What times of a form have beside a month and a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFormatParts {
    /// A year.
    pub has_year: bool,
    /// An offset from UTC, or the abbreviation of a zone.
    pub has_zone: bool,
}

/// A time as a text has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenTime {
    /// The date, and the time of day, which is midnight if there is none.
    pub local: NaiveDateTime,
    /// Seconds east of UTC, if the text has a zone.
    pub offset_seconds: Option<i32>,
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

    /// The form with the letters of strftime, such as `%d/%b/%Y:%H:%M:%S %z`, with those of PostgreSQL's `to_char`, such as
    /// `DD.MM.YYYY HH24:MI`, or one of the words `any` and `epoch`. The fraction of a second is `%f` (its digits, also as
    /// `%L`, `%N`, `MS` and `US`) or `%.f` (with the point). `%3f` is a number of milliseconds, which may have no zeros before it:
    /// as `:44`, it is 44. A form without a year takes it from the reference of the [`super::TimeContext`].
    ///
    /// # Errors
    ///
    /// If a letter is unknown, or if the form has no date, or hours of half a day without AM or PM; with the position.
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
        let translated = match format.contains('%') {
            true => format.to_owned(),
            false => to_strftime(format).map_err(|(position, reason)| error(position, reason))?,
        };
        let fractions = ["%L", "%N", "%3L", "%3N", "%6L", "%6N", "%9L", "%9N"];
        let letters = translated.split("%%").map(|part| {
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
        let has_half_days = items.iter().any(|item| matches!(item, Item::Fixed(Fixed::UpperAmPm | Fixed::LowerAmPm)));
        match has_date {
            true if has(&Numeric::Hour12) && !has_half_days => {
                Err(error(1, "has hours of half a day without AM or PM"))
            }
            true => Ok(Self(Form::Items(items))),
            false => Err(error(1, "has no month and day")),
        }
    }

    /// What its times have. Those of the form `any` may have nothing else.
    #[must_use]
    pub fn parts(&self) -> TimeFormatParts {
        use Fixed::*;
        let has = |is_part: fn(&Item<'_>) -> bool| match &self.0 {
            Form::Any => false,
            Form::Epoch => true,
            Form::Items(items) => items.iter().any(is_part),
        };
        TimeFormatParts {
            has_year: has(|item| {
                matches!(
                    item,
                    Item::Numeric(Numeric::Year | Numeric::YearMod100 | Numeric::Timestamp, _)
                        | Item::Fixed(RFC2822 | RFC3339)
                )
            }),
            has_zone: has(|item| {
                matches!(
                    item,
                    Item::Numeric(Numeric::Timestamp, _)
                        | Item::Fixed(
                            RFC2822
                                | RFC3339
                                | TimezoneName
                                | TimezoneOffset
                                | TimezoneOffsetColon
                                | TimezoneOffsetDoubleColon
                                | TimezoneOffsetTripleColon
                        )
                )
            }),
        }
    }

    /// The time that `text` has in this form, if the form has a year and no digit of the text is lost.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<WrittenTime> {
        let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
        if text.split(['.', ',']).skip(1).any(|part| digits(part) > FRACTION_DIGITS) {
            return None;
        }
        let utc = |time: DateTime<Utc>| WrittenTime { local: time.naive_utc(), offset_seconds: Some(0) };
        let items = match &self.0 {
            Form::Any => return None,
            Form::Epoch => return time_from_number(text).map(DateTime::from_timestamp_nanos).map(utc),
            Form::Items(items) => items,
        };
        let (parsed, zone) = read_items(items, text)?;
        if let Some(seconds) = parsed.timestamp() {
            return DateTime::from_timestamp(seconds, parsed.nanosecond().unwrap_or(0)).map(utc);
        }
        let part = |value: Option<u32>| value.unwrap_or(0);
        let hour = part(parsed.hour_div_12()) * 12 + part(parsed.hour_mod_12());
        let (minute, second, nanosecond) = (parsed.minute(), parsed.second(), parsed.nanosecond());
        // There is no leap second: it would be another one.
        let time = NaiveTime::from_hms_nano_opt(hour, part(minute), part(second), part(nanosecond))?;
        let offset_seconds = match zone {
            ZoneInText::Missing => None,
            ZoneInText::Offset(seconds) => Some(seconds),
            ZoneInText::Abbreviation(name) => Some(zone::offset_seconds(name)?),
        };
        Some(WrittenTime { local: parsed.to_naive_date().ok()?.and_time(time), offset_seconds })
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
            Form::Epoch => return time_from_number(text),
            Form::Items(items) => items,
        };
        let (parsed, zone) = read_items(items, text)?;
        if let Some(seconds) = parsed.timestamp() {
            return nanoseconds(seconds, parsed.nanosecond().unwrap_or(0));
        }
        self.resolve(civil_time(&parsed)?, zone)
    }
}

/// The parts of a text that has this form.
fn read_items<'t>(items: &[Item<'static>], text: &'t str) -> Option<(Parsed, ZoneInText<'t>)> {
    let (mut rest, mut parsed, mut zone) = (text, Parsed::new(), ZoneInText::Missing);
    for item in items {
        rest = read_item(item, rest, &mut parsed, &mut zone)?;
    }
    // `%#z` and `%+` are read by chrono.
    let zone = parsed.offset().map_or(zone, ZoneInText::Offset);
    rest.is_empty().then_some((parsed, zone))
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
        // Other lengths are those of other forms: `15.06.25` is not in the year 25.
        Item::Numeric(Numeric::Year, _) => {
            cursor.skip_blanks();
            parsed.set_year(cursor.number(YEAR_DIGITS, YEAR_DIGITS)?).ok()?;
        }
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
        Item::Fixed(Internal(_)) if StrftimeItems::new("%3f").next().as_ref() == Some(item) => {
            parsed.set_nanosecond(cursor.number(1, 3)? * NANOSECONDS_PER_MILLISECOND).ok()?;
        }
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

/// A part of a time in these letters and in those of strftime. Longer letters come before those that they begin with.
const LETTERS: &[(&str, &str)] = &[
    ("YYYY", "%Y"),
    ("YY", "%y"),
    ("MONTH", "%B"),
    ("MON", "%b"),
    ("MM", "%m"),
    ("MI", "%M"),
    ("MS", "%f"),
    ("US", "%f"),
    ("DDD", "%j"),
    ("DD", "%d"),
    ("DAY", "%A"),
    ("DY", "%a"),
    ("HH24", "%H"),
    ("HH12", "%I"),
    ("HH", "%H"),
    ("SS", "%S"),
    ("AM", "%p"),
    ("PM", "%p"),
    ("TZH:TZM", "%z"),
    ("TZH", "%z"),
    ("TZ", "%Z"),
    ("OF", "%z"),
];

/// The form in the letters of strftime. `HH` has 24 hours, or 12 if the form has `AM` or `PM`. The error is the position of what is
/// wrong, counted in characters from 1, and the reason.
fn to_strftime(format: &str) -> Result<String, (usize, &'static str)> {
    let mut written = String::with_capacity(format.len());
    let mut parts: Vec<char> = Vec::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let position = format.chars().count() - rest.chars().count() + 1;
        if let Some(quoted) = rest.strip_prefix('"') {
            let (literal, behind) = quoted.split_once('"').ok_or((position, "has a quote that is not closed"))?;
            written.push_str(literal);
            rest = behind;
            continue;
        }
        let is_next = |letters: &str| rest.get(..letters.len()).is_some_and(|next| next.eq_ignore_ascii_case(letters));
        if let Some((letters, part)) = LETTERS.iter().find(|(letters, _)| is_next(letters)) {
            let kind = kind_of_part(part);
            if parts.contains(&kind) {
                return Err((position, "has a part twice (MM is the month, MI the minute)"));
            }
            parts.push(kind);
            written.push_str(part);
            rest = rest.get(letters.len()..).unwrap_or_default();
            continue;
        }
        // Between a date and its time.
        let is_separator = is_next("THH");
        if first.is_ascii_alphabetic() && !is_separator {
            return Err((position, "has an unknown letter"));
        }
        written.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    let has_half_days = parts.contains(&'p');
    Ok(if has_half_days { written.replace("%H", "%I") } else { written })
}

/// The same letter for the ways to write a part of a time.
fn kind_of_part(part: &str) -> char {
    match part {
        "%y" => 'Y',
        "%b" | "%B" => 'm',
        "%I" => 'H',
        "%a" => 'A',
        "%Z" => 'z',
        other => other.chars().nth(1).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::time::{LogTimeZone, TimeContext};

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
            ("%Y%m%d-%H:%M:%S:%3f", "20240301-9:5:7:44", "2024-03-01T09:05:07.044Z"),
            ("%Y%m%d-%H:%M:%S:%3f", "20240301-09:05:07:440", "2024-03-01T09:05:07.440Z"),
        ];
        for (format, text, expected) in table {
            assert_eq!(time(format, text).as_deref(), Some(expected), "{format} {text}");
        }
        assert_eq!(time("%F", "2024-03-01 12:00"), None);
        assert_eq!(time("%F %T", "2024-02-30 12:00:00"), None);
    }

    #[test]
    fn letters_of_postgresql_are_the_same_form() {
        assert_eq!(EntryTimeFormat::parse("DD.MM.YYYY HH24:MI"), EntryTimeFormat::parse("%d.%m.%Y %H:%M"));
        assert_eq!(time("DD.MM.YYYY HH:MI", "15.06.2025 17:30").as_deref(), Some("2025-06-15T17:30:00Z"));
        assert_eq!(time("DD.MM.YYYY", "15.06.25"), None);
        assert_eq!(time("DD.MM.YY", "15.06.25").as_deref(), Some("2025-06-15T00:00:00Z"));
    }

    #[test]
    fn times_of_all_years_are_read_without_loss() {
        let read = |format: &str, text: &str| {
            let written = EntryTimeFormat::parse(format).expect("a format").read(text)?;
            Some((written.local.to_string(), written.offset_seconds))
        };
        let expected = |text: &str, offset| Some((text.to_owned(), offset));
        assert_eq!(read("DD.MM.YYYY", "31.12.9999"), expected("9999-12-31 00:00:00", None));
        assert_eq!(read("DD.MM.YYYY HH:MI", "1.6.2025 17:30"), expected("2025-06-01 17:30:00", None));
        assert_eq!(
            read("%F %T%.f %z", "2025-06-01 12:00:00.5 +0200"),
            expected("2025-06-01 12:00:00.500", Some(7_200))
        );
        assert_eq!(read("%F %T %Z", "2025-06-01 12:00:00 CET"), expected("2025-06-01 12:00:00", Some(3_600)));
        assert_eq!(read("epoch", "1709294400"), expected("2024-03-01 12:00:00", Some(0)));
        for (format, text) in [
            ("DD.MM.YYYY", "31.02.2025"),
            ("DD.MM.YYYY", "15.06.25"),
            ("DD.MM.YYYY", "15.06.2025 10:00"),
            ("%F %T", "2025-06-01 23:59:60"),
            ("%F %T%.f", "2025-06-01 12:00:00.1234567891"),
            ("%d.%m.", "15.06."),
            ("any", "2025-06-01"),
        ] {
            assert_eq!(read(format, text), None, "{format} {text}");
        }
        let parts = |format: &str| EntryTimeFormat::parse(format).expect("a format").parts();
        assert_eq!(parts("DD.MM.YYYY"), TimeFormatParts { has_year: true, has_zone: false });
        assert_eq!(parts("DD.MM. TZH"), TimeFormatParts { has_year: false, has_zone: true });
    }

    #[test]
    fn errors_have_a_position() {
        let error = |format| EntryTimeFormat::parse(format).expect_err("an error").to_string();
        assert_eq!(error("%Y-%Q"), "the time format \"%Y-%Q\" has an unknown letter at character 4");
        assert_eq!(error("%H:%M"), "the time format \"%H:%M\" has no month and day at character 1");
        assert_eq!(
            error("DD.MM.YYYY HH12:MI"),
            "the time format \"DD.MM.YYYY HH12:MI\" has hours of half a day without AM or PM at character 1"
        );
        assert_eq!(error("%d %b %"), "the time format \"%d %b %\" ends with an incomplete letter at character 7");
    }

    #[test]
    fn letters_become_those_of_strftime() {
        for (format, expected) in [
            ("DD.MM.YYYY", "%d.%m.%Y"),
            ("dd.mm.yyyy hh24:mi:ss", "%d.%m.%Y %H:%M:%S"),
            ("DD.MM.YYYY HH:MI", "%d.%m.%Y %H:%M"),
            ("MM/DD/YY HH:MI AM", "%m/%d/%y %I:%M %p"),
            ("YYYY-MM-DDTHH24:MI:SS.US TZH:TZM", "%Y-%m-%dT%H:%M:%S.%f %z"),
            ("DD Mon YYYY", "%d %b %Y"),
            ("YYYY\"Y\"DDD", "%YY%j"),
            ("YYYY年MM月DD日", "%Y年%m月%d日"),
        ] {
            assert_eq!(to_strftime(format).as_deref(), Ok(expected), "{format}");
        }
    }

    #[test]
    fn what_has_no_meaning_is_an_error_with_its_position() {
        assert_eq!(to_strftime("dd.MM.yyyy HH:mm").map_err(|(position, _)| position), Err(15));
        assert_eq!(to_strftime("DD.MM.JJJJ"), Err((7, "has an unknown letter")));
        assert_eq!(to_strftime("DD \"of"), Err((4, "has a quote that is not closed")));
    }
}
