//! Whether SQL of another program writes, by its words.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use tidegate_core::Error;

use crate::dialect::SqlDialect;
use crate::parse::{self, EscapeHandling};

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
