//! The tokens of a script, as far as needed to split it.

use super::ScriptError;

/// The maximum length of a `psql` meta-command in an error, in characters.
const COMMAND_CHARACTERS_MAX: usize = 20;

/// A part of a script that is never split.
pub(super) struct ScriptToken<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// The offset of its beginning, in bytes.
    pub(super) offset: usize,
    /// The line of its beginning, from 1.
    pub(super) line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Blank,
    /// A keyword or an unquoted name.
    Word,
    /// A string or a quoted name.
    Quoted,
    Semicolon,
    Open,
    Close,
    Dot,
    Other,
}

/// Splits a script into tokens.
pub(super) struct ScriptScanner<'a> {
    text: &'a str,
    position: usize,
    line: usize,
}

impl<'a> ScriptScanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, position: 0, line: 1 }
    }

    /// The current offset, in bytes.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn next_token(&mut self) -> Result<Option<ScriptToken<'a>>, ScriptError> {
        let (offset, line) = (self.position, self.line);
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let (kind, length) = self.classify(first)?;
        let text = &self.text[offset..offset + length];
        self.position += length;
        self.line += text.matches('\n').count();
        Ok(Some(ScriptToken { kind, text, offset, line }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// What the token that begins with `first` is, and how many bytes it has.
    fn classify(&self, first: char) -> Result<(TokenKind, usize), ScriptError> {
        let rest = self.rest();
        let one = first.len_utf8();
        Ok(match first {
            // Some editors begin a file with a mark of its byte order.
            '\u{feff}' if self.position == 0 => (TokenKind::Blank, one),
            _ if is_blank(first) => (TokenKind::Blank, rest.find(|other| !is_blank(other)).unwrap_or(rest.len())),
            '-' if rest.starts_with("--") => (TokenKind::Blank, line_comment_length(rest)),
            '/' if rest.starts_with("/*") => {
                (TokenKind::Blank, self.require_end(block_comment_length(rest), "the comment")?)
            }
            '\'' => (TokenKind::Quoted, self.require_end(quoted_length(rest, b'\''), "the string")?),
            '"' => (TokenKind::Quoted, self.require_end(quoted_length(rest, b'"'), "the quoted name")?),
            '$' => match dollar_tag(rest) {
                Some(tag) => {
                    (TokenKind::Quoted, self.require_end(dollar_quoted_length(rest, tag), "the dollar-quoted string")?)
                }
                None => (TokenKind::Other, one),
            },
            'e' | 'E' if rest[1..].starts_with('\'') => {
                (TokenKind::Quoted, self.require_end(escape_string_length(rest), "the string")?)
            }
            '\\' => {
                let command = psql_command(rest);
                let message =
                    format!("{command} is a psql meta-command, which is not supported; use SQL statements only");
                return Err(ScriptError { line: self.line, message });
            }
            '0'..='9' => (TokenKind::Other, rest.find(|other| !is_number_character(other)).unwrap_or(rest.len())),
            _ if is_word_character(first) => {
                (TokenKind::Word, rest.find(|other| !is_word_character(other)).unwrap_or(rest.len()))
            }
            ';' => (TokenKind::Semicolon, one),
            '(' => (TokenKind::Open, one),
            ')' => (TokenKind::Close, one),
            '.' => (TokenKind::Dot, one),
            _ => (TokenKind::Other, one),
        })
    }

    fn require_end(&self, length: Option<usize>, subject: &'static str) -> Result<usize, ScriptError> {
        length.ok_or_else(|| ScriptError::unterminated(self.line, subject))
    }
}

/// The server's blanks; others of Unicode are letters to it.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// No digit and no dollar begins a word, but both may follow.
fn is_word_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

/// A dollar after a number begins a string.
fn is_number_character(character: char) -> bool {
    is_word_character(character) && character != '$'
}

fn line_comment_length(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// Comments nest.
fn block_comment_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match bytes.get(at..at + 2)? {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return Some(at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

/// The length of a text in `quote`s; a doubled quote stands for one.
fn quoted_length(rest: &str, quote: u8) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == quote)?;
        if bytes.get(at + 1) != Some(&quote) {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The length of `E'…'`, where a backslash escapes the next character. It may continue after a line break.
fn escape_string_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 2;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => match continuation_length(&rest[at + 1..]) {
                Some(length) => at += 1 + length,
                None => return Some(at + 1),
            },
            _ => at += 1,
        }
    }
}

/// The length of the text between two parts of a string: blanks with a line break, line comments, and the quote.
fn continuation_length(rest: &str) -> Option<usize> {
    let mut at = 0;
    let mut has_break = false;
    loop {
        let after = &rest[at..];
        match after.chars().next()? {
            '\'' if has_break => return Some(at + 1),
            '-' if after.starts_with("--") => at += line_comment_length(after),
            blank if is_blank(blank) => {
                has_break |= matches!(blank, '\n' | '\r');
                at += 1;
            }
            _ => return None,
        }
    }
}

/// `$$` or `$tag$`, if `rest` begins with one.
fn dollar_tag(rest: &str) -> Option<&str> {
    let name = &rest[1..];
    let length = name.find(|other: char| !is_number_character(other)).unwrap_or(name.len());
    let begins_well = !name.starts_with(|first: char| first.is_ascii_digit());
    (begins_well && name[length..].starts_with('$')).then(|| &rest[..length + 2])
}

fn dollar_quoted_length(rest: &str, tag: &str) -> Option<usize> {
    let length = rest[tag.len()..].find(tag)?;
    Some(length + 2 * tag.len())
}

fn psql_command(rest: &str) -> String {
    let word = rest.split(|other: char| other.is_whitespace() || other == ';').next().unwrap_or_default();
    word.chars().take(COMMAND_CHARACTERS_MAX).collect()
}
