//! The names that a statement mentions, for the check of a database's own functions, and whether SQL of another program writes,
//! by its words.
//!
//! A function may be called without its name in front of a parenthesis: as a field of a row, by an operator, by a cast.
//! So the names come from the tokens that the database receives, with their position, and not from the AST.

use std::collections::BTreeSet;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::parse::EscapeHandling;
use crate::statement::Statement;
use crate::{canonical_tokens, parse};

/// PostgreSQL cuts longer names.
const NAME_BYTES_MAX: usize = 63;

/// The names in a statement, in lower case.
#[derive(Debug, Default)]
pub struct Mentions {
    /// Names before a parenthesis.
    pub calls: BTreeSet<CalledName>,
    /// Names after a dot that are not before a parenthesis: columns, fields, and functions that are written so.
    pub fields: BTreeSet<String>,
    /// Names of types that a value is cast to. A few other names may be among them, such as those after AS.
    pub cast_targets: BTreeSet<String>,
    /// All words, also keywords.
    pub words: BTreeSet<String>,
    /// Operators, also those behind keywords such as LIKE and IN.
    pub operators: BTreeSet<String>,
    /// Whether there is an explicit cast.
    pub has_cast: bool,
}

/// A name before a parenthesis.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledName {
    /// The schema, if one is given.
    pub schema: Option<String>,
    /// The name.
    pub name: String,
    /// Whether it is in double quotes; otherwise it may be a keyword.
    pub is_quoted: bool,
}

/// The operators behind keywords. `NATURAL`, `USING`, `CASE` and `NULLIF` compare with `=`.
const KEYWORD_OPERATORS: &[(Keyword, &[&str])] = &[
    (Keyword::IN, &["=", "<>"]),
    (Keyword::BETWEEN, &["<", "<=", ">", ">="]),
    (Keyword::LIKE, &["~~", "!~~"]),
    (Keyword::ILIKE, &["~~*", "!~~*"]),
    (Keyword::SIMILAR, &["~", "!~"]),
    (Keyword::DISTINCT, &["="]),
    (Keyword::NATURAL, &["="]),
    (Keyword::USING, &["="]),
    (Keyword::CASE, &["="]),
    (Keyword::NULLIF, &["="]),
];

impl Statement {
    /// The names that the text of the statement mentions.
    ///
    /// # Errors
    /// `InvalidArguments` if the text of a statement that was not parsed cannot be read.
    pub fn mentions(&self) -> Result<Mentions, Error> {
        let (text, dialect) = (self.text(), self.dialect());
        let tokens = parse::tokenize(text, dialect, EscapeHandling::Resolved)?;
        let tokens: Vec<Token> =
            canonical_tokens::canonicalize(text, tokens, dialect)?.into_iter().map(|piece| piece.token.token).collect();
        let mut mentions = Mentions::default();
        for index in 0..tokens.len() {
            mentions.add(&tokens, index, dialect);
        }
        Ok(mentions)
    }
}

impl Mentions {
    fn add(&mut self, tokens: &[Token], index: usize, dialect: SqlDialect) {
        match &tokens[index] {
            Token::Word(word) => self.add_word(word, &tokens[..index], tokens.get(index + 1), dialect),
            Token::DoubleColon => self.has_cast = true,
            Token::Mul if is_wildcard(&tokens[..index]) => {}
            token @ (Token::Neq | Token::Ampersand) => {
                self.operators.insert(if *token == Token::Neq { "<>" } else { "&" }.to_owned());
            }
            operator if canonical_tokens::is_operator(operator) => {
                self.operators.insert(operator.to_string());
            }
            _ => {}
        }
    }

    fn add_word(&mut self, word: &Word, before: &[Token], next: Option<&Token>, dialect: SqlDialect) {
        let name = fold_name(word, dialect);
        let is_quoted = word.quote_style.is_some();
        if !is_quoted {
            self.has_cast |= word.keyword == Keyword::CAST;
            let implied = KEYWORD_OPERATORS.iter().filter(|(keyword, _)| *keyword == word.keyword);
            self.operators.extend(implied.flat_map(|(_, operators)| *operators).map(|operator| (*operator).to_owned()));
        }
        let is_cast_target = is_cast_target(before) || matches!(next, Some(Token::SingleQuotedString(_)));
        if next == Some(&Token::LParen) {
            let schema = match before {
                [.., Token::Word(schema), Token::Period] => Some(fold_name(schema, dialect)),
                _ => None,
            };
            self.calls.insert(CalledName { schema, name: name.clone(), is_quoted });
        } else if before.last() == Some(&Token::Period) {
            self.fields.insert(name.clone());
        }
        if is_cast_target {
            self.cast_targets.insert(name.clone());
        }
        self.words.insert(name);
    }
}

/// Whether the name that follows `before` is a type, perhaps with its schema.
fn is_cast_target(before: &[Token]) -> bool {
    match before {
        [rest @ .., Token::Word(_), Token::Period] => is_cast_target(rest),
        [.., Token::DoubleColon] => true,
        [.., Token::Word(Word { quote_style: None, keyword: Keyword::AS, .. })] => true,
        _ => false,
    }
}

