//! Intervals and durations: ISO 8601, each component with its own sign, as PostgreSQL writes them.

use std::fmt::Write as _;

use arrow::array::{Array, ArrowPrimitiveType};
use arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
};

use super::cells::{BoxedCells, DisplayCells, value_cells};
use super::temporal::{INFINITY, NEGATIVE_INFINITY};

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
