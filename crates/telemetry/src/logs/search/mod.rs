//! Full-text queries: their language, the conditions that they become, and their evaluation over record batches.
//!
//! ```text
//! or      = and { ("|" | "OR") and }
//! and     = not { ["AND"] not }
//! not     = ("!" | "-" | "NOT") not | "(" or ")" | term
//! term    = [ field ":" ] ( word | "\"" phrase "\"" )
//! ```
//!
//! In a word, `*` stands for any characters and `\` takes the special meaning from the next character. In a phrase, `\`
//! does so before `"` and `\` only.

mod condition;
mod text_pattern;

use std::iter::Peekable;
use std::str::CharIndices;

use thiserror::Error;

pub use self::condition::{ConditionMatcher, LogCondition, SearchColumns};
pub use self::text_pattern::TextPattern;

/// The maximum length of a query in bytes.
pub const QUERY_BYTES_MAX: usize = 4_096;
/// The maximum number of terms in a query.
pub const QUERY_TERMS_MAX: usize = 64;
/// The maximum number of parentheses and negations within each other.
pub const QUERY_DEPTH_MAX: usize = 32;

/// A parsed full-text query.
#[derive(Debug, Clone, PartialEq)]
pub struct TextQuery {
    root: QueryNode,
}

/// A part of a full-text query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryNode {
    /// A word, a phrase, or the value of a field.
    Term(QueryTerm),
    /// The negation.
    Not(Box<QueryNode>),
    /// All parts match; without parts, everything matches.
    And(Vec<QueryNode>),
    /// At least one part matches.
    Or(Vec<QueryNode>),
}

/// A word, a phrase, or the value of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// The field before the colon; `None` for a word or phrase of the text.
    pub field: Option<String>,
    /// What the text contains, or the value of the field.
    pub pattern: TextPattern,
    /// Whether the term is in quotes; a quoted `-` is no missing value.
    pub is_quoted: bool,
    /// The position of the term in the query: its first character, counted from 1.
    pub position: usize,
}

/// A query that cannot be parsed. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextQueryError {
    /// The query is longer than [`QUERY_BYTES_MAX`].
    #[error("the query has {0} bytes; the maximum is {QUERY_BYTES_MAX}")]
    TooLong(usize),
    /// The query has more terms than [`QUERY_TERMS_MAX`].
    #[error(
        "the query has more than {QUERY_TERMS_MAX} terms, from character {0} on; use selections for lists of values"
    )]
    TooManyTerms(usize),
    /// Parentheses and negations are deeper than [`QUERY_DEPTH_MAX`].
    #[error("parentheses and negations are nested more than {QUERY_DEPTH_MAX} deep at character {0}")]
    TooDeep(usize),
    /// A phrase has no second quote.
    #[error("the quote at character {0} is not closed")]
    UnclosedQuote(usize),
    /// A parenthesis has no partner.
    #[error("the parenthesis at character {0} has no partner; put text with parentheses in quotes")]
    UnmatchedParenthesis(usize),
    /// An operator has nothing to apply to.
    #[error("{operator} at character {position} needs a term {side} it; put it in quotes if it is text")]
    MissingOperand {
        /// The operator.
        operator: String,
        /// Its position.
        position: usize,
        /// `before` or `after`.
        side: &'static str,
    },
    /// A field has no value.
    #[error(
        "the field {field:?} at character {position} has no value; write {field}:value, or {field}:- for a missing one"
    )]
    MissingValue {
        /// The field.
        field: String,
        /// Its position.
        position: usize,
    },
}

