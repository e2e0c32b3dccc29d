//! Parses text as a day, a time of day and a zone, each of which may be missing, after splitting it into words, numbers and
//! signs.

use datafusion::common::{DataFusionError, Result};

use crate::time::calendar::{
    self, HOUR, JULIAN_EPOCH, MINUTE, MONTH_NAMES, SECOND, field_out_of_range, invalid_input_error,
};
use crate::time::zone::{TimeZoneSpec, parse_offset};

/// The value of a text.
pub(super) enum ParsedInput {
    /// 1970-01-01 00:00 UTC.
    Epoch,
    Moment(ParsedMoment),
}

/// The parts of a moment that a text has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ParsedMoment {
    pub(super) day: Option<i64>,
    /// Up to 24:00:00, and the leap second.
    pub(super) time: Option<i64>,
    pub(super) zone: Option<TimeZoneSpec>,
}

/// Words without a value.
const IGNORED_WORDS: [&str; 20] = [
    "sun",
    "mon",
    "tue",
    "tues",
    "wed",
    "weds",
    "thu",
    "thur",
    "thurs",
    "fri",
    "sat",
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "on",
    "at",
];

/// Why a text cannot be read.
pub(super) enum ParseFault {
    Syntax,
    Range,
}

/// Reads `text` as a value of the type `kind`.
pub(super) fn decode(kind: &str, text: &str) -> Result<ParsedInput> {
    if text.trim().eq_ignore_ascii_case("epoch") {
        return Ok(ParsedInput::Epoch);
    }
    let decoded = match tokenize(text) {
        Some(tokens) => decode_tokens(&tokens),
        None => Err(ParseFault::Syntax),
    };
    decoded.map(ParsedInput::Moment).map_err(|fault| fault_to_error(&fault, kind, text))
}

fn fault_to_error(fault: &ParseFault, kind: &str, text: &str) -> DataFusionError {
    match fault {
        ParseFault::Syntax => invalid_input_error(kind, text),
        ParseFault::Range => field_out_of_range(text),
    }
}

/// The fields that were read.
#[derive(Default)]
struct MomentFields {
    year: Option<i64>,
    /// Whether the year has two digits, so that the century is to be guessed.
    is_short_year: bool,
    month: Option<i64>,
    has_named_month: bool,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    time: Option<i64>,
    zone: Option<TimeZoneSpec>,
    is_afternoon: Option<bool>,
    is_before_christ: bool,
    /// `T` was read: a number that follows is a time.
    expects_time: bool,
    expects_julian: bool,
}

fn decode_tokens(tokens: &[TimeToken]) -> Result<ParsedMoment, ParseFault> {
    let mut fields = MomentFields::default();
    if tokens.is_empty() {
        return Err(ParseFault::Syntax);
    }
    fields.has_named_month =
        tokens.iter().any(|token| matches!(token, TimeToken::Word(word) if find_month(word).is_some()));
    for token in tokens {
        match token {
            TimeToken::Time(text) => fields.set_time(parse_day_time(text)?)?,
            TimeToken::Date(text) => fields.date(text)?,
            TimeToken::Number(text) => fields.number(text)?,
            TimeToken::Signed(text) => fields.set_zone(offset_zone(text)?)?,
            TimeToken::Word(word) => fields.word(word)?,
        }
    }
    fields.finish()
}

impl MomentFields {
    fn set_time(&mut self, time: i64) -> Result<(), ParseFault> {
        self.expects_time = false;
        if self.time.replace(time).is_some() { Err(ParseFault::Syntax) } else { Ok(()) }
    }

    fn set_zone(&mut self, zone: TimeZoneSpec) -> Result<(), ParseFault> {
        if self.zone.replace(zone).is_some() { Err(ParseFault::Syntax) } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), ParseFault> {
        if let Some(month) = find_month(word) {
            return if self.month.replace(month).is_some() { Err(ParseFault::Syntax) } else { Ok(()) };
        }
        match word {
            "am" | "pm" if self.is_afternoon.is_none() => self.is_afternoon = Some(word == "pm"),
            "ad" => {}
            "bc" => self.is_before_christ = true,
            "t" if self.has_day() => self.expects_time = true,
            "j" | "jd" | "julian" if !self.has_day() => self.expects_julian = true,
            "allballs" => {
                self.set_time(0)?;
                self.set_zone(TimeZoneSpec::Fixed(0))?;
            }
            _ if IGNORED_WORDS.contains(&word) => {}
            _ => {
                let zone =
                    TimeZoneSpec::abbreviation(word).or_else(|| TimeZoneSpec::named(word)).ok_or(ParseFault::Syntax)?;
                self.set_zone(zone)?;
            }
        }
        Ok(())
    }

