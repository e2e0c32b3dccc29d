//! `date_trunc(unit, time)` and `date_trunc(unit, time, zone)`.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{DAY, HOUR, MINUTE, SECOND, civil, days, timestamp, weekday};
use super::column::Arguments;
use super::function::{function, no_function};
use super::input::interval_of;
use super::interval::micros;
use super::kind::{INTERVAL, Kind, TIMESTAMP, timestamptz};
use super::unit::{Unit, unsupported};
use super::zone::Zone;

pub(super) fn date_trunc() -> ScalarUDF {
    function("date_trunc", returns, |args| match args.kind(1) {
        Kind::Interval => {
            let (units, values) = (args.texts(0)?, args.intervals(1)?);
            args.collect_intervals(|row| match (units.get(row), values.get(row)) {
                (Some(unit), Some(value)) => truncate_interval(unit, value).map(Some),
                _ => Ok(None),
            })
        }
        _ => truncate_moments(args),
    })
}

fn returns(types: &[DataType]) -> Result<DataType> {
    let kinds: Vec<Kind> = types.iter().map(Kind::of).collect();
    match kinds.as_slice() {
        [unit, Kind::Timestamp] if unit.is_open() => Ok(TIMESTAMP),
        [unit, Kind::Date | Kind::Timestamptz | Kind::Null] if unit.is_open() => Ok(timestamptz()),
        [unit, Kind::Interval] if unit.is_open() => Ok(INTERVAL),
        [unit, moment, zone] if unit.is_open() && zone.is_open() && (moment.is_moment() || moment.is_open()) => {
            Ok(timestamptz())
        }
        _ => Err(no_function("date_trunc", types)),
    }
}

fn truncate_moments(args: &Arguments) -> Result<arrow::array::ArrayRef> {
    let (units, values) = (args.texts(0)?, args.moments(1)?);
    let zones = if args.len() > 2 { Some(args.texts(2)?) } else { None };
    let types: Vec<DataType> = (0..args.len()).map(|position| args.data_type(position)).collect();
    let data_type = returns(&types)?;
    let kind = Kind::of(&data_type).name(&data_type);
    // Mostly all rows have one unit and one zone.
    let last_unit = std::cell::RefCell::new((String::new(), Unit::Epoch));
    let last_zone = std::cell::RefCell::new((String::new(), Zone::Fixed(0)));
    args.collect_micros(&data_type, |row| {
        let (Some(name), Some(value)) = (units.get(row), values.get(row)) else { return Ok(None) };
        if last_unit.borrow().0 != name || name.is_empty() {
            last_unit.replace((name.to_owned(), Unit::find(name, &kind)?));
        }
        let unit = last_unit.borrow().1;
        let Some(zones) = &zones else { return truncate(unit, value, name, &kind).map(Some) };
        let Some(zone) = zones.get(row) else { return Ok(None) };
        if last_zone.borrow().0 != zone || zone.is_empty() {
            last_zone.replace((zone.to_owned(), Zone::find(zone)?));
        }
        let zone = last_zone.borrow().1;
        let local = truncate(unit, zone.local(value), name, &kind)?;
        // Within a day the offset is that of the moment, as it may occur twice.
        let is_short =
            matches!(unit, Unit::Microseconds | Unit::Milliseconds | Unit::Second | Unit::Minute | Unit::Hour);
        Ok(Some(if is_short { local - (zone.local(value) - value) } else { zone.instant(local) }))
    })
}

/// The start of the unit that a moment lies in.
pub(super) fn truncate(unit: Unit, value: i64, name: &str, kind: &str) -> Result<i64> {
    let step = |micros: i64| Ok(value - value.rem_euclid(micros));
    let day = value.div_euclid(DAY);
    let (year, month, _) = civil(day);
    // Centuries and millennia begin with the years 1, 101, …; there is no year 0.
    let first_year = |length: i64| (year - 1).div_euclid(length) * length + 1;
    let at = |year: i64, month: i64| timestamp(days(year, month, 1), 0);
    match unit {
        Unit::Microseconds => Ok(value),
        Unit::Milliseconds => step(1_000),
        Unit::Second => step(SECOND),
        Unit::Minute => step(MINUTE),
        Unit::Hour => step(HOUR),
        Unit::Day => step(DAY),
        Unit::Week => timestamp(day - (weekday(day) + 6).rem_euclid(7), 0),
        Unit::Month => at(year, month),
        Unit::Quarter => at(year, (month - 1) / 3 * 3 + 1),
        Unit::Year => at(year, 1),
        Unit::Decade => at(year.div_euclid(10) * 10, 1),
        Unit::Century => at(first_year(100), 1),
        Unit::Millennium => at(first_year(1_000), 1),
        _ => Err(unsupported(name, kind)),
    }
}

fn truncate_interval(name: &str, value: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let unit = Unit::find(name, "interval")?;
    let (months, days, micros) = (i64::from(value.months), i64::from(value.days), micros(value));
    let of_months = |length: i64| interval_of(months / length * length, 0, 0);
    let of_time = |step: i64| interval_of(months, days, micros / step * step);
    match unit {
        Unit::Microseconds => Ok(value),
        Unit::Milliseconds => of_time(1_000),
        Unit::Second => of_time(SECOND),
        Unit::Minute => of_time(MINUTE),
        Unit::Hour => of_time(HOUR),
        Unit::Day => interval_of(months, days, 0),
        Unit::Month => of_months(1),
        Unit::Quarter => of_months(3),
        Unit::Year => of_months(12),
        Unit::Decade => of_months(120),
        Unit::Century => of_months(1_200),
        Unit::Millennium => of_months(12_000),
        _ => Err(unsupported(name, "interval")),
    }
}
