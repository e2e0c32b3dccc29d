//! Canonical tokens: each token of a statement as the parser reads it, and its unambiguous text for the database.
//!
//! A database receives neither the text of the caller nor the printed AST. The database may tokenize the text
//! differently (comments, escapes, dollar quotes, unusual whitespace), and printing the AST can create new tokens (`-
//! -1` becomes a comment). So the tokens of the parser are written again, each in an unambiguous form, separated by
//! spaces. Comments are left out, because some extensions read instructions from them.
//!
//! In PostgreSQL an operator is the longest run of certain characters, except for a trailing sign. The parser splits
//! some runs differently. Both must read the same operators, so the tokens are corrected. `?` as a placeholder is
//! distinguished from the JSON operator.

mod clauses;
mod omitted_clauses;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word};
use tidegate_core::{Error, ErrorKind};

pub(crate) use clauses::{expand_table_commands, rewrite_clauses, rewrite_text_forms};
pub(crate) use omitted_clauses::{clause_refusal, omit_clauses};

use crate::dialect::SqlDialect;
use crate::refusal::{ambiguous_token_error, refusal_error};

#[derive(Debug, Clone)]
pub(crate) struct CanonicalToken {
    /// The token for the parser.
    pub(crate) token: TokenWithSpan,
    /// The text for the database.
    text: String,
    /// Whether it directly followed the previous token.
    is_adjacent: bool,
}

pub(crate) fn canonicalize(
    sql: &str,
    tokens: Vec<TokenWithSpan>,
    dialect: SqlDialect,
) -> Result<Vec<CanonicalToken>, Error> {
    if sql.contains('\0') {
        return Err(refusal_error("the character U+0000", "text of a database cannot contain it", "Leave it out."));
    }
    let mut canonicalizer = Canonicalizer {
        dialect,
        tokens: Vec::with_capacity(tokens.len()),
        gap: TokenGap::Space,
        gap_before: TokenGap::Space,
        placeholders: 0,
        has_numbers: false,
    };
    let mut run = OperatorRun::default();
    for (token, source) in pair_with_sources(sql, tokens) {
        if dialect.is_postgres() && run.add_if_operator(&token, source) {
            continue;
        }
        canonicalizer.add_operators(&mut run)?;
        canonicalizer.add_token(token, source)?;
    }
    canonicalizer.add_operators(&mut run)?;
    Ok(canonicalizer.tokens)
}

pub(crate) fn join_tokens(pieces: &[CanonicalToken]) -> String {
    let mut text = String::with_capacity(pieces.len() * 6);
    let mut before: Option<&Token> = None;
    for piece in pieces {
        let token = &piece.token.token;
        if before.is_some_and(|before| !(piece.is_adjacent && can_be_adjacent(before, token))) {
            text.push(' ');
        }
        text.push_str(&piece.text);
        before = Some(token);
    }
    text
}

