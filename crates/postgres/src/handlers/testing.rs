//! Test files of handlers: SQL that runs on a connection of its own, in a transaction that is always rolled back.
//!
//! A file says what it finds in rows that read `ok 1 - name` or `not ok 1 - name`, which the functions of
//! `sql/tap.sql` make. Each statement runs within a savepoint, so that an error does not hide what follows it.

mod file;
mod results;
mod run;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::file::TestFile;
use self::run::TestRun;
use super::SchemaName;
use crate::connect::{ConnectError, ConnectTarget};

/// The functions that test files call, with a placeholder where the schema's name belongs.
const FUNCTIONS: &str = include_str!("../../sql/tap.sql");

/// How test files are run.
#[derive(Debug, Clone)]
pub struct TestOptions {
    /// The schema of the handlers.
    pub schema: SchemaName,
    /// How long one statement may take.
    pub statement_timeout: Duration,
}

/// What became of a test file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestReport {
    /// Its results, in their order.
    pub results: Vec<TestResult>,
}

/// One thing that a test file found, or an error that it met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    /// The line that it is about, from 1; none where it is about the whole file.
    pub line: Option<usize>,
    /// What was asked, or the error.
    pub name: String,
    /// Whether it is as it should be.
    pub is_ok: bool,
    /// What else there is to say, a line each: what came and what was wanted, or detail, hint and context of an error.
    pub notes: Vec<String>,
}

/// Why a test file could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// The server was not reached, or did not let us in.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The SQL layer is not there.
    #[error("the schema {0} has no handlers; tidegate pg install makes it, and --schema names another one")]
    NotInstalled(SchemaName),
    /// The server refused what every test begins with.
    #[error("the test cannot begin: {0}")]
    CannotBegin(String),
    /// The run was called off.
    #[error("the run was called off; nothing of it stays")]
    Cancelled,
}

impl TestReport {
    /// How many results are as they should be.
    pub fn passed(&self) -> usize {
        self.results.iter().filter(|result| result.is_ok).count()
    }

    /// How many are not.
    pub fn failed(&self) -> usize {
        self.results.len() - self.passed()
    }
}

impl TestResult {
    /// Something that is not as it should be.
    fn failed_result(line: Option<usize>, name: impl Into<String>) -> Self {
        Self { line, name: name.into(), is_ok: false, notes: Vec::new() }
    }

    fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }
}

/// Runs the test file `text`. Nothing that it does stays, however it ends; dropping the future ends it too.
///
/// What is wrong with the file itself is a result that failed.
///
/// # Errors
/// When there is no connection, the SQL layer is not there, or `cancellation` fires.
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
