//! Text as an interval: verbose, `1-2`, `1 02:03:04`, ISO 8601, and with the fields that SQL restricts it to.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};

use super::build_interval;
use super::moment::{ParseFault, TimeToken, parse_clock, tokenize};
use crate::time::calendar::{DAY, HOUR, MINUTE, SECOND, field_out_of_range, invalid_input_error};

/// The fields that an interval may have, as in `INTERVAL '1-2' YEAR TO MONTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RestrictionUnit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// The fields and digits of an interval type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IntervalRestriction {
    pub(crate) first: Option<RestrictionUnit>,
    pub(crate) last: Option<RestrictionUnit>,
    /// Digits of the seconds.
    pub(crate) digits: Option<u32>,
}

/// Parses an interval.
pub(crate) fn parse_interval(text: &str) -> Result<IntervalMonthDayNano> {
    parse_restricted_interval(text, IntervalRestriction::default())
}

/// Returns the interval that `text` means, where a number without a unit counts the least of `fields`, and what is less
/// is cut off.
pub(crate) fn parse_restricted_interval(text: &str, fields: IntervalRestriction) -> Result<IntervalMonthDayNano> {
    let trimmed = text.trim();
    let sum = match trimmed.strip_prefix('P') {
        Some(rest) => parse_iso(rest),
        None => parse_verbose(trimmed, fields),
    };
    let sum = sum.map_err(|fault| fault_to_error(&fault, text))?;
    let mut micros = sum.micros;
    let (mut months, mut days) = (sum.months, sum.days);
    match fields.last.or(fields.first) {
        Some(RestrictionUnit::Year) => (months, days, micros) = (months / 12 * 12, 0, 0),
        Some(RestrictionUnit::Month) => (days, micros) = (0, 0),
        Some(RestrictionUnit::Day) => micros = 0,
        Some(RestrictionUnit::Hour) => micros = micros / HOUR * HOUR,
        Some(RestrictionUnit::Minute) => micros = micros / MINUTE * MINUTE,
        Some(RestrictionUnit::Second) | None => {}
    }
    if let Some(digits) = fields.digits {
        micros = super::round_to_digits(micros, digits)?;
    }
    build_interval(months, days, micros).map_err(|_| field_out_of_range(text))
}