/// Whether two tokens stay separate without a space; false in doubt.
fn can_be_adjacent(left: &Token, right: &Token) -> bool {
    let is_name = |token: &Token| matches!(token, Token::Word(_));
    let closes = |token: &Token| matches!(token, Token::RParen | Token::RBracket);
    let is_literal =
        |token: &Token| matches!(token, Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_));
    match (left, right) {
        (Token::LParen | Token::LBracket, _) => true,
        (_, Token::RParen | Token::RBracket | Token::Comma | Token::SemiColon) => true,
        (left, Token::DoubleColon) => is_name(left) || closes(left) || is_literal(left),
        (left, Token::LParen | Token::LBracket | Token::Period) if is_name(left) || closes(left) => true,
        (Token::Period | Token::DoubleColon, right) => is_name(right) || *right == Token::Mul,
        (left, right) if is_operator(left) => is_name(right) || is_literal(right) || *right == Token::LParen,
        (left, right) if is_operator(right) => is_name(left) || is_literal(left) || closes(left),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenGap {
    Nothing,
    Space,
    /// Whitespace with a line break, over which string literals continue.
    LineBreak,
}

struct Canonicalizer {
    dialect: SqlDialect,
    tokens: Vec<CanonicalToken>,
    gap: TokenGap,
    gap_before: TokenGap,
    placeholders: usize,
    has_numbers: bool,
}

impl Canonicalizer {
    fn add_token(&mut self, token: TokenWithSpan, source: &str) -> Result<(), Error> {
        let TokenWithSpan { token, span } = token;
        let gap = std::mem::replace(&mut self.gap, TokenGap::Nothing);
        self.gap_before = gap;
        match token {
            Token::Whitespace(Whitespace::MultiLineComment(text)) if self.is_version_comment(&text) => {
                return Err(version_comment_error());
            }
            Token::Whitespace(space) => self.gap = gap.extended_by(&space),
            Token::EOF => {}
            Token::Word(word) => self.add_word(word, span, source)?,
            // The parser resolves other escapes than MySQL.
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) if self.dialect.is_mysql() => {
                let value = mysql_string_value(source).ok_or_else(|| ambiguous_token_error(source))?;
                self.add_string(value, span);
            }
            Token::SingleQuotedString(value) if gap == TokenGap::LineBreak && self.continues_a_string() => {
                self.extend_string(&value)
            }
            Token::SingleQuotedString(value)
            | Token::EscapedStringLiteral(value)
            | Token::UnicodeStringLiteral(value) => self.add_string(value, span),
            Token::DollarQuotedString(string) => self.add_string(string.value, span),
            Token::NationalStringLiteral(value) => self.add_national_string(value, span)?,
            Token::SingleQuotedByteStringLiteral(bits) => {
                let text = format!("B'{bits}'");
                let is_known = bits.chars().all(|bit| matches!(bit, '0' | '1'));
                self.add_literal(Token::SingleQuotedByteStringLiteral(bits), span, is_known.then_some(text), source)?;
            }
            // The parser reads the number 0x1F as the bytes X'1F'.
            Token::HexStringLiteral(_) if source.starts_with('0') => {
                let number = Token::Number(source.to_owned(), false);
                let text = checked_source(&number, source).map(str::to_owned);
                self.add_literal(number, span, text, source)?;
            }
            Token::HexStringLiteral(digits) => {
                let text = source.to_owned();
                let is_known = digits.chars().all(|digit| digit.is_ascii_hexdigit());
                self.add_literal(Token::HexStringLiteral(digits), span, is_known.then_some(text), source)?;
            }
            Token::Placeholder(name) => self.add_placeholder(&name, span)?,
            other => {
                let text = checked_source(&other, source).map(str::to_owned);
                self.add_literal(other, span, text, source)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, token: Token, span: Span, text: String) {
        // The driver of MySQL reads a quotation mark right after `-` or `/` as another token.
        let is_apart = self.dialect.is_mysql() && matches!(token, Token::SingleQuotedString(_));
        let is_close = self.gap_before == TokenGap::Nothing && !is_apart;
        self.tokens.push(CanonicalToken { token: TokenWithSpan { token, span }, text, is_adjacent: is_close });
    }

    /// Adds operators as PostgreSQL splits them.
    fn add_operators(&mut self, run: &mut OperatorRun) -> Result<(), Error> {
        for (token, text) in run.take()? {
            self.gap_before = std::mem::replace(&mut self.gap, TokenGap::Nothing);
            self.push(token.token, token.span, text);
        }
        Ok(())
    }

    fn add_word(&mut self, word: Word, span: Span, source: &str) -> Result<(), Error> {
        if word.quote_style.is_some() {
            self.check_no_unicode_name()?;
            let text = self.dialect.quote_identifier(&word.value);
            let quote_style = Some(self.dialect.identifier_quote());
            self.push(Token::Word(Word { quote_style, ..word }), span, text);
            return Ok(());
        }
        if word.value.eq_ignore_ascii_case("uescape")
            && matches!(self.token_from_end(0), Some(Token::SingleQuotedString(_)))
        {
            let hint = "Write the characters themselves.";
            return Err(refusal_error("UESCAPE", "these escapes are not supported", hint));
        }
        let starts =
            word.value.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_' || !first.is_ascii());
        let is_name = word.value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii());
        if !(starts && is_name) {
            return Err(ambiguous_token_error(source));
        }
        if word.keyword == Keyword::TABLE && self.dialect.is_postgres() && self.begins_a_query() {
            // `TABLE name` is short for `SELECT * FROM name`; the parser drops the quotation marks of the name.
            self.push(Token::make_keyword("SELECT"), span, "SELECT".to_owned());
            self.gap_before = TokenGap::Space;
            self.push(Token::Mul, span, "*".to_owned());
            self.push(Token::make_keyword("FROM"), span, "FROM".to_owned());
            return Ok(());
        }
        let text = word.value.clone();
        self.push(Token::Word(word), span, text);
        Ok(())
    }

    /// A comment whose text MySQL or MariaDB runs: `/*! … */`, `/*!50000 … */`, `/*M! … */`.
    fn is_version_comment(&self, text: &str) -> bool {
        self.dialect.is_mysql() && (text.starts_with('!') || text.starts_with("M!"))
    }

    fn token_from_end(&self, back: usize) -> Option<&Token> {
        self.tokens.iter().rev().nth(back).map(|piece| &piece.token.token)
    }

    fn begins_a_query(&self) -> bool {
        self.token_from_end(0).is_none_or(clauses::can_precede_query)
    }

    /// `U&"d\0061ta"` is another name than the parser would read.
    fn check_no_unicode_name(&self) -> Result<(), Error> {
        let is_marked = match (self.token_from_end(1), self.token_from_end(0)) {
            (Some(Token::Word(u)), Some(Token::Ampersand)) => u.value.eq_ignore_ascii_case("u"),
            _ => false,
        };
        if is_marked && self.gap_before == TokenGap::Nothing && self.dialect.is_postgres() {
            return Err(omitted_clauses::unicode_name_error());
        }
        Ok(())
    }

    fn continues_a_string(&self) -> bool {
        self.dialect.is_postgres() && matches!(self.token_from_end(0), Some(Token::SingleQuotedString(_)))
    }

    fn extend_string(&mut self, more: &str) {
        if let Some(CanonicalToken { token, text, .. }) = self.tokens.last_mut()
            && let Token::SingleQuotedString(value) = &mut token.token
        {
            value.push_str(more);
            *text = quote_string(value, self.dialect);
        }
    }

    fn add_string(&mut self, value: String, span: Span) {
        let text = quote_string(&value, self.dialect);
        self.push(Token::SingleQuotedString(value), span, text);
    }

    fn add_national_string(&mut self, value: String, span: Span) -> Result<(), Error> {
        if !self.dialect.is_postgres() || value.contains('\\') {
            return Err(refusal_error("the string N'…'", "it is ambiguous", "Leave out the N."));
        }
        let text = format!("N'{}'", value.replace('\'', "''"));
        self.push(Token::NationalStringLiteral(value), span, text);
        Ok(())
    }

    /// `?` becomes the next `$n` for the parser. SQLite receives `?n`, because `$n` is a name there.
    fn add_placeholder(&mut self, name: &str, span: Span) -> Result<(), Error> {
        let number = if name == "?" {
            self.placeholders += 1;
            self.placeholders.to_string()
        } else {
            self.has_numbers = true;
            name[1..].to_owned()
        };
        if self.placeholders > 0 && self.has_numbers {
            return Err(Error::new(ErrorKind::InvalidArguments, "the statement mixes ? and $1")
                .with_hint("Write placeholders as $1, $2, … or as ?; not both in one statement."));
        }
        let is_number = !number.is_empty() && number.len() < 6 && number.chars().all(|digit| digit.is_ascii_digit());
        if !is_number {
            let message = format!("unsupported placeholder {name}");
            return Err(Error::new(ErrorKind::InvalidArguments, message)
                .with_hint("Write placeholders as $1, $2, … in the order of the parameters."));
        }
        let mark = self.dialect.placeholder_mark();
        self.push(Token::Placeholder(format!("${number}")), span, format!("{mark}{number}"));
        Ok(())
    }

    fn add_literal(&mut self, token: Token, span: Span, text: Option<String>, source: &str) -> Result<(), Error> {
        let text = text.ok_or_else(|| ambiguous_token_error(source))?;
        self.push(token, span, text);
        Ok(())
    }
}

impl TokenGap {
    fn extended_by(self, space: &Whitespace) -> Self {
        match space {
            Whitespace::Newline | Whitespace::SingleLineComment { .. } => Self::LineBreak,
            _ if self == Self::LineBreak => Self::LineBreak,
            _ => Self::Space,
        }
    }
}

/// The text of numbers, brackets and operators, which stay unchanged.
fn checked_source<'a>(token: &Token, source: &'a str) -> Option<&'a str> {
    let is_one_word = match token {
        Token::Number(..) => source.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-')),
        Token::Char(_) | Token::Backslash => false,
        _ => source.chars().all(|c| c.is_ascii_punctuation() && !matches!(c, '\'' | '"' | '`' | '\\')),
    };
    (is_one_word && !source.contains("--") && !source.contains("/*")).then_some(source)
}

