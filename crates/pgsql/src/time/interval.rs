//! Arithmetic of intervals, on months, days and microseconds.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::Result;

use super::calendar::{self, DAY, date_from_days, days, month_length, out_of_range_error};
use super::input::build_interval;

/// Returns the microseconds of the part that is less than a day.
pub(super) fn micros(interval: IntervalMonthDayNano) -> i64 {
    interval.nanoseconds / 1_000
}

/// Returns an interval of microseconds alone.
pub(super) fn from_micros(micros: i64) -> Result<IntervalMonthDayNano> {
    build_interval(0, 0, micros)
}

/// Returns the number by which intervals are compared. A month has 30 days.
pub(super) fn comparison_key(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * i128::from(DAY) + i128::from(micros(interval))
}

pub(super) fn add(left: IntervalMonthDayNano, right: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let sum = || {
        Some(IntervalMonthDayNano {
            months: left.months.checked_add(right.months)?,
            days: left.days.checked_add(right.days)?,
            nanoseconds: left.nanoseconds.checked_add(right.nanoseconds)?,
        })
    };
    sum().ok_or_else(|| out_of_range_error("interval"))
}

pub(super) fn negate(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let negated = || {
        Some(IntervalMonthDayNano {
            months: interval.months.checked_neg()?,
            days: interval.days.checked_neg()?,
            nanoseconds: interval.nanoseconds.checked_neg()?,
        })
    };
    negated().ok_or_else(|| out_of_range_error("interval"))
}

/// Returns a timestamp later by an interval: months first, then days, then the rest. A day that a month lacks is its
/// last.
pub(super) fn shift(timestamp: i64, interval: IntervalMonthDayNano) -> Result<i64> {
    let mut shifted = timestamp;
    if interval.months != 0 {
        let (day, time) = (timestamp.div_euclid(DAY), timestamp.rem_euclid(DAY));
        let (year, month, of_month) = date_from_days(day);
        let months = year * 12 + month - 1 + i64::from(interval.months);
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let day = days(year, month, of_month.min(month_length(year, month)));
        shifted = calendar::timestamp(day, time)?;
    }
    if interval.days != 0 {
        let (day, time) = (shifted.div_euclid(DAY), shifted.rem_euclid(DAY));
        shifted = calendar::timestamp(day + i64::from(interval.days), time)?;
    }
    let total = shifted.checked_add(micros(interval));
    total.ok_or_else(|| out_of_range_error("timestamp")).and_then(calendar::checked_timestamp)
}

/// Returns the days and the rest between two timestamps.
pub(super) fn between(later: i64, earlier: i64) -> Result<IntervalMonthDayNano> {
    let micros = later.checked_sub(earlier).ok_or_else(|| out_of_range_error("interval"))?;
    build_interval(0, micros / DAY, micros % DAY)
}

/// Returns the interval times a number; what is left of months becomes days, what is left of days becomes time.
pub(crate) fn multiply(interval: IntervalMonthDayNano, factor: f64) -> Result<IntervalMonthDayNano> {
    scale(interval, |part| part * factor)
}

/// Returns the interval divided by a number that is not 0.
pub(super) fn divide(interval: IntervalMonthDayNano, divisor: f64) -> Result<IntervalMonthDayNano> {
    scale(interval, |part| part / divisor)
}

