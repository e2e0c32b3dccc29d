//! What must hold of SQL that a caller sends: it is refused in words, or one query whose text reads as its tree does.
//!
//! The first byte chooses the database. Run by the fuzz target `statement`, and by a test of `tidegate-sql` over the
//! stored corpus.

use sqlparser::ast;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};
use tidegate_core::ErrorKind;
use tidegate_sql::{SqlDialect, Statement};

const DIALECTS: [SqlDialect; 3] = [SqlDialect::DataFusion, SqlDialect::Postgres, SqlDialect::Sqlite];

/// Words that no query holds by themselves, in whatever place a statement may begin.
const WRITES: [&str; 12] =
    ["INSERT", "UPDATE", "DELETE", "MERGE", "DROP", "CREATE", "ALTER", "TRUNCATE", "COPY", "ATTACH", "PRAGMA", "GRANT"];

/// Panics when anything but that comes of `bytes`.
pub(crate) fn check(bytes: &[u8]) {
    let Some((choice, sql)) = bytes.split_first() else { return };
    let dialect = DIALECTS[usize::from(*choice) % DIALECTS.len()];
    let Ok(sql) = std::str::from_utf8(sql) else { return };
    match Statement::parse(sql, dialect) {
        Ok(statement) => check_passed(&statement, sql),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidArguments | ErrorKind::TooLarge), "{sql}\n{error}");
            assert!(!error.to_string().is_empty(), "{sql}");
        }
    }
}

fn check_passed(statement: &Statement, sql: &str) {
    let dialect = statement.dialect();
    let again = Statement::parse(statement.text(), dialect)
        .unwrap_or_else(|error| panic!("its own text is refused\n{sql}\n{}\n{error}", statement.text()));
    assert_eq!(again.ast(), statement.ast(), "its own text means something else\n{sql}\n{}", statement.text());
    assert_eq!(again.tables(), statement.tables(), "{sql}");
    assert_eq!(again.functions(), statement.functions(), "{sql}");
    assert!(matches!(statement.ast(), Some(ast::Statement::Query(_))), "{sql}");
    let tokens = Tokenizer::new(dialect.parser_dialect(), statement.text())
        .tokenize()
        .unwrap_or_else(|error| panic!("its own text has no words\n{sql}\n{}\n{error}", statement.text()));
    let mut after_the_first = tokens.iter().skip_while(|token| **token != Token::SemiColon);
    let ends = after_the_first.all(|token| matches!(token, Token::SemiColon | Token::Whitespace(_)));
    assert!(ends, "two statements\n{sql}\n{}", statement.text());
    let is_comment = |token: &Token| {
        matches!(token, Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)))
    };
    // The embedded engine runs the tree and never sees the text.
    let is_sent = !dialect.is_embedded();
    assert!(!(is_sent && tokens.iter().any(is_comment)), "a comment stays\n{sql}\n{}", statement.text());
    let first = tokens.iter().find_map(|token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
        _ => None,
    });
    let writes = first.filter(|first| WRITES.contains(&first.as_str()));
    assert!(writes.is_none(), "a statement that writes\n{sql}\n{}", statement.text());
}
