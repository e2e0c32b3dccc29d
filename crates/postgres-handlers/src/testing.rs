//! Runs test files of handlers: each on its own connection, in a transaction that is always rolled back.
//!
//! A file reports results as rows of the form `ok 1 - name` or `not ok 1 - name`, which the functions in `sql/tap.sql`
//! produce. Each statement runs within a savepoint, so that an error does not hide later results.

mod file;
mod run;

use std::time::Duration;

use tidegate_postgres::connect::{ConnectError, ConnectTarget};
use tokio_util::sync::CancellationToken;

use self::file::TestFile;
use self::run::TestRun;
use crate::SchemaName;

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