/// Whether `*` after `before` means all columns or rows: no operand precedes it.
fn is_wildcard(before: &[Token]) -> bool {
    let mut unqualified = before;
    while let [rest @ .., Token::Word(_), Token::Period] = unqualified {
        unqualified = rest;
    }
    match before {
        // `OPERATOR(schema.*)` is the operator.
        _ if matches!(unqualified, [.., Token::Word(word), Token::LParen] if word.value.eq_ignore_ascii_case("operator")) => {
            false
        }
        [.., Token::LParen | Token::Comma | Token::Period] => true,
        // After a dot, the word is a column.
        [.., Token::Period, Token::Word(_)] => false,
        [.., Token::Word(Word { quote_style: None, keyword, .. })] => {
            matches!(keyword, Keyword::SELECT | Keyword::ALL | Keyword::DISTINCT)
        }
        _ => false,
    }
}

fn fold_name(word: &Word, dialect: SqlDialect) -> String {
    let has_case = word.quote_style.is_some() && !dialect.ignores_case();
    let name = if has_case { word.value.clone() } else { word.value.to_ascii_lowercase() };
    // Some servers also fold letters that are not ASCII.
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_lowercase()
}

/// Whether `sql` changes data or locks rows, as far as its words show. Functions that write are not recognized.
///
/// # Errors
/// `InvalidArguments` when the text cannot be tokenized.
pub fn may_write(sql: &str, dialect: SqlDialect) -> Result<bool, Error> {
    let tokens = parse::tokenize(sql, dialect, EscapeHandling::Verbatim)?;
    let words: Vec<String> = tokens.iter().filter_map(word).collect();
    let reads = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN"];
    let first = words.iter().find(|word| *word != "(");
    if first.is_some_and(|first| !reads.contains(&first.as_str())) {
        return Ok(true);
    }
    let mut has_insert = false;
    for [word, next] in words.array_windows() {
        has_insert |= matches!(word.as_str(), "INSERT" | "MERGE");
        let writes = match (word.as_str(), next.as_str()) {
            ("INSERT" | "MERGE", "INTO") | ("DELETE", "FROM") => true,
            ("FOR", "UPDATE" | "SHARE" | "NO" | "KEY") => true,
            // The beginning of a statement; a column may have this name too.
            ("(" | ")" | "ANALYZE", "UPDATE") => true,
            (_, "INTO") => !has_insert,
            _ => false,
        };
        if writes {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A word without quotation marks in upper case, or a parenthesis.
fn word(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        Token::LParen => Some("(".to_owned()),
        Token::RParen => Some(")".to_owned()),
        Token::Whitespace(_) => None,
        _ => Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
        let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
        names.sort_unstable();
        names.join(" ")
    }

    fn mentions(sql: &str) -> Mentions {
        Statement::parse(sql, SqlDialect::Postgres).unwrap().mentions().unwrap()
    }

    #[test]
    fn calls_have_their_schema() {
        let found = mentions("SELECT F(1), s.\"G\"(2), count(*), x FROM t");
        let call = |schema: Option<&str>, name: &str, is_quoted| CalledName {
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
            is_quoted,
        };
        let expected = [call(None, "f", false), call(Some("s"), "g", true), call(None, "count", false)];
        assert_eq!(found.calls, expected.into());
    }

    #[test]
    fn fields_casts_and_operators_are_found() {
        let found = mentions("SELECT c.evil, (c).odd, a::public.kind, CAST(b AS sort), 'x'::text, d ~~~ 'e' FROM c");
        assert_eq!(sorted(&found.fields), "evil kind odd");
        assert_eq!(sorted(&found.cast_targets), "kind public sort text");
        assert_eq!(sorted(&found.operators), "~~~");
        assert!(found.has_cast);
    }

    #[test]
    fn keywords_imply_their_operators() {
        let found = mentions("SELECT *, count(*), 2 * 3 FROM t WHERE a IN (1) AND b LIKE 'x' AND c != 2");
        assert_eq!(sorted(&found.operators), "!~~ * <> = ~~");
        assert_eq!(sorted(&mentions("SELECT * FROM t").operators), "");
        assert_eq!(sorted(&mentions("SELECT t.*, (SELECT ALL * FROM a LIMIT 1), count(t.*) FROM s.t").operators), "");
        for sql in ["2 OPERATOR(public.*) 3", "2 OPERATOR(*) 3", "q.all * value", "\"all\" * a"] {
            assert_eq!(sorted(&mentions(&format!("SELECT {sql} FROM q")).operators), "*", "{sql}");
        }
        assert!(!found.has_cast);
    }

    #[test]
    fn long_names_are_cut_as_the_server_does() {
        let found = mentions(&format!("SELECT {}()", "x".repeat(70)));
        assert!(found.words.contains(&"x".repeat(63)), "{:?}", found.words);
    }

    #[test]
    fn writing_statements_are_recognized() {
        let writes = |sql: &str| may_write(sql, SqlDialect::Postgres).unwrap();
        for sql in [
            "INSERT INTO t VALUES ($1)",
            "with gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
            "WITH a AS (SELECT 1) UPDATE t SET a = 1",
            "WITH a AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM a",
            "SELECT * FROM t FOR UPDATE SKIP LOCKED",
            "SELECT * INTO copy FROM t",
            "CALL refund($1)",
            "EXPLAIN ANALYZE UPDATE t SET a = 1",
        ] {
            assert!(writes(sql), "{sql}");
        }
        for sql in [
            "SELECT 'DELETE FROM t', \"insert\", update FROM t -- INSERT INTO t",
            "WITH a AS (SELECT 1) SELECT substring(b FOR 3), a.update FROM a",
            "(SELECT 1) UNION SELECT 2",
            "VALUES (1)",
        ] {
            assert!(!writes(sql), "{sql}");
        }
    }
}
