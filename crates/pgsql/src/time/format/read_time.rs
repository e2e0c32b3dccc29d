//! Reads text by a pattern, for `to_date` and `to_timestamp`.

use datafusion::common::{DataFusionError, Result, exec_err};

use super::pattern::{FieldNode, OrdinalSuffix, PatternNode, TimeField, is_separator};
use super::read_fields::ParsedFields;
use super::write_time::ROMAN_MONTHS;
use crate::time::calendar::{DAY_NAMES, MONTH_NAMES};

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
