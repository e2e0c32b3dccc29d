//! Functions of intervals between times: `age`, `justify_*`, `date_bin`, `isfinite`, `overlaps`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::arguments::{map, zip};
use super::calendar::{DAY, checked_timestamp, out_of_range_error};
use super::function::{function, stable_function};
use super::interval;
use super::kind::TimeKind;
use crate::data_type::{INTERVAL, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        // A call with one argument depends on the current day, and is rewritten to have two.
        stable_function("age", age_type, |args| {
            args.collect_intervals(zip(args.moments(0)?, args.moments(1)?, interval::age))
        }),
        function("justify_hours", one_interval, |args| {
            args.collect_intervals(map(args.intervals(0)?, interval::justify_hours))
        }),
        function("justify_days", one_interval, |args| {
            args.collect_intervals(map(args.intervals(0)?, interval::justify_days))
        }),
        function("justify_interval", one_interval, |args| {
            args.collect_intervals(map(args.intervals(0)?, interval::justify))
        }),
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
        let step = i64::from(step.days).checked_mul(DAY).and_then(|days| days.checked_add(interval::micros(step)));
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
            (Some(start), Some(length)) if is_time => {
                Ok(Some((start + interval::micros(length) % DAY).rem_euclid(DAY)))
            }
            (Some(start), Some(length)) => interval::shift(start, length).map(Some),
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
