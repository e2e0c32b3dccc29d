//! Dates, times and timestamps in ISO 8601, as exact counts of a unit.

use arrow::array::timezone::Tz;
use arrow::datatypes::TimeUnit;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
