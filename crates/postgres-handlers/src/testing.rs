//! Runs test files of handlers: each on its own connection, in a transaction that is always rolled back.
//!
//! A file has statements, an isolation level and forbidden statements. It reports results as rows of the form `ok 1 - name` or
//! `not ok 1 - name`, which the functions in `sql/tap.sql` produce; this is the format of the
//! [Test Anything Protocol](https://testanything.org). Each statement runs within a savepoint, so that an error does not hide
//! later results.

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use tidegate_postgres::connect::{ConnectError, ConnectTarget, OpenConnection};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};
use tokio_util::sync::CancellationToken;

use crate::SchemaName;
use crate::script::{Script, ScriptStatement};

/// The functions that test files call, with a placeholder for the schema name.
const FUNCTIONS: &str = include_str!("../sql/tap.sql");

/// The options of a test run.
#[derive(Debug, Clone)]
pub struct TestOptions {
    /// The schema of handlers.
    pub schema: SchemaName,
    /// The time limit of one statement.
    pub statement_timeout: Duration,
}

/// The results of a test file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestReport {
    /// The results in order.
    pub results: Vec<TestResult>,
}

/// One result of a test file, or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// The line, from 1; `None` for the whole file.
    pub line: Option<usize>,
    /// The name of the test, or the error.
    pub name: String,
    /// Whether the test passed.
    pub is_ok: bool,
    /// Further lines: actual and expected value, or detail, hint and context of an error.
    pub notes: Vec<String>,
}

/// Why a test file could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The server cannot be reached, or rejects the connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The SQL layer is not installed.
    #[error("the schema {0} has no handlers; create it with tidegate pg install, or set another schema with --schema")]
    NotInstalled(SchemaName),
    /// The server rejected the beginning of the test.
    #[error("cannot begin the test: {0}")]
    CannotBegin(String),
    /// The run was cancelled.
    #[error("the run was cancelled and its changes were rolled back")]
    Cancelled,
}

impl TestReport {
    /// The number of passed tests.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.is_ok).count()
    }

    /// The number of failed tests.
    pub fn failed(&self) -> usize {
        self.results.len() - self.passed()
    }
}

impl TestResult {
    fn failed(line: Option<usize>, name: impl Into<String>) -> Self {
        Self { line, name: name.into(), is_ok: false, notes: Vec::new() }
    }

    fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }
}

/// Runs the test file `text`. All changes are rolled back, however it ends. Dropping the future ends the run too.
///
/// A problem of the file itself is a failed result.
///
/// # Errors
/// Fails if there is no connection, if the SQL layer is not installed, or if `cancellation` fires.
pub async fn run_test_file(
    target: &ConnectTarget,
    text: &str,
    options: &TestOptions,
    cancellation: &CancellationToken,
) -> Result<TestReport, TestError> {
    let file = match TestFile::read(text) {
        Ok(file) => file,
        Err(results) => return Ok(TestReport { results }),
    };
    let mut run = TestRun::begin(target, file.isolation, options).await?;
    let ended = tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(TestError::Cancelled),
        () = run.run_statements(&file) => Ok(()),
    };
    let results = run.end(ended.is_ok()).await;
    ended.map(|()| TestReport { results })
}

/// The additional waiting time after the time limit of a statement: a file may switch off the limit of the server.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
const END_TIMEOUT: Duration = Duration::from_secs(10);
const RESULTS_MAX: usize = 100_000;
const SAVEPOINT: &str = "tidegate_test_statement";
/// The maximum length of a name or a note, in characters.
const CHARACTERS_MAX: usize = 10_000;
const NOTES_MAX: usize = 100;
const NOT_RUN: &str = "the rest of the file was not run";

struct TestRun {
    connection: OpenConnection,
    /// Notices of the server since they were last read.
    notices: mpsc::Receiver<DbError>,
    statement_timeout: Duration,
    results: Vec<TestResult>,
    /// The numbers of results that occurred in rows.
    seen_numbers: HashSet<u64>,
}

