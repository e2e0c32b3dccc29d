//! Dates, times and timestamps: ISO 8601 and RFC 3339; the extremes that databases use for them are infinities.
//!
//! Written by hand because the formatting of chrono takes ten times as long. A moment is always in UTC, whatever zone its column
//! names, so that it looks the same from each database.

use arrow::array::Array;
use arrow::datatypes::{
    ArrowTimestampType, DataType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

use crate::calendar::{write_date, write_digits};

use super::cells::{BoxedCells, DisplayCells, value_cells};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The text of the extreme dates and timestamps in microseconds, which databases use as infinities.
pub(super) const INFINITY: &str = "infinity";
pub(super) const NEGATIVE_INFINITY: &str = "-infinity";

pub(super) fn temporal_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Date32 => value_cells::<Date32Type>(array, |days, out| match days {
            i32::MAX => out.push_str(INFINITY),
            i32::MIN => out.push_str(NEGATIVE_INFINITY),
            days => write_date(i64::from(days), out),
        }),
        DataType::Date64 => value_cells::<Date64Type>(array, |value, out| {
            let days = value.div_euclid(SECONDS_PER_DAY * 1_000);
            write_date(days, out);
            if value.rem_euclid(SECONDS_PER_DAY * 1_000) != 0 {
                out.push('T');
                write_time(value.rem_euclid(SECONDS_PER_DAY * 1_000) * 1_000_000, out);
            }
        }),
        DataType::Time32(TimeUnit::Second) => {
            value_cells::<Time32SecondType>(array, |value, out| write_time(i64::from(value) * NANOS_PER_SECOND, out))
        }
        DataType::Time32(_) => {
            value_cells::<Time32MillisecondType>(array, |value, out| write_time(i64::from(value) * 1_000_000, out))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            value_cells::<Time64MicrosecondType>(array, |value, out| write_time(value.saturating_mul(1_000), out))
        }
        DataType::Time64(_) => value_cells::<Time64NanosecondType>(array, write_time),
        DataType::Timestamp(unit, zone) => match unit {
            TimeUnit::Second => timestamp_cells::<TimestampSecondType>(array, zone.is_some(), 1),
            TimeUnit::Millisecond => timestamp_cells::<TimestampMillisecondType>(array, zone.is_some(), 1_000),
            TimeUnit::Microsecond => timestamp_cells::<TimestampMicrosecondType>(array, zone.is_some(), 1_000_000),
            TimeUnit::Nanosecond => timestamp_cells::<TimestampNanosecondType>(array, zone.is_some(), NANOS_PER_SECOND),
        },
        _ => Box::new(DisplayCells(array)),
    }
}

fn timestamp_cells<T: ArrowTimestampType>(array: &dyn Array, has_zone: bool, per_second: i64) -> BoxedCells<'_> {
    value_cells::<T>(array, move |value, out| {
        if per_second == MICROS_PER_SECOND && matches!(value, i64::MIN | i64::MAX) {
            return out.push_str(if value > 0 { INFINITY } else { NEGATIVE_INFINITY });
        }
        let seconds = value.div_euclid(per_second);
        let nanos = value.rem_euclid(per_second) * (NANOS_PER_SECOND / per_second);
        write_date(seconds.div_euclid(SECONDS_PER_DAY), out);
        out.push('T');
        write_time(seconds.rem_euclid(SECONDS_PER_DAY) * NANOS_PER_SECOND + nanos, out);
        if has_zone {
            out.push('Z');
        }
    })
}

/// Writes the time that is `nanos` after midnight, with 0, 3, 6 or 9 digits of a second.
fn write_time(nanos: i64, out: &mut String) {
    let seconds = nanos / NANOS_PER_SECOND;
    write_digits(seconds / 3_600, 2, out);
    out.push(':');
    write_digits(seconds / 60 % 60, 2, out);
    out.push(':');
    write_digits(seconds % 60, 2, out);
    write_fraction(nanos % NANOS_PER_SECOND, out);
}

fn write_fraction(nanos: i64, out: &mut String) {
    let (fraction, digits) = match nanos {
        0 => return,
        nanos if nanos % 1_000_000 == 0 => (nanos / 1_000_000, 3),
        nanos if nanos % 1_000 == 0 => (nanos / 1_000, 6),
        nanos => (nanos, 9),
    };
    out.push('.');
    write_digits(fraction, digits, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_as_many_digits_as_they_need() {
        let time = |nanos| {
            let mut out = String::new();
            write_time(nanos, &mut out);
            out
        };
        assert_eq!(time(0), "00:00:00");
        assert_eq!(time(86_399_500_000_000), "23:59:59.500");
        assert_eq!(time(1_000_001_000), "00:00:01.000001");
        assert_eq!(time(1), "00:00:00.000000001");
    }
}
