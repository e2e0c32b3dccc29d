//! Splits the text of a time into words, numbers and signs.

use crate::time::calendar::MONTH_NAMES;
use crate::time::zone::TimeZoneSpec;

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
pub(super) fn find_month(word: &str) -> Option<i64> {
    let is_name = |name: &&str| word.eq_ignore_ascii_case(name) || word.eq_ignore_ascii_case(&name[..3]);
    let position = MONTH_NAMES.iter().position(is_name).or((word == "sept").then_some(8))?;
    Some(position as i64 + 1)
}
