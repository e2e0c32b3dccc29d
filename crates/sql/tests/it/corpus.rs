//! The corpora of `tests/corpus`: attempts to get out, and honest SQL that must pass.
//!
//! One statement an entry, entries apart by empty lines, comment lines (`-- …`) before a statement
//! about it. Anyone can add an entry; the tests read whatever is there.

use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};
use tidegate_core::ErrorKind;
use tidegate_sql::{SqlDialect, Statement};

/// One entry of a corpus.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its comment, in one line.
    pub(crate) comment: String,
    pub(crate) sql: String,
}

impl Entry {
    /// What its comment says after `annotate`, if it begins with that.
    pub(crate) fn marked(&self, mark: &str) -> Option<&str> {
        self.comment.strip_prefix(mark)?.strip_prefix(':').map(str::trim)
    }
}

pub(crate) fn entries(text: &str) -> Vec<Entry> {
    let blocks = text.split("\n\n").map(str::trim_end).filter(|block| !block.is_empty());
    let entry = |block: &str| {
        let lines: Vec<&str> = block.trim_start_matches('\n').split('\n').collect();
        let comments = lines.iter().take_while(|line| line.starts_with("-- ")).count();
        let comment: Vec<&str> = lines[..comments].iter().map(|line| line[3..].trim()).collect();
        Entry { comment: comment.join(" "), sql: lines[comments..].join("\n") }
    };
    blocks.map(entry).filter(|entry| !entry.sql.is_empty()).collect()
}

const POSTGRES_HONEST: &str = include_str!("../corpus/postgres/honest.sql");
const POSTGRES_ATTEMPTS: &str = include_str!("../corpus/postgres/attempts.sql");
const SQLITE_HONEST: &str = include_str!("../corpus/sqlite/honest.sql");
const SQLITE_ATTEMPTS: &str = include_str!("../corpus/sqlite/attempts.sql");
const MYSQL_HONEST: &str = include_str!("../corpus/mysql/honest.sql");
const MYSQL_ATTEMPTS: &str = include_str!("../corpus/mysql/attempts.sql");

/// Whether the text that the database gets reads as the statement does, and is its own text.
#[track_caller]
fn check_text(statement: &Statement, sql: &str) {
    let retried = Statement::parse(statement.text(), statement.dialect())
        .unwrap_or_else(|error| panic!("{sql}\n{}\n{error}", statement.text()));
    assert_eq!(retried.ast(), statement.ast(), "{sql}\n{}", statement.text());
    assert_eq!(retried.text(), statement.text(), "{sql}");
}

#[track_caller]
fn check_honest(corpus: &str, dialect: SqlDialect, entries_min: usize) {
    let entries = entries(corpus);
    assert!(entries.len() >= entries_min, "{}", entries.len());
    for entry in entries {
        let parsed = Statement::parse(&entry.sql, dialect);
        if entry.marked("not understood").is_some() {
            assert!(parsed.is_err(), "this is understood now; take its mark away: {}", entry.sql);
            continue;
        }
        let statement = parsed.unwrap_or_else(|error| panic!("{}\n{error}", entry.sql));
        check_text(&statement, &entry.sql);
    }
}

#[test]
fn honest_sql_passes() {
    check_honest(POSTGRES_HONEST, SqlDialect::Postgres, 120);
    check_honest(SQLITE_HONEST, SqlDialect::Sqlite, 60);
    check_honest(MYSQL_HONEST, SqlDialect::MySql, 40);
}

/// The refusals of a corpus, one a line; whatever else is in it must pass.
#[track_caller]
fn refusals(corpus: &str, dialect: SqlDialect, entries_min: usize) -> String {
    let entries = entries(corpus);
    assert!(entries.len() >= entries_min, "{}", entries.len());
    let mut refusals = String::new();
    for Entry { sql, comment } in &entries {
        let is_refused = match comment.split_once(':') {
            Some(("refused", _)) => true,
            Some(("harmless" | "looked up", _)) => false,
            _ => panic!("the comment must begin with refused:, looked up: or harmless:\n{sql}"),
        };
        match Statement::parse(sql, dialect) {
            Ok(statement) => {
                assert!(!is_refused, "passed: {sql}\n{}", statement.text());
                check_text(&statement, sql);
            }
            Err(error) => {
                assert!(is_refused, "refused: {sql}\n{error}");
                assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{sql}");
                let visible = sql.replace('\n', "⏎").replace('\r', "␍").replace(['\u{b}', '\u{c}', '\u{a0}'], "␠");
                refusals.push_str(&format!("{visible}\n    {}\n", error.to_string().replace('\n', "\n    ")));
            }
        }
    }
    refusals
}

#[test]
fn attempts_on_postgresql_are_refused_or_harmless() {
    insta::assert_snapshot!(refusals(POSTGRES_ATTEMPTS, SqlDialect::Postgres, 120));
}

#[test]
fn attempts_on_sqlite_are_refused_or_harmless() {
    insta::assert_snapshot!(refusals(SQLITE_ATTEMPTS, SqlDialect::Sqlite, 40));
}

#[test]
fn attempts_on_mysql_are_refused_or_harmless() {
    insta::assert_snapshot!(refusals(MYSQL_ATTEMPTS, SqlDialect::MySql, 75));
}

/// What a harmless attempt may show of itself: its words reach the database without comments.
#[test]
fn no_comment_reaches_a_database() {
    for (corpus, dialect) in [
        (POSTGRES_ATTEMPTS, SqlDialect::Postgres),
        (POSTGRES_HONEST, SqlDialect::Postgres),
        (SQLITE_ATTEMPTS, SqlDialect::Sqlite),
        (SQLITE_HONEST, SqlDialect::Sqlite),
        (MYSQL_ATTEMPTS, SqlDialect::MySql),
        (MYSQL_HONEST, SqlDialect::MySql),
    ] {
        for entry in entries(corpus) {
            let Ok(statement) = Statement::parse(&entry.sql, dialect) else { continue };
            let tokens = Tokenizer::new(dialect.parser_dialect(), statement.text()).tokenize().unwrap();
            let spaces = tokens.iter().filter(|token| matches!(token, Token::Whitespace(_)));
            for space in spaces {
                assert_eq!(*space, Token::Whitespace(Whitespace::Space), "{}", statement.text());
            }
        }
    }
}