/// The rest of the file cannot be run.
struct RunAborted;

impl TestRun {
    /// Connects, begins the transaction and creates the functions for tests.
    async fn begin(target: &ConnectTarget, isolation: &str, options: &TestOptions) -> Result<Self, TestError> {
        let connection = target.connect("tidegate pg test").await?;
        let TestOptions { schema, statement_timeout } = options;
        let begun = async {
            let timeout_ms = statement_timeout.as_millis();
            // With the last setting, the server notices during a statement that the client is gone.
            let begin = format!(
                "BEGIN ISOLATION LEVEL {isolation}; SET LOCAL client_min_messages = notice; \
                 SET LOCAL standard_conforming_strings = on; SET LOCAL statement_timeout = {timeout_ms}; \
                 SET LOCAL client_connection_check_interval = 1000"
            );
            connection.client().batch_execute(&begin).await?;
            let installed = format!("SELECT 1 WHERE pg_catalog.to_regclass('{schema}.handler') IS NOT NULL");
            let rows = connection.client().simple_query(&installed).await?;
            let is_installed = rows.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_)));
            if is_installed {
                connection.client().batch_execute(&FUNCTIONS.replace("@schema@", schema.as_str())).await?;
            }
            Ok::<bool, tokio_postgres::Error>(is_installed)
        };
        match begun.await {
            Ok(true) => {}
            Ok(false) => return Err(TestError::NotInstalled(schema.clone())),
            Err(error) => return Err(TestError::CannotBegin(error_line(&error))),
        }
        let (notices, statement_timeout) = (connection.subscribe_notices(), *statement_timeout);
        Ok(Self { connection, notices, statement_timeout, results: Vec::new(), seen_numbers: HashSet::new() })
    }

    async fn run_statements(&mut self, file: &TestFile<'_>) {
        for statement in &file.statements {
            let results_before = self.results.len();
            let ended = self.run_statement(statement).await;
            self.add_notices(results_before);
            if ended.is_err() {
                return;
            }
        }
    }

    /// Rolls back and closes the connection. If the run was complete, results that occurred in no row are added.
    async fn end(mut self, is_whole: bool) -> Vec<TestResult> {
        if is_whole {
            // Without an answer there is nothing to add; the preceding failure is already recorded.
            let _ = timeout(END_TIMEOUT, self.add_unseen_results()).await;
            if self.results.is_empty() {
                let message = "the file has no result; SELECT pg_temp.ok(condition, 'name') creates one";
                self.results.push(TestResult::failed(None, message));
            }
        } else {
            self.cancel_statement().await;
        }
        // A server that does not answer rolls back when the connection ends.
        let _ = timeout(END_TIMEOUT, self.connection.client().batch_execute("ROLLBACK")).await;
        self.connection.close().await;
        self.results
    }

    async fn run_statement(&mut self, statement: &ScriptStatement<'_>) -> Result<(), RunAborted> {
        self.run_savepoint(&format!("SAVEPOINT {SAVEPOINT}"), statement).await?;
        let began = Instant::now();
        let limit = self.statement_timeout + GRACE_PERIOD;
        match timeout(limit, self.run_query(statement)).await {
            // The file controls its savepoints. Ours may be released by this statement; if not, it does no harm.
            Ok(Ok(())) if is_about_savepoints(statement) => Ok(()),
            Ok(Ok(())) => self.run_savepoint(&format!("RELEASE SAVEPOINT {SAVEPOINT}"), statement).await,
            Ok(Err(error)) => {
                let is_over = self.connection.is_closed() || error.as_db_error().is_some_and(is_final);
                let is_late = began.elapsed() >= self.statement_timeout;
                self.record_failure(statement, &error, is_late, is_over);
                if is_over {
                    return Err(RunAborted);
                }
                let back = format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}");
                self.run_savepoint(&back, statement).await
            }
            Err(_) => {
                // A cancelled connection must not be used again: the cancellation could hit the next statement.
                let failure = TestResult::failed(Some(statement.line), self.timeout_message());
                self.push_result(failure.with_notes(vec![NOT_RUN.to_owned()]));
                self.cancel_statement().await;
                Err(RunAborted)
            }
        }
    }

    /// Runs an internal statement about the savepoint. If it fails, the transaction is no longer the original one.
    async fn run_savepoint(&mut self, sql: &str, statement: &ScriptStatement<'_>) -> Result<(), RunAborted> {
        let Err(error) = self.connection.client().batch_execute(sql).await else { return Ok(()) };
        let (message, mut notes) = match error.as_db_error() {
            Some(_) => (
                "the transaction of the test ended early, so its changes may be committed".to_owned(),
                vec![error_line(&error)],
            ),
            None => (error_line(&error), Vec::new()),
        };
        notes.push(NOT_RUN.to_owned());
        self.push_result(TestResult::failed(Some(statement.line), message).with_notes(notes));
        Err(RunAborted)
    }

    /// Runs a statement and extracts the results from its rows; the rows are not collected.
    async fn run_query(&mut self, statement: &ScriptStatement<'_>) -> Result<(), tokio_postgres::Error> {
        let mut messages = pin!(self.connection.client().simple_query_raw(statement.sql()).await?);
        let mut results = Vec::new();
        while let Some(message) = messages.try_next().await? {
            let SimpleQueryMessage::Row(row) = message else { continue };
            for value in (0..row.len()).filter_map(|column| row.get(column)) {
                results.extend(parse_value(value, statement.line));
                results.truncate(RESULTS_MAX);
            }
        }
        for (number, result) in results {
            self.seen_numbers.insert(number);
            self.push_result(result);
        }
        Ok(())
    }

    /// Adds results that occurred in no row, such as those of a `DO` block.
    async fn add_unseen_results(&mut self) -> Result<(), tokio_postgres::Error> {
        let sql =
            "RESET SESSION AUTHORIZATION; RESET ROLE; SELECT number, is_so, name FROM pg_temp.tap ORDER BY number";
        let messages = self.connection.client().simple_query(sql).await?;
        for message in &messages {
            let SimpleQueryMessage::Row(row) = message else { continue };
            let number = row.get(0).and_then(|number| number.parse().ok()).unwrap_or_default();
            if !self.seen_numbers.contains(&number) {
                let name = row.get(2).unwrap_or_default().to_owned();
                self.push_result(TestResult { line: None, name, is_ok: row.get(1) == Some("t"), notes: Vec::new() });
            }
        }
        Ok(())
    }

    fn record_failure(
        &mut self,
        statement: &ScriptStatement<'_>,
        error: &tokio_postgres::Error,
        is_late: bool,
        is_over: bool,
    ) {
        let mut failure = match error.as_db_error() {
            Some(error) if is_late && *error.code() == SqlState::QUERY_CANCELED => {
                TestResult::failed(Some(statement.line), self.timeout_message())
            }
            Some(error) => failure_from_db_error(error, statement),
            None => TestResult::failed(Some(statement.line), error_line(error)),
        };
        if is_over {
            failure.notes.push(NOT_RUN.to_owned());
        }
        self.push_result(failure);
    }

    /// Adds the notices of the server to the first failure after the first `results_before` results.
    fn add_notices(&mut self, results_before: usize) {
        let mut notes = Vec::new();
        while let Ok(notice) = self.notices.try_recv() {
            notes.push(format!("{}: {}", notice.severity().to_lowercase(), notice.message()));
        }
        let mut new = self.results.iter_mut().skip(results_before);
        if let Some(failure) = new.find(|result| !result.is_ok) {
            failure.notes.extend(notes);
        }
    }

    async fn cancel_statement(&self) {
        if let Err(error) = self.connection.canceller().cancel().await {
            tracing::debug!(%error, "could not cancel the statement of a test");
        }
    }

    fn timeout_message(&self) -> String {
        format!("the statement exceeded the time limit of {:?} and was cancelled", self.statement_timeout)
    }

    fn push_result(&mut self, result: TestResult) {
        if self.results.len() < RESULTS_MAX {
            self.results.push(result);
        }
    }
}

