//! The zone of times that name none, and the abbreviations that have one usual meaning.

use std::fmt;

use chrono::{MappedLocalTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{OffsetName, Tz};
use thiserror::Error;
use tidegate_core::suggestion;

use super::cursor::Cursor;

/// Offsets change at multiples of this only, in all zones since [`REMEMBERED_SINCE_SECONDS`].
const REMEMBERED_SECONDS: i64 = 900;
/// 1980: earlier offsets changed at other minutes too.
const REMEMBERED_SINCE_SECONDS: i64 = 315_532_800;

/// The zone of times that name none: a zone of the IANA database, or a fixed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogTimeZone(Zone);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    Named(Tz),
}

/// A name that is no time zone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown time zone \"{name}\"{suggestion}; write a name of the IANA database such as Europe/Berlin, or an offset such as +02:00"
)]
pub struct TimeZoneError {
    /// The name as it was given.
    pub name: String,
    suggestion: String,
}

/// The offset of the local times in one quarter of an hour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RememberedOffset {
    quarter: i64,
    pub(crate) offset: i32,
}

impl RememberedOffset {
    pub(crate) fn applies_to(self, local_seconds: i64) -> bool {
        local_seconds.div_euclid(REMEMBERED_SECONDS) == self.quarter
    }
}

impl LogTimeZone {
    /// Coordinated Universal Time.
    #[must_use]
    pub fn utc() -> Self {
        Self(Zone::Offset(0))
    }

    /// The zone with this name of the IANA database (`Europe/Berlin`, in any case) or with this offset (`+02:00`).
    ///
    /// # Errors
    ///
    /// If there is no such zone, with the nearest name.
    pub fn from_name(name: &str) -> Result<Self, TimeZoneError> {
        let trimmed = name.trim();
        if trimmed.eq_ignore_ascii_case("z") || trimmed.eq_ignore_ascii_case("utc") {
            return Ok(Self::utc());
        }
        let mut cursor = Cursor::new(trimmed.as_bytes());
        if let Some(offset) = cursor.offset().filter(|_| cursor.is_at_end()) {
            return Ok(Self(Zone::Offset(offset)));
        }
        let named = chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(trimmed));
        named.map(|zone| Self(Zone::Named(*zone))).ok_or_else(|| {
            let names = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
            TimeZoneError { name: name.to_owned(), suggestion: suggestion(trimmed, names) }
        })
    }

    /// The offset in seconds east of UTC of a local time, and what may be remembered of it.
    /// Of a local time that occurs twice, it is the first; a local time that was skipped has the offset before it.
    pub(crate) fn offset_seconds(self, local_seconds: i64) -> (i32, Option<RememberedOffset>) {
        let zone = match self.0 {
            Zone::Offset(offset) => return (offset, None),
            Zone::Named(zone) => zone,
        };
        let Some(local) = naive(local_seconds) else { return (0, None) };
        match zone.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) => {
                let offset = offset.fix().local_minus_utc();
                let quarter = local_seconds.div_euclid(REMEMBERED_SECONDS);
                let remembered = RememberedOffset { quarter, offset };
                (offset, Some(remembered).filter(|_| local_seconds > REMEMBERED_SINCE_SECONDS))
            }
            MappedLocalTime::Ambiguous(first, _) => (first.fix().local_minus_utc(), None),
            MappedLocalTime::None => {
                let before = local.checked_sub_signed(TimeDelta::hours(3)).unwrap_or(local);
                let offset = zone.offset_from_local_datetime(&before).earliest();
                (offset.map_or(0, |offset| offset.fix().local_minus_utc()), None)
            }
        }
    }

    /// The offset of a local time if the zone calls it by this abbreviation then. It distinguishes the two times
    /// that have the same local time when clocks are set back.
    pub(crate) fn offset_of_abbreviation(self, local_seconds: i64, name: &str) -> Option<i32> {
        let Zone::Named(zone) = self.0 else { return None };
        let (first, second) = match zone.offset_from_local_datetime(&naive(local_seconds)?) {
            MappedLocalTime::Single(offset) => (Some(offset), None),
            MappedLocalTime::Ambiguous(first, second) => (Some(first), Some(second)),
            MappedLocalTime::None => (None, None),
        };
        let is_meant = |offset: &chrono_tz::TzOffset| offset.abbreviation().is_some_and(|own| own == name);
        let offset = first.filter(is_meant).or(second.filter(is_meant))?;
        Some(offset.fix().local_minus_utc())
    }
}

