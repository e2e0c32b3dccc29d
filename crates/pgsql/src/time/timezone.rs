//! The function `timezone(zone, time)`, to which `time AT TIME ZONE zone` is rewritten.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::arguments::zip;
use super::calendar::{SECOND, checked_timestamp};
use super::function::function;
use super::interval;
use super::kind::TimeKind;
use super::zone::TimeZoneSpec;
use crate::data_type::{TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn timezone() -> ScalarUDF {
    function("timezone", returns, convert)
}

/// Returns the type of the result: a time without a zone for one with a zone, and the reverse.
fn returns(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [zone, time] if zone.accepts_untyped_literal() || *zone == TimeKind::Interval => match time {
            TimeKind::Timestamp => Some(timestamptz()),
            TimeKind::Date | TimeKind::Timestamptz | TimeKind::Text | TimeKind::Null => Some(TIMESTAMP),
            _ => None,
        },
        _ => None,
    }
}

fn convert(args: &FunctionCall<'_>) -> Result<ArrayRef> {
    let moments = args.moments(1)?;
    let is_local = args.time_kind(1) == TimeKind::Timestamp;
    let shifted = |zone: TimeZoneSpec, moment: i64| {
        checked_timestamp(if is_local { zone.instant(moment) } else { zone.local(moment) })
    };
    if args.time_kind(0) == TimeKind::Interval {
        return args.collect_micros(zip(args.intervals(0)?, moments, |offset, moment| {
            match i32::try_from(interval::micros(offset) / SECOND) {
                Ok(seconds) if offset.months == 0 && offset.days == 0 => shifted(TimeZoneSpec::Fixed(seconds), moment),
                _ => exec_err!("an interval as a time zone must not include months or days"),
            }
        }));
    }
    let names = args.texts(0)?;
    // In most calls all rows have the same zone, so the last one is cached.
    let last = std::cell::RefCell::new((String::new(), TimeZoneSpec::Fixed(0)));
    args.collect_micros(|row| {
        let (Some(name), Some(moment)) = (names.get(row), moments.get(row)) else { return Ok(None) };
        if last.borrow().0 != name || name.is_empty() {
            last.replace((name.to_owned(), TimeZoneSpec::find(name)?));
        }
        let zone = last.borrow().1;
        shifted(zone, moment).map(Some)
    })
}