/// A failed result for an error of the server, with the line that it reports.
fn failure_from_db_error(error: &DbError, statement: &ScriptStatement<'_>) -> TestResult {
    let name = format!("{} {}: {}", error.severity(), error.code().code(), error.message());
    let parts = [("detail", error.detail()), ("hint", error.hint()), ("context", error.where_())];
    let notes = parts
        .into_iter()
        .flat_map(|(label, text)| text.into_iter().flat_map(str::lines).map(move |line| format!("{label}: {line}")));
    let before = match error.position() {
        Some(ErrorPosition::Original(position)) => usize::try_from(position.saturating_sub(1)).unwrap_or_default(),
        _ => 0,
    };
    let breaks = statement.sql().chars().take(before).filter(|character| *character == '\n').count();
    TestResult::failed(Some(statement.line + breaks), name).with_notes(notes.collect())
}

/// Whether the server ends the connection with this error.
fn is_final(error: &DbError) -> bool {
    matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

fn error_line(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}: {}", error.severity(), error.code().code(), error.message()),
        None => format!("the connection was lost: {error}"),
    }
}

/// The results in a value of the statement in `line`, with their numbers. Lines after a result that begin with `#` are
/// its notes.
fn parse_value(value: &str, line: usize) -> Vec<(u64, TestResult)> {
    let mut results: Vec<(u64, TestResult)> = Vec::new();
    for text in value.lines() {
        if let Some(result) = parse_line(text, line) {
            results.push(result);
        } else if let (Some(note), Some((_, last))) = (text.strip_prefix('#'), results.last_mut())
            && last.notes.len() < NOTES_MAX
        {
            last.notes.push(truncate_text(note.trim()));
        }
    }
    results
}