fn version_comment_error() -> Error {
    let reason = "the server runs its text as SQL, depending on its version";
    refusal_error("a version comment, /*! … */", reason, "Write the SQL without the comment.")
}

/// The value of `source`, a string of MySQL in single or double quotes. The session has no `NO_BACKSLASH_ESCAPES`.
///
/// [MySQL, String Literals](https://dev.mysql.com/doc/refman/8.4/en/string-literals.html)
fn mysql_string_value(source: &str) -> Option<String> {
    let quote = source.chars().next()?;
    let inner = source.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character == quote {
            // Two are one.
            value.push(characters.next().filter(|next| *next == quote)?);
        } else if character == '\\' {
            match characters.next()? {
                '0' => value.push('\0'),
                'b' => value.push('\u{8}'),
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'Z' => value.push('\u{1a}'),
                // Patterns of LIKE need the backslash.
                wildcard @ ('%' | '_') => value.extend(['\\', wildcard]),
                other => value.push(other),
            }
        } else {
            value.push(character);
        }
    }
    Some(value)
}

fn quote_string(value: &str, dialect: SqlDialect) -> String {
    let doubled = value.replace('\'', "''");
    if dialect.is_mysql() {
        return format!("'{}'", doubled.replace('\\', "\\\\").replace('\0', "\\0"));
    }
    if dialect.is_postgres() && doubled.contains('\\') {
        // Independent of the server setting standard_conforming_strings.
        return format!("E'{}'", doubled.replace('\\', "\\\\"));
    }
    format!("'{doubled}'")
}