impl TextQuery {
    /// Parses a query. An empty query matches everything.
    ///
    /// # Errors
    /// If the query is too long or too deep, or a quote, parenthesis or operand is missing.
    pub fn parse(text: &str) -> Result<Self, TextQueryError> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(TextQueryError::TooLong(text.len()));
        }
        let mut parser = Parser { text, characters: text.char_indices().peekable(), depth: 0, terms: 0 };
        parser.skip_blanks();
        if parser.peek().is_none() {
            return Ok(Self { root: QueryNode::And(Vec::new()) });
        }
        let root = parser.parse_or()?;
        match parser.peek() {
            // `parse_or` only stops early at a parenthesis.
            Some(_) => Err(TextQueryError::UnmatchedParenthesis(parser.position())),
            None => Ok(Self { root }),
        }
    }

    /// The root of the tree.
    pub fn root(&self) -> &QueryNode {
        &self.root
    }

    /// The terms with a field, so that a caller can check the names.
    pub fn field_terms(&self) -> Vec<&QueryTerm> {
        fn collect<'a>(node: &'a QueryNode, terms: &mut Vec<&'a QueryTerm>) {
            match node {
                QueryNode::Term(term) => terms.extend(Some(term).filter(|term| term.field.is_some())),
                QueryNode::Not(inner) => collect(inner, terms),
                QueryNode::And(parts) | QueryNode::Or(parts) => parts.iter().for_each(|part| collect(part, terms)),
            }
        }
        let mut terms = Vec::new();
        collect(&self.root, &mut terms);
        terms
    }
}

