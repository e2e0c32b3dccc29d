//! Points in time and ranges of them, as callers write them. All times are nanoseconds since 1970-01-01 in UTC.

mod parse;
mod range;

pub use parse::{TimeInput, TimeParseError, parse_time};
pub use range::{TimeRange, TimeRangeError};

use chrono::DateTime;

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Nanoseconds in a day of UTC.
pub(crate) const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// Writes a time in nanoseconds as RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second.
pub fn format_time(nanos: i64) -> String {
    format!("{:?}Z", DateTime::from_timestamp_nanos(nanos).naive_utc())
}
