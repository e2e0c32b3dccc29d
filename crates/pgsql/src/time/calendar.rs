//! The proleptic Gregorian calendar, as days and microseconds since 1970-01-01.

use datafusion::common::{DataFusionError, Result};

pub(super) const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAY_NAMES: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The first and the last day, for errors.
const DATE_LIMITS: &str = "; the first day is 4714-11-24 BC, the last one 262142-12-31";

/// Microseconds of a second.
pub(crate) const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub(crate) const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub(crate) const DAY: i64 = 24 * HOUR;

/// The first day that PostgreSQL supports, the start of Julian days: 4714-11-24 BC.
const FIRST_DAY: i64 = -2_440_588;
/// The last day that answers can carry: 262142-12-31.
const LAST_DAY: i64 = 95_026_236;
/// The Julian day of 1970-01-01.
pub(crate) const JULIAN_EPOCH: i64 = 2_440_588;

/// A day and a time of day, in parts. Years before 1 AD are 0 and less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DateTimeParts {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) micros: i64,
}

impl DateTimeParts {
    /// Returns the parts of a timestamp.
    pub(crate) fn from_timestamp(micros: i64) -> Self {
        let (year, month, day) = date_from_days(micros.div_euclid(DAY));
        Self { year, month, day, ..Self::from_time(micros.rem_euclid(DAY)) }
    }

    /// Returns the parts of a time of day, whose date is unset; of intervals too, where each part has the sign of all.
    pub(crate) fn from_time(micros: i64) -> Self {
        let (hour, rest) = (micros / HOUR, micros % HOUR);
        let (minute, rest) = (rest / MINUTE, rest % MINUTE);
        Self { hour, minute, second: rest / SECOND, micros: rest % SECOND, ..Self::default() }
    }

    /// Returns the time of day.
    pub(crate) fn time(&self) -> i64 {
        self.hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.micros
    }
}

/// Returns the number of days since 1970-01-01 of a date.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the year, month and day of a number of days since 1970-01-01.
pub(crate) fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Returns the number of days of a month.
pub(crate) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Whether the calendar has this date.
pub(crate) fn is_date(year: i64, month: i64, day: i64) -> bool {
    (1..=12).contains(&month) && day >= 1 && day <= month_length(year, month)
}

/// Returns the day of the week, 0 for Sunday.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// Returns the day of the year, from 1.
pub(crate) fn day_of_year(day: i64) -> i64 {
    let (year, ..) = date_from_days(day);
    day - days(year, 1, 1) + 1
}

/// Returns the Monday that the ISO year of a day starts with, and the year.
pub(crate) fn iso_year(day: i64) -> (i64, i64) {
    // A week belongs to the year of its Thursday.
    let monday = day - (weekday(day) + 6).rem_euclid(7);
    let (year, ..) = date_from_days(monday + 3);
    (iso_year_start(year), year)
}

/// Returns the Monday of the first ISO week of a year.
pub(crate) fn iso_year_start(year: i64) -> i64 {
    let fourth = days(year, 1, 4);
    fourth - (weekday(fourth) + 6).rem_euclid(7)
}

/// Checks that a date is in range.
pub(crate) fn checked_date(days: i64) -> Result<i32> {
    match i32::try_from(days) {
        Ok(date) if (FIRST_DAY..=LAST_DAY).contains(&days) => Ok(date),
        _ => Err(out_of_range_error("date")),
    }
}

/// Checks that a timestamp is in range.
pub(crate) fn timestamp(days: i64, time: i64) -> Result<i64> {
    let micros = days.checked_mul(DAY).and_then(|micros| micros.checked_add(time));
    micros.ok_or_else(|| out_of_range_error("timestamp")).and_then(checked_timestamp)
}

/// Checks that a value of a column is a time of a day.
pub(super) fn checked_time(micros: i64) -> Result<i64> {
    if (0..=DAY).contains(&micros) { Ok(micros) } else { Err(out_of_range_error("time")) }
}

/// Checks that a timestamp is in range.
pub(crate) fn checked_timestamp(micros: i64) -> Result<i64> {
    if (FIRST_DAY * DAY..(LAST_DAY + 1) * DAY).contains(&micros) {
        Ok(micros)
    } else {
        Err(out_of_range_error("timestamp"))
    }
}

/// Returns the error for a value of the type `kind` that is out of range.
pub(crate) fn out_of_range_error(kind: &str) -> DataFusionError {
    let limits = if matches!(kind, "date" | "timestamp") { DATE_LIMITS } else { "" };
    DataFusionError::Execution(format!("{kind} out of range{limits}"))
}

/// Returns the error for a text that means a value of the type `kind` that is out of range.
pub(crate) fn text_out_of_range(kind: &str, text: &str) -> DataFusionError {
    DataFusionError::Execution(format!("{kind} out of range: \"{text}\"{DATE_LIMITS}"))
}

/// Returns the error for a text that is not a value of the type `kind`.
pub(crate) fn invalid_input_error(kind: &str, text: &str) -> DataFusionError {
    DataFusionError::Execution(format!("invalid input syntax for type {kind}: \"{text}\""))
}

/// Returns the error for a text with a field that is out of range.
pub(crate) fn field_out_of_range(text: &str) -> DataFusionError {
    DataFusionError::Execution(format!("date/time field value out of range: \"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for day in (FIRST_DAY..60_000).step_by(37).chain([LAST_DAY]) {
            let (year, month, of_month) = date_from_days(day);
            assert!(is_date(year, month, of_month));
            assert_eq!(days(year, month, of_month), day);
        }
        assert_eq!(date_from_days(LAST_DAY), (262_142, 12, 31));
        assert_eq!(date_from_days(FIRST_DAY), (-4713, 11, 24));
    }

    #[test]
    fn iso_weeks_belong_to_the_year_of_their_thursday() {
        assert_eq!(iso_year(days(2012, 12, 31)).1, 2013);
        assert_eq!(iso_year(days(2010, 1, 3)).1, 2009);
    }
}