    fn has_day(&self) -> bool {
        let is_whole = self.year.is_some() && self.month.is_some() && self.day.is_some();
        is_whole || self.julian.is_some() || self.day_of_year.is_some()
    }

    /// Reads a date whose parts are separated by delimiters.
    fn date(&mut self, text: &str) -> Result<(), ParseFault> {
        if self.has_day() {
            return Err(ParseFault::Syntax);
        }
        let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
        for part in parts.iter().filter(|part| part.starts_with(|character: char| character.is_ascii_alphabetic())) {
            self.has_named_month = true;
            self.word(part)?;
        }
        for part in parts.iter().filter(|part| !part.starts_with(|character: char| character.is_ascii_alphabetic())) {
            self.part_of_date(part)?;
        }
        if parts.len() > 3 { Err(ParseFault::Syntax) } else { Ok(()) }
    }

    fn number(&mut self, text: &str) -> Result<(), ParseFault> {
        if self.expects_julian {
            self.expects_julian = false;
            self.julian = Some(integer(text)? - JULIAN_EPOCH);
            return Ok(());
        }
        if let Some((year, day)) = text.split_once('.')
            && !self.has_day()
            && day.len() == 3
            && year.len() == 4
        {
            (self.year, self.day_of_year) = (Some(integer(year)?), Some(integer(day)?));
            return Ok(());
        }
        if self.has_day() {
            return self.set_time(parse_compact_clock(text)?);
        }
        if text.len() == 8 || (text.len() == 6 && self.year.is_none() && self.month.is_none()) || text.len() > 8 {
            let (year, rest) = text.split_at(text.len() - 4);
            if text.contains('.') || self.year.is_some() || self.month.is_some() || self.day.is_some() {
                return Err(ParseFault::Syntax);
            }
            self.is_short_year = year.len() == 2;
            self.year = Some(integer(year)?);
            self.month = Some(integer(&rest[..2])?);
            self.day = Some(integer(&rest[2..])?);
            return Ok(());
        }
        self.part_of_date(text)
    }

    /// Reads a number as a part of a date, depending on the parts before it.
    fn part_of_date(&mut self, text: &str) -> Result<(), ParseFault> {
        let (value, is_long) = (integer(text)?, text.len() >= 3);
        match (self.year, self.month, self.day) {
            (Some(_), _, None) if text.len() == 3 && self.month.is_none() => self.day_of_year = Some(value),
            (None, None, None) if is_long => self.set_year(text)?,
            (None, None, None) => self.month_or_day(value),
            (Some(_), None, None) => self.month = Some(value),
            (None, Some(_), None) if self.has_named_month && is_long => self.set_year(text)?,
            (None, Some(_), None) => self.day = Some(value),
            (Some(year), Some(_), None) if self.has_named_month && is_long && self.is_short_year => {
                self.day = Some(year);
                self.set_year(text)?;
            }
            (Some(_), Some(_), None) => self.day = Some(value),
            (None, None, Some(_)) => self.month = Some(value),
            (None, Some(_), Some(_)) => self.set_year(text)?,
            _ => return Err(ParseFault::Syntax),
        }
        Ok(())
    }

    /// The first number is the month, unless the month is a name.
    fn month_or_day(&mut self, value: i64) {
        if self.has_named_month { self.day = Some(value) } else { self.month = Some(value) }
    }

    fn set_year(&mut self, text: &str) -> Result<(), ParseFault> {
        self.is_short_year = text.len() <= 2;
        self.year = Some(integer(text)?);
        Ok(())
    }

    fn finish(self) -> Result<ParsedMoment, ParseFault> {
        if self.expects_time || self.expects_julian {
            return Err(ParseFault::Syntax);
        }
        let day = self.day_since_1970()?;
        let mut time = self.time;
        if let Some(is_afternoon) = self.is_afternoon {
            let clock = time.ok_or(ParseFault::Syntax)?;
            let hour = clock / HOUR;
            if hour > 12 {
                return Err(ParseFault::Range);
            }
            time = Some(clock % HOUR + (hour % 12 + if is_afternoon { 12 } else { 0 }) * HOUR);
        }
        if day.is_none() && (time.is_none() || self.is_before_christ) {
            return Err(ParseFault::Syntax);
        }
        Ok(ParsedMoment { day, time, zone: self.zone })
    }

