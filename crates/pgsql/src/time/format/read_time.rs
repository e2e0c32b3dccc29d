//! Reads text by a pattern, for `to_date` and `to_timestamp`, and puts the fields together that it has read.

use datafusion::common::{DataFusionError, Result, exec_err};

use super::pattern::{FieldNode, OrdinalSuffix, PatternNode, TimeField, is_separator};
use super::write_time::ROMAN_MONTHS;
use crate::time::calendar::{
    self, DAY_NAMES, DateTimeParts, JULIAN_EPOCH, MONTH_NAMES, SECOND, date_from_days, days, field_out_of_range,
    iso_year_start,
};

/// Reads `text` by a pattern, as an instant in UTC. Also returns the number of digits to which `to_timestamp` rounds it.
pub(super) fn read_time(text: &str, nodes: &[PatternNode<TimeField>]) -> Result<(i64, u32)> {
    let mut reader =
        TimeReader { nodes, rest: text, before: None, skipped: 0, is_exact: false, read: ParsedFields::default() };
    for position in 0..nodes.len() {
        if reader.rest.is_empty() {
            break;
        }
        reader.node(position)?;
    }
    Ok((reader.read.instant(text)?, reader.read.fraction_digits.unwrap_or(6)))
}

struct TimeReader<'a> {
    nodes: &'a [PatternNode<TimeField>],
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    /// The number of skipped characters that the pattern does not have.
    skipped: i64,
    /// `FX` was met: spaces count.
    is_exact: bool,
    read: ParsedFields,
}

