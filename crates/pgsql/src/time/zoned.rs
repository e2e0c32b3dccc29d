//! `timezone(zone, time)`, which `time AT TIME ZONE zone` means.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ScalarUDF;

use super::calendar::{SECOND, checked_timestamp};
use super::column::Arguments;
use super::function::{function, no_function};
use super::interval;
use super::kind::{Kind, TIMESTAMP, timestamptz};
use super::zone::Zone;

pub(super) fn timezone() -> ScalarUDF {
    function("timezone", returns, convert)
}

/// A time with a zone becomes one without, and the other way round.
fn returns(types: &[DataType]) -> Result<DataType> {
    match types {
        [zone, time] if Kind::of(zone).is_open() || Kind::of(zone) == Kind::Interval => match Kind::of(time) {
            Kind::Timestamp => Ok(timestamptz()),
            Kind::Date | Kind::Timestamptz | Kind::Text | Kind::Null => Ok(TIMESTAMP),
            _ => Err(no_function("timezone", types)),
        },
        _ => Err(no_function("timezone", types)),
    }
}

fn convert(args: &Arguments) -> Result<ArrayRef> {
    let moments = args.moments(1)?;
    let is_local = args.kind(1) == Kind::Timestamp;
    let shifted = |zone: Zone, moment: i64| {
        checked_timestamp(if is_local { zone.instant(moment) } else { zone.local(moment) }).map(Some)
    };
    if args.kind(0) == Kind::Interval {
        let offsets = args.intervals(0)?;
        return args.collect_micros(args.return_type(), |row| {
            let (Some(offset), Some(moment)) = (offsets.get(row), moments.get(row)) else { return Ok(None) };
            match i32::try_from(interval::micros(offset) / SECOND) {
                Ok(seconds) if offset.months == 0 && offset.days == 0 => shifted(Zone::Fixed(seconds), moment),
                _ => exec_err!("an interval as a time zone must not include months or days"),
            }
        });
    }
    let names = args.texts(0)?;
    // Mostly all rows have one zone.
    let last = std::cell::RefCell::new((String::new(), Zone::Fixed(0)));
    args.collect_micros(args.return_type(), |row| {
        let (Some(name), Some(moment)) = (names.get(row), moments.get(row)) else { return Ok(None) };
        if last.borrow().0 != name || name.is_empty() {
            last.replace((name.to_owned(), Zone::find(name)?));
        }
        let zone = last.borrow().1;
        shifted(zone, moment)
    })
}
