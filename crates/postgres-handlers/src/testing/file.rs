//! Parses a test file: its statements, its isolation level, and its forbidden statements.

use super::TestResult;
use crate::script::{Script, ScriptStatement};

const ISOLATION: &str = "isolation:";
const ISOLATIONS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

pub(super) struct TestFile<'a> {
    pub(super) statements: Vec<ScriptStatement<'a>>,
    /// As in `BEGIN`.
    pub(super) isolation: &'static str,
}

impl<'a> TestFile<'a> {
    /// Parses `text`, or returns all of its problems.
    pub(super) fn read(text: &'a str) -> Result<Self, Vec<TestResult>> {
        let failure = |line, problem: String| TestResult::failed(Some(line), problem);
        if let Some((before, _)) = text.split_once('\0') {
            return Err(vec![failure(
                before.matches('\n').count() + 1,
                "a NUL character, which SQL cannot contain".to_owned(),
            )]);
        }
        let script = Script::split(text).map_err(|error| vec![failure(error.line, error.message)])?;
        let refused = |statement: &ScriptStatement<'_>| Some(failure(statement.line, forbidden_reason(statement)?));
        let mut failures: Vec<TestResult> = script.statements.iter().filter_map(refused).collect();
        let isolation = parse_isolation(text).unwrap_or_else(|failed| {
            failures.insert(0, failed);
            ISOLATIONS[0]
        });
        if failures.is_empty() { Ok(Self { statements: script.statements, isolation }) } else { Err(failures) }
    }
}

/// The isolation level that the comments at the top of `text` set.
fn parse_isolation(text: &str) -> Result<&'static str, TestResult> {
    for (index, line) in text.lines().map(str::trim).enumerate() {
        let Some(comment) = line.strip_prefix("--") else {
            if line.is_empty() {
                continue;
            }
            break;
        };
        if let Some(requested) = comment.trim().strip_prefix(ISOLATION) {
            let requested = requested.trim().to_ascii_lowercase();
            return ISOLATIONS.into_iter().find(|known| *known == requested).ok_or_else(|| {
                let message = format!("unknown isolation level {requested:?}; valid are {}", ISOLATIONS.join(", "));
                TestResult::failed(Some(index + 1), message)
            });
        }
    }
    Ok(ISOLATIONS[0])
}

fn forbidden_reason(statement: &ScriptStatement<'_>) -> Option<String> {
    let first = |words: &[&str]| words.iter().enumerate().all(|(index, word)| statement.has_word_at(index, word));
    let ends = ["COMMIT", "END", "ABORT", "BEGIN"].into_iter().find(|word| first(&[word]));
    let ends = ends.or_else(|| first(&["START", "TRANSACTION"]).then_some("START TRANSACTION"));
    let ends = ends.or_else(|| first(&["PREPARE", "TRANSACTION"]).then_some("PREPARE TRANSACTION"));
    let ends = ends.or_else(|| (first(&["ROLLBACK"]) && !statement.has_word("TO")).then_some("ROLLBACK"));
    if let Some(word) = ends {
        return Some(format!(
            "{word} is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and \
              RELEASE are allowed"
        ));
    }
    let copies = first(&["COPY"]) && (statement.has_word("STDIN") || statement.has_word("STDOUT"));
    copies.then(|| "COPY from and to a client is refused: use INSERT and SELECT in test files".to_owned())
}

/// Whether a statement creates, releases or rolls back to a savepoint.
pub(super) fn is_about_savepoints(statement: &ScriptStatement<'_>) -> bool {
    ["SAVEPOINT", "RELEASE", "ROLLBACK"].into_iter().any(|word| statement.has_word_at(0, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of `text`, or its isolation level.
    fn check(text: &str) -> String {
        match TestFile::read(text) {
            Ok(file) => file.isolation.to_owned(),
            Err(failures) => {
                let output = |one: &TestResult| format!("{}: {}", one.line.unwrap_or_default(), one.name);
                failures.iter().map(output).collect::<Vec<_>>().join("\n")
            }
        }
    }

    #[test]
    fn a_comment_at_the_top_names_the_isolation() {
        assert_eq!(check("SELECT 1; -- isolation: serializable"), "read committed");
        assert_eq!(check("\n-- what\n-- isolation: Serializable\nSELECT 1;"), "serializable");
        insta::assert_snapshot!(check("-- isolation: chaos\nCOMMIT;"), @r#"
        1: unknown isolation level "chaos"; valid are read committed, repeatable read, serializable
        2: COMMIT is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
        "#);
    }

    #[test]
    fn the_transaction_is_not_the_files_to_end() {
        insta::assert_snapshot!(check("begin;\nSELECT 1;\nrollback work;\nCOMMIT AND CHAIN"), @r#"
        1: BEGIN is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
        3: ROLLBACK is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
        4: COMMIT is refused: a test file is one transaction, which is rolled back; SAVEPOINT, ROLLBACK TO and RELEASE are allowed
        "#);
        for text in ["END;", "ABORT;", "START TRANSACTION;", "PREPARE TRANSACTION 'x';", "ROLLBACK PREPARED 'x';"] {
            assert!(check(text).contains("is refused"), "{text}");
        }
        for text in
            ["SAVEPOINT a;", "ROLLBACK TO a;", "ROLLBACK WORK TO SAVEPOINT a;", "RELEASE a;", "PREPARE p AS SELECT 1;"]
        {
            assert_eq!(check(text), "read committed", "{text}");
        }
    }

    #[test]
    fn nothing_is_copied_through_the_client() {
        insta::assert_snapshot!(check("SELECT 1;\nCOPY t (a) FROM STDIN;"), @"2: COPY from and to a client is refused: use INSERT and SELECT in test files");
        assert!(check("COPY (SELECT 1) TO stdout").contains("is refused"));
        assert_eq!(check("COPY t FROM '/tmp/x'"), "read committed");
    }
}
