//! Time zones: names of the IANA data base, abbreviations as PostgreSQL's default set has them, POSIX offsets, and the
//! function `timezone(zone, time)`, to which `time AT TIME ZONE zone` is rewritten.

use std::collections::HashMap;
use std::sync::OnceLock;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, HOUR, SECOND, checked_timestamp, date_from_days, days, is_date, weekday};
use super::function::{TimeKind, function, zip};
use super::interval;
use crate::data_type::{TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeZoneSpec {
    /// So many seconds east of UTC.
    Fixed(i32),
    Named(Tz),
    /// An abbreviation that a zone has used for several offsets: each with the second from which it has it.
    Moved(Tz, &'static [(i64, i32)]),
}

/// The last hour of an offset that is written as a number.
const OFFSET_HOURS_MAX: i64 = 15;

/// The last year whose changes of clocks the database of zones lists.
const LAST_LISTED_YEAR: i64 = 2_099;

impl TimeZoneSpec {
    /// Returns the zone that `name` means after `AT TIME ZONE`: an abbreviation, a name, or a POSIX offset, whose sign
    /// counts to the west.
    pub(super) fn find(name: &str) -> Result<Self> {
        let lower = name.trim().to_ascii_lowercase();
        Self::abbreviation(&lower)
            .or_else(|| Self::named(&lower))
            .or_else(|| parse_posix(&lower))
            .ok_or_else(|| DataFusionError::Execution(format!("time zone \"{name}\" not recognized")))
    }

    /// Returns the zone that `name` means as an argument of `make_timestamptz`. A number counts to the east there.
    pub(super) fn find_or_offset(name: &str) -> Result<Self> {
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            return exec_err!("invalid input syntax for type numeric time zone: \"{name}\"; write a sign before it");
        }
        match parse_offset(name) {
            Some(offset) => offset.map(Self::Fixed),
            None => Self::find(name),
        }
    }

    /// Returns the zone with a lower-case abbreviation.
    pub(super) fn abbreviation(lower: &str) -> Option<Self> {
        if let Ok(position) = FIXED.binary_search_by_key(&lower, |(name, _)| name) {
            return Some(Self::Fixed(FIXED[position].1));
        }
        let position = NAMED.binary_search_by_key(&lower, |(name, _)| name).ok()?;
        let zone = Self::named(&NAMED[position].1.to_ascii_lowercase())?;
        let moved = MOVED.iter().find(|(name, _)| *name == lower);
        match (zone, moved) {
            (Self::Named(tz), Some((_, offsets))) => Some(Self::Moved(tz, offsets)),
            (zone, _) => Some(zone),
        }
    }

    /// Returns the zone of the IANA database with a lower-case name.
    pub(super) fn named(lower: &str) -> Option<Self> {
        static NAMES: OnceLock<HashMap<String, Tz>> = OnceLock::new();
        let names = NAMES.get_or_init(|| TZ_VARIANTS.iter().map(|tz| (tz.name().to_ascii_lowercase(), *tz)).collect());
        names.get(lower).copied().map(Self::Named)
    }

    /// Returns the seconds east of UTC at an instant.
    fn offset_at(self, instant: i64) -> i32 {
        match self {
            Self::Fixed(seconds) => seconds,
            Self::Named(tz) => tz.offset_from_utc_datetime(&to_listed_year(tz, instant)).fix().local_minus_utc(),
            Self::Moved(_, offsets) => {
                let second = instant.div_euclid(SECOND);
                let latest = offsets.iter().rfind(|(from, _)| *from <= second).or_else(|| offsets.first());
                latest.map_or(0, |(_, offset)| *offset)
            }
        }
    }

    /// Returns the local time of an instant.
    pub(super) fn local(self, instant: i64) -> i64 {
        instant + i64::from(self.offset_at(instant)) * SECOND
    }

    /// Returns the instant of a local time: of one that occurs twice the later, of one that does not occur the one with
    /// the offset before.
    pub(super) fn instant(self, local: i64) -> i64 {
        local - i64::from(self.offset_of_local(local)) * SECOND
    }

    fn offset_of_local(self, local: i64) -> i32 {
        let tz = match self {
            Self::Fixed(seconds) => return seconds,
            Self::Named(tz) => tz,
            // The zone itself decides when it is.
            Self::Moved(tz, _) => return self.offset_at(Self::Named(tz).instant(local)),
        };
        let offset = |local: i64| match tz.offset_from_local_datetime(&to_listed_year(tz, local)) {
            MappedLocalTime::Single(offset) => Some(offset.fix().local_minus_utc()),
            MappedLocalTime::Ambiguous(_, later) => Some(later.fix().local_minus_utc()),
            MappedLocalTime::None => None,
        };
        let before = [0, HOUR, 3 * HOUR, DAY + HOUR];
        before.iter().find_map(|before| offset(local - before)).unwrap_or_default()
    }
}

/// Returns a time at which a zone has the same offset, in a year that the database lists. The rules of the last one go on: a
/// year of as many days that begins on the same day of the week has the same changes.
fn to_listed_year(tz: Tz, micros: i64) -> NaiveDateTime {
    let (year, ..) = date_from_days(micros.div_euclid(DAY));
    let last = |month: i64| to_naive(days(LAST_LISTED_YEAR, month, 15) * DAY);
    if year <= LAST_LISTED_YEAR
        || tz.offset_from_utc_datetime(&last(1)).fix() == tz.offset_from_utc_datetime(&last(7)).fix()
    {
        return to_naive(micros);
    }
    let form = |year: i64| (weekday(days(year, 1, 1)), is_date(year, 2, 29));
    let listed = (LAST_LISTED_YEAR - 27..=LAST_LISTED_YEAR).rev().find(|listed| form(*listed) == form(year));
    let first_day = days(listed.unwrap_or(LAST_LISTED_YEAR), 1, 1);
    to_naive(micros - (days(year, 1, 1) - first_day) * DAY)
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
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { part.parse::<i32>().ok() } else { None }
    });
    let hours = parts.next()??;
    let (minutes, seconds) = (parts.next().unwrap_or(Some(0))?, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || hours > 167 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(TimeZoneSpec::Fixed(sign * (hours * 3_600 + minutes * 60 + seconds)))
}