    fn day_since_1970(&self) -> Result<Option<i64>, ParseFault> {
        if self.julian.is_some() {
            return Ok(self.julian);
        }
        let Some(year) = self.year else {
            return if self.month.is_none() && self.day.is_none() { Ok(None) } else { Err(ParseFault::Syntax) };
        };
        let year = match year {
            0 if !self.is_short_year => return Err(ParseFault::Range),
            year if self.is_before_christ && year > 0 => 1 - year,
            _ if self.is_before_christ => return Err(ParseFault::Range),
            year if self.is_short_year && year < 70 => year + 2_000,
            year if self.is_short_year => year + 1_900,
            year => year,
        };
        if year.abs() > 6_000_000 {
            return Err(ParseFault::Range);
        }
        if let Some(day) = self.day_of_year {
            let is_in_year = day >= 1 && day <= if calendar::is_date(year, 2, 29) { 366 } else { 365 };
            return if is_in_year { Ok(Some(calendar::days(year, 1, 1) + day - 1)) } else { Err(ParseFault::Range) };
        }
        let (Some(month), Some(day)) = (self.month, self.day) else { return Err(ParseFault::Syntax) };
        if !calendar::is_date(year, month, day) {
            return Err(ParseFault::Range);
        }
        Ok(Some(calendar::days(year, month, day)))
    }
}

fn integer(text: &str) -> Result<i64, ParseFault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseFault::Syntax);
    }
    text.parse().map_err(|_| ParseFault::Range)
}

/// Returns the microseconds of the digits after a point.
fn fraction_micros(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if digits.is_empty() {
        return Some(0);
    }
    let fraction: f64 = format!("0.{digits}").parse().ok()?;
    Some((fraction * 1e6).round_ties_even() as i64)
}

/// Reads `h:m`, `h:m:s` with a fraction, or `m:s.f`.
fn parse_day_time(text: &str) -> Result<i64, ParseFault> {
    let time = parse_clock(text, false)?;
    if time.hours > 24 || time.minutes > 59 || time.seconds > 60 || (time.seconds == 60 && time.micros > 0) {
        return Err(ParseFault::Range);
    }
    let time = time.total();
    if time > 24 * HOUR { Err(ParseFault::Range) } else { Ok(time) }
}

/// The parts of a text with colons.
pub(super) struct Clock {
    pub(super) hours: i64,
    pub(super) minutes: i64,
    pub(super) seconds: i64,
    pub(super) micros: i64,
}

impl Clock {
    pub(super) fn total(&self) -> i64 {
        self.hours * HOUR + self.minutes * MINUTE + self.seconds * SECOND + self.micros
    }
}

/// Returns the parts of `h:m`, `h:m:s` with a fraction, or `m:s.f`; with `is_minutes` of `m:s` too.
pub(super) fn parse_clock(text: &str, is_minutes: bool) -> Result<Clock, ParseFault> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros = fraction_micros(fraction).ok_or(ParseFault::Syntax)?;
    let parts: Vec<i64> = whole.split(':').map(integer).collect::<Result<_, _>>()?;
    let has_fraction = text.contains('.');
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if has_fraction || is_minutes => (0, *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(ParseFault::Syntax),
    };
    Ok(Clock { hours, minutes, seconds, micros })
}

/// Reads `hhmmss` or `hhmm`, which may have a fraction.
fn parse_compact_clock(text: &str) -> Result<i64, ParseFault> {
    let digits = text.find('.').unwrap_or(text.len());
    match digits {
        6 => parse_day_time(&format!("{}:{}:{}", &text[..2], &text[2..4], &text[4..])),
        4 if digits == text.len() => parse_day_time(&format!("{}:{}", &text[..2], &text[2..])),
        _ => Err(ParseFault::Syntax),
    }
}

/// Parses a text that consists only of `hhmmss` or `hhmm`.
pub(super) fn parse_compact_time(text: &str) -> Option<i64> {
    let is_compact = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if is_compact { parse_compact_clock(text).ok().filter(|time| *time < 24 * HOUR) } else { None }
}

fn offset_zone(text: &str) -> Result<TimeZoneSpec, ParseFault> {
    let offset = parse_offset(text).ok_or(ParseFault::Syntax)?;
    offset.map(TimeZoneSpec::Fixed).map_err(|_| ParseFault::Range)
}

/// A part of a text, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimeToken {
    /// Digits, which may have a fraction.
    Number(String),
    /// Digits with colons, which may have a fraction.
    Time(String),
    /// Digits or names separated by `-`, `/` or `.`.
    Date(String),
    /// A sign and the characters of a zone, a number or a time.
    Signed(String),
    /// Letters, and other characters of the name of a zone.
    Word(String),
}

