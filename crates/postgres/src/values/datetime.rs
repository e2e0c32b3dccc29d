//! Dates, timestamps and intervals: PostgreSQL counts from 2000-01-01, Arrow from 1970-01-01.

use arrow::datatypes::IntervalMonthDayNano;

use super::raw::{ValueError, ValueReader, exactly};

/// From 1970-01-01 to 2000-01-01.
pub(crate) const DAYS_TO_EPOCH: i32 = 10_957;
pub(crate) const MICROSECONDS_OF_DAY: i64 = 86_400_000_000;
pub(crate) const MICROSECONDS_TO_EPOCH: i64 = DAYS_TO_EPOCH as i64 * MICROSECONDS_OF_DAY;

/// The days since 1970. The extreme values are the infinities, as in the binary form.
pub(super) fn decode_date(bytes: &[u8]) -> Result<i32, ValueError> {
    match i32::from_be_bytes(exactly(bytes)?) {
        infinity @ (i32::MIN | i32::MAX) => Ok(infinity),
        days => {
            days.checked_add(DAYS_TO_EPOCH).filter(|days| *days != i32::MAX).ok_or(ValueError::OutOfRange("a date"))
        }
    }
}

/// The microseconds since midnight; PostgreSQL also has 24:00:00.
pub(super) fn decode_time(bytes: &[u8]) -> Result<i64, ValueError> {
    let time = i64::from_be_bytes(exactly(bytes)?);
    if (0..=MICROSECONDS_OF_DAY).contains(&time) { Ok(time) } else { Err(ValueError::Malformed) }
}

/// The microseconds since 1970. The extreme values are the infinities, as in the binary form.
pub(super) fn decode_timestamp(bytes: &[u8]) -> Result<i64, ValueError> {
    match i64::from_be_bytes(exactly(bytes)?) {
        infinity @ (i64::MIN | i64::MAX) => Ok(infinity),
        // PostgreSQL ends in the year 294276, Arrow in 294247.
        moment => moment
            .checked_add(MICROSECONDS_TO_EPOCH)
            .filter(|moment| *moment != i64::MAX)
            .ok_or(ValueError::OutOfRange("a timestamp")),
    }
}

/// The interval. If all parts are extreme values, it is an infinity, as in the binary form since PostgreSQL 17.
pub(super) fn decode_interval(bytes: &[u8]) -> Result<IntervalMonthDayNano, ValueError> {
    let mut reader = ValueReader(bytes);
    let (microseconds, days, months) = (reader.int64()?, reader.int32()?, reader.int32()?);
    reader.expect_end()?;
    let nanoseconds = match (microseconds, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) | (i64::MIN, i32::MIN, i32::MIN) => microseconds,
        _ => microseconds.checked_mul(1_000).ok_or(ValueError::OutOfRange("an interval"))?,
    };
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_beyond_range_are_rejected() {
        let read = |days: i32| decode_date(&days.to_be_bytes());
        assert_eq!(read(0), Ok(10_957));
        assert_eq!(read(i32::MAX), Ok(i32::MAX));
        assert_eq!(read(i32::MIN), Ok(i32::MIN));
        assert_eq!(read(i32::MAX - DAYS_TO_EPOCH), Err(ValueError::OutOfRange("a date")));
        assert_eq!(decode_date(&[0; 8]), Err(ValueError::Malformed));
    }

    #[test]
    fn timestamps_beyond_range_are_rejected() {
        let read = |moment: i64| decode_timestamp(&moment.to_be_bytes());
        assert_eq!(read(-MICROSECONDS_TO_EPOCH), Ok(0));
        assert_eq!(read(i64::MAX), Ok(i64::MAX));
        assert_eq!(read(i64::MIN), Ok(i64::MIN));
        assert_eq!(read(i64::MAX - MICROSECONDS_TO_EPOCH), Err(ValueError::OutOfRange("a timestamp")));
        assert_eq!(read(i64::MAX - 1), Err(ValueError::OutOfRange("a timestamp")));
        assert_eq!(read(i64::MAX - MICROSECONDS_TO_EPOCH - 1), Ok(i64::MAX - 1));
    }

    #[test]
    fn intervals_of_three_centuries_fit() {
        let read = |microseconds: i64, days: i32, months: i32| {
            let mut bytes = microseconds.to_be_bytes().to_vec();
            bytes.extend(days.to_be_bytes());
            bytes.extend(months.to_be_bytes());
            decode_interval(&bytes)
        };
        assert_eq!(read(-1, 2, -3), Ok(IntervalMonthDayNano::new(-3, 2, -1_000)));
        assert_eq!(read(i64::MAX / 1_000, 0, 0), Ok(IntervalMonthDayNano::new(0, 0, i64::MAX / 1_000 * 1_000)));
        assert_eq!(read(i64::MAX / 1_000 + 1, 0, 0), Err(ValueError::OutOfRange("an interval")));
        assert_eq!(read(i64::MIN, i32::MIN, i32::MIN), Ok(IntervalMonthDayNano::new(i32::MIN, i32::MIN, i64::MIN)));
    }
}