/// Parses seconds east of UTC after a sign: `+02`, `+0230`, `+02:30`, `-02:30:15`. `None` if the text is no such number; an
/// error if no clock is so far from UTC.
pub(super) fn parse_offset(text: &str) -> Option<Result<i32>> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits.trim_start()),
        None => (1, text.strip_prefix('+')?.trim_start()),
    };
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse().unwrap_or(i64::MAX))
    };
    let parts = digits.split(':').map(number).collect::<Option<Vec<i64>>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours] if digits.len() <= 2 => (*hours, 0, 0),
        [number] => (number / 100, number % 100, 0),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    if hours > OFFSET_HOURS_MAX || minutes > 59 || seconds > 59 {
        return Some(exec_err!("numeric time zone \"{text}\" out of range; it must be less than 16 hours"));
    }
    Some(Ok(sign * (hours * 3_600 + minutes * 60 + seconds) as i32))
}

/// Abbreviations with the seconds that they are east of UTC, sorted.
#[rustfmt::skip]
const FIXED: &[(&str, i32)] = &[
    ("acdt", 37_800), ("acsst", 37_800), ("acst", 34_200), ("act", -18_000), ("acwst", 31_500), ("adt", -10_800),
    ("aedt", 39_600), ("aesst", 39_600), ("aest", 36_000), ("aft", 16_200), ("akdt", -28_800), ("akst", -32_400),
    ("almst", 25_200), ("almt", 21_600), ("amt", -14_400), ("ast", -14_400), ("awsst", 32_400), ("awst", 28_800),
    ("azost", 0), ("azot", -3_600), ("bdst", 7_200), ("bdt", 21_600), ("bnt", 28_800), ("bort", 28_800),
    ("bot", -14_400), ("bra", -10_800), ("brst", -7_200), ("brt", -10_800), ("bst", 3_600), ("btt", 21_600),
    ("cadt", 37_800), ("cast", 34_200), ("cct", 28_800), ("cdt", -18_000), ("cest", 7_200), ("cet", 3_600),
    ("cetdst", 7_200), ("chadt", 49_500), ("chast", 45_900), ("chut", 36_000), ("clst", -10_800), ("cot", -18_000),
    ("cst", -21_600), ("cxt", 25_200), ("ddut", 36_000), ("eat", 10_800), ("edt", -14_400), ("eest", 10_800),
    ("eet", 7_200), ("eetdst", 10_800), ("egst", 0), ("egt", -3_600), ("est", -18_000), ("fet", 10_800),
    ("fjst", 46_800), ("fjt", 43_200), ("fnst", -3_600), ("fnt", -7_200), ("galt", -21_600), ("gamt", -32_400),
    ("gft", -10_800), ("gilt", 43_200), ("gmt", 0), ("hkt", 28_800), ("hst", -36_000), ("ict", 25_200),
    ("idt", 10_800), ("irt", 12_600), ("ist", 7_200), ("jayt", 32_400), ("jst", 32_400), ("kdt", 36_000),
    ("kgst", 21_600), ("kst", 32_400), ("lhst", 37_800), ("ligt", 36_000), ("mart", -34_200), ("mdt", -21_600),
    ("mest", 7_200), ("mesz", 7_200), ("met", 3_600), ("metdst", 7_200), ("mez", 3_600), ("mht", 43_200),
    ("mmt", 23_400), ("mpt", 36_000), ("msd", 14_400), ("mst", -25_200), ("must", 18_000), ("mut", 14_400),
    ("mvt", 18_000), ("myt", 28_800), ("ndt", -9_000), ("nft", -12_600), ("npt", 20_700), ("nst", -12_600),
    ("nzdt", 46_800), ("nzst", 43_200), ("nzt", 43_200), ("pdt", -25_200), ("pet", -18_000), ("pgt", 36_000),
    ("pht", 28_800), ("pkst", 21_600), ("pkt", 18_000), ("pmdt", -7_200), ("pmst", -10_800), ("pont", 39_600),
    ("pst", -28_800), ("pwt", 32_400), ("pyst", -10_800), ("ret", 14_400), ("sadt", 37_800), ("sast", 7_200),
    ("sct", 14_400), ("taht", -36_000), ("tft", 18_000), ("tjt", 18_000), ("tot", 46_800), ("trut", 36_000),
    ("tvt", 43_200), ("uct", 0), ("ulast", 32_400), ("ut", 0), ("utc", 0), ("uyst", -7_200), ("uyt", -10_800),
    ("uzst", 21_600), ("uzt", 18_000), ("vut", 39_600), ("wadt", 28_800), ("wakt", 43_200), ("wast", 25_200),
    ("wat", 3_600), ("wdt", 32_400), ("wet", 0), ("wetdst", 3_600), ("wft", 43_200), ("wgst", -7_200),
    ("wgt", -10_800), ("xjt", 21_600), ("yapt", 36_000), ("yekst", 21_600), ("z", 0), ("zulu", 0),
];