impl TimeReader<'_> {
    fn skip(&mut self) {
        let mut characters = self.rest.chars();
        self.before = characters.next();
        self.rest = characters.as_str();
    }

    fn skip_spaces(&mut self) {
        while self.rest.starts_with(|character: char| character.is_ascii_whitespace()) {
            self.skip();
            self.skipped += 1;
        }
    }

    fn node(&mut self, position: usize) -> Result<()> {
        let node = &self.nodes[position];
        let is_field = matches!(node, PatternNode::Field(_));
        if !self.is_exact && (is_field || position == 0) {
            self.skip_spaces();
        }
        match node {
            PatternNode::Space(_) | PatternNode::Separator(_) if self.is_exact => self.skip(),
            PatternNode::Space(_) | PatternNode::Separator(_) => {
                self.skipped -= 1;
                if self.rest.starts_with(|character: char| character.is_ascii_whitespace() || is_separator(character)) {
                    self.skip();
                    self.skipped += 1;
                }
            }
            PatternNode::Text(_) if !self.is_exact && self.skipped > 0 => self.skipped -= 1,
            PatternNode::Text(_) => self.skip(),
            PatternNode::Field(field) => {
                self.field(field, position)?;
                if !self.is_exact {
                    self.skipped = 0;
                    self.skip_spaces();
                }
            }
        }
        Ok(())
    }

    /// Whether what follows the field at `position` cannot be a digit.
    fn is_next_separator(&self, node: &FieldNode<TimeField>, position: usize) -> bool {
        if node.ordinal != OrdinalSuffix::None {
            return true;
        }
        match self.nodes.get(position + 1) {
            None => true,
            Some(PatternNode::Field(next)) => !is_digit(next.field),
            Some(PatternNode::Text(character)) => !character.is_ascii_digit(),
            Some(_) => true,
        }
    }

    /// Reads an integer of `length` digits, or of all digits if no digits follow in the pattern. Returns it with the number
    /// of bytes that were read.
    fn integer(&mut self, node: &FieldNode<TimeField>, position: usize, length: usize) -> Result<(i64, usize)> {
        let start = self.rest;
        let text = start.trim_start_matches(|character: char| character.is_ascii_whitespace());
        let is_free = node.is_filled || self.is_next_separator(node, position);
        let available = if is_free {
            text
        } else {
            match text.get(..length) {
                Some(part) => part,
                None => return exec_err!("source string too short for a formatting field: \"{start}\""),
            }
        };
        let signs = usize::from(available.starts_with(['-', '+']));
        let digits = available[signs..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return exec_err!("invalid value \"{}\" for a field of a date: value must be an integer", first(text));
        }
        let used = signs + digits;
        if !is_free && used < length {
            return exec_err!("invalid value \"{available}\": the field requires {length} characters");
        }
        let value: i64 = available[..used].parse().map_err(|_| overflow(start))?;
        if i32::try_from(value).is_err() {
            return Err(overflow(start));
        }
        self.before = available[..used].chars().last();
        self.rest = &text[used..];
        self.skip_ordinal(node);
        Ok((value, used))
    }

    /// Reads one of `names` and returns its index.
    fn name(&mut self, names: &[&str]) -> Result<usize> {
        let is_prefix =
            |name: &&str| self.rest.get(..name.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(name));
        let Some(position) = names.iter().position(is_prefix) else {
            return exec_err!(
                "invalid value \"{}\": it matches none of the names that the pattern allows",
                first(self.rest)
            );
        };
        self.before = names[position].chars().last();
        self.rest = &self.rest[names[position].len()..];
        Ok(position)
    }

    fn field(&mut self, node: &FieldNode<TimeField>, position: usize) -> Result<()> {
        let of = |length: usize, reader: &mut Self| reader.integer(node, position, length);
        match node.field {
            TimeField::Exact => self.is_exact = true,
            TimeField::Meridiem { is_dotted, .. } => {
                let names = if is_dotted { ["a.m.", "p.m."] } else { ["am", "pm"] };
                self.read.is_afternoon = Some(self.name(&names)? == 1);
            }
            TimeField::Era { is_dotted, .. } => {
                let names = if is_dotted { ["a.d.", "b.c."] } else { ["ad", "bc"] };
                self.read.is_before_christ = self.name(&names)? == 1;
            }
            TimeField::Hour12 => {
                let hour = of(2, self)?.0;
                self.read.is_12_hours = true;
                self.read.set_hour(hour)?;
            }
            TimeField::Hour24 => {
                let hour = of(2, self)?.0;
                self.read.set_hour(hour)?;
            }
            TimeField::Minute => self.read.minute = of(2, self)?.0,
            TimeField::Second => self.read.second = of(2, self)?.0,
            TimeField::Milliseconds => {
                let (value, length) = of(3, self)?;
                self.read.micros += scaled(value, length, 3) * 1_000;
            }
            TimeField::Fraction(digits) => {
                let (value, length) = of(digits as usize, self)?;
                self.read.micros += scaled(value, length, 6);
                self.read.fraction_digits = Some(digits);
            }
            TimeField::Microseconds => {
                let (value, length) = of(6, self)?;
                self.read.micros += scaled(value, length, 6);
            }
            TimeField::SecondsOfDay(length) => self.read.seconds_of_day = Some(of(length as usize, self)?.0),
            TimeField::ZoneHours => {
                let is_negative = match self.rest.chars().next() {
                    Some(sign @ ('+' | '-' | ' ')) => {
                        self.skip();
                        sign == '-'
                    }
                    // A separator of the pattern may have matched the sign.
                    _ => self.skipped > 0 && self.before == Some('-'),
                };
                let hours = of(2, self)?.0;
                self.read.zone = Some((is_negative, hours, 0));
            }
            TimeField::ZoneMinutes => {
                let minutes = of(2, self)?.0;
                let (is_negative, hours, _) = self.read.zone.unwrap_or_default();
                self.read.zone = Some((is_negative, hours, minutes));
            }
            TimeField::Zone(_) | TimeField::Offset => {
                return exec_err!("the fields TZ and OF are only supported in to_char; write TZH:TZM instead");
            }
            _ => return self.date_field(node, position),
        }
        Ok(())
    }

    fn date_field(&mut self, node: &FieldNode<TimeField>, position: usize) -> Result<()> {
        let of = |length: usize, reader: &mut Self| reader.integer(node, position, length);
        match node.field {
            TimeField::MonthName(_) => {
                let month = self.name(&MONTH_NAMES)?;
                self.read.set_month(month as i64 + 1)?;
            }
            TimeField::ShortMonthName(_) => {
                let month = self.name(&MONTH_NAMES.map(|name| &name[..3]))?;
                self.read.set_month(month as i64 + 1)?;
            }
            TimeField::RomanMonth(_) => {
                // `VIII` precedes `VII`, `VI` and `V`, `IV` precedes `I`, and `XII` precedes `XI` and `X`.
                let mut names = ROMAN_MONTHS;
                names.reverse();
                let position = self.name(&names)?;
                self.read.set_month(12 - position as i64)?;
            }
            TimeField::Month => {
                let month = of(2, self)?.0;
                self.read.set_month(month)?;
            }
            TimeField::DayName(_) => self.read.weekday = self.name(&DAY_NAMES)? as i64 + 1,
            TimeField::ShortDayName(_) => {
                self.read.weekday = self.name(&DAY_NAMES.map(|name| &name[..3]))? as i64 + 1;
            }
            TimeField::Day => self.read.day = Some(of(2, self)?.0),
            TimeField::DayOfYear => self.read.day_of_year = Some(of(3, self)?.0),
            TimeField::IsoDayOfYear => {
                self.read.set_iso(true)?;
                self.read.day_of_year = Some(of(3, self)?.0);
            }
            TimeField::DayOfWeek => self.read.weekday = of(1, self)?.0,
            TimeField::IsoDayOfWeek => {
                self.read.set_iso(true)?;
                self.read.weekday = of(1, self)?.0 % 7 + 1;
            }
            TimeField::WeekOfYear => self.read.week = Some(of(2, self)?.0),
            TimeField::IsoWeek => {
                self.read.set_iso(true)?;
                self.read.week = Some(of(2, self)?.0);
            }
            TimeField::WeekOfMonth => self.read.week_of_month = Some(of(1, self)?.0),
            TimeField::Quarter => {
                of(1, self)?;
            }
            TimeField::Century => self.read.century = Some(of(2, self)?.0),
            TimeField::Julian => self.read.julian = Some(of(1.max(self.digits()), self)?.0),
            TimeField::GroupedYear => {
                let year = self.grouped_year(node)?;
                self.read.set_year(year, 4)?;
            }
            TimeField::Year(digits) | TimeField::IsoYear(digits) => {
                self.read.set_iso(matches!(node.field, TimeField::IsoYear(_)))?;
                let (value, length) = of(digits as usize, self)?;
                let year = if digits < 4 && length < 4 { complete_year(value) } else { value };
                self.read.set_year(year, digits)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a year with a comma before its last three digits.
    fn grouped_year(&mut self, node: &FieldNode<TimeField>) -> Result<i64> {
        let text = self.rest;
        let parts = text.trim_start().split_once(',').and_then(|(thousands, rest)| {
            let length = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let (last, behind) = rest.split_at(length);
            Some((thousands.parse::<i32>().ok()?, last.parse::<i64>().ok()?, last, behind))
        });
        let Some((thousands, year, last, behind)) = parts else {
            return exec_err!("invalid value \"{}\" for Y,YYY; write a comma, as in 1,582", first(text));
        };
        self.before = last.chars().last();
        self.rest = behind;
        self.skip_ordinal(node);
        Ok(i64::from(thousands) * 1_000 + year)
    }

    fn skip_ordinal(&mut self, node: &FieldNode<TimeField>) {
        if node.ordinal != OrdinalSuffix::None {
            self.skip();
            self.skip();
        }
    }

    /// Returns the number of digits that follow.
    fn digits(&self) -> usize {
        self.rest.trim_start().bytes().take_while(u8::is_ascii_digit).count()
    }
}

fn first(text: &str) -> String {
    text.chars().take(10).collect()
}

fn overflow(text: &str) -> DataFusionError {
    DataFusionError::Execution(format!("a value of \"{text}\" is out of range"))
}

/// Converts a fraction of `length` digits to one of `digits` digits.
fn scaled(value: i64, length: usize, digits: usize) -> i64 {
    value * 10_i64.pow(u32::try_from(digits.saturating_sub(length)).unwrap_or(0))
}

/// Returns the year next to 2020 that ends with these digits.
fn complete_year(year: i64) -> i64 {
    match year {
        0..70 => year + 2_000,
        70..100 => year + 1_900,
        100..520 => year + 2_000,
        520..1_000 => year + 1_000,
        _ => year,
    }
}

fn is_digit(field: TimeField) -> bool {
    !matches!(
        field,
        TimeField::Meridiem { .. }
            | TimeField::Era { .. }
            | TimeField::DayName(_)
            | TimeField::ShortDayName(_)
            | TimeField::MonthName(_)
            | TimeField::ShortMonthName(_)
            | TimeField::RomanMonth(_)
            | TimeField::Zone(_)
            | TimeField::Offset
            | TimeField::ZoneHours
            | TimeField::Exact
    )
}

/// The fields that were read. A missing month or day is the first.
#[derive(Default)]
struct ParsedFields {
    year: Option<i64>,
    year_digits: u32,
    /// Whether years and weeks are those of ISO.
    is_iso: Option<bool>,
    month: Option<i64>,
    hour: Option<i64>,
    is_before_christ: bool,
    day: Option<i64>,
    day_of_year: Option<i64>,
    /// From 1 for Sunday; 0 where it was not read.
    weekday: i64,
    week: Option<i64>,
    week_of_month: Option<i64>,
    century: Option<i64>,
    julian: Option<i64>,
    minute: i64,
    second: i64,
    micros: i64,
    /// The digits that `FF1` to `FF6` have.
    fraction_digits: Option<u32>,
    seconds_of_day: Option<i64>,
    is_12_hours: bool,
    is_afternoon: Option<bool>,
    /// Whether it is west of UTC, hours and minutes.
    zone: Option<(bool, i64, i64)>,
}

fn set_once(field: &mut Option<i64>, value: i64, name: &str) -> Result<()> {
    match field.replace(value) {
        Some(before) if before != value => exec_err!("conflicting values for the {name}: {before} and {value}"),
        _ => Ok(()),
    }
}

impl ParsedFields {
    fn set_hour(&mut self, hour: i64) -> Result<()> {
        set_once(&mut self.hour, hour, "hour")
    }

    fn set_month(&mut self, month: i64) -> Result<()> {
        set_once(&mut self.month, month, "month")
    }

    fn set_year(&mut self, year: i64, digits: u32) -> Result<()> {
        self.year_digits = digits;
        set_once(&mut self.year, year, "year")
    }

    /// Records whether a year, a week or a day belongs to the ISO calendar. The two calendars cannot be mixed.
    fn set_iso(&mut self, is_iso: bool) -> Result<()> {
        if self.is_iso.replace(is_iso).is_some_and(|before| before != is_iso) {
            return exec_err!("invalid combination of date conventions: do not mix Gregorian and ISO week patterns");
        }
        Ok(())
    }

    /// Returns the instant. The default zone is UTC.
    fn instant(&self, text: &str) -> Result<i64> {
        let time = self.time(text)?;
        let local = calendar::timestamp(self.day_since_1970(text)?, time)?;
        let Some((is_west, hours, minutes)) = self.zone else { return Ok(local) };
        if hours > 15 || minutes > 59 {
            return Err(field_out_of_range(text));
        }
        let offset = (hours * 3_600 + minutes * 60) * SECOND;
        calendar::checked_timestamp(if is_west { local + offset } else { local - offset })
    }

    fn time(&self, text: &str) -> Result<i64> {
        let seconds = self.seconds_of_day.unwrap_or(0);
        let pick = |read: i64, default: i64| if read != 0 { read } else { default };
        let mut hour = pick(self.hour.unwrap_or(0), seconds / 3_600);
        let (minute, second) = (pick(self.minute, seconds / 60 % 60), pick(self.second, seconds % 60));
        if self.is_12_hours || self.is_afternoon.is_some() {
            if !(1..=12).contains(&hour) {
                return exec_err!("hour \"{hour}\" is invalid for the 12-hour clock");
            }
            hour = hour % 12 + if self.is_afternoon == Some(true) { 12 } else { 0 };
        }
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err(field_out_of_range(text));
        }
        if !(0..SECOND).contains(&self.micros) {
            return Err(field_out_of_range(text));
        }
        Ok(DateTimeParts { hour, minute, second, micros: self.micros, ..DateTimeParts::default() }.time())
    }

    /// Returns the year; 0 if none was read.
    fn calendar_year(&self) -> i64 {
        match (self.year.filter(|year| *year != 0), self.century.filter(|century| *century != 0)) {
            (Some(year), Some(century)) if self.year_digits <= 2 => {
                let century = if self.is_before_christ { -century } else { century };
                let short = year % 100;
                match (century >= 0, short) {
                    (true, 0) => century * 100,
                    (true, _) => (century - 1) * 100 + short,
                    (false, 0) => (century + 1) * 100 - 99 + short,
                    (false, _) => (century + 1) * 100 - short + 1,
                }
            }
            (Some(year), _) => {
                let year = if self.is_before_christ { -year } else { year };
                if year < 0 { year + 1 } else { year }
            }
            (None, Some(century)) => {
                let century = if self.is_before_christ { -century } else { century };
                if century >= 0 { (century - 1) * 100 + 1 } else { century * 100 + 1 }
            }
            (None, None) => 0,
        }
    }

    fn day_since_1970(&self, text: &str) -> Result<i64> {
        let mut year = self.calendar_year();
        let (mut month, mut day) = (1, 1);
        if let Some(julian) = self.julian.filter(|julian| *julian != 0) {
            (year, month, day) = date_from_days(julian - JULIAN_EPOCH);
        }
        let is_iso = self.is_iso == Some(true);
        let mut day_of_year = self.day_of_year.filter(|day| *day != 0);
        if let Some(week) = self.week.filter(|week| *week != 0) {
            if is_iso {
                let monday = iso_year_start(year) + (week - 1) * 7;
                let weekday = if self.weekday == 0 { 0 } else { (self.weekday + 5) % 7 };
                (year, month, day) = date_from_days(monday + weekday);
            } else {
                day_of_year = Some((week - 1) * 7 + 1);
            }
        }
        if let Some(week) = self.week_of_month.filter(|week| *week != 0) {
            day = (week - 1) * 7 + 1;
        }
        if let Some(read) = self.day.filter(|day| *day != 0) {
            day = read;
        }
        if let Some(read) = self.month.filter(|month| *month != 0) {
            month = read;
        }
        if let Some(day_of_year) = day_of_year
            && (month <= 1 || day <= 1)
        {
            if year == 0 && !self.is_before_christ {
                return exec_err!("cannot calculate day of year without year information");
            }
            if is_iso {
                (year, month, day) = date_from_days(iso_year_start(year) + day_of_year - 1);
            } else {
                let length = if calendar::is_date(year, 2, 29) { 366 } else { 365 };
                if !(1..=length).contains(&day_of_year) {
                    return Err(field_out_of_range(text));
                }
                let (_, of_month, of_day) = date_from_days(days(year, 1, 1) + day_of_year - 1);
                month = if month <= 1 { of_month } else { month };
                day = if day <= 1 { of_day } else { day };
            }
        }
        if year.abs() > 6_000_000 || !calendar::is_date(year, month, day) {
            return Err(field_out_of_range(text));
        }
        Ok(days(year, month, day))
    }
}