fn scale(interval: IntervalMonthDayNano, scaled: impl Fn(f64) -> f64) -> Result<IntervalMonthDayNano> {
    let (months, days) = (f64::from(interval.months), f64::from(interval.days));
    let (whole_months, mut whole_days) = (scaled(months).trunc(), scaled(days).trunc());
    // Each part is rounded as PostgreSQL rounds it, to microseconds of a day.
    let rounded = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let days_of_months = rounded((scaled(months) - whole_months) * 30.0);
    let mut seconds = rounded((scaled(days) - whole_days + days_of_months - days_of_months.trunc()) * 86_400.0);
    if seconds.abs() >= 86_400.0 {
        whole_days += (seconds / 86_400.0).trunc();
        seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
    }
    whole_days += days_of_months.trunc();
    let total = (scaled(micros(interval) as f64) + seconds * 1e6).round_ties_even();
    let is_within = |value: f64, bound: f64| value.is_finite() && value.abs() <= bound;
    let bound = f64::from(i32::MAX);
    if !is_within(whole_months, bound) || !is_within(whole_days, bound) || !is_within(total, 9.2e18) {
        return Err(out_of_range_error("interval"));
    }
    build_interval(whole_months as i64, whole_days as i64, total as i64)
}

/// Divides each sum of intervals or durations by its count.
#[allow(clippy::cast_precision_loss, reason = "as PostgreSQL divides")]
pub(crate) fn average_spans(sums: &ArrayRef, counts: &Int64Array) -> Result<ArrayRef> {
    if let DataType::Duration(_) = sums.data_type() {
        let sums_as_numbers = cast(sums, &DataType::Int64)?;
        let pairs = sums_as_numbers.as_primitive::<Int64Type>().iter().zip(counts.iter());
        let averages: Int64Array = pairs.map(|(sum, count)| Some(round_to_i64(sum? as f64 / count? as f64))).collect();
        return Ok(cast(&averages, sums.data_type())?);
    }
    let pairs = sums.as_primitive::<IntervalMonthDayNanoType>().iter().zip(counts.iter());
    let averages = pairs.map(|(sum, count)| match (sum, count) {
        (Some(sum), Some(count)) => divide(sum, count as f64).map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(averages.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

// An average of 64-bit numbers fits in 64 bits.
#[allow(clippy::cast_possible_truncation, reason = "no average is larger than what it is of")]
fn round_to_i64(value: f64) -> i64 {
    value.round_ties_even() as i64
}

/// Moves whole days of 24 hours from the time to the days.
pub(super) fn justify_hours(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut micros = micros(interval);
    let mut days = i64::from(interval.days) + micros / DAY;
    micros %= DAY;
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    build_interval(i64::from(interval.months), days, micros)
}

/// Moves whole months of 30 days from the days to the months.
pub(super) fn justify_days(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut days = i64::from(interval.days);
    let mut months = i64::from(interval.months) + days / 30;
    days %= 30;
    if months > 0 && days < 0 {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && days > 0 {
        (months, days) = (months + 1, days - 30);
    }
    build_interval(months, days, micros(interval))
}

/// Converts hours to days and days to months so that all parts have the same sign.
pub(super) fn justify(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let mut micros = micros(interval);
    let mut days = i64::from(interval.days) + micros / DAY;
    micros %= DAY;
    let mut months = i64::from(interval.months) + days / 30;
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    if days > 0 && micros < 0 {
        (days, micros) = (days - 1, micros + DAY);
    } else if days < 0 && micros > 0 {
        (days, micros) = (days + 1, micros - DAY);
    }
    build_interval(months, days, micros)
}

/// Returns the years, months, days and time between two timestamps, as a calendar counts them.
pub(super) fn age(later: i64, earlier: i64) -> Result<IntervalMonthDayNano> {
    if later < earlier {
        return negate(age(earlier, later)?);
    }
    let (until, since) = (later.div_euclid(DAY), earlier.div_euclid(DAY));
    let ((year, month, day), (since_year, since_month, since_day)) = (date_from_days(until), date_from_days(since));
    let mut months = (year - since_year) * 12 + month - since_month;
    let mut days = day - since_day;
    let mut micros = later.rem_euclid(DAY) - earlier.rem_euclid(DAY);
    if micros < 0 {
        (micros, days) = (micros + DAY, days - 1);
    }
    if days < 0 {
        // Days are borrowed from the month of the earlier one.
        (days, months) = (days + month_length(since_year, since_month), months - 1);
    }
    build_interval(months, days, micros)
}
