//! `date_trunc(unit, time)` and `date_trunc(unit, time, zone)`.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, HOUR, MINUTE, SECOND, date_from_days, days, timestamp, weekday};
use super::function::function;
use super::input::build_interval;
use super::interval::micros;
use super::kind::TimeKind;
use super::unit::{TimeUnitField, unsupported};
use super::zone::TimeZoneSpec;
use crate::data_type::{INTERVAL, TIMESTAMP, timestamptz};
use crate::function::FunctionCall;

pub(super) fn date_trunc() -> ScalarUDF {
    function("date_trunc", returns, |args| match args.time_kind(1) {
        TimeKind::Interval => {
            let (units, values) = (args.texts(0)?, args.intervals(1)?);
            args.collect_intervals(|row| match (units.get(row), values.get(row)) {
                (Some(unit), Some(value)) => truncate_interval(unit, value).map(Some),
                _ => Ok(None),
            })
        }
        _ => truncate_moments(args),
    })
}

fn returns(kinds: &[TimeKind]) -> Option<DataType> {
    match kinds {
        [unit, ..] if !unit.accepts_untyped_literal() => None,
        [_, TimeKind::Timestamp] => Some(TIMESTAMP),
        [_, TimeKind::Date | TimeKind::Timestamptz | TimeKind::Null] => Some(timestamptz()),
        [_, TimeKind::Interval] => Some(INTERVAL),
        [_, moment, zone] if zone.accepts_untyped_literal() => {
            (moment.is_moment() || moment.accepts_untyped_literal()).then(timestamptz)
        }
        _ => None,
    }
}

fn truncate_moments(args: &FunctionCall<'_>) -> Result<arrow::array::ArrayRef> {
    let (units, values) = (args.texts(0)?, args.moments(1)?);
    let zones = if args.args.len() > 2 { Some(args.texts(2)?) } else { None };
    let kind = TimeKind::from_data_type(args.returns).name(args.returns);
    // In most calls all rows have the same unit and zone, so the last ones are cached.
    let last_unit = std::cell::RefCell::new((String::new(), TimeUnitField::Epoch));
    let last_zone = std::cell::RefCell::new((String::new(), TimeZoneSpec::Fixed(0)));
    args.collect_micros(|row| {
        let (Some(name), Some(value)) = (units.get(row), values.get(row)) else { return Ok(None) };
        if last_unit.borrow().0 != name || name.is_empty() {
            last_unit.replace((name.to_owned(), TimeUnitField::find(name, &kind)?));
        }
        let unit = last_unit.borrow().1;
        let Some(zones) = &zones else { return truncate_moment(unit, value, name, &kind).map(Some) };
        let Some(zone) = zones.get(row) else { return Ok(None) };
        if last_zone.borrow().0 != zone || zone.is_empty() {
            last_zone.replace((zone.to_owned(), TimeZoneSpec::find(zone)?));
        }
        let zone = last_zone.borrow().1;
        let local = truncate_moment(unit, zone.local(value), name, &kind)?;
        // Units within a day keep the offset of the moment, because a local time may occur twice.
        let is_short = matches!(
            unit,
            TimeUnitField::Microseconds
                | TimeUnitField::Milliseconds
                | TimeUnitField::Second
                | TimeUnitField::Minute
                | TimeUnitField::Hour
        );
        Ok(Some(if is_short { local - (zone.local(value) - value) } else { zone.instant(local) }))
    })
}

/// Returns the start of the unit that contains a moment.
pub(super) fn truncate_moment(unit: TimeUnitField, value: i64, name: &str, kind: &str) -> Result<i64> {
    let step = |micros: i64| Ok(value - value.rem_euclid(micros));
    let day = value.div_euclid(DAY);
    let (year, month, _) = date_from_days(day);
    // Centuries and millennia begin with the years 1, 101, …; there is no year 0.
    let first_year = |length: i64| (year - 1).div_euclid(length) * length + 1;
    let at = |year: i64, month: i64| timestamp(days(year, month, 1), 0);
    match unit {
        TimeUnitField::Microseconds => Ok(value),
        TimeUnitField::Milliseconds => step(1_000),
        TimeUnitField::Second => step(SECOND),
        TimeUnitField::Minute => step(MINUTE),
        TimeUnitField::Hour => step(HOUR),
        TimeUnitField::Day => step(DAY),
        TimeUnitField::Week => timestamp(day - (weekday(day) + 6).rem_euclid(7), 0),
        TimeUnitField::Month => at(year, month),
        TimeUnitField::Quarter => at(year, (month - 1) / 3 * 3 + 1),
        TimeUnitField::Year => at(year, 1),
        TimeUnitField::Decade => at(year.div_euclid(10) * 10, 1),
        TimeUnitField::Century => at(first_year(100), 1),
        TimeUnitField::Millennium => at(first_year(1_000), 1),
        _ => Err(unsupported(name, kind)),
    }
}

fn truncate_interval(name: &str, value: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let unit = TimeUnitField::find(name, "interval")?;
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), micros(value));
    let of_months = |length: i64| build_interval(months / length * length, 0, 0);
    let of_time = |step: i64| build_interval(months, days, micros / step * step);
    match unit {
        TimeUnitField::Microseconds => Ok(value),
        TimeUnitField::Milliseconds => of_time(1_000),
        TimeUnitField::Second => of_time(SECOND),
        TimeUnitField::Minute => of_time(MINUTE),
        TimeUnitField::Hour => of_time(HOUR),
        TimeUnitField::Day => build_interval(months, days, 0),
        TimeUnitField::Month => of_months(1),
        TimeUnitField::Quarter => of_months(3),
        TimeUnitField::Year => of_months(12),
        TimeUnitField::Decade => of_months(120),
        TimeUnitField::Century => of_months(1_200),
        TimeUnitField::Millennium => of_months(12_000),
        _ => Err(unsupported(name, "interval")),
    }
}
