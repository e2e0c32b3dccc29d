//! `to_char` of dates, times and intervals.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{Result, exec_err};

use super::pattern::{FieldNode, LetterCase, OrdinalSuffix, PatternNode, TimeField, ordinal_suffix};
use crate::time::calendar::{self, DAY, DAY_NAMES, DateTimeParts, HOUR, JULIAN_EPOCH, MINUTE, MONTH_NAMES, SECOND};
use crate::time::interval::micros;

pub(super) const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The values that the fields of a pattern format.
struct TimeFields {
    parts: DateTimeParts,
    /// Days since 1970, of a moment.
    day_number: Option<i64>,
    /// The name of the zone.
    zone: &'static str,
}

/// Writes a timestamp by a pattern; the zone of one with a zone is UTC.
pub(super) fn write_timestamp(
    value: i64,
    is_zoned: bool,
    nodes: &[PatternNode<TimeField>],
    out: &mut String,
) -> Result<()> {
    let zone = if is_zoned { "UTC" } else { "" };
    let day_number = Some(value.div_euclid(DAY));
    write(&TimeFields { parts: DateTimeParts::from_timestamp(value), day_number, zone }, nodes, out)
}

/// Writes an interval by a pattern, whose hours may be more than 24.
pub(super) fn write_interval(
    value: IntervalMonthDayNano,
    nodes: &[PatternNode<TimeField>],
    out: &mut String,
) -> Result<()> {
    let (year, month) = (i64::from(value.months / 12), i64::from(value.months % 12));
    let parts = DateTimeParts { year, month, day: i64::from(value.days), ..DateTimeParts::from_time(micros(value)) };
    write(&TimeFields { parts, day_number: None, zone: "" }, nodes, out)
}

fn write(value: &TimeFields, nodes: &[PatternNode<TimeField>], out: &mut String) -> Result<()> {
    for node in nodes {
        match node {
            PatternNode::Text(character) | PatternNode::Separator(character) | PatternNode::Space(character) => {
                out.push(*character)
            }
            PatternNode::Field(node) => value.field(node, out)?,
        }
    }
    Ok(())
}

impl TimeFields {
    /// Returns the day of a moment; an error for an interval.
    fn day(&self) -> Result<i64> {
        let Some(day) = self.day_number else {
            return exec_err!(
                "invalid format specification for an interval value: intervals are not tied to specific calendar dates"
            );
        };
        Ok(day)
    }

    fn field(&self, node: &FieldNode<TimeField>, out: &mut String) -> Result<()> {
        let parts = &self.parts;
        let written_year = |year: i64| if self.day_number.is_some() && year <= 0 { 1 - year } else { year };
        let signed = |value: i64, width: usize| (value, if value < 0 { width + 1 } else { width });
        let last = |year: i64, digits: u32| match digits {
            4 => signed(written_year(year), 4),
            digits => (written_year(year) % 10_i64.pow(digits), digits as usize),
        };
        let (number, width) = match node.field {
            TimeField::Hour24 => (parts.hour, if parts.hour < 0 { 3 } else { 2 }),
            TimeField::Hour12 => {
                (if parts.hour % 12 == 0 { 12 } else { parts.hour % 12 }, if parts.hour < 0 { 3 } else { 2 })
            }
            TimeField::Minute => signed(parts.minute, 2),
            TimeField::Second => signed(parts.second, 2),
            TimeField::Fraction(digits) => (parts.micros / 10_i64.pow(6 - digits), digits as usize),
            TimeField::Milliseconds => (parts.micros / 1_000, 3),
            TimeField::Microseconds => (parts.micros, 6),
            TimeField::SecondsOfDay(_) => ((parts.hour * HOUR + parts.minute * MINUTE) / SECOND + parts.second, 0),
            TimeField::Month => signed(parts.month, 2),
            TimeField::Day => (parts.day, 2),
            TimeField::DayOfYear => (self.day_of_year(), 3),
            TimeField::IsoDayOfYear => {
                let day = self.day()?;
                (day - calendar::iso_year(day).0 + 1, 3)
            }
            TimeField::DayOfWeek => (calendar::weekday(self.day()?) + 1, 0),
            TimeField::IsoDayOfWeek => ((calendar::weekday(self.day()?) + 6) % 7 + 1, 0),
            TimeField::WeekOfYear => ((self.day_of_year() - 1) / 7 + 1, 2),
            TimeField::IsoWeek => {
                let day = self.day()?;
                ((day - calendar::iso_year(day).0) / 7 + 1, 2)
            }
            TimeField::WeekOfMonth => ((parts.day - 1) / 7 + 1, 0),
            TimeField::Quarter if parts.month == 0 => return Ok(()),
            TimeField::Quarter => ((parts.month - 1) / 3 + 1, 0),
            TimeField::Century => signed(self.century(), 2),
            TimeField::Year(digits) => last(parts.year, digits),
            TimeField::IsoYear(digits) => last(calendar::iso_year(self.day()?).1, digits),
            TimeField::Julian => (self.day()? + JULIAN_EPOCH, 0),
            TimeField::GroupedYear => {
                let year = written_year(parts.year);
                let _ = write!(out, "{},{:03}", year / 1_000, year % 1_000);
                out.push_str(ordinal_suffix(&year.to_string(), node.ordinal));
                return Ok(());
            }
            _ => return self.name(node, out),
        };
        let width = if node.is_filled { 0 } else { width };
        let start = out.len();
        let _ = write!(out, "{number:0width$}");
        if node.ordinal != OrdinalSuffix::None {
            let ending = ordinal_suffix(&out[start..], node.ordinal);
            out.push_str(ending);
        }
        Ok(())
    }

