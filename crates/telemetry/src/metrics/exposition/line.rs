//! One line with a sample: `name{label="value",…} value time`.

use super::super::model::Labels;
use super::{ExposedSample, LABELS_MAX};

/// Parses a line with a sample.
pub(super) fn parse_sample(line: &str, is_open_metrics: bool) -> Result<ExposedSample, String> {
    let mut cursor = Cursor { text: line, position: 0 };
    cursor.skip_blanks();
    let mut name = if cursor.rest().starts_with('{') { None } else { Some(cursor.name()?) };
    cursor.skip_blanks();
    let mut pairs = Vec::new();
    if cursor.take('{') {
        cursor.labels(&mut name, &mut pairs)?;
    }
    let name = name.ok_or("the sample has no name")?;
    // An exemplar follows the value and the time.
    let numbers = cursor.rest().split(" # ").next().unwrap_or_default();
    let mut words = numbers.split_whitespace();
    let value = words.next().ok_or_else(|| format!("there is no value after {name:?}"))?;
    let value = parse_value(value).ok_or_else(|| format!("the value {value:?} is not a number"))?;
    let time_ns = words.next().map(|time| parse_time(time, is_open_metrics)).transpose()?;
    if let Some(word) = words.next() {
        return Err(format!("unexpected text {word:?} at the end"));
    }
    Ok(ExposedSample { name, labels: Labels::new(pairs), value, time_ns })
}

/// The name in a `# HELP`, `# TYPE` or `# UNIT` line, which may be in quotes, and the text behind it.
pub(super) fn parse_declared_name(text: &str) -> Result<(String, &str), String> {
    let mut cursor = Cursor { text, position: 0 };
    let name = if text.starts_with('"') { cursor.quoted()? } else { cursor.name()? };
    cursor.skip_blanks();
    Ok((name, cursor.rest()))
}

/// Replaces `\\`, `\"` and `\n`. Other characters behind a backslash remain as they are.
pub(super) fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, characters.as_str().chars().next()) {
            ('\\', Some(escaped @ ('\\' | '"' | 'n'))) => {
                result.push(if escaped == 'n' { '\n' } else { escaped });
                characters.next();
            }
            _ => result.push(character),
        }
    }
    result
}

/// A number, `NaN` or an infinity. Rust's own names of them are accepted in any case, as in Go.
fn parse_value(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// Milliseconds; in OpenMetrics seconds, possibly with a fraction.
fn parse_time(text: &str, is_open_metrics: bool) -> Result<i64, String> {
    let failed = || format!("the time {text:?} is not a number");
    if !is_open_metrics && let Ok(time_ms) = text.parse::<i64>() {
        return Ok(time_ms.saturating_mul(1_000_000));
    }
    let seconds: f64 = text.parse().map_err(|_| failed())?;
    if !seconds.is_finite() {
        return Err(failed());
    }
    let unit_ns = if is_open_metrics { 1e9 } else { 1e6 };
    // Rounded to microseconds, because a double has no more digits at the present time.
    Ok(((seconds * unit_ns / 1e3).round() as i64).saturating_mul(1_000))
}

struct Cursor<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes;
    }

    fn take(&mut self, expected: char) -> bool {
        let is_next = self.rest().starts_with(expected);
        if is_next {
            self.advance(expected.len_utf8());
        }
        is_next
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.advance(rest.len() - rest.trim_start_matches([' ', '\t']).len());
    }

    /// `expected WHAT at character N, found …`
    fn unexpected(&self, expected: &str) -> String {
        let character = self.text.get(..self.position).unwrap_or_default().chars().count() + 1;
        match self.peek() {
            Some(found) => format!("expected {expected} at character {character}, found {found:?}"),
            None => format!("expected {expected} at character {character}, found the end of the line"),
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | ':' | '.');
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(self.unexpected("a name"));
        }
        self.advance(end);
        Ok(name.to_owned())
    }

    /// The labels behind `{`. A text without a value is the name of the metric.
    fn labels(&mut self, name: &mut Option<String>, pairs: &mut Vec<(String, String)>) -> Result<(), String> {
        loop {
            self.skip_blanks();
            if self.take('}') {
                return Ok(());
            }
            if pairs.len() >= LABELS_MAX {
                return Err(format!("the sample has more than {LABELS_MAX} labels"));
            }
            let is_quoted = self.rest().starts_with('"');
            let label = if is_quoted { self.quoted()? } else { self.name()? };
            self.skip_blanks();
            if self.take('=') {
                self.skip_blanks();
                pairs.push((label, self.quoted()?));
            } else if is_quoted && name.is_none() {
                *name = Some(label);
            } else {
                return Err(self.unexpected("'='"));
            }
            self.skip_blanks();
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        let start = self.text.get(..self.position).unwrap_or_default().chars().count() + 1;
        if !self.take('"') {
            return Err(self.unexpected("'\"'"));
        }
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.find(|character| {
            let is_end = character == '"' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            is_end
        });
        let end = end.ok_or_else(|| format!("the text that begins at character {start} has no end"))?;
        self.advance(end + 1);
        Ok(unescape(rest.get(..end).unwrap_or_default()))
    }
}