fn fault_to_error(fault: &ParseFault, text: &str) -> DataFusionError {
    match fault {
        ParseFault::Syntax => invalid_input_error("interval", text),
        ParseFault::Range => DataFusionError::Execution(format!("interval field value out of range: \"{text}\"")),
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnitLength {
    Months(i64),
    Days(i64),
    Micros(i64),
}

const YEAR: UnitLength = UnitLength::Months(12);

fn measure(word: &str) -> Option<UnitLength> {
    Some(match word {
        "millennium" | "millennia" | "mil" | "mils" => UnitLength::Months(12_000),
        "century" | "centuries" | "cent" | "c" => UnitLength::Months(1_200),
        "decade" | "decades" | "dec" | "decs" => UnitLength::Months(120),
        "year" | "years" | "y" | "yr" | "yrs" => YEAR,
        "month" | "months" | "mon" | "mons" => UnitLength::Months(1),
        "week" | "weeks" | "w" => UnitLength::Days(7),
        "day" | "days" | "d" => UnitLength::Days(1),
        "hour" | "hours" | "h" | "hr" | "hrs" => UnitLength::Micros(HOUR),
        "minute" | "minutes" | "min" | "mins" | "m" => UnitLength::Micros(MINUTE),
        "second" | "seconds" | "sec" | "secs" | "s" => UnitLength::Micros(SECOND),
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" | "msecond" | "mseconds" => UnitLength::Micros(1_000),
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => UnitLength::Micros(1),
        _ => return None,
    })
}

fn default_measure(fields: IntervalRestriction) -> UnitLength {
    match fields.last.or(fields.first) {
        Some(RestrictionUnit::Year) => YEAR,
        Some(RestrictionUnit::Month) => UnitLength::Months(1),
        Some(RestrictionUnit::Day) => UnitLength::Days(1),
        Some(RestrictionUnit::Hour) => UnitLength::Micros(HOUR),
        Some(RestrictionUnit::Minute) => UnitLength::Micros(MINUTE),
        Some(RestrictionUnit::Second) | None => UnitLength::Micros(SECOND),
    }
}

/// Months, days and microseconds so far.
#[derive(Debug, Clone, Copy, Default)]
struct IntervalSum {
    months: i64,
    days: i64,
    micros: i64,
}

impl IntervalSum {
    /// Adds a number, whose fraction counts in smaller units.
    fn add(&mut self, whole: i64, fraction: f64, measure: UnitLength) -> Result<(), ParseFault> {
        let times = |unit: i64| whole.checked_mul(unit).ok_or(ParseFault::Range);
        match measure {
            UnitLength::Months(unit) => {
                add(&mut self.months, times(unit)?)?;
                if unit >= 12 {
                    add(&mut self.months, (fraction * unit as f64).round_ties_even() as i64)?;
                } else {
                    self.add_days(fraction * 30.0)?;
                }
            }
            UnitLength::Days(unit) => {
                add(&mut self.days, times(unit)?)?;
                self.add_days(fraction * unit as f64)?;
            }
            UnitLength::Micros(unit) => {
                add(&mut self.micros, times(unit)?)?;
                add(&mut self.micros, (fraction * unit as f64).round_ties_even() as i64)?;
            }
        }
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> Result<(), ParseFault> {
        let whole = days.trunc();
        add(&mut self.days, whole as i64)?;
        add(&mut self.micros, ((days - whole) * DAY as f64).round_ties_even() as i64)
    }

    fn add_clock(&mut self, text: &str, is_negative: bool, fields: IntervalRestriction) -> Result<(), ParseFault> {
        let is_minutes = (fields.first, fields.last) == (Some(RestrictionUnit::Minute), Some(RestrictionUnit::Second));
        let clock = parse_clock(text, is_minutes)?;
        if clock.minutes > 59 || clock.seconds > 60 || clock.hours > i64::from(i32::MAX) {
            return Err(ParseFault::Range);
        }
        add(&mut self.micros, if is_negative { -clock.total() } else { clock.total() })
    }

    fn negated(self) -> Result<Self, ParseFault> {
        let negated = |value: i64| value.checked_neg().ok_or(ParseFault::Range);
        Ok(Self { months: negated(self.months)?, days: negated(self.days)?, micros: negated(self.micros)? })
    }
}

fn add(sum: &mut i64, value: i64) -> Result<(), ParseFault> {
    *sum = sum.checked_add(value).ok_or(ParseFault::Range)?;
    Ok(())
}

/// Returns a number with its sign, its whole part and its fraction, which has the sign too.
fn parse_number(text: &str) -> Result<(i64, f64), ParseFault> {
    let is_negative = text.starts_with('-');
    let digits = text.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(ParseFault::Syntax);
    }
    let value: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| ParseFault::Range)? };
    let part: f64 =
        if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().map_err(|_| ParseFault::Syntax)? };
    Ok(if is_negative { (-value, -part) } else { (value, part) })
}