    fn name(&self, node: &FieldNode<TimeField>, out: &mut String) -> Result<()> {
        let parts = &self.parts;
        let is_short = node.is_filled || node.is_translated;
        let mut padded = |name: String, width: usize| {
            let width = if is_short { 0 } else { width };
            let _ = write!(out, "{name:<width$}");
        };
        let month = || usize::try_from(parts.month - 1).ok();
        match node.field {
            TimeField::Meridiem { case, is_dotted } => {
                let is_afternoon = parts.hour % 24 >= 12;
                let name = if is_dotted { ["A.M.", "P.M."] } else { ["AM", "PM"] }[usize::from(is_afternoon)];
                out.push_str(&case.apply(name));
            }
            TimeField::Era { case, is_dotted } => {
                self.day()?;
                let name = if is_dotted { ["A.D.", "B.C."] } else { ["AD", "BC"] }[usize::from(parts.year <= 0)];
                out.push_str(&case.apply(name));
            }
            TimeField::MonthName(case) => {
                self.day()?;
                if let Some(name) = month().and_then(|month| MONTH_NAMES.get(month)) {
                    padded(case.apply(name), 9);
                }
            }
            TimeField::ShortMonthName(case) => {
                self.day()?;
                if let Some(name) = month().and_then(|month| MONTH_NAMES.get(month)) {
                    out.push_str(&case.apply(&name[..3]));
                }
            }
            TimeField::DayName(case) => padded(case.apply(self.day_name()?), 9),
            TimeField::ShortDayName(case) => out.push_str(&case.apply(&self.day_name()?[..3])),
            TimeField::RomanMonth(case) => self.roman_month(case, is_short, out),
            TimeField::Zone(case) => {
                self.day()?;
                out.push_str(&case.apply(self.zone));
            }
            TimeField::ZoneHours | TimeField::Offset => {
                self.day()?;
                out.push_str("+00");
            }
            TimeField::ZoneMinutes => {
                self.day()?;
                out.push_str("00");
            }
            _ => {}
        }
        Ok(())
    }

    fn day_name(&self) -> Result<&'static str> {
        let weekday = usize::try_from(calendar::weekday(self.day()?)).unwrap_or(0);
        Ok(DAY_NAMES.get(weekday).copied().unwrap_or_default())
    }

    fn roman_month(&self, case: LetterCase, is_short: bool, out: &mut String) {
        let parts = &self.parts;
        if parts.month == 0 && parts.year == 0 {
            return;
        }
        // A year of an interval without months counts as December, backwards as January.
        let position = match parts.month {
            0 if parts.year >= 0 => 11,
            0 => 0,
            month if month < 0 => 12 + month,
            month => month - 1,
        };
        let name = usize::try_from(position).ok().and_then(|position| ROMAN_MONTHS.get(position));
        let width = if is_short { 0 } else { 4 };
        let _ = write!(out, "{:<width$}", case.apply(name.copied().unwrap_or_default()));
    }

    fn day_of_year(&self) -> i64 {
        match self.day_number {
            Some(day) => calendar::day_of_year(day),
            None => (self.parts.year * 12 + self.parts.month) * 30 + self.parts.day,
        }
    }

    fn century(&self) -> i64 {
        let year = self.parts.year;
        match self.day_number {
            None => year / 100,
            Some(_) if year > 0 => (year - 1) / 100 + 1,
            Some(_) => year / 100 - 1,
        }
    }
}