/// Pairs each token with its text in `sql`. Tokens follow one another without gaps.
pub(crate) fn pair_with_sources(sql: &str, tokens: Vec<TokenWithSpan>) -> impl Iterator<Item = (TokenWithSpan, &str)> {
    let mut rest = sql;
    let (mut line, mut column) = (1, 1);
    tokens.into_iter().map(move |token| {
        let end = token.span.end;
        let mut bytes = 0;
        for character in rest.chars() {
            if line > end.line || (line == end.line && column >= end.column) {
                break;
            }
            bytes += character.len_utf8();
            if character == '\n' {
                (line, column) = (line + 1, 1);
            } else {
                column += 1;
            }
        }
        let (source, after) = rest.split_at(bytes);
        rest = after;
        (token, source)
    })
}

const OPERATOR_CHARACTERS: &str = "+-*/<>=~!@#%^&|`?";
/// An operator of several characters may end with + or - if it contains one of these.
const CHARACTERS_KEEPING_SIGN: &str = "~!@#^&|`?%";

/// The maximum length of a run; PostgreSQL has no longer operators.
const RUN_BYTES_MAX: usize = 63;

#[derive(Default)]
struct OperatorRun {
    text: String,
    first: Option<TokenWithSpan>,
}

impl OperatorRun {
    fn add_if_operator(&mut self, token: &TokenWithSpan, source: &str) -> bool {
        let is_operator = !source.is_empty()
            && !matches!(token.token, Token::Whitespace(_))
            && source.chars().all(|character| OPERATOR_CHARACTERS.contains(character));
        if is_operator {
            self.text.push_str(source);
            self.first.get_or_insert_with(|| token.clone());
        }
        is_operator
    }

    fn take(&mut self) -> Result<Vec<(TokenWithSpan, String)>, Error> {
        let Some(first) = self.first.take() else { return Ok(Vec::new()) };
        let run = std::mem::take(&mut self.text);
        // Within a run the parser misses comments that PostgreSQL recognizes.
        if run.len() > RUN_BYTES_MAX || run.contains("--") || run.contains("/*") {
            return Err(ambiguous_token_error(&run));
        }
        let operators = split_operators(&run).into_iter().map(|operator| {
            let token =
                parse_single_token(operator).unwrap_or_else(|| Token::CustomBinaryOperator(operator.to_owned()));
            (TokenWithSpan { token, span: first.span }, operator.to_owned())
        });
        Ok(operators.collect())
    }
}

