//! Fingerprints of statements for the audit log: equal for statements that differ only in their values.

use sha2::{Digest, Sha256};
use sqlparser::tokenizer::{Token, Tokenizer};
use tidegate_core::AuditedStatement;

use crate::dialect::SqlDialect;
use crate::statement::Statement;

/// The fingerprint of longer texts is computed at once, so that they do not wait in memory for the audit log.
const DEFERRED_BYTES_MAX: usize = 4 * 1024;

const FINGERPRINT_BYTES: usize = 8;

/// The fingerprint of `sql`: 16 hexadecimal digits. Literals and placeholders count as the same, and lists of them
/// whatever their length; so do spaces, comments, and the case of words outside quotes.
pub(crate) fn fingerprint(sql: &str, dialect: SqlDialect) -> String {
    hex::encode(&Sha256::digest(normalize(sql, dialect))[..FINGERPRINT_BYTES])
}

impl Statement {
    /// The record of the statement for the audit log.
    pub fn to_audited_statement(&self, database: &str) -> AuditedStatement {
        let (text, dialect) = (self.text(), self.dialect());
        let fingerprint: Box<dyn FnOnce() -> String + Send> = if text.len() > DEFERRED_BYTES_MAX {
            let found = fingerprint(text, dialect);
            Box::new(move || found)
        } else {
            let text = text.to_owned();
            Box::new(move || fingerprint(&text, dialect))
        };
        AuditedStatement { database: database.to_owned(), tables: self.tables().to_vec(), fingerprint }
    }
}

fn normalize(sql: &str, dialect: SqlDialect) -> String {
    let Ok(tokens) = Tokenizer::new(dialect.parser_dialect(), sql).tokenize() else { return sql.trim().to_owned() };
    let mut words: Vec<String> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let word = match token {
            Token::Whitespace(_) | Token::SemiColon | Token::EOF => continue,
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            token if is_value(&token) => "?".to_owned(),
            token => token.to_string(),
        };
        // `?, ?` becomes `?`, because lists of values differ only in length.
        if word == "?" && words.ends_with(&["?".to_owned(), ",".to_owned()]) {
            words.pop();
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}

fn is_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_values_whitespace_comments_and_case() {
        let same = [
            "SELECT * FROM orders WHERE id IN (1, 2, 3) AND name = 'ann' -- why",
            "select *\n  from Orders where ID in ($1) and NAME = $2;",
            "SELECT * FROM orders WHERE id IN (?, ?) AND name = 'o''hara' /* or else */",
        ];
        for dialect in [SqlDialect::DataFusion, SqlDialect::Postgres, SqlDialect::Sqlite] {
            let read: Vec<String> = same.iter().map(|sql| normalize(sql, dialect)).collect();
            assert!(read.iter().all(|text| text == "select * from orders where id in ( ? ) and name = ?"), "{read:?}");
        }
        let dollars = normalize("SELECT $x$secret$x$, E'a\\n', 0x1F", SqlDialect::Postgres);
        assert!(!dollars.contains("secret") && dollars.starts_with("select ?"), "{dollars}");
    }

    #[test]
    fn distinguishes_tables_and_columns() {
        let dialect = SqlDialect::DataFusion;
        let all =
            ["SELECT a FROM t", "SELECT a FROM u", "SELECT b FROM t", "SELECT \"A\" FROM t", "SELECT a, a FROM t"];
        let mut seen: Vec<String> = all.iter().map(|sql| fingerprint(sql, dialect)).collect();
        assert!(seen.iter().all(|print| print.len() == 16));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all.len());
    }

    #[test]
    fn fingerprints_invalid_sql() {
        assert_ne!(fingerprint("'open", SqlDialect::Postgres), fingerprint("'closed", SqlDialect::Postgres));
    }
}
