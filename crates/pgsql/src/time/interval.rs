//! Arithmetic of intervals, on months, days and microseconds, and functions of intervals between times: `age`, `justify_*`,
//! `date_bin`, `isfinite`, `overlaps`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{self, DAY, checked_timestamp, date_from_days, days, month_length, out_of_range_error};
use super::function::{TimeKind, function, map, stable_function, zip};
use super::input::build_interval;
use crate::data_type::{INTERVAL, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

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
fn justify_hours(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
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
fn justify_days(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
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
fn justify(interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
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
fn age(later: i64, earlier: i64) -> Result<IntervalMonthDayNano> {
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

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        // A call with one argument depends on the current day, and is rewritten to have two.
        stable_function("age", age_type, |args| args.collect_intervals(zip(args.moments(0)?, args.moments(1)?, age))),
        function("justify_hours", one_interval, |args| args.collect_intervals(map(args.intervals(0)?, justify_hours))),
        function("justify_days", one_interval, |args| args.collect_intervals(map(args.intervals(0)?, justify_days))),
        function("justify_interval", one_interval, |args| args.collect_intervals(map(args.intervals(0)?, justify))),
        function("date_bin", date_bin_types, date_bin),
        function("isfinite", isfinite_types, |args| {
            let values = args.array(0)?;
            let finite = (0..args.rows).map(|row| values.is_valid(row).then_some(true));
            Ok(Arc::new(finite.collect::<BooleanArray>()))
        }),
        function("overlaps", overlaps_types, overlap),
    ]
}

fn age_type(kinds: &[TimeKind]) -> Option<DataType> {
    are_two_moments(kinds).then_some(INTERVAL)
}

fn are_two_moments(kinds: &[TimeKind]) -> bool {
    kinds.len() == 2 && kinds.iter().all(|kind| kind.is_moment() || kind.accepts_untyped_literal())
}

fn one_interval(kinds: &[TimeKind]) -> Option<DataType> {
    matches!(kinds, [TimeKind::Interval | TimeKind::Text | TimeKind::Null]).then_some(INTERVAL)
}

fn isfinite_types(kinds: &[TimeKind]) -> Option<DataType> {
    let is_time = |kind: TimeKind| kind.is_moment() || matches!(kind, TimeKind::Interval | TimeKind::Null);
    matches!(kinds, [only] if is_time(*only)).then_some(DataType::Boolean)
}

fn date_bin_types(kinds: &[TimeKind]) -> Option<DataType> {
    let [TimeKind::Interval | TimeKind::Text | TimeKind::Null, moments @ ..] = kinds else { return None };
    let is_plain = |kind: &TimeKind| *kind == TimeKind::Timestamp || kind.accepts_untyped_literal();
    let are_plain = moments.contains(&TimeKind::Timestamp) && moments.iter().all(is_plain);
    are_two_moments(moments).then(|| if are_plain { TIMESTAMP } else { timestamptz() })
}

fn date_bin(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let (steps, sources, origins) = (args.intervals(0)?, args.moments(1)?, args.moments(2)?);
    args.collect_micros(|row| {
        let (Some(step), Some(source), Some(origin)) = (steps.get(row), sources.get(row), origins.get(row)) else {
            return Ok(None);
        };
        if step.months != 0 {
            return exec_err!("timestamps cannot be binned into intervals containing months or years; use date_trunc");
        }
        let step = i64::from(step.days).checked_mul(DAY).and_then(|days| days.checked_add(micros(step)));
        let step = step.ok_or_else(|| out_of_range_error("interval"))?;
        if step <= 0 {
            return exec_err!("stride must be greater than zero");
        }
        let distance = source.checked_sub(origin).ok_or_else(|| out_of_range_error("interval"))?;
        let start = distance.div_euclid(step).checked_mul(step).and_then(|steps| origin.checked_add(steps));
        start.ok_or_else(|| out_of_range_error("timestamp")).and_then(checked_timestamp).map(Some)
    })
}

fn overlaps_types(kinds: &[TimeKind]) -> Option<DataType> {
    let is_start = |kind: TimeKind| kind.is_moment() || kind == TimeKind::Time || kind.accepts_untyped_literal();
    let is_end = |kind: TimeKind| is_start(kind) || kind == TimeKind::Interval;
    let has_time = kinds.contains(&TimeKind::Time);
    let has_moment = kinds.iter().any(|kind| kind.is_moment());
    let &[start, end, other_start, other_end] = kinds else { return None };
    let are_ranges = is_start(start) && is_end(end) && is_start(other_start) && is_end(other_end);
    (are_ranges && has_time != has_moment).then_some(DataType::Boolean)
}

/// Returns the start and the end of each row's range. The end may be an argument, or the start and a length.
fn ranges(args: &FunctionCall<'_>, first: usize, is_time: bool) -> Result<Vec<(Option<i64>, Option<i64>)>> {
    let points = |position: usize| if is_time { args.times(position) } else { args.moments(position) };
    let starts = points(first)?;
    if args.time_kind(first + 1) == TimeKind::Interval {
        let lengths = args.intervals(first + 1)?;
        let end = |row: usize| match (starts.get(row), lengths.get(row)) {
            (Some(start), Some(length)) if is_time => Ok(Some((start + micros(length) % DAY).rem_euclid(DAY))),
            (Some(start), Some(length)) => shift(start, length).map(Some),
            _ => Ok(None),
        };
        return (0..args.rows).map(|row| Ok((starts.get(row), end(row)?))).collect();
    }
    let ends = points(first + 1)?;
    Ok((0..args.rows).map(|row| (starts.get(row), ends.get(row))).collect())
}

fn overlap(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let is_time = (0..args.args.len()).any(|position| args.time_kind(position) == TimeKind::Time);
    let (first, second) = (ranges(args, 0, is_time)?, ranges(args, 2, is_time)?);
    let values = first.into_iter().zip(second).map(|(first, second)| ranges_overlap(first, second));
    Ok(Arc::new(values.collect::<BooleanArray>()))
}

/// Whether two ranges overlap, as the SQL standard defines it. One end of a range may be NULL.
fn ranges_overlap(first: (Option<i64>, Option<i64>), second: (Option<i64>, Option<i64>)) -> Option<bool> {
    let ordered = |(start, end): (Option<i64>, Option<i64>)| match (start, end) {
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(moment), None) | (None, Some(moment)) => Some((moment, None)),
        (None, None) => None,
    };
    let ((start, end), (other_start, other_end)) = (ordered(first)?, ordered(second)?);
    // If the ranges start at different moments, the earlier must end after the start of the later.
    let reaches = |end: Option<i64>, start: i64, other_end: Option<i64>| match end {
        Some(end) if start < end => Some(true),
        Some(_) if other_end.is_some() => Some(false),
        _ => None,
    };
    match start.cmp(&other_start) {
        std::cmp::Ordering::Greater => reaches(other_end, start, end),
        std::cmp::Ordering::Less => reaches(end, other_start, other_end),
        std::cmp::Ordering::Equal => (end.is_some() && other_end.is_some()).then_some(true),
    }
}