/// Whether `token` is an operator that stays separate beside any token that is not an operator.
///
/// Not `&`: after a U it begins strings and names with escapes.
pub(crate) fn is_operator(token: &Token) -> bool {
    !matches!(token, Token::Ampersand | Token::Word(_))
        && !token.to_string().is_empty()
        && token.to_string().chars().all(|character| OPERATOR_CHARACTERS.contains(character))
}

/// Splits `run` into the operators that PostgreSQL reads.
fn split_operators(run: &str) -> Vec<&str> {
    let mut operators = Vec::new();
    let mut rest = run;
    while !rest.is_empty() {
        let keeps_a_sign = rest[..rest.len() - 1].contains(|character| CHARACTERS_KEEPING_SIGN.contains(character));
        let bare = if keeps_a_sign { rest } else { rest.trim_end_matches(['+', '-']) };
        // In a run of signs, each sign is an operator.
        let length = if bare.is_empty() { 1 } else { bare.len() };
        let (operator, after) = rest.split_at(length);
        operators.push(operator);
        rest = after;
    }
    operators
}

fn parse_single_token(text: &str) -> Option<Token> {
    let mut tokens = Tokenizer::new(SqlDialect::Postgres.parser_dialect(), text).tokenize().ok()?;
    let only = tokens.pop().filter(|_| tokens.is_empty())?;
    (only.to_string() == text || (only == Token::Neq && text == "!=")).then_some(only)
}

/// Converts each `?` that does not follow an operand to a placeholder.
pub(crate) fn mark_placeholders(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut ends_operand = false;
    for TokenWithSpan { token, .. } in &mut tokens {
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        if *token == Token::Question && !ends_operand {
            *token = Token::Placeholder("?".to_owned());
        }
        ends_operand = is_end_of_operand(token);
    }
    tokens
}

#[rustfmt::skip]
const KEYWORDS_BEFORE_OPERANDS: &[Keyword] = &[
    Keyword::ALL, Keyword::AND, Keyword::ANY, Keyword::BETWEEN, Keyword::BY, Keyword::CASE, Keyword::DISTINCT,
    Keyword::ELSE, Keyword::ESCAPE, Keyword::FIRST, Keyword::FROM, Keyword::HAVING, Keyword::ILIKE, Keyword::IN,
    Keyword::LIKE, Keyword::LIMIT, Keyword::NEXT, Keyword::NOT, Keyword::OFFSET, Keyword::ON, Keyword::OR,
    Keyword::SELECT, Keyword::THEN, Keyword::TO, Keyword::VALUES, Keyword::WHEN, Keyword::WHERE,
];

fn is_end_of_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || !KEYWORDS_BEFORE_OPERANDS.contains(&word.keyword),
        Token::RParen | Token::RBracket | Token::Number(..) | Token::Placeholder(_) => true,
        other => is_text(other),
    }
}

fn is_text(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_))
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    #[test]
    fn splits_operators_like_postgresql() {
        assert_eq!(split_operators("<>-"), ["<>", "-"]);
        assert_eq!(split_operators("*-"), ["*", "-"]);
        assert_eq!(split_operators("+-+"), ["+", "-", "+"]);
        assert_eq!(split_operators("@-"), ["@-"]);
        assert_eq!(split_operators("||-"), ["||-"]);
        assert_eq!(split_operators("->>-"), ["->>", "-"]);
        assert_eq!(split_operators("->-"), ["->", "-"]);
        assert_eq!(split_operators("<|"), ["<|"]);
        assert_eq!(split_operators("-"), ["-"]);
    }

    fn placeholders(sql: &str) -> usize {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        let tokens = mark_placeholders(tokens);
        tokens.iter().filter(|token| matches!(token.token, Token::Placeholder(_))).count()
    }

    #[test]
    fn distinguishes_placeholder_from_json_operator() {
        assert_eq!(placeholders("SELECT * FROM t WHERE id IN (?, ?) AND a = ? LIMIT ? OFFSET ?"), 5);
        assert_eq!(placeholders("SELECT ? WHERE ? = a AND a BETWEEN ? AND ?"), 4);
        assert_eq!(placeholders("SELECT doc ? 'a', doc -> 'b' ? key, (doc) ? ('a') FROM t"), 0);
        assert_eq!(placeholders("SELECT doc ? ? FROM t WHERE data ? 'x'"), 1);
    }
}