/// Splits `text` into tokens; `None` if it has a character that no date or time contains.
pub(super) fn tokenize(text: &str) -> Option<Vec<TimeToken>> {
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.as_str();
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches(|character: char| character.is_ascii_whitespace() || character == ',');
        let Some(first) = rest.chars().next() else { return Some(tokens) };
        let (token, length) = match first {
            '0'..='9' | '.' => scan_digits(rest),
            '+' | '-' => scan_sign(rest)?,
            '@' | '(' | ')' | ';' | '&' => {
                rest = &rest[1..];
                continue;
            }
            character if character.is_ascii_alphabetic() => scan_letters(rest),
            _ => return None,
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

/// Returns the length of the prefix of `text` whose characters match `is_part`.
fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|character: char| !is_part(character)).unwrap_or(text.len())
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

fn scan_digits(text: &str) -> (TimeToken, usize) {
    let digits = span(text, is_digit);
    let rest = &text[digits..];
    let next = rest[1.min(rest.len())..].chars().next();
    match rest.chars().next() {
        Some(':') => {
            let length = span(text, |character| is_digit(character) || character == ':' || character == '.');
            (TimeToken::Time(text[..length].to_owned()), length)
        }
        Some(delimiter @ ('-' | '/' | '.')) if next.is_some_and(is_digit) => {
            let second = digits + 1 + span(&rest[1..], is_digit);
            if text[second..].starts_with(delimiter) {
                let length = span(text, |character| is_digit(character) || character == delimiter);
                return (TimeToken::Date(text[..length].to_owned()), length);
            }
            let token = if delimiter == '.' { TimeToken::Number } else { TimeToken::Date };
            (token(text[..second].to_owned()), second)
        }
        Some(delimiter @ ('-' | '/' | '.')) if next.is_some_and(|character| character.is_ascii_alphabetic()) => {
            let length = span(text, |character| character.is_ascii_alphanumeric() || character == delimiter);
            (TimeToken::Date(text[..length].to_owned()), length)
        }
        Some('.') => (TimeToken::Number(text[..=digits].to_owned()), digits + 1),
        _ => (TimeToken::Number(text[..digits].to_owned()), digits),
    }
}

fn scan_sign(text: &str) -> Option<(TimeToken, usize)> {
    let spaces = span(&text[1..], |character| character.is_ascii_whitespace());
    let rest = &text[1 + spaces..];
    let length = span(rest, |character| is_digit(character) || matches!(character, ':' | '.' | '-'));
    let is_number = rest.starts_with(is_digit) || (rest.starts_with('.') && length > 1);
    is_number.then(|| (TimeToken::Signed(format!("{}{}", &text[..1], &rest[..length])), 1 + spaces + length))
}

fn scan_letters(text: &str) -> (TimeToken, usize) {
    let letters = span(text, |character| character.is_ascii_alphabetic());
    let mut rest = text[letters..].chars();
    let (delimiter, next) = (rest.next(), rest.next());
    let is_followed_by_digit = next.is_some_and(is_digit);
    match delimiter {
        // `jan-05-2013`, but neither `utc-05` nor `etc/gmt-5`.
        Some(delimiter @ ('-' | '/' | '.')) if is_followed_by_digit && find_month(&text[..letters]).is_some() => {
            let length = span(text, |character| character.is_ascii_alphanumeric() || character == delimiter);
            (TimeToken::Date(text[..length].to_owned()), length)
        }
        Some('/' | '_') => {
            let length =
                span(text, |character| character.is_ascii_alphanumeric() || matches!(character, '/' | '_' | '-' | '+'));
            (TimeToken::Word(text[..length].to_owned()), length)
        }
        // `pst8pdt` is a name, `t070809` is not.
        Some(delimiter @ ('0'..='9' | '-' | '+')) => {
            let has_signs = !is_digit(delimiter);
            let length = span(text, |character| {
                character.is_ascii_alphanumeric() || (has_signs && matches!(character, '-' | '+'))
            });
            let length = if TimeZoneSpec::named(&text[..length]).is_some() { length } else { letters };
            (TimeToken::Word(text[..length].to_owned()), length)
        }
        _ => (TimeToken::Word(text[..letters].to_owned()), letters),
    }
}

/// Returns the number of a month from its name or the abbreviation of its name, in lower case.
fn find_month(word: &str) -> Option<i64> {
    let is_name = |name: &&str| word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3]);
    let position = MONTH_NAMES.iter().position(is_name).or((word == "sept").then_some(8))?;
    Some(position as i64 + 1)
}
