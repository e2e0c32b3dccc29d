//! Declared forms of times, in the letters of strftime.

use thiserror::Error;

use super::{CivilTime, Cursor, TimeResolver, ZoneInText, nanoseconds};

const ITEMS_MAX: usize = 64;
/// Two-digit years below this are in this century, as in POSIX.
const CENTURY_PIVOT: i64 = 69;

/// The form of the times in a group of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryTimeFormat(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// One of the forms that the fixed formats have, or a number since 1970.
    Any,
    /// A number since 1970, see [`super::time_from_number`].
    Epoch,
    Items(Vec<Item>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Literal(u8),
    Blank,
    Year,
    YearOfCentury,
    Month,
    MonthName,
    Day,
    DayOfYear,
    Hour,
    HourOfHalf,
    HalfOfDay,
    Minute,
    Second,
    /// The digits of a fraction, with its point before them.
    PointAndFraction,
    Fraction,
    Offset,
    ZoneName,
    EpochSeconds,
    WeekdayName,
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
    /// The fraction of a second is `%f` (its digits) or `%.f` (with the point). A form without a year takes it from the
    /// reference of the [`super::TimeContext`].
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
        let mut items = Vec::new();
        let mut bytes = (1..).zip(format.bytes());
        while let Some((position, byte)) = bytes.next() {
            if items.len() >= ITEMS_MAX {
                return Err(error(position, "is too long"));
            }
            if byte != b'%' {
                items.push(if byte == b' ' { Item::Blank } else { Item::Literal(byte) });
                continue;
            }
            let mut letter = bytes.next().map(|(_, letter)| letter);
            // `%-d` and `%3f` are read as `%d` and `%f`; `%.f` and `%.3f` have a point.
            let has_point = letter == Some(b'.');
            while matches!(letter, Some(b'-' | b'_' | b'0' | b'3' | b'6' | b'9' | b':' | b'.')) {
                letter = bytes.next().map(|(_, letter)| letter);
            }
            let Some(letter) = letter else { return Err(error(position, "ends with an incomplete letter")) };
            if letter == b'f' {
                items.push(if has_point { Item::PointAndFraction } else { Item::Fraction });
            } else {
                let letters = items_of_letter(letter).ok_or_else(|| error(position, "has an unknown letter"))?;
                items.extend_from_slice(letters);
            }
        }
        let has = |item| items.contains(&item);
        let has_date = has(Item::EpochSeconds)
            || has(Item::DayOfYear)
            || (has(Item::Day) && (has(Item::Month) || has(Item::MonthName)));
        if has_date { Ok(Self(Form::Items(items))) } else { Err(error(1, "has no month and day")) }
    }
}

fn items_of_letter(letter: u8) -> Option<&'static [Item]> {
    use Item::*;
    Some(match letter {
        b'Y' => &[Year],
        b'y' => &[YearOfCentury],
        b'm' => &[Month],
        b'b' | b'B' | b'h' => &[MonthName],
        b'd' | b'e' => &[Day],
        b'j' => &[DayOfYear],
        b'H' | b'k' => &[Hour],
        b'I' | b'l' => &[HourOfHalf],
        b'p' | b'P' => &[HalfOfDay],
        b'M' => &[Minute],
        b'S' => &[Second],
        b'L' | b'N' => &[Fraction],
        b'z' => &[Offset],
        b'Z' => &[ZoneName],
        b's' => &[EpochSeconds],
        b'a' | b'A' => &[WeekdayName],
        b'T' => &[Hour, Literal(b':'), Minute, Literal(b':'), Second],
        b'R' => &[Hour, Literal(b':'), Minute],
        b'F' => &[Year, Literal(b'-'), Month, Literal(b'-'), Day],
        b'D' => &[Month, Literal(b'/'), Day, Literal(b'/'), YearOfCentury],
        b'n' | b't' => &[Blank],
        b'%' => &[Literal(b'%')],
        _ => return None,
    })
}

/// The parts of a time as they are read.
#[derive(Default)]
struct Parts<'a> {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<i64>,
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanosecond: u32,
    epoch_seconds: Option<i64>,
    zone: Option<ZoneInText<'a>>,
}

impl TimeResolver {
    /// The time that `text` has in this form.
    pub(crate) fn formatted_time(&mut self, text: &str, format: &EntryTimeFormat) -> Option<i64> {
        let items = match &format.0 {
            Form::Any => return self.any_time(text),
            Form::Epoch => return super::time_from_number(text),
            Form::Items(items) => items,
        };
        let mut cursor = Cursor::new(text.as_bytes());
        let mut parts = Parts::default();
        for item in items {
            parts.read(*item, &mut cursor)?;
        }
        if !cursor.is_at_end() {
            return None;
        }
        if let Some(seconds) = parts.epoch_seconds {
            return nanoseconds(seconds, parts.nanosecond);
        }
        let civil = parts.civil()?;
        self.resolve(civil, parts.zone.unwrap_or(ZoneInText::Missing))
    }
}

