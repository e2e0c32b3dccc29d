//! Times of entries: from the text of a line to nanoseconds since 1970 in UTC.

mod cursor;
mod lines;
mod shapes;
mod strftime;
mod zone;

use std::time::SystemTime;

use chrono::{DateTime, Datelike, NaiveDate};

pub(crate) use cursor::{Cursor, time_from_number};
pub(crate) use shapes::{FoundTimeForm, TIME_SHAPES, best_time_form, find_time_form};
pub use strftime::{EntryTimeFormat, TimeFormatError, TimeFormatParts, WrittenTime};
pub use zone::{LogTimeZone, TimeZoneError};

const NANOSECONDS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Numbers below this, in March 1973, are no times, unless a pattern declares that they are. They are durations, or dates
/// such as 20240301.
pub(crate) const EPOCH_SECONDS_MIN: i64 = 100_000_000;
/// How far in the future of the reference a time without year may be, because clocks and zones differ.
const FUTURE_SECONDS_MAX: i64 = SECONDS_PER_DAY;
/// How many years back a date is searched that exists: 29 February is missing for seven years around 1900 and 2100.
const YEARS_BACK_MAX: i64 = 8;

/// What the times of a file need beside its lines.
#[derive(Debug, Clone)]
pub struct TimeContext {
    /// The zone of times that name none.
    pub zone: LogTimeZone,
    /// Seconds since 1970 in UTC of the reference for times without a year, see [`TimeContext::new`].
    pub reference_seconds: i64,
}

impl TimeContext {
    /// A context with the zone of the log and a reference for times without a year (RFC 3164): the time at which the
    /// file was last written. Such a time gets the latest year with which it is at most one day after the reference.
    #[must_use]
    pub fn new(zone: LogTimeZone, reference: SystemTime) -> Self {
        let seconds = match reference.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            Err(error) => i64::try_from(error.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds),
        };
        Self { zone, reference_seconds: seconds }
    }
}

/// A date and a time of day without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CivilTime {
    /// `None` if the text has no year.
    pub(crate) year: Option<i64>,
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// Seconds since midnight. A leap second is the first second after it.
    pub(crate) second_of_day: i64,
    pub(crate) nanosecond: u32,
}

/// The zone that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZoneInText<'a> {
    Missing,
    /// Seconds east of UTC.
    Offset(i32),
    /// Such as `CET`.
    Abbreviation(&'a str),
}

/// Turns civil times into instants. It remembers the last offset of the zone.
#[derive(Debug, Clone)]
pub(crate) struct TimeResolver {
    context: TimeContext,
    remembered_offset: Option<zone::RememberedOffset>,
}

impl TimeResolver {
    pub(crate) fn new(context: TimeContext) -> Self {
        Self { context, remembered_offset: None }
    }

    /// Nanoseconds since 1970, or `None` if the date does not exist, the zone is unknown, or the time is out of range.
    pub(crate) fn resolve(&mut self, civil: CivilTime, zone: ZoneInText<'_>) -> Option<i64> {
        let seconds = match civil.year {
            Some(year) => self.seconds(year, civil, zone)?,
            None => self.seconds_without_year(civil, zone)?,
        };
        nanoseconds(seconds, civil.nanosecond)
    }

    fn seconds_without_year(&mut self, civil: CivilTime, zone: ZoneInText<'_>) -> Option<i64> {
        let latest = self.context.reference_seconds.saturating_add(FUTURE_SECONDS_MAX);
        let year = i64::from(DateTime::from_timestamp(latest, 0)?.year());
        // The zone may be ahead of UTC, where the next year has begun.
        let years = (year - YEARS_BACK_MAX..=year + 1).rev();
        years.filter_map(|year| self.seconds(year, civil, zone)).find(|seconds| *seconds <= latest)
    }

    fn seconds(&mut self, year: i64, civil: CivilTime, zone: ZoneInText<'_>) -> Option<i64> {
        let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, civil.month, civil.day)?;
        let local = i64::from(date.to_epoch_days()) * SECONDS_PER_DAY + civil.second_of_day;
        let offset = match zone {
            ZoneInText::Missing => self.offset_of_zone(local),
            ZoneInText::Offset(offset) => offset,
            ZoneInText::Abbreviation(name) => {
                let of_zone = self.context.zone.offset_of_abbreviation(local, name);
                of_zone.or_else(|| zone::offset_seconds(name))?
            }
        };
        Some(local - i64::from(offset))
    }

    fn offset_of_zone(&mut self, local: i64) -> i32 {
        if let Some(remembered) = self.remembered_offset.filter(|remembered| remembered.applies_to(local)) {
            return remembered.offset;
        }
        let (offset, remembered) = self.context.zone.offset_seconds(local);
        self.remembered_offset = remembered;
        offset
    }
}

/// Nanoseconds since 1970, or `None` before 1677 and after 2262.
pub(crate) fn nanoseconds(seconds: i64, nanosecond: u32) -> Option<i64> {
    i64::try_from(i128::from(seconds) * NANOSECONDS_PER_SECOND + i128::from(nanosecond)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn year_at(reference: &str, month: u32, day: u32) -> String {
        let date: DateTime<chrono::Utc> = reference.parse().expect("a time");
        let context = TimeContext::new(LogTimeZone::utc(), date.into());
        let civil = CivilTime { year: None, month, day, second_of_day: 3_600, nanosecond: 0 };
        let time = TimeResolver::new(context).resolve(civil, ZoneInText::Missing).expect("a date that exists");
        DateTime::from_timestamp_nanos(time).to_rfc3339()
    }

    #[test]
    fn a_missing_year_is_that_of_the_reference_with_both_turns_of_the_year() {
        assert_eq!(year_at("2024-06-15T12:00:00Z", 6, 15), "2024-06-15T01:00:00+00:00");
        assert_eq!(year_at("2024-06-15T12:00:00Z", 6, 17), "2023-06-17T01:00:00+00:00");
        assert_eq!(year_at("2024-01-01T00:30:00Z", 12, 31), "2023-12-31T01:00:00+00:00");
        assert_eq!(year_at("2023-12-31T23:30:00Z", 1, 1), "2024-01-01T01:00:00+00:00");
        assert_eq!(year_at("2023-07-01T00:00:00Z", 2, 29), "2020-02-29T01:00:00+00:00");
    }
}
