//! The times that stand in the lines of the fixed formats.

use super::{CivilTime, Cursor, EPOCH_SECONDS_MIN, TimeResolver, ZoneInText};

impl TimeResolver {
    /// `2024-03-01T12:00:00.123Z` and its variants: `/` or `.` in the date, a blank or `_` for `T`, a comma in the fraction,
    /// an offset with or without colon, an abbreviation after a blank (PostgreSQL), or no zone. The cursor is then after it.
    pub(crate) fn iso_time(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let mut ahead = *cursor;
        let year = ahead.number(4, 4)?;
        let separator = ahead.peek().filter(|byte| matches!(byte, b'-' | b'/' | b'.'))?;
        ahead.advance(1);
        let month = ahead.small(2, 2)?;
        let day = ahead.take(separator).then(|| ahead.small(2, 2)).flatten()?;
        let second_of_day = ahead.take_any(b"Tt _").then(|| ahead.time_of_day()).flatten()?;
        let nanosecond = ahead.fraction()?;
        let zone = zone_after_time(&mut ahead);
        let civil = CivilTime { year: Some(year), month, day, second_of_day, nanosecond };
        let time = self.resolve(civil, zone)?;
        *cursor = ahead;
        Some(time)
    }

    /// `10/Oct/2000:13:55:36 -0700`, also with blanks, as in mail.
    pub(crate) fn access_time(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let mut ahead = *cursor;
        let day = ahead.small(1, 2)?;
        let separator = ahead.peek().filter(|byte| matches!(byte, b'/' | b'-' | b' '))?;
        ahead.advance(1);
        let month = ahead.month_name()?;
        let year = ahead.take(separator).then(|| ahead.number(4, 4)).flatten()?;
        let second_of_day = ahead.take_any(b": ").then(|| ahead.time_of_day()).flatten()?;
        let nanosecond = ahead.fraction()?;
        let zone = if ahead.take(b' ') { ZoneInText::Offset(ahead.offset()?) } else { ZoneInText::Missing };
        let civil = CivilTime { year: Some(year), month, day, second_of_day, nanosecond };
        let time = self.resolve(civil, zone)?;
        *cursor = ahead;
        Some(time)
    }

    /// `Mar  1 12:00:00`, or with a year after the day or after the time, as some devices write it.
    pub(crate) fn month_first_time(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let mut ahead = *cursor;
        let month = ahead.month_name()?;
        if !ahead.take(b' ') {
            return None;
        }
        ahead.take(b' ');
        let day = ahead.small(1, 2)?;
        if !ahead.take(b' ') {
            return None;
        }
        let mut after_year = ahead;
        let mut year = after_year.number(4, 4).filter(|_| after_year.take(b' '));
        if year.is_some() {
            ahead = after_year;
        }
        let second_of_day = ahead.time_of_day()?;
        let nanosecond = ahead.fraction()?;
        if year.is_none() {
            let mut after_year = ahead;
            let is_year = |year: &i64| (1970..2200).contains(year);
            let number = after_year.take(b' ').then(|| after_year.number(4, 4)).flatten().filter(is_year);
            if number.is_some() && matches!(after_year.peek(), None | Some(b' ' | b':')) {
                year = number;
                ahead = after_year;
            }
        }
        let civil = CivilTime { year, month, day, second_of_day, nanosecond };
        let time = self.resolve(civil, ZoneInText::Missing)?;
        *cursor = ahead;
        Some(time)
    }

    /// `0301 12:00:00.123456` without a year, or with one before the month (klog).
    pub(crate) fn month_day_time(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let mut ahead = *cursor;
        let digits = ahead.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let year = match digits {
            4 => None,
            8 => Some(ahead.number(4, 4)?),
            _ => return None,
        };
        let month = ahead.small(2, 2)?;
        let day = ahead.small(2, 2)?;
        let second_of_day = ahead.take(b' ').then(|| ahead.time_of_day()).flatten()?;
        let nanosecond = ahead.fraction()?;
        let civil = CivilTime { year, month, day, second_of_day, nanosecond };
        let time = self.resolve(civil, ZoneInText::Missing)?;
        *cursor = ahead;
        Some(time)
    }

    /// `240301 120000` or `20240301 12:00:00`: dates without separators, as Hadoop and MySQL write them.
    fn compact_time(&mut self, cursor: &mut Cursor<'_>) -> Option<i64> {
        let mut ahead = *cursor;
        let digits = ahead.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let year = match digits {
            6 => 2_000 + ahead.number(2, 2)?,
            8 => ahead.number(4, 4)?,
            _ => return None,
        };
        let month = ahead.small(2, 2)?;
        let day = ahead.small(2, 2)?;
        if !ahead.take(b' ') {
            return None;
        }
        let second_of_day = ahead.compact_time_of_day().or_else(|| ahead.time_of_day())?;
        let nanosecond = ahead.fraction()?;
        let civil = CivilTime { year: Some(year), month, day, second_of_day, nanosecond };
        let time = self.resolve(civil, ZoneInText::Missing)?;
        *cursor = ahead;
        Some(time)
    }

    /// A text that is a time as a whole, in one of the forms above or seconds since 1970.
    pub(crate) fn any_time(&mut self, text: &str) -> Option<i64> {
        let text = text.trim();
        if let Some(time) = super::time_from_number(text) {
            return Some(time).filter(|time| time / 1_000_000_000 >= EPOCH_SECONDS_MIN);
        }
        let mut cursor = Cursor::new(text.as_bytes());
        skip_weekday(&mut cursor);
        let time = match cursor.peek()? {
            b'0'..=b'9' => self
                .iso_time(&mut cursor)
                .or_else(|| self.access_time(&mut cursor))
                .or_else(|| self.compact_time(&mut cursor)),
            _ => self.month_first_time(&mut cursor),
        };
        time.filter(|_| cursor.is_at_end())
    }