impl<'a> Parts<'a> {
    fn read(&mut self, item: Item, cursor: &mut Cursor<'a>) -> Option<()> {
        match item {
            Item::Literal(byte) => return cursor.take(byte).then_some(()),
            Item::Blank => cursor.skip_blanks(),
            Item::Year => self.year = Some(cursor.number(4, 4)?),
            Item::YearOfCentury => {
                let year = cursor.number(2, 2)?;
                self.year = Some(if year < CENTURY_PIVOT { 2000 + year } else { 1900 + year });
            }
            Item::Month => self.month = Some(cursor.small(1, 2)?),
            Item::MonthName => {
                self.month = Some(cursor.month_name()?);
                skip_letters(cursor);
            }
            Item::Day => {
                cursor.skip_blanks();
                self.day = Some(cursor.small(1, 2)?);
            }
            Item::DayOfYear => self.day_of_year = Some(cursor.number(1, 3)?),
            Item::Hour => {
                cursor.skip_blanks();
                self.hour = cursor.number(1, 2).filter(|hour| *hour < 24)?;
            }
            Item::HourOfHalf => {
                cursor.skip_blanks();
                self.hour = cursor.number(1, 2).filter(|hour| (1..=12).contains(hour))?;
                self.is_afternoon.get_or_insert(false);
            }
            Item::HalfOfDay => {
                self.is_afternoon = Some(match cursor.peek()? | 0x20 {
                    b'a' => false,
                    b'p' => true,
                    _ => return None,
                });
                cursor.advance(1);
                return cursor.take_any(b"mM").then_some(());
            }
            Item::Minute => self.minute = cursor.number(1, 2).filter(|minute| *minute < 60)?,
            Item::Second => self.second = cursor.number(1, 2).filter(|second| *second <= 60)?,
            Item::PointAndFraction => self.nanosecond = cursor.fraction()?,
            Item::Fraction => self.nanosecond = cursor.fraction_digits()?,
            Item::Offset => self.zone = Some(ZoneInText::Offset(cursor.offset()?)),
            Item::ZoneName => self.zone = Some(ZoneInText::Abbreviation(cursor.capitals()?)),
            Item::EpochSeconds => self.epoch_seconds = Some(cursor.number(1, 12)?),
            Item::WeekdayName => skip_letters(cursor),
        }
        Some(())
    }

    fn civil(&self) -> Option<CivilTime> {
        let hour = match self.is_afternoon {
            None => self.hour,
            Some(is_afternoon) => self.hour % 12 + if is_afternoon { 12 } else { 0 },
        };
        let second_of_day = hour * 3_600 + self.minute * 60 + self.second;
        let (month, day) = match (self.month, self.day, self.day_of_year) {
            (Some(month), Some(day), _) => (month, day),
            (_, _, Some(day_of_year)) => {
                let days = super::days_from_date(self.year?, 1, 1)? + day_of_year - 1;
                let (year, month, day) = super::date_from_days(days);
                if Some(year) != self.year {
                    return None;
                }
                (month, day)
            }
            _ => return None,
        };
        Some(CivilTime { year: self.year, month, day, second_of_day, nanosecond: self.nanosecond })
    }
}

fn skip_letters(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        cursor.advance(1);
    }
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
            ("%Y-%m-%d %H:%M:%S,%3f", "2024-03-01 12:00:00,250", "2024-03-01T12:00:00.250Z"),
            ("%F %T%.f %Z", "2024-03-01 12:00:00.5 CET", "2024-03-01T11:00:00.500Z"),
            ("%F %T%.6f", "2024-03-01 12:00:00", "2024-03-01T12:00:00Z"),
            ("%a %b %e %H:%M:%S %Y", "Fri Mar  1 12:00:00 2024", "2024-03-01T12:00:00Z"),
            ("%B %d, %Y %I:%M:%S %p", "March 1, 2024 12:05:00 AM", "2024-03-01T00:05:00Z"),
            ("%m/%d/%y %H:%M", "03/01/24 12:00", "2024-03-01T12:00:00Z"),
            ("%m%d %H:%M:%S.%f", "0301 12:00:00.000001", "2024-03-01T12:00:00.000001Z"),
            ("%s.%f", "1709294400.5", "2024-03-01T12:00:00.500Z"),
            ("%Y %j", "2024 061", "2024-03-01T00:00:00Z"),
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