/// Abbreviations whose offset changed in time, with the zone whose offset of the moment they mean, sorted.
#[rustfmt::skip]
const NAMED: &[(&str, &str)] = &[
    ("amst", "Asia/Yerevan"), ("anast", "Asia/Anadyr"), ("anat", "Asia/Anadyr"),
    ("arst", "America/Argentina/Buenos_Aires"), ("art", "America/Argentina/Buenos_Aires"), ("azst", "Asia/Baku"),
    ("azt", "Asia/Baku"), ("ckt", "Pacific/Rarotonga"), ("clt", "America/Santiago"), ("davt", "Antarctica/Davis"),
    ("easst", "Pacific/Easter"), ("east", "Pacific/Easter"), ("fkst", "Atlantic/Stanley"),
    ("fkt", "Atlantic/Stanley"), ("gest", "Asia/Tbilisi"), ("get", "Asia/Tbilisi"), ("gyt", "America/Guyana"),
    ("iot", "Indian/Chagos"), ("irkst", "Asia/Irkutsk"), ("irkt", "Asia/Irkutsk"), ("kgt", "Asia/Bishkek"),
    ("kost", "Pacific/Kosrae"), ("krast", "Asia/Krasnoyarsk"), ("krat", "Asia/Krasnoyarsk"),
    ("lhdt", "Australia/Lord_Howe"), ("lint", "Pacific/Kiritimati"), ("lkt", "Asia/Colombo"),
    ("magst", "Asia/Magadan"), ("magt", "Asia/Magadan"), ("mawt", "Antarctica/Mawson"), ("msk", "Europe/Moscow"),
    ("novst", "Asia/Novosibirsk"), ("novt", "Asia/Novosibirsk"), ("nut", "Pacific/Niue"), ("omsst", "Asia/Omsk"),
    ("omst", "Asia/Omsk"), ("petst", "Asia/Kamchatka"), ("pett", "Asia/Kamchatka"), ("pyt", "America/Asuncion"),
    ("sgt", "Asia/Singapore"), ("tkt", "Pacific/Fakaofo"), ("tmt", "Asia/Ashgabat"), ("ulat", "Asia/Ulaanbaatar"),
    ("vet", "America/Caracas"), ("vlast", "Asia/Vladivostok"), ("vlat", "Asia/Vladivostok"),
    ("volt", "Europe/Volgograd"), ("yakst", "Asia/Yakutsk"), ("yakt", "Asia/Yakutsk"), ("yekt", "Asia/Yekaterinburg"),
];