    /// Whether `text` begins as a date of [`Self::iso_time`] and is one as a whole.
    pub(crate) fn whole_iso_time(&mut self, text: &str) -> Option<i64> {
        let mut cursor = Cursor::new(text.as_bytes());
        self.iso_time(&mut cursor).filter(|_| cursor.is_at_end())
    }
}

fn zone_after_time<'a>(cursor: &mut Cursor<'a>) -> ZoneInText<'a> {
    let mut ahead = *cursor;
    if let Some(offset) = ahead.offset() {
        *cursor = ahead;
        return ZoneInText::Offset(offset);
    }
    let mut ahead = *cursor;
    if !ahead.take(b' ') {
        return ZoneInText::Missing;
    }
    if let Some(b'+' | b'-') = ahead.peek() {
        if let Some(offset) = ahead.offset().filter(|_| is_end_of_zone(&ahead)) {
            *cursor = ahead;
            return ZoneInText::Offset(offset);
        }
        return ZoneInText::Missing;
    }
    // Only names that have the meaning of a zone: the next word of a line may be in capitals too.
    match ahead.capitals() {
        Some(name) if is_end_of_zone(&ahead) && is_zone_name(name) => {
            *cursor = ahead;
            ZoneInText::Abbreviation(name)
        }
        _ => ZoneInText::Missing,
    }
}

/// `Thu ` or `Thu, ` before a date.
fn skip_weekday(cursor: &mut Cursor<'_>) {
    let mut ahead = *cursor;
    let letters = ahead.rest().iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_month = Cursor::month_name(&mut { ahead }).is_some();
    ahead.advance(letters);
    ahead.take(b',');
    if letters == 3 && !is_month && ahead.take(b' ') {
        *cursor = ahead;
    }
}

fn is_zone_name(name: &str) -> bool {
    (2..=5).contains(&name.len()) && crate::column::NormalizedSeverity::from_word(name).is_none()
}

fn is_end_of_zone(cursor: &Cursor<'_>) -> bool {
    cursor.peek().is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::time::{LogTimeZone, TimeContext};

    fn any(text: &str) -> Option<String> {
        // 2024-03-10.
        let reference = SystemTime::UNIX_EPOCH + Duration::from_secs(1_710_028_800);
        let zone = LogTimeZone::from_name("Europe/Berlin").expect("a zone");
        let time = TimeResolver::new(TimeContext::new(zone, reference)).any_time(text)?;
        Some(chrono::DateTime::from_timestamp_nanos(time).to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
    }

    #[test]
    fn forms_of_times() {
        let table = [
            ("2024-03-01T12:00:00Z", "2024-03-01T12:00:00Z"),
            ("2024-03-01 12:00:00", "2024-03-01T11:00:00Z"),
            ("2024-07-01 12:00:00,250", "2024-07-01T10:00:00.250Z"),
            ("2024-03-01T12:00:00.123456789123+05:30", "2024-03-01T06:30:00.123456789Z"),
            ("2024-03-01 12:00:00.5 -0800", "2024-03-01T20:00:00.500Z"),
            ("2024-03-01 12:00:00.123 CET", "2024-03-01T11:00:00.123Z"),
            ("2024-03-01 12:00:00.123 PST", "2024-03-01T20:00:00.123Z"),
            ("2024-03-01 12:00:00.123 +03", "2024-03-01T09:00:00.123Z"),
            ("2024/03/01 12:00:00", "2024-03-01T11:00:00Z"),
            ("2024.03.01 12:00:00", "2024-03-01T11:00:00Z"),
            ("240301 120000", "2024-03-01T11:00:00Z"),
            ("20240301 120000,250", "2024-03-01T11:00:00.250Z"),
            ("240301 12:00:00", "2024-03-01T11:00:00Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
            ("Thu, 26 Nov 2020 05:04:07 +0000", "2020-11-26T05:04:07Z"),
            ("Thu Nov 26 05:04:07.5 2020", "2020-11-26T04:04:07.500Z"),
            ("26-Nov-2020 05:04:07.123", "2020-11-26T04:04:07.123Z"),
            ("Mar  1 12:00:00", "2024-03-01T11:00:00Z"),
            ("Mar 12 12:00:00", "2023-03-12T11:00:00Z"),
            ("Mar  1 2022 12:00:00.5", "2022-03-01T11:00:00.500Z"),
            ("1709294400", "2024-03-01T12:00:00Z"),
            ("1709294400.25", "2024-03-01T12:00:00.250Z"),
            ("1709294400123", "2024-03-01T12:00:00.123Z"),
        ];
        for (text, expected) in table {
            assert_eq!(any(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "2024-03-01",
            "2024-13-01T12:00:00Z",
            "2024-03-01T25:00:00Z",
            "2024-03-01 12:00:00 XYZ",
            "Mar",
            "9999-01-01T00:00:00Z",
            "Mar 1",
            "20240301",
            "240301 1200",
            "243101 120000",
            "24/03/01 12:00:00",
            "12",
            "Thu",
            "now",
            "2024-03-01T12:00:00Z and more",
        ] {
            assert_eq!(any(text), None, "{text}");
        }
    }
}
