//! Time zones: names of the IANA data base, abbreviations and POSIX offsets.

use std::collections::HashMap;
use std::sync::OnceLock;

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use datafusion::common::{DataFusionError, Result};

use super::abbreviations::{FIXED, NAMED};
use super::calendar::{DAY, HOUR, SECOND};

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeZoneSpec {
    /// So many seconds east of UTC.
    Fixed(i32),
    Named(Tz),
}

impl TimeZoneSpec {
    /// Returns the zone that `name` means after `AT TIME ZONE`: an abbreviation, a name, or a POSIX offset, whose sign
    /// counts to the west.
    pub(crate) fn find(name: &str) -> Result<Self> {
        let lower = name.trim().to_ascii_lowercase();
        Self::abbreviation(&lower)
            .or_else(|| Self::named(&lower))
            .or_else(|| parse_posix(&lower))
            .ok_or_else(|| DataFusionError::Execution(format!("time zone \"{name}\" not recognized")))
    }

    /// Returns the zone with a lower-case abbreviation.
    pub(crate) fn abbreviation(lower: &str) -> Option<Self> {
        if let Ok(position) = FIXED.binary_search_by_key(&lower, |(name, _)| name) {
            return Some(Self::Fixed(FIXED[position].1));
        }
        let position = NAMED.binary_search_by_key(&lower, |(name, _)| name).ok()?;
        Self::named(&NAMED[position].1.to_ascii_lowercase())
    }

    /// Returns the zone of the IANA database with a lower-case name.
    pub(crate) fn named(lower: &str) -> Option<Self> {
        static NAMES: OnceLock<HashMap<String, Tz>> = OnceLock::new();
        let names = NAMES.get_or_init(|| TZ_VARIANTS.iter().map(|tz| (tz.name().to_ascii_lowercase(), *tz)).collect());
        names.get(lower).copied().map(Self::Named)
    }

    /// Returns the seconds east of UTC at an instant.
    pub(crate) fn offset_at(self, instant: i64) -> i32 {
        match self {
            Self::Fixed(seconds) => seconds,
            Self::Named(tz) => tz.offset_from_utc_datetime(&to_naive(instant)).fix().local_minus_utc(),
        }
    }

    /// Returns the local time of an instant.
    pub(crate) fn local(self, instant: i64) -> i64 {
        instant + i64::from(self.offset_at(instant)) * SECOND
    }

    /// Returns the instant of a local time: of one that occurs twice the later, of one that does not occur the one with
    /// the offset before.
    pub(crate) fn instant(self, local: i64) -> i64 {
        local - i64::from(self.offset_of_local(local)) * SECOND
    }

    fn offset_of_local(self, local: i64) -> i32 {
        let tz = match self {
            Self::Fixed(seconds) => return seconds,
            Self::Named(tz) => tz,
        };
        let offset = |local: i64| match tz.offset_from_local_datetime(&to_naive(local)) {
            MappedLocalTime::Single(offset) => Some(offset.fix().local_minus_utc()),
            MappedLocalTime::Ambiguous(_, later) => Some(later.fix().local_minus_utc()),
            MappedLocalTime::None => None,
        };
        let before = [0, HOUR, 3 * HOUR, DAY + HOUR];
        before.iter().find_map(|before| offset(local - before)).unwrap_or_default()
    }
}

/// Converts to a time of chrono. Times outside of its range become the nearest one.
fn to_naive(micros: i64) -> NaiveDateTime {
    let nearest = if micros < 0 { DateTime::<chrono::Utc>::MIN_UTC } else { DateTime::<chrono::Utc>::MAX_UTC };
    DateTime::from_timestamp_micros(micros).unwrap_or(nearest).naive_utc()
}

/// Parses a POSIX zone without rules: a name, which may be missing, and hours to the west.
fn parse_posix(text: &str) -> Option<TimeZoneSpec> {
    let rest = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => text.trim_start_matches(|character: char| character.is_ascii_alphabetic()),
    };
    let (sign, rest) = match rest.strip_prefix('-') {
        Some(rest) => (1, rest),
        None => (-1, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let mut parts = rest.split(':').map(|part| {
        let is_number = !part.is_empty() && part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<i32>().ok() } else { None }
    });
    let hours = parts.next()??;
    let (minutes, seconds) = (parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hours > 167 || minutes > 59 || seconds > 59 {
        return None;
    }
    // Further from UTC than any clock is.
    (hours <= 24).then_some(TimeZoneSpec::Fixed(sign * (hours * 3_600 + minutes * 60 + seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::calendar::days;

    #[test]
    fn abbreviations_are_sorted() {
        assert!(FIXED.is_sorted_by_key(|(name, _)| name));
        assert!(NAMED.is_sorted_by_key(|(name, _)| name));
        for (name, _) in NAMED {
            assert!(TimeZoneSpec::abbreviation(name).is_some(), "{name}");
        }
    }

    #[test]
    fn posix_offsets_count_to_the_west() {
        assert_eq!(TimeZoneSpec::find("+03").unwrap(), TimeZoneSpec::Fixed(-10_800));
        assert_eq!(TimeZoneSpec::find("UTC+5").unwrap(), TimeZoneSpec::Fixed(-18_000));
        assert_eq!(TimeZoneSpec::find("<x>3:30").unwrap(), TimeZoneSpec::Fixed(-12_600));
        assert!(TimeZoneSpec::find("Mars/Olympus").is_err());
    }

    #[test]
    fn local_times_of_the_hours_of_a_change_are_resolved() {
        let zone = TimeZoneSpec::find("america/new_york").unwrap();
        let at = |month: i64, day: i64, time: i64| days(2013, month, day) * DAY + time;
        assert_eq!(zone.instant(at(3, 10, 5 * HOUR / 2)), at(3, 10, 15 * HOUR / 2));
        assert_eq!(zone.instant(at(11, 3, 3 * HOUR / 2)), at(11, 3, 13 * HOUR / 2));
    }
}
