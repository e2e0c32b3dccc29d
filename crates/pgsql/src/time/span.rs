//! Functions of what lies between times: `age`, `justify_*`, `date_bin`, `isfinite`, `overlaps`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, checked_timestamp, out_of_range};
use super::column::Arguments;
use super::function::{function, no_function, stable_function};
use super::interval;
use super::kind::{INTERVAL, Kind, TIMESTAMP, timestamptz};

pub(super) fn functions() -> Vec<ScalarUDF> {
    vec![
        // With one argument it depends on the day, and is rewritten to have two.
        stable_function(
            "age",
            |types| moments("age", types, 2).map(|_| INTERVAL),
            |args| {
                let (later, earlier) = (args.moments(0)?, args.moments(1)?);
                args.collect_intervals(|row| match (later.get(row), earlier.get(row)) {
                    (Some(later), Some(earlier)) => interval::age(later, earlier).map(Some),
                    _ => Ok(None),
                })
            },
        ),
        function(
            "justify_hours",
            |types| one_interval("justify_hours", types),
            |args| {
                let values = args.intervals(0)?;
                args.collect_intervals(|row| values.get(row).map(interval::justify_hours).transpose())
            },
        ),
        function(
            "justify_days",
            |types| one_interval("justify_days", types),
            |args| {
                let values = args.intervals(0)?;
                args.collect_intervals(|row| values.get(row).map(interval::justify_days).transpose())
            },
        ),
        function(
            "justify_interval",
            |types| one_interval("justify_interval", types),
            |args| {
                let values = args.intervals(0)?;
                args.collect_intervals(|row| values.get(row).map(interval::justify).transpose())
            },
        ),
        function("date_bin", bins, bin),
        function("isfinite", finite, |args| {
            let values = args.array(0)?;
            let finite = (0..args.rows()).map(|row| values.is_valid(row).then_some(true));
            Ok(Arc::new(finite.collect::<BooleanArray>()))
        }),
        function("overlaps", four, overlap),
    ]
}

fn moments(name: &str, types: &[DataType], count: usize) -> Result<()> {
    let is_moment = |data_type: &DataType| Kind::of(data_type).is_moment() || Kind::of(data_type).is_open();
    if types.len() == count && types.iter().all(is_moment) { Ok(()) } else { Err(no_function(name, types)) }
}

fn one_interval(name: &str, types: &[DataType]) -> Result<DataType> {
    match types {
        [only] if matches!(Kind::of(only), Kind::Interval | Kind::Text | Kind::Null) => Ok(INTERVAL),
        _ => Err(no_function(name, types)),
    }
}

fn finite(types: &[DataType]) -> Result<DataType> {
    match types {
        [only] if Kind::of(only).is_moment() || matches!(Kind::of(only), Kind::Interval | Kind::Null) => {
            Ok(DataType::Boolean)
        }
        _ => Err(no_function("isfinite", types)),
    }
}

fn bins(types: &[DataType]) -> Result<DataType> {
    let [step, source, origin] = types else {
        return Err(no_function("date_bin", types));
    };
    moments("date_bin", &[source.clone(), origin.clone()], 2)?;
    if !matches!(Kind::of(step), Kind::Interval | Kind::Text | Kind::Null) {
        return Err(no_function("date_bin", types));
    }
    let kinds = [Kind::of(source), Kind::of(origin)];
    let is_plain = |kind: Kind| kind == Kind::Timestamp || kind.is_open();
    if kinds.contains(&Kind::Timestamp) && kinds.into_iter().all(is_plain) { Ok(TIMESTAMP) } else { Ok(timestamptz()) }
}

fn bin(args: &Arguments) -> Result<ArrayRef> {
    let (steps, sources, origins) = (args.intervals(0)?, args.moments(1)?, args.moments(2)?);
    args.collect_micros(args.return_type(), |row| {
        let (Some(step), Some(source), Some(origin)) = (steps.get(row), sources.get(row), origins.get(row)) else {
            return Ok(None);
        };
        if step.months != 0 {
            return exec_err!("timestamps cannot be binned into intervals containing months or years; use date_trunc");
        }
        let step = i64::from(step.days).checked_mul(DAY).and_then(|days| days.checked_add(interval::micros(step)));
        let step = step.ok_or_else(|| out_of_range("interval"))?;
        if step <= 0 {
            return exec_err!("stride must be greater than zero");
        }
        let distance = source.checked_sub(origin).ok_or_else(|| out_of_range("interval"))?;
        checked_timestamp(origin + distance.div_euclid(step) * step).map(Some)
    })
}

fn four(types: &[DataType]) -> Result<DataType> {
    let kinds: Vec<Kind> = types.iter().map(Kind::of).collect();
    let is_start = |kind: Kind| kind.is_moment() || kind == Kind::Time || kind.is_open();
    match kinds.as_slice() {
        [first, first_end, second, second_end] => {
            let is_end = |kind: Kind| is_start(kind) || kind == Kind::Interval;
            let has_time = kinds.contains(&Kind::Time);
            let has_moment = kinds.iter().any(|kind| kind.is_moment());
            let is_right = is_start(*first) && is_start(*second) && is_end(*first_end) && is_end(*second_end);
            if is_right && has_time != has_moment { Ok(DataType::Boolean) } else { Err(no_function("overlaps", types)) }
        }
        _ => Err(no_function("overlaps", types)),
    }
}

/// The start and the end of each row's range, which may be given as a length.
fn ranges(args: &Arguments, first: usize, is_time: bool) -> Result<Vec<(Option<i64>, Option<i64>)>> {
    let points = |position: usize| if is_time { args.times(position) } else { args.moments(position) };
    let starts = points(first)?;
    if args.kind(first + 1) == Kind::Interval {
        let lengths = args.intervals(first + 1)?;
        let end = |row: usize| match (starts.get(row), lengths.get(row)) {
            (Some(start), Some(length)) if is_time => {
                Ok(Some((start + interval::micros(length) % DAY).rem_euclid(DAY)))
            }
            (Some(start), Some(length)) => interval::shift(start, length).map(Some),
            _ => Ok(None),
        };
        return (0..args.rows()).map(|row| Ok((starts.get(row), end(row)?))).collect();
    }
    let ends = points(first + 1)?;
    Ok((0..args.rows()).map(|row| (starts.get(row), ends.get(row))).collect())
}

fn overlap(args: &Arguments) -> Result<ArrayRef> {
    let is_time = (0..args.len()).any(|position| args.kind(position) == Kind::Time);
    let (first, second) = (ranges(args, 0, is_time)?, ranges(args, 2, is_time)?);
    let values = first.into_iter().zip(second).map(|(first, second)| do_overlap(first, second));
    Ok(Arc::new(values.collect::<BooleanArray>()))
}

/// Whether two ranges have a moment in common, as the standard has it; a range may lack one end.
fn do_overlap(first: (Option<i64>, Option<i64>), second: (Option<i64>, Option<i64>)) -> Option<bool> {
    let ordered = |(start, end): (Option<i64>, Option<i64>)| match (start, end) {
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(known), None) | (None, Some(known)) => Some((known, None)),
        (None, None) => None,
    };
    let ((start, end), (other_start, other_end)) = (ordered(first)?, ordered(second)?);
    // Of ranges that start at different moments the earlier must reach the later.
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