/// The abbreviations of [`NAMED`] that their zone still uses: each offset that it had with this name, and the second since
/// 1970 from which the name means it. Before the first one it means the first. The other names occur no longer in the
/// database of zones, so they mean the whole zone.
const MOVED: &[(&str, &[(i64, i32)])] =
    &[("msk", &[(-1_589_860_800, 10_800), (1_301_180_400, 14_400), (1_414_274_400, 10_800)])];

pub(super) fn timezone() -> ScalarUDF {
    function("timezone", returns, convert)
}

/// Returns the type of the result: a time without a zone for one with a zone, and the reverse.
fn returns(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [zone, time] if zone.accepts_untyped_literal() || *zone == TimeKind::Interval => match time {
            TimeKind::Timestamp => Some(timestamptz()),
            TimeKind::Date | TimeKind::Timestamptz | TimeKind::Text | TimeKind::Null => Some(TIMESTAMP),
            _ => None,
        },
        _ => None,
    }
}

fn convert(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let moments = args.moments(1)?;
    let is_local = args.time_kind(1) == TimeKind::Timestamp;
    let shifted = |zone: TimeZoneSpec, moment: i64| {
        checked_timestamp(if is_local { zone.instant(moment) } else { zone.local(moment) })
    };
    if args.time_kind(0) == TimeKind::Interval {
        return args.collect_micros(zip(args.intervals(0)?, moments, |offset, moment| {
            match i32::try_from(interval::micros(offset) / SECOND) {
                Ok(seconds) if offset.months == 0 && offset.days == 0 => shifted(TimeZoneSpec::Fixed(seconds), moment),
                _ => exec_err!("an interval as a time zone must not include months or days"),
            }
        }));
    }
    let names = args.texts(0)?;
    // In most calls all rows have the same zone, so the last one is cached.
    let last = std::cell::RefCell::new((String::new(), TimeZoneSpec::Fixed(0)));
    args.collect_micros(|row| {
        let (Some(name), Some(moment)) = (names.get(row), moments.get(row)) else { return Ok(None) };
        if last.borrow().0 != name || name.is_empty() {
            last.replace((name.to_owned(), TimeZoneSpec::find(name)?));
        }
        let zone = last.borrow().1;
        shifted(zone, moment).map(Some)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_sorted() {
        assert!(FIXED.is_sorted_by_key(|(name, _)| name));
        assert!(NAMED.is_sorted_by_key(|(name, _)| name));
        for (name, _) in NAMED {
            assert!(TimeZoneSpec::abbreviation(name).is_some(), "{name}");
        }
    }

    #[test]
    fn abbreviations_have_the_offsets_that_their_zones_had_with_them() {
        use chrono_tz::OffsetName;
        for (name, zone) in NAMED {
            let Some(TimeZoneSpec::Named(tz)) = TimeZoneSpec::named(&zone.to_ascii_lowercase()) else { continue };
            let spec = TimeZoneSpec::abbreviation(name).unwrap();
            // Days from 1850 to 2050.
            for instant in (-43_830..29_220).map(|day| day * DAY) {
                let offset = tz.offset_from_utc_datetime(&to_naive(instant));
                if offset.abbreviation().is_some_and(|used| used.eq_ignore_ascii_case(name)) {
                    assert!(matches!(spec, TimeZoneSpec::Moved(..)), "{name}");
                    assert_eq!(spec.offset_at(instant), offset.fix().local_minus_utc(), "{name} {instant}");
                }
            }
        }
    }

    #[test]
    fn an_abbreviation_means_what_it_meant_at_the_time() {
        let zone = TimeZoneSpec::find("MSK").unwrap();
        let at = |year: i64, month: i64, day: i64, time: i64| days(year, month, day) * DAY + time;
        for (year, hours) in [(1850, 3), (1980, 3), (2010, 3), (2012, 4), (2020, 3)] {
            assert_eq!(zone.instant(at(year, 7, 1, 0)), at(year, 7, 1, -hours * HOUR), "{year}");
            assert_eq!(zone.local(at(year, 7, 1, 0)), at(year, 7, 1, hours * HOUR), "{year}");
        }
        assert_eq!(zone.instant(at(2011, 3, 27, 5 * HOUR / 2)), at(2011, 3, 26, 45 * HOUR / 2));
        assert_eq!(zone.instant(at(2014, 10, 26, 3 * HOUR / 2)), at(2014, 10, 25, 45 * HOUR / 2));
    }

    #[test]
    fn numbers_of_make_timestamptz_count_to_the_east() {
        let offset = |name: &str| TimeZoneSpec::find_or_offset(name).ok();
        for (name, seconds) in [
            ("+02:00", 7_200),
            ("+2", 7_200),
            ("-2:30:15", -9_015),
            ("+0230", 9_000),
            ("+123", 4_980),
            ("+15:59:59", 57_599),
            ("EST5", -18_000),
            ("<+02>-2", 7_200),
        ] {
            assert_eq!(offset(name), Some(TimeZoneSpec::Fixed(seconds)), "{name}");
        }
        for name in ["+16", "+02:60", "+12345", "2", "0230", "", "nowhere"] {
            assert_eq!(offset(name), None, "{name}");
        }
    }

    #[test]
    fn posix_offsets_count_to_the_west() {
        assert_eq!(TimeZoneSpec::find("+03").unwrap(), TimeZoneSpec::Fixed(-10_800));
        assert_eq!(TimeZoneSpec::find("UTC+5").unwrap(), TimeZoneSpec::Fixed(-18_000));
        assert_eq!(TimeZoneSpec::find("+167:59:59").unwrap(), TimeZoneSpec::Fixed(-604_799));
        assert_eq!(TimeZoneSpec::find("+0001:005:60").unwrap(), TimeZoneSpec::Fixed(-3_960));
        assert!(TimeZoneSpec::find("+168").is_err());
        assert_eq!(TimeZoneSpec::find("<x>3:30").unwrap(), TimeZoneSpec::Fixed(-12_600));
        assert!(TimeZoneSpec::find("Mars/Olympus").is_err());
    }

    #[test]
    fn rules_go_on_after_the_last_listed_year() {
        let zone = TimeZoneSpec::find("America/New_York").unwrap();
        let at = |year: i64, month: i64, day: i64, time: i64| days(year, month, day) * DAY + time;
        for (instant, hours) in [
            (at(2100, 3, 14, 7 * HOUR - 1), -5),
            (at(2100, 3, 14, 7 * HOUR), -4),
            (at(2100, 11, 7, 6 * HOUR - 1), -4),
            (at(2100, 11, 7, 6 * HOUR), -5),
            (at(2400, 3, 12, 7 * HOUR), -4),
            (at(9999, 12, 31, 23 * HOUR), -5),
        ] {
            assert_eq!(zone.offset_at(instant), hours * 3_600, "{instant}");
        }
        assert_eq!(zone.instant(at(2500, 7, 1, 0)), at(2500, 7, 1, 4 * HOUR));
        assert_eq!(TimeZoneSpec::find("Africa/Casablanca").unwrap().offset_at(at(2150, 7, 1, 0)), 3_600);
    }

    #[test]
    fn local_times_of_the_hours_of_a_change_are_resolved() {
        let zone = TimeZoneSpec::find("america/new_york").unwrap();
        let at = |month: i64, day: i64, time: i64| days(2013, month, day) * DAY + time;
        assert_eq!(zone.instant(at(3, 10, 5 * HOUR / 2)), at(3, 10, 15 * HOUR / 2));
        assert_eq!(zone.instant(at(11, 3, 3 * HOUR / 2)), at(11, 3, 13 * HOUR / 2));
    }
}
