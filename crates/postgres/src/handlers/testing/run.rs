//! One run of a test file: its connection, its transaction, and what it has found so far.

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::error::{DbError, ErrorPosition, Severity, SqlState};

use super::file::{TestFile, is_about_savepoints};
use super::{FUNCTIONS, TestError, TestOptions, TestResult, results};
use crate::connect::{ConnectTarget, OpenConnection, StartupParameters};
use crate::handlers::ScriptStatement;

/// How much longer than a statement may take it is waited for: a file may switch the server's own limit off.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How long the end of the transaction may take.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// Results of one file that are kept.
const RESULTS_MAX: usize = 100_000;
/// The savepoint that a statement runs in.
const SAVEPOINT: &str = "tidegate_test_statement";
/// What is said when a run ends before its file does.
const NOT_RUN: &str = "what follows in the file was not run";

/// A run of one file.
pub(super) struct TestRun {
    connected: OpenConnection,
    /// What the server has remarked since it was last looked at.
    notices: mpsc::Receiver<DbError>,
    statement_timeout: Duration,
    results: Vec<TestResult>,
    /// Numbers of results that were in rows.
    seen_numbers: HashSet<u64>,
}

/// The rest of the file cannot be run.
struct RunAborted;

impl TestRun {
    /// Connects, begins the transaction and makes the functions that tests call.
    pub(super) async fn begin(
        target: &ConnectTarget,
        isolation: &str,
        options: &TestOptions,
    ) -> Result<Self, TestError> {
        let startup = StartupParameters { application_name: "tidegate pg test", settings: &[] };
        let connected = target.connect(&startup).await?;
        let TestOptions { schema, statement_timeout } = options;
        let begun = async {
            let timeout_ms = statement_timeout.as_millis();
            // The last one lets a server notice in the midst of a statement that nobody waits for it any more.
            let begin = format!(
                "BEGIN ISOLATION LEVEL {isolation}; SET LOCAL client_min_messages = notice; \
                 SET LOCAL standard_conforming_strings = on; SET LOCAL statement_timeout = {timeout_ms}; \
                 SET LOCAL client_connection_check_interval = 1000"
            );
            connected.client().batch_execute(&begin).await?;
            let installed = format!("SELECT 1 WHERE pg_catalog.to_regclass('{schema}.handler') IS NOT NULL");
            let rows = connected.client().simple_query(&installed).await?;
            let is_installed = rows.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_)));
            if is_installed {
                connected.client().batch_execute(&FUNCTIONS.replace("@schema@", schema.as_str())).await?;
            }
            Ok::<bool, tokio_postgres::Error>(is_installed)
        };
        match begun.await {
            Ok(true) => {}
            Ok(false) => return Err(TestError::NotInstalled(schema.clone())),
            Err(error) => return Err(TestError::CannotBegin(error_line(&error))),
        }
        let remarks = connected.subscribe_notices();
        let statement_timeout = *statement_timeout;
        Ok(Self { connected, notices: remarks, statement_timeout, results: Vec::new(), seen_numbers: HashSet::new() })
    }

    /// Runs the statements of `file`, one after another.
    pub(super) async fn run_statements(&mut self, file: &TestFile<'_>) {
        for statement in &file.statements {
            let found_before = self.results.len();
            let ended = self.run_statement(statement).await;
            self.add_notices(found_before);
            if ended.is_err() {
                return;
            }
        }
    }

    /// Rolls back and closes the connection. What was found but stood in no row is a result too, if the run came to its
    /// end.
    pub(super) async fn end(mut self, is_whole: bool) -> Vec<TestResult> {
        if is_whole {
            // Without an answer there is nothing to add; the failure that led to it is a result already.
            let _ = timeout(END_TIMEOUT, self.add_unseen_results()).await;
            if self.results.is_empty() {
                let message = "there is no result; SELECT pg_temp.ok(condition, 'name') is one";
                self.results.push(TestResult::failed_result(None, message));
            }
        } else if let Err(error) = self.connected.canceller().cancel().await {
            tracing::debug!(%error, "the statement of a test was not cancelled");
        }
        // A server that does not answer rolls back when the connection ends.
        let _ = timeout(END_TIMEOUT, self.connected.client().batch_execute("ROLLBACK")).await;
        self.connected.close().await;
        self.results
    }

    async fn run_statement(&mut self, statement: &ScriptStatement<'_>) -> Result<(), RunAborted> {
        self.run_savepoint(&format!("SAVEPOINT {SAVEPOINT}"), statement).await?;
        let began = Instant::now();
        let limit = self.statement_timeout + GRACE_PERIOD;
        match timeout(limit, self.run_query(statement)).await {
            // Which savepoints there are now is the file's affair; ours may be gone with them, and hurts nobody if not.
            Ok(Ok(())) if is_about_savepoints(statement) => Ok(()),
            Ok(Ok(())) => self.run_savepoint(&format!("RELEASE SAVEPOINT {SAVEPOINT}"), statement).await,
            Ok(Err(error)) => {
                let is_over = self.connected.is_closed() || error.as_db_error().is_some_and(is_final);
                let late = began.elapsed() >= self.statement_timeout;
                self.record_failure(statement, &error, late, is_over);
                if is_over {
                    return Err(RunAborted);
                }
                let back = format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}");
                self.run_savepoint(&back, statement).await
            }
            Err(_) => {
                // A cancelled connection must not be used again: the next statement could be what is cancelled.
                let failure = TestResult::failed_result(Some(statement.line), self.timeout_message());
                self.push_result(failure.with_notes(vec![NOT_RUN.to_owned()]));
                if let Err(error) = self.connected.canceller().cancel().await {
                    tracing::debug!(%error, "the statement of a test was not cancelled");
                }
                Err(RunAborted)
            }
        }
    }

    /// Runs a statement of ours about the savepoint. That it fails says that the transaction is not the one that it
    /// was.
    async fn run_savepoint(&mut self, sql: &str, statement: &ScriptStatement<'_>) -> Result<(), RunAborted> {
        let Err(error) = self.connected.client().batch_execute(sql).await else { return Ok(()) };
        let failure = match error.as_db_error() {
            Some(_) => {
                let message = "the transaction of the test has ended before its time, so what was done may stay";
                TestResult::failed_result(Some(statement.line), message)
                    .with_notes(vec![error_line(&error), NOT_RUN.to_owned()])
            }
            None => {
                TestResult::failed_result(Some(statement.line), error_line(&error)).with_notes(vec![NOT_RUN.to_owned()])
            }
        };
        self.push_result(failure);
        Err(RunAborted)
    }

    /// Runs a statement and takes the results out of its rows, which are not gathered.
    async fn run_query(&mut self, statement: &ScriptStatement<'_>) -> Result<(), tokio_postgres::Error> {
        let mut messages = pin!(self.connected.client().simple_query_raw(statement.sql()).await?);
        let mut found = Vec::new();
        while let Some(message) = messages.try_next().await? {
            let SimpleQueryMessage::Row(row) = message else { continue };
            for value in (0..row.len()).filter_map(|column| row.get(column)) {
                found.extend(results::parse_value(value, statement.line));
                found.truncate(RESULTS_MAX);
            }
        }
        for numbered in found {
            self.seen_numbers.insert(numbered.number);
            self.push_result(numbered.result);
        }
        Ok(())
    }

    /// Adds results that were in no row: those of a `DO` block, say.
    async fn add_unseen_results(&mut self) -> Result<(), tokio_postgres::Error> {
        let sql =
            "RESET SESSION AUTHORIZATION; RESET ROLE; SELECT number, is_so, name FROM pg_temp.tap ORDER BY number";
        let messages = self.connected.client().simple_query(sql).await?;
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
        late: bool,
        is_over: bool,
    ) {
        let mut failure = match error.as_db_error() {
            Some(error) if late && *error.code() == SqlState::QUERY_CANCELED => {
                TestResult::failed_result(Some(statement.line), self.timeout_message())
            }
            Some(error) => failure_from_db_error(error, statement),
            None => TestResult::failed_result(Some(statement.line), error_line(error)),
        };
        if is_over {
            failure.notes.push(NOT_RUN.to_owned());
        }
        self.push_result(failure);
    }

    /// Adds what the server remarked to the first failure after the first `found_before` results.
    fn add_notices(&mut self, found_before: usize) {
        let mut notes = Vec::new();
        while let Ok(remark) = self.notices.try_recv() {
            notes.push(format!("{}: {}", remark.severity().to_lowercase(), remark.message()));
        }
        let mut new = self.results.iter_mut().skip(found_before);
        if let Some(failure) = new.find(|result| !result.is_ok) {
            failure.notes.extend(notes);
        }
    }

    fn timeout_message(&self) -> String {
        format!("the statement took longer than {:?} and was ended", self.statement_timeout)
    }

    fn push_result(&mut self, result: TestResult) {
        if self.results.len() < RESULTS_MAX {
            self.results.push(result);
        }
    }
}

/// An error of the server's, in the line that it names.
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
    TestResult::failed_result(Some(statement.line + breaks), name).with_notes(notes.collect())
}

/// Whether the server ends the connection with this error.
fn is_final(error: &DbError) -> bool {
    matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// The error in one line.
fn error_line(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}: {}", error.severity(), error.code().code(), error.message()),
        None => format!("the connection was lost: {error}"),
    }
}
