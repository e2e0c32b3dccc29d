//! Dates, times and timestamps: ISO 8601 and RFC 3339; the extremes that databases use for them are infinities.
//! Intervals and durations: ISO 8601, each component with its own sign, as PostgreSQL writes them.
//!
//! Written by hand because the formatting of chrono takes ten times as long. A moment is always in UTC, whatever zone
//! its column names, so that it looks the same from each database.

use std::fmt::Write as _;

use arrow::array::{Array, ArrowPrimitiveType};
use arrow::datatypes::{
    ArrowTimestampType, DataType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

use super::{BoxedCells, DisplayCells, value_cells};
use crate::calendar::{write_date, write_digits};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The text of the extreme dates and timestamps in microseconds, which databases use as infinities.
const INFINITY: &str = "infinity";
const NEGATIVE_INFINITY: &str = "-infinity";

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

pub(super) fn interval_cells(array: &dyn Array) -> BoxedCells<'_> {
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            value_cells::<IntervalYearMonthType>(array, |months, out| write_interval(months.into(), 0, 0, out))
        }
        DataType::Interval(IntervalUnit::DayTime) => value_cells::<IntervalDayTimeType>(array, |value, out| {
            write_interval(0, value.days.into(), i128::from(value.milliseconds) * 1_000_000, out);
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            value_cells::<IntervalMonthDayNanoType>(array, |value, out| {
                match (value.months, value.days, value.nanoseconds) {
                    (i32::MAX, i32::MAX, i64::MAX) => out.push_str(INFINITY),
                    (i32::MIN, i32::MIN, i64::MIN) => out.push_str(NEGATIVE_INFINITY),
                    (months, days, nanos) => write_interval(months.into(), days.into(), nanos.into(), out),
                }
            })
        }
        DataType::Duration(TimeUnit::Second) => duration_cells::<DurationSecondType>(array, 1_000_000_000),
        DataType::Duration(TimeUnit::Millisecond) => duration_cells::<DurationMillisecondType>(array, 1_000_000),
        DataType::Duration(TimeUnit::Microsecond) => duration_cells::<DurationMicrosecondType>(array, 1_000),
        DataType::Duration(TimeUnit::Nanosecond) => duration_cells::<DurationNanosecondType>(array, 1),
        _ => Box::new(DisplayCells(array)),
    }
}

fn duration_cells<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array, nanos: i128) -> BoxedCells<'_> {
    value_cells::<T>(array, move |value, out| write_interval(0, 0, i128::from(value) * nanos, out))
}

fn write_interval(months: i64, days: i64, nanos: i128, out: &mut String) {
    if (months, days, nanos) == (0, 0, 0) {
        out.push_str("PT0S");
        return;
    }
    out.push('P');
    write_component(i128::from(months / 12), 'Y', out);
    write_component(i128::from(months % 12), 'M', out);
    write_component(i128::from(days), 'D', out);
    if nanos != 0 {
        out.push('T');
        let seconds = nanos / 1_000_000_000;
        write_component(seconds / 3_600, 'H', out);
        write_component(seconds / 60 % 60, 'M', out);
        write_seconds(seconds % 60, nanos % 1_000_000_000, out);
    }
}

fn write_component(value: i128, unit: char, out: &mut String) {
    if value != 0 {
        // Writing to a String cannot fail; below too.
        let _ = write!(out, "{value}{unit}");
    }
}

fn write_seconds(seconds: i128, nanos: i128, out: &mut String) {
    if nanos == 0 {
        return write_component(seconds, 'S', out);
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = format!("{:09}", nanos.abs());
    let _ = write!(out, "{sign}{}.{}S", seconds.abs(), fraction.trim_end_matches('0'));
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

    #[test]
    fn each_component_keeps_its_sign() {
        let interval = |months, days, nanos| {
            let mut out = String::new();
            write_interval(months, days, nanos, &mut out);
            out
        };
        assert_eq!(interval(0, 0, 0), "PT0S");
        assert_eq!(interval(14, 3, 14_706_789_000_000), "P1Y2M3DT4H5M6.789S");
        assert_eq!(interval(-14, 3, -1_500_000_000), "P-1Y-2M3DT-1.5S");
        assert_eq!(interval(0, 0, -1), "PT-0.000000001S");
        assert_eq!(interval(0, 0, 3_600_000_000_000), "PT1H");
    }
}