impl fmt::Display for LogTimeZone {
    /// The name of the IANA database, or the offset, such as `+02:00`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Zone::Named(zone) => formatter.write_str(zone.name()),
            Zone::Offset(0) => formatter.write_str("UTC"),
            Zone::Offset(offset) => {
                let (sign, seconds) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
                write!(formatter, "{sign}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60)
            }
        }
    }
}

fn naive(seconds: i64) -> Option<NaiveDateTime> {
    chrono::DateTime::from_timestamp(seconds, 0).map(|time| time.naive_utc())
}

/// Hours and minutes east of UTC. Abbreviations with several usual meanings, such as IST, are missing: a log that
/// contains one needs a declared zone.
const ABBREVIATIONS: &[(&str, i32, i32)] = &[
    ("UTC", 0, 0),
    ("GMT", 0, 0),
    ("UT", 0, 0),
    ("Z", 0, 0),
    ("WET", 0, 0),
    ("WEST", 1, 0),
    ("BST", 1, 0),
    ("CET", 1, 0),
    ("MET", 1, 0),
    ("CEST", 2, 0),
    ("MEST", 2, 0),
    ("EET", 2, 0),
    ("SAST", 2, 0),
    ("EEST", 3, 0),
    ("MSK", 3, 0),
    ("EAT", 3, 0),
    ("PKT", 5, 0),
    ("WIB", 7, 0),
    ("HKT", 8, 0),
    ("SGT", 8, 0),
    ("AWST", 8, 0),
    ("JST", 9, 0),
    ("KST", 9, 0),
    ("ACST", 9, 30),
    ("AEST", 10, 0),
    ("ACDT", 10, 30),
    ("AEDT", 11, 0),
    ("NZST", 12, 0),
    ("NZDT", 13, 0),
    ("NST", -3, -30),
    ("NDT", -2, -30),
    ("ADT", -3, 0),
    ("EDT", -4, 0),
    ("EST", -5, 0),
    ("CDT", -5, 0),
    ("CST", -6, 0),
    ("MDT", -6, 0),
    ("MST", -7, 0),
    ("PDT", -7, 0),
    ("PST", -8, 0),
    ("AKDT", -8, 0),
    ("AKST", -9, 0),
    ("HST", -10, 0),
];

/// The seconds east of UTC of an abbreviation in capital letters.
pub(crate) fn offset_seconds(name: &str) -> Option<i32> {
    let (_, hours, minutes) = ABBREVIATIONS.iter().find(|(known, _, _)| *known == name)?;
    Some(hours * 3_600 + minutes * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(zone: &str, local: &str) -> i32 {
        let local: NaiveDateTime = local.parse().expect("a local time");
        LogTimeZone::from_name(zone).expect("a zone").offset_seconds(local.and_utc().timestamp()).0 / 60
    }

    #[test]
    fn local_times_have_the_offset_of_their_season() {
        assert_eq!(offset("Europe/Berlin", "2024-01-15T12:00:00"), 60);
        assert_eq!(offset("europe/berlin", "2024-07-15T12:00:00"), 120);
        // Skipped, and twice.
        assert_eq!(offset("Europe/Berlin", "2024-03-31T02:30:00"), 60);
        assert_eq!(offset("Europe/Berlin", "2024-10-27T02:30:00"), 120);
        assert_eq!(offset("-03:30", "2024-10-27T02:30:00"), -210);
    }

    #[test]
    fn an_abbreviation_selects_one_of_two_equal_local_times() {
        let zone = LogTimeZone::from_name("Europe/Berlin").expect("a zone");
        let local: NaiveDateTime = "2024-10-27T02:30:00".parse().expect("a local time");
        let offset = |name: &str| zone.offset_of_abbreviation(local.and_utc().timestamp(), name);
        assert_eq!((offset("CEST"), offset("CET"), offset("EST")), (Some(7_200), Some(3_600), None));
    }

    #[test]
    fn zones_are_written_by_name() {
        for name in ["Europe/Berlin", "UTC", "-03:30", "+02:00"] {
            assert_eq!(LogTimeZone::from_name(name).expect("a zone").to_string(), name);
        }
    }

    #[test]
    fn errors_name_the_nearest_zone() {
        let error = LogTimeZone::from_name("Europe/Berln").expect_err("no zone").to_string();
        assert!(error.contains("did you mean \"Europe/Berlin\"?"), "{error}");
    }
}
