//! Text as an interval: verbose, `1-2`, `1 02:03:04`, ISO 8601, and with the fields that SQL restricts it to.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::{DataFusionError, Result};

use super::interval_of;
use super::moment::{Fault, span_of_clock};
use super::tokens::{Token, tokens};
use crate::time::calendar::{DAY, HOUR, MINUTE, SECOND, field_out_of_range, invalid};

/// The fields that an interval may have, as in `INTERVAL '1-2' YEAR TO MONTH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

/// What an interval is restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fields {
    pub(crate) first: Option<Unit>,
    pub(crate) last: Option<Unit>,
    /// Digits of the seconds.
    pub(crate) digits: Option<u32>,
}

/// The interval that `text` means.
pub(crate) fn interval(text: &str) -> Result<IntervalMonthDayNano> {
    restricted_interval(text, Fields::default())
}

/// The interval that `text` means, where a number without a unit counts the least of `fields`, and what is less is cut
/// off.
pub(crate) fn restricted_interval(text: &str, fields: Fields) -> Result<IntervalMonthDayNano> {
    let trimmed = text.trim();
    let sum = match trimmed.strip_prefix('P') {
        Some(rest) => iso(rest),
        None => verbose(trimmed, fields),
    };
    let sum = sum.map_err(|fault| fault_of(&fault, text))?;
    let mut micros = sum.micros;
    let (mut months, mut days) = (sum.months, sum.days);
    match fields.last.or(fields.first) {
        Some(Unit::Year) => (months, days, micros) = (months / 12 * 12, 0, 0),
        Some(Unit::Month) => (days, micros) = (0, 0),
        Some(Unit::Day) => micros = 0,
        Some(Unit::Hour) => micros = micros / HOUR * HOUR,
        Some(Unit::Minute) => micros = micros / MINUTE * MINUTE,
        Some(Unit::Second) | None => {}
    }
    if let Some(digits) = fields.digits {
        micros = super::rounded(micros, digits)?;
    }
    interval_of(months, days, micros).map_err(|_| field_out_of_range(text))
}

fn fault_of(fault: &Fault, text: &str) -> DataFusionError {
    match fault {
        Fault::Syntax => invalid("interval", text),
        Fault::Range => DataFusionError::Execution(format!("interval field value out of range: \"{text}\"")),
    }
}

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Months(i64),
    Days(i64),
    Micros(i64),
}

const YEAR: Measure = Measure::Months(12);

fn measure(word: &str) -> Option<Measure> {
    Some(match word {
        "millennium" | "millennia" | "mil" | "mils" => Measure::Months(12_000),
        "century" | "centuries" | "cent" | "c" => Measure::Months(1_200),
        "decade" | "decades" | "dec" | "decs" => Measure::Months(120),
        "year" | "years" | "y" | "yr" | "yrs" => YEAR,
        "month" | "months" | "mon" | "mons" => Measure::Months(1),
        "week" | "weeks" | "w" => Measure::Days(7),
        "day" | "days" | "d" => Measure::Days(1),
        "hour" | "hours" | "h" | "hr" | "hrs" => Measure::Micros(HOUR),
        "minute" | "minutes" | "min" | "mins" | "m" => Measure::Micros(MINUTE),
        "second" | "seconds" | "sec" | "secs" | "s" => Measure::Micros(SECOND),
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" | "msecond" | "mseconds" => Measure::Micros(1_000),
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Measure::Micros(1),
        _ => return None,
    })
}

fn default_measure(fields: Fields) -> Measure {
    match fields.last.or(fields.first) {
        Some(Unit::Year) => YEAR,
        Some(Unit::Month) => Measure::Months(1),
        Some(Unit::Day) => Measure::Days(1),
        Some(Unit::Hour) => Measure::Micros(HOUR),
        Some(Unit::Minute) => Measure::Micros(MINUTE),
        Some(Unit::Second) | None => Measure::Micros(SECOND),
    }
}

/// Months, days and microseconds so far.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

impl Sum {
    /// Adds a number, whose fraction counts in smaller units.
    fn add(&mut self, whole: i64, fraction: f64, measure: Measure) -> Result<(), Fault> {
        let times = |unit: i64| whole.checked_mul(unit).ok_or(Fault::Range);
        match measure {
            Measure::Months(unit) => {
                add(&mut self.months, times(unit)?)?;
                if unit >= 12 {
                    add(&mut self.months, (fraction * unit as f64).round_ties_even() as i64)?;
                } else {
                    self.add_days(fraction * 30.0)?;
                }
            }
            Measure::Days(unit) => {
                add(&mut self.days, times(unit)?)?;
                self.add_days(fraction * unit as f64)?;
            }
            Measure::Micros(unit) => {
                add(&mut self.micros, times(unit)?)?;
                add(&mut self.micros, (fraction * unit as f64).round_ties_even() as i64)?;
            }
        }
        Ok(())
    }

    fn add_days(&mut self, days: f64) -> Result<(), Fault> {
        let whole = days.trunc();
        add(&mut self.days, whole as i64)?;
        add(&mut self.micros, ((days - whole) * DAY as f64).round_ties_even() as i64)
    }

    fn add_clock(&mut self, text: &str, is_negative: bool, fields: Fields) -> Result<(), Fault> {
        let is_minutes = (fields.first, fields.last) == (Some(Unit::Minute), Some(Unit::Second));
        let clock = span_of_clock(text, is_minutes)?;
        if clock.minutes > 59 || clock.seconds > 60 || clock.hours > i64::from(i32::MAX) {
            return Err(Fault::Range);
        }
        add(&mut self.micros, if is_negative { -clock.total() } else { clock.total() })
    }

