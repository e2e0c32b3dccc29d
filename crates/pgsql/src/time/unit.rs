//! The fields of times, by the names that PostgreSQL has for them.

use datafusion::common::{DataFusionError, Result};

/// A field of a time, or the unit that a time is cut off to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnitField {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl TimeUnitField {
    /// Returns the unit with this name, for values of the type `kind`.
    pub(super) fn find(name: &str, kind: &str) -> Result<Self> {
        Ok(match name.trim().to_ascii_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsec"
            | "microsecs" => Self::Microseconds,
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Self::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "day" | "days" | "d" => Self::Day,
            "week" | "weeks" | "w" => Self::Week,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "quarter" | "qtr" => Self::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Self::Year,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "century" | "centuries" | "cent" | "c" => Self::Century,
            "millennium" | "millennia" | "mil" | "mils" => Self::Millennium,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "doy" => Self::DayOfYear,
            "isoyear" => Self::IsoYear,
            "julian" | "j" | "jd" => Self::Julian,
            "epoch" => Self::Epoch,
            "timezone" => Self::Timezone,
            "timezone_hour" | "timezone_h" => Self::TimezoneHour,
            "timezone_minute" | "timezone_m" => Self::TimezoneMinute,
            _ => return Err(DataFusionError::Execution(format!("unit \"{name}\" not recognized for type {kind}"))),
        })
    }
}

/// Returns the error for a field that the type `kind` does not have.
pub(super) fn unsupported(name: &str, kind: &str) -> DataFusionError {
    DataFusionError::Execution(format!("unit \"{name}\" not supported for type {kind}"))
}