/// Parses `ok 1 - name` or `not ok 1 - name`. Text without a number may be ordinary data.
fn parse_line(text: &str, line: usize) -> Option<(u64, TestResult)> {
    let (is_ok, rest) = match text.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok ")?),
    };
    let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
    let number = number.parse().ok()?;
    let name = name.strip_prefix("- ").unwrap_or(name);
    Some((number, TestResult { line: Some(line), name: truncate_text(name), is_ok, notes: Vec::new() }))
}

fn truncate_text(text: &str) -> String {
    text.chars().take(CHARACTERS_MAX).collect()
}

const ISOLATION: &str = "isolation:";
const ISOLATIONS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

struct TestFile<'a> {
    statements: Vec<ScriptStatement<'a>>,
    /// As in `BEGIN`.
    isolation: &'static str,
}

impl<'a> TestFile<'a> {
    /// Parses `text`, or returns all of its problems.
    fn read(text: &'a str) -> Result<Self, Vec<TestResult>> {
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
fn is_about_savepoints(statement: &ScriptStatement<'_>) -> bool {
    ["SAVEPOINT", "RELEASE", "ROLLBACK"].into_iter().any(|word| statement.has_word_at(0, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_their_notes() {
        let results = parse_value("ok 1 - first\nnot ok 2 - second\n#   got    1\n#   wanted 2\nok 3", 7);
        let read: Vec<(u64, bool, &str, String)> = results
            .iter()
            .map(|(number, result)| (*number, result.is_ok, result.name.as_str(), result.notes.join("|")))
            .collect();
        assert_eq!(
            read,
            [
                (1, true, "first", String::new()),
                (2, false, "second", "got    1|wanted 2".to_owned()),
                (3, true, "", String::new())
            ]
        );
        assert!(results.iter().all(|(_, result)| result.line == Some(7)));
    }

    #[test]
    fn other_text_is_no_result() {
        for text in ["", "ok", "okay 1 - x", "ok - x", "not ok", "1..3", "# 1 of 3 failed", "{\"ok 1\": 1}"] {
            assert_eq!(parse_value(text, 1), [], "{text}");
        }
    }

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