    fn negated(self) -> Result<Self, Fault> {
        let negated = |value: i64| value.checked_neg().ok_or(Fault::Range);
        Ok(Self { months: negated(self.months)?, days: negated(self.days)?, micros: negated(self.micros)? })
    }
}

fn add(sum: &mut i64, value: i64) -> Result<(), Fault> {
    *sum = sum.checked_add(value).ok_or(Fault::Range)?;
    Ok(())
}

/// A number with its sign, its whole part and its fraction, which has the sign too.
fn number(text: &str) -> Result<(i64, f64), Fault> {
    let is_negative = text.starts_with('-');
    let digits = text.trim_start_matches(['+', '-']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(Fault::Syntax);
    }
    let value: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Fault::Range)? };
    let part: f64 =
        if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().map_err(|_| Fault::Syntax)? };
    Ok(if is_negative { (-value, -part) } else { (value, part) })
}

/// The forms of words and clocks, read from the end: a unit stands behind its number.
fn verbose(text: &str, fields: Fields) -> Result<Sum, Fault> {
    let tokens = tokens(text).filter(|tokens| !tokens.is_empty()).ok_or(Fault::Syntax)?;
    let mut sum = Sum::default();
    let (mut unit, mut is_ago, mut awaits_number) = (None, false, false);
    let mut seen = Vec::new();
    for (position, token) in tokens.iter().enumerate().rev() {
        match token {
            Token::Word(word) if word == "ago" && position + 1 == tokens.len() => is_ago = true,
            Token::Word(_) if awaits_number => return Err(Fault::Syntax),
            Token::Word(word) => {
                unit = Some(measure(word).ok_or(Fault::Syntax)?);
                awaits_number = true;
            }
            Token::Time(text) if !awaits_number => {
                sum.add_clock(text, false, fields)?;
                unit = Some(Measure::Days(1));
            }
            Token::Signed(text) if text.contains(':') && !awaits_number => {
                sum.add_clock(&text[1..], text.starts_with('-'), fields)?;
                unit = Some(Measure::Days(1));
            }
            Token::Number(text) | Token::Signed(text) | Token::Date(text) => {
                let measure = unit.unwrap_or_else(|| default_measure(fields));
                let digits = text.trim_start_matches(['+', '-']);
                if let Some((years, months)) = digits.split_once('-') {
                    add_years_and_months(&mut sum, text.starts_with('-'), years, months)?;
                    unit = Some(Measure::Months(1));
                    seen.push(Measure::Months(1));
                } else {
                    if seen.contains(&measure) {
                        return Err(Fault::Syntax);
                    }
                    seen.push(measure);
                    let (whole, fraction) = number(text)?;
                    sum.add(whole, fraction, measure)?;
                    unit = Some(if matches!(measure, Measure::Micros(HOUR)) { Measure::Days(1) } else { measure });
                }
                awaits_number = false;
            }
            Token::Time(_) => return Err(Fault::Syntax),
        }
    }
    if awaits_number || (is_ago && tokens.len() == 1) {
        return Err(Fault::Syntax);
    }
    if is_ago { sum.negated() } else { Ok(sum) }
}

fn add_years_and_months(sum: &mut Sum, is_negative: bool, years: &str, months: &str) -> Result<(), Fault> {
    let ((years, _), (months, _)) = (number(years)?, number(months)?);
    if months >= 12 {
        return Err(Fault::Range);
    }
    let total = years.checked_mul(12).and_then(|years| years.checked_add(months)).ok_or(Fault::Range)?;
    add(&mut sum.months, if is_negative { -total } else { total })
}

/// What follows the `P`: designators, or `Y-M-DTh:m:s`.
fn iso(text: &str) -> Result<Sum, Fault> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return Err(Fault::Syntax);
    }
    if !date.is_empty() {
        if date.ends_with(|letter: char| letter.is_ascii_digit()) {
            for (number_text, unit) in date.splitn(3, '-').zip([YEAR, Measure::Months(1), Measure::Days(1)]) {
                let (whole, fraction) = number(number_text)?;
                sum.add(whole, fraction, unit)?;
            }
        } else {
            let unit = |letter: char| match letter {
                'Y' => Some(YEAR),
                'M' => Some(Measure::Months(1)),
                'W' => Some(Measure::Days(7)),
                'D' => Some(Measure::Days(1)),
                _ => None,
            };
            designated(&mut sum, date, unit)?;
        }
    }
    if let Some(time) = time {
        if time.contains(':') {
            let is_negative = time.starts_with('-');
            sum.add_clock(time.trim_start_matches(['+', '-']), is_negative, Fields::default())?;
        } else {
            let unit = |letter: char| match letter {
                'H' => Some(Measure::Micros(HOUR)),
                'M' => Some(Measure::Micros(MINUTE)),
                'S' => Some(Measure::Micros(SECOND)),
                _ => None,
            };
            designated(&mut sum, time, unit)?;
        }
    }
    Ok(sum)
}

fn designated(sum: &mut Sum, mut text: &str, unit: impl Fn(char) -> Option<Measure>) -> Result<(), Fault> {
    if text.is_empty() {
        return Err(Fault::Syntax);
    }
    while !text.is_empty() {
        let end = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or(Fault::Syntax)?;
        let (whole, fraction) = number(&text[..end])?;
        let letter = text[end..].chars().next().ok_or(Fault::Syntax)?;
        sum.add(whole, fraction, unit(letter).ok_or(Fault::Syntax)?)?;
        text = &text[end + 1..];
    }
    Ok(())
}
