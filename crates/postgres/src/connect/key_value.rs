//! Connection strings of keywords and values: `host=db.example.com dbname=shop`.
//!
//! The syntax is that of libpq: single quotes enclose a value with blanks, and a backslash escapes the next character.
//! <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-KEYWORD-VALUE>

use std::iter::Peekable;
use std::str::Chars;

use super::keyword;
use super::settings::KeywordValue;
use super::target_error::{SettingOrigin, TargetError};

/// The keywords and values in `text`, in order.
pub(super) fn parse(text: &str) -> Result<Vec<KeywordValue>, TargetError> {
    let mut reader = KeyValueReader { characters: text.chars().peekable(), position: 0 };
    let mut pairs: Vec<KeywordValue> = Vec::new();
    loop {
        reader.skip_blanks();
        let start = reader.position + 1;
        let name = reader.take_name();
        if name.is_empty() && reader.characters.peek().is_none() {
            return Ok(pairs);
        }
        reader.skip_blanks();
        if reader.next() != Some('=') {
            return Err(malformed("a keyword without =", start));
        }
        reader.skip_blanks();
        let value = reader.take_value()?;
        let Some(keyword) = keyword::find(&name) else {
            // The rest of an unquoted password with a blank would be read as a keyword.
            let after_password = pairs.iter().any(|pair| pair.keyword.name == "password");
            return Err(TargetError::UnknownKeyword {
                origin: SettingOrigin::ConnectionString,
                nearest: keyword::nearest(&name),
                name: (!after_password).then_some(name),
                position: start,
            });
        };
        pairs.push(KeywordValue { keyword, value });
    }
}

fn malformed(problem: &'static str, position: usize) -> TargetError {
    TargetError::Malformed { origin: SettingOrigin::ConnectionString, problem, position }
}

/// As in C: a Unicode blank may be part of a password.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

struct KeyValueReader<'a> {
    characters: Peekable<Chars<'a>>,
    /// The number of characters read so far.
    position: usize,
}

impl KeyValueReader<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.next()?;
        self.position += 1;
        Some(character)
    }

    fn next_if(&mut self, expected: impl Fn(char) -> bool) -> Option<char> {
        let character = self.characters.next_if(|character| expected(*character))?;
        self.position += 1;
        Some(character)
    }

    fn skip_blanks(&mut self) {
        while self.next_if(is_blank).is_some() {}
    }

    fn take_name(&mut self) -> String {
        std::iter::from_fn(|| self.next_if(|character| character != '=' && !is_blank(character))).collect()
    }

    fn take_value(&mut self) -> Result<String, TargetError> {
        let start = self.position + 1;
        let quoted = self.next_if(|character| character == '\'').is_some();
        let mut value = String::new();
        loop {
            let goes_on = |character: char| quoted || !is_blank(character);
            match self.next_if(goes_on) {
                Some('\'') if quoted => return Ok(value),
                Some('\\') => value.extend(self.next()),
                Some(character) => value.push(character),
                None if quoted => return Err(malformed("an unclosed quote", start)),
                None => return Ok(value),
            }
        }
    }
}
