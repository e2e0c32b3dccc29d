//! The tokens of a script, as far as its splitting asks for them.

use super::{ScriptError, ScriptProblem};

/// Characters of a command to `psql` that are told.
const COMMAND_CHARACTERS_MAX: usize = 20;

/// A piece of a script that is never split.
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Where it begins, in bytes.
    pub(super) offset: usize,
    /// The line that it begins in, from 1.
    pub(super) line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Blanks, or a comment.
    Blank,
    /// A key word or a name without quotes.
    Word,
    /// A string, or a name in quotes.
    Quoted,
    Semicolon,
    Open,
    Close,
    Dot,
    Other,
}

/// Reads a script token by token.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// How far it has read, in bytes.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn next_token(&mut self) -> Result<Option<Token<'a>>, ScriptError> {
        let (offset, line) = (self.at, self.line);
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let (kind, length) = self.measure(first)?;
        let text = &self.text[offset..offset + length];
        self.at += length;
        self.line += text.matches('\n').count();
        Ok(Some(Token { kind, text, offset, line }))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// What the token that begins with `first` is, and how many bytes it has.
    fn measure(&self, first: char) -> Result<(Kind, usize), ScriptError> {
        let rest = self.rest();
        let one = first.len_utf8();
        Ok(match first {
            // Some editors begin a file with a mark of its byte order.
            '\u{feff}' if self.at == 0 => (Kind::Blank, one),
            _ if is_blank(first) => (Kind::Blank, rest.find(|other| !is_blank(other)).unwrap_or(rest.len())),
            '-' if rest.starts_with("--") => (Kind::Blank, line_comment(rest)),
            '/' if rest.starts_with("/*") => (Kind::Blank, self.ended(block_comment(rest), "the comment")?),
            '\'' => (Kind::Quoted, self.ended(doubled(rest, b'\''), "the string")?),
            '"' => (Kind::Quoted, self.ended(doubled(rest, b'"'), "the quoted name")?),
            '$' => match dollar_tag(rest) {
                Some(tag) => (Kind::Quoted, self.ended(dollar_quoted(rest, tag), "the dollar-quoted string")?),
                None => (Kind::Other, one),
            },
            'e' | 'E' if rest[1..].starts_with('\'') => (Kind::Quoted, self.ended(escaped(rest), "the string")?),
            '\\' => return Err(self.refused(ScriptProblem::MetaCommand(command(rest)))),
            '0'..='9' => (Kind::Other, rest.find(|other| !is_of_number(other)).unwrap_or(rest.len())),
            _ if is_of_word(first) => (Kind::Word, rest.find(|other| !is_of_word(other)).unwrap_or(rest.len())),
            ';' => (Kind::Semicolon, one),
            '(' => (Kind::Open, one),
            ')' => (Kind::Close, one),
            '.' => (Kind::Dot, one),
            _ => (Kind::Other, one),
        })
    }

    fn ended(&self, length: Option<usize>, what: &'static str) -> Result<usize, ScriptError> {
        length.ok_or_else(|| self.refused(ScriptProblem::Endless(what)))
    }

    fn refused(&self, problem: ScriptProblem) -> ScriptError {
        ScriptError { line: self.line, problem }
    }
}

/// The server's blanks; others of Unicode are letters to it.
fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// No digit and no dollar begins a word, but both may follow.
fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

/// A dollar after a number begins a string.
fn is_of_number(character: char) -> bool {
    is_of_word(character) && character != '$'
}

fn line_comment(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

/// Comments nest.
fn block_comment(rest: &str) -> Option<usize> {
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

/// Quoted by `quote`, which stands for itself where it stands twice.
fn doubled(rest: &str, quote: u8) -> Option<usize> {
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

/// `E'…'`, in which a backslash keeps the next character from meaning anything. It goes on after a line break.
fn escaped(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 2;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => match continued(&rest[at + 1..]) {
                Some(length) => at += 1 + length,
                None => return Some(at + 1),
            },
            _ => at += 1,
        }
    }
}

/// How many bytes lead from the end of a string to its next part: blanks with a line break among them, comments of a
/// line, and the quote.
fn continued(rest: &str) -> Option<usize> {
    let mut at = 0;
    let mut has_break = false;
    loop {
        let after = &rest[at..];
        match after.chars().next()? {
            '\'' if has_break => return Some(at + 1),
            '-' if after.starts_with("--") => at += line_comment(after),
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
    let length = name.find(|other: char| !is_of_number(other)).unwrap_or(name.len());
    let begins_well = !name.starts_with(|first: char| first.is_ascii_digit());
    (begins_well && name[length..].starts_with('$')).then(|| &rest[..length + 2])
}

fn dollar_quoted(rest: &str, tag: &str) -> Option<usize> {
    let length = rest[tag.len()..].find(tag)?;
    Some(length + 2 * tag.len())
}

/// The command to `psql` that `rest` begins with.
fn command(rest: &str) -> String {
    let word = rest.split(|other: char| other.is_whitespace() || other == ';').next().unwrap_or_default();
    word.chars().take(COMMAND_CHARACTERS_MAX).collect()
}
