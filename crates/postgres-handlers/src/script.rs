//! Splits an SQL script into statements, in the same way as `psql`.
//!
//! It parses only what determines the end of a statement: quotes, comments, parentheses and bodies `BEGIN ATOMIC …
//! END`. Strings are parsed as with `standard_conforming_strings = on`.

mod token;

use self::token::{ScriptScanner, ScriptToken, TokenKind};

/// The maximum number of words of a statement that are kept; the first ones determine its kind.
const WORDS_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script<'a> {
    pub(crate) statements: Vec<ScriptStatement<'a>>,
    /// The text after the last statement: blanks and comments.
    pub(crate) rest: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptStatement<'a> {
    /// The statement with its semicolon, and with the blanks and comments before it.
    pub(crate) source: &'a str,
    /// The line of its first word, from 1.
    pub(crate) line: usize,
    /// The length of the blanks and comments before it, in bytes.
    leading: usize,
    /// The first words outside of quotes and parentheses.
    words: Vec<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ScriptError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl ScriptError {
    fn unterminated(line: usize, subject: &str) -> Self {
        Self { line, message: format!("{subject} that begins here is not terminated") }
    }
}

impl<'a> Script<'a> {
    pub(crate) fn split(text: &'a str) -> Result<Self, ScriptError> {
        let mut scanner = ScriptScanner::new(text);
        let mut statements = Vec::new();
        let mut open = StatementBuilder::default();
        let mut start = 0;
        while let Some(token) = scanner.next_token()? {
            if open.push_token(token) {
                let source = &text[start..scanner.position()];
                statements.extend(std::mem::take(&mut open).finish(source, start));
                start = scanner.position();
            }
        }
        open.check_closed()?;
        let source = &text[start..];
        let rest = match open.finish(source, start) {
            Some(statement) => {
                statements.push(statement);
                ""
            }
            None => source,
        };
        Ok(Self { statements, rest })
    }
}

impl<'a> ScriptStatement<'a> {
    pub(crate) fn sql(&self) -> &'a str {
        &self.source[self.leading..]
    }

    /// Whether the word at `index` is `word`; ignores the case.
    pub(crate) fn has_word_at(&self, index: usize, word: &str) -> bool {
        self.words.get(index).is_some_and(|other| other.eq_ignore_ascii_case(word))
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|other| other.eq_ignore_ascii_case(word))
    }
}

#[derive(Default)]
struct StatementBuilder<'a> {
    /// Offset and line of its first token.
    first: Option<(usize, usize)>,
    words: Vec<&'a str>,
    /// The lines of the open parentheses.
    parentheses: Vec<usize>,
    /// The nesting depth of `BEGIN ATOMIC` and `CASE`, and the line of the outermost one.
    blocks: usize,
    block_line: usize,
    /// The token just before, if it is a word.
    previous_word: Option<&'a str>,
    /// Whether the next word is a name in any case, as after a dot or `AS`.
    is_name_next: bool,
}

impl<'a> StatementBuilder<'a> {
    /// Adds the next token; returns true if it ends the statement.
    fn push_token(&mut self, token: ScriptToken<'a>) -> bool {
        let ScriptToken { kind, text, offset, line } = token;
        if kind == TokenKind::Blank {
            return false;
        }
        self.first.get_or_insert((offset, line));
        let before = self.previous_word.take();
        let is_name = std::mem::take(&mut self.is_name_next);
        match kind {
            TokenKind::Word => {
                self.push_word(text, line, before.filter(|_| !is_name), is_name);
                self.previous_word = Some(text);
                self.is_name_next = text.eq_ignore_ascii_case("as");
            }
            TokenKind::Semicolon => return self.parentheses.is_empty() && self.blocks == 0,
            TokenKind::Open => self.parentheses.push(line),
            TokenKind::Close => drop(self.parentheses.pop()),
            TokenKind::Dot => self.is_name_next = true,
            TokenKind::Quoted | TokenKind::Other | TokenKind::Blank => {}
        }
        false
    }

    fn push_word(&mut self, word: &'a str, line: usize, before: Option<&str>, is_name: bool) {
        let is = |other: &str| word.eq_ignore_ascii_case(other);
        if self.blocks > 0 && !is_name {
            if is("case") {
                self.blocks += 1;
            } else if is("end") {
                self.blocks -= 1;
            }
        } else if is("atomic")
            && before.is_some_and(|before| before.eq_ignore_ascii_case("begin"))
            && self.is_create_statement()
        {
            self.blocks = 1;
            self.block_line = line;
        }
        if self.parentheses.is_empty() && self.blocks == 0 && self.words.len() < WORDS_MAX {
            self.words.push(word);
        }
    }

    fn is_create_statement(&self) -> bool {
        self.words.first().is_some_and(|first| first.eq_ignore_ascii_case("create"))
    }

    fn check_closed(&self) -> Result<(), ScriptError> {
        match self.parentheses.first() {
            _ if self.blocks > 0 => Err(ScriptError::unterminated(self.block_line, "the body BEGIN ATOMIC")),
            Some(line) => Err(ScriptError::unterminated(*line, "the parenthesis")),
            None => Ok(()),
        }
    }

    /// The statement, if `source`, which begins at `start`, contains one.
    fn finish(self, source: &'a str, start: usize) -> Option<ScriptStatement<'a>> {
        let (offset, line) = self.first?;
        Some(ScriptStatement { source, line, leading: offset - start, words: self.words })
    }
}

#[cfg(test)]
mod tests;