struct Parser<'a> {
    text: &'a str,
    characters: Peekable<CharIndices<'a>>,
    depth: usize,
    terms: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.characters.peek().map(|(_, character)| *character)
    }

    fn rest(&mut self) -> &str {
        let start = self.characters.peek().map_or(self.text.len(), |(start, _)| *start);
        self.text.get(start..).unwrap_or_default()
    }

    /// The position of the next character, counted from 1.
    fn position(&mut self) -> usize {
        let rest = self.rest().len();
        self.text.get(..self.text.len() - rest).unwrap_or_default().chars().count() + 1
    }

    fn skip_blanks(&mut self) {
        while self.characters.next_if(|(_, character)| character.is_whitespace()).is_some() {}
    }

    fn skip(&mut self, characters: usize) {
        for _ in 0..characters {
            self.characters.next();
        }
    }

    /// Whether `word` is next and ends there.
    fn is_next_word(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word).map(|rest| rest.chars().next());
        after.is_some_and(|next| next.is_none_or(ends_word))
    }

    /// Consumes `word` if it is next and ends there.
    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.is_next_word(word);
        if is_next {
            self.skip(word.chars().count());
        }
        is_next
    }

    /// Consumes an operator between alternatives and returns how it is written.
    fn take_or(&mut self) -> Option<&'static str> {
        if self.take_word("OR") {
            return Some("OR");
        }
        let mut operator = None;
        while self.characters.next_if(|(_, character)| *character == '|').is_some() {
            operator = Some("|");
        }
        operator
    }

    fn parse_or(&mut self) -> Result<QueryNode, TextQueryError> {
        let mut parts = vec![self.parse_and()?];
        loop {
            self.skip_blanks();
            let position = self.position();
            let Some(operator) = self.take_or() else { break };
            self.skip_blanks();
            if matches!(self.peek(), None | Some(')')) {
                let operator = operator.to_owned();
                return Err(TextQueryError::MissingOperand { operator, position, side: "after" });
            }
            parts.push(self.parse_and()?);
        }
        Ok(single_or(parts, QueryNode::Or))
    }

    fn parse_and(&mut self) -> Result<QueryNode, TextQueryError> {
        let mut parts = Vec::new();
        loop {
            self.skip_blanks();
            let position = self.position();
            let missing = |operator: &str, side| {
                Err(TextQueryError::MissingOperand { operator: operator.to_owned(), position, side })
            };
            let next = self.peek();
            let is_or = next == Some('|') || self.is_next_word("OR");
            match next {
                _ if is_or && parts.is_empty() => return missing(if next == Some('|') { "|" } else { "OR" }, "before"),
                _ if is_or => break,
                None | Some(')') if parts.is_empty() => return missing("a parenthesis", "in"),
                None | Some(')') => break,
                _ => {}
            }
            if self.take_word("AND") {
                self.skip_blanks();
                if parts.is_empty() {
                    return missing("AND", "before");
                }
                if matches!(self.peek(), None | Some(')')) {
                    return missing("AND", "after");
                }
            }
            parts.push(self.parse_not()?);
        }
        Ok(single_or(parts, QueryNode::And))
    }

    fn parse_not(&mut self) -> Result<QueryNode, TextQueryError> {
        let position = self.position();
        self.depth += 1;
        if self.depth > QUERY_DEPTH_MAX {
            return Err(TextQueryError::TooDeep(position));
        }
        let node = match self.take_not() {
            Some(operator) => {
                self.skip_blanks();
                if matches!(self.peek(), None | Some(')' | '|')) {
                    let operator = operator.to_owned();
                    return Err(TextQueryError::MissingOperand { operator, position, side: "after" });
                }
                QueryNode::Not(Box::new(self.parse_not()?))
            }
            None if self.peek() == Some('(') => self.parse_parenthesis(position)?,
            None => self.parse_term(position)?,
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Consumes a negation. A `-` before a blank is text, as in `user - password`.
    fn take_not(&mut self) -> Option<&'static str> {
        if self.take_word("NOT") {
            return Some("NOT");
        }
        let rest = self.rest();
        let is_text =
            rest.strip_prefix('-').is_none_or(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        let operator = match rest.chars().next()? {
            '!' => "!",
            '-' if !is_text => "-",
            _ => return None,
        };
        self.characters.next();
        Some(operator)
    }

    fn parse_parenthesis(&mut self, position: usize) -> Result<QueryNode, TextQueryError> {
        self.characters.next();
        let inner = self.parse_or()?;
        self.skip_blanks();
        match self.characters.next() {
            Some(_) => Ok(inner),
            None => Err(TextQueryError::UnmatchedParenthesis(position)),
        }
    }

    fn parse_term(&mut self, position: usize) -> Result<QueryNode, TextQueryError> {
        self.terms += 1;
        if self.terms > QUERY_TERMS_MAX {
            return Err(TextQueryError::TooManyTerms(position));
        }
        let mut field = None;
        if self.peek() == Some('"') {
            let phrase = self.parse_phrase()?;
            if self.characters.next_if(|(_, character)| *character == ':').is_none() {
                return Ok(QueryNode::Term(QueryTerm { field, pattern: phrase, is_quoted: true, position }));
            }
            field = phrase.as_literal().map(str::to_owned);
        } else if let Some(name) = field_name(self.rest()) {
            let name = name.to_owned();
            self.skip(name.chars().count() + 1);
            field = Some(name);
        }
        let is_quoted = self.peek() == Some('"');
        let pattern = if is_quoted { self.parse_phrase()? } else { self.parse_word() };
        match field {
            Some(field) if pattern.is_empty() && !is_quoted => Err(TextQueryError::MissingValue { field, position }),
            field => Ok(QueryNode::Term(QueryTerm { field, pattern, is_quoted, position })),
        }
    }

    fn parse_phrase(&mut self) -> Result<TextPattern, TextQueryError> {
        let position = self.position();
        self.characters.next();
        let mut pattern = TextPattern::new();
        loop {
            match self.characters.next().map(|(_, character)| character) {
                None => return Err(TextQueryError::UnclosedQuote(position)),
                Some('"') => return Ok(pattern),
                Some('\\') => {
                    let escaped = self.characters.next_if(|(_, character)| matches!(character, '"' | '\\'));
                    pattern.push(escaped.map_or('\\', |(_, character)| character));
                }
                Some(character) => pattern.push(character),
            }
        }
    }

    fn parse_word(&mut self) -> TextPattern {
        let mut pattern = TextPattern::new();
        while let Some((_, character)) = self.characters.next_if(|(_, character)| !ends_word(*character)) {
            match character {
                '*' => pattern.push_wildcard(),
                '\\' => pattern.push(self.characters.next().map_or('\\', |(_, character)| character)),
                character => pattern.push(character),
            }
        }
        pattern
    }
}

fn ends_word(character: char) -> bool {
    character.is_whitespace() || "()|\"".contains(character)
}

fn single_or(mut parts: Vec<QueryNode>, combine: impl Fn(Vec<QueryNode>) -> QueryNode) -> QueryNode {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            combine(parts)
        }
    }
}

/// The field at the start of `text` if it begins with one: a name that begins with a letter, and a colon. Addresses such
/// as `http://` have none.
fn field_name(text: &str) -> Option<&str> {
    let (name, after) = text.split_once(':')?;
    let is_start = |character: char| character.is_alphabetic() || matches!(character, '_' | '@');
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '@' | '.' | '-' | '/');
    (name.starts_with(is_start) && name.chars().all(is_part) && !after.starts_with("//") && !after.starts_with(':'))
        .then_some(name)
}