/// Parses words and times from the end, because a unit follows its number.
fn parse_verbose(text: &str, fields: IntervalRestriction) -> Result<IntervalSum, ParseFault> {
    let tokens = tokenize(text).filter(|tokens| !tokens.is_empty()).ok_or(ParseFault::Syntax)?;
    let mut sum = IntervalSum::default();
    let (mut unit, mut is_ago, mut awaits_number) = (None, false, false);
    let mut seen = Vec::new();
    for (position, token) in tokens.iter().enumerate().rev() {
        match token {
            TimeToken::Word(word) if word == "ago" && position + 1 == tokens.len() => is_ago = true,
            TimeToken::Word(_) if awaits_number => return Err(ParseFault::Syntax),
            TimeToken::Word(word) => {
                unit = Some(measure(word).ok_or(ParseFault::Syntax)?);
                awaits_number = true;
            }
            TimeToken::Time(text) if !awaits_number => {
                sum.add_clock(text, false, fields)?;
                unit = Some(UnitLength::Days(1));
            }
            TimeToken::Signed(text) if text.contains(':') && !awaits_number => {
                sum.add_clock(&text[1..], text.starts_with('-'), fields)?;
                unit = Some(UnitLength::Days(1));
            }
            TimeToken::Number(text) | TimeToken::Signed(text) | TimeToken::Date(text) => {
                let measure = unit.unwrap_or_else(|| default_measure(fields));
                let digits = text.trim_start_matches(['+', '-']);
                if let Some((years, months)) = digits.split_once('-') {
                    add_years_and_months(&mut sum, text.starts_with('-'), years, months)?;
                    unit = Some(UnitLength::Months(1));
                    seen.push(UnitLength::Months(1));
                } else {
                    if seen.contains(&measure) {
                        return Err(ParseFault::Syntax);
                    }
                    seen.push(measure);
                    let (whole, fraction) = parse_number(text)?;
                    sum.add(whole, fraction, measure)?;
                    unit =
                        Some(if matches!(measure, UnitLength::Micros(HOUR)) { UnitLength::Days(1) } else { measure });
                }
                awaits_number = false;
            }
            TimeToken::Time(_) => return Err(ParseFault::Syntax),
        }
    }
    if awaits_number || (is_ago && tokens.len() == 1) {
        return Err(ParseFault::Syntax);
    }
    if is_ago { sum.negated() } else { Ok(sum) }
}

fn add_years_and_months(sum: &mut IntervalSum, is_negative: bool, years: &str, months: &str) -> Result<(), ParseFault> {
    let ((years, _), (months, _)) = (parse_number(years)?, parse_number(months)?);
    if months >= 12 {
        return Err(ParseFault::Range);
    }
    let total = years.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(ParseFault::Range)?;
    add(&mut sum.months, if is_negative { -total } else { total })
}

/// Parses the part after `P`: designators, or `Y-M-DTh:m:s`.
fn parse_iso(text: &str) -> Result<IntervalSum, ParseFault> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = IntervalSum::default();
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return Err(ParseFault::Syntax);
    }
    if !date.is_empty() {
        if date.ends_with(|character: char| character.is_ascii_digit()) {
            for (number_text, unit) in date.splitn(3, '-').zip([YEAR, UnitLength::Months(1), UnitLength::Days(1)]) {
                let (whole, fraction) = parse_number(number_text)?;
                sum.add(whole, fraction, unit)?;
            }
        } else {
            let unit = |character: char| match character {
                'Y' => Some(YEAR),
                'M' => Some(UnitLength::Months(1)),
                'W' => Some(UnitLength::Days(7)),
                'D' => Some(UnitLength::Days(1)),
                _ => None,
            };
            designated(&mut sum, date, unit)?;
        }
    }
    if let Some(time) = time {
        if time.contains(':') {
            let is_negative = time.starts_with('-');
            sum.add_clock(time.trim_start_matches(['+', '-']), is_negative, IntervalRestriction::default())?;
        } else {
            let unit = |character: char| match character {
                'H' => Some(UnitLength::Micros(HOUR)),
                'M' => Some(UnitLength::Micros(MINUTE)),
                'S' => Some(UnitLength::Micros(SECOND)),
                _ => None,
            };
            designated(&mut sum, time, unit)?;
        }
    }
    Ok(sum)
}

fn designated(
    sum: &mut IntervalSum,
    mut text: &str,
    unit: impl Fn(char) -> Option<UnitLength>,
) -> Result<(), ParseFault> {
    if text.is_empty() {
        return Err(ParseFault::Syntax);
    }
    while !text.is_empty() {
        let end = text.find(|character: char| character.is_ascii_alphabetic()).ok_or(ParseFault::Syntax)?;
        let (whole, fraction) = parse_number(&text[..end])?;
        let character = text[end..].chars().next().ok_or(ParseFault::Syntax)?;
        sum.add(whole, fraction, unit(character).ok_or(ParseFault::Syntax)?)?;
        text = &text[end + 1..];
    }
    Ok(())
}
