//! `tidegate pg test`: SQL test files of handlers, and what became of them.

mod console_report;
mod files;
mod junit;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tidegate_postgres_handlers::{TestOptions, TestReport, run_test_file};

use super::schema_arguments::{self, SchemaFlag};
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::shutdown::Shutdown;

/// How long a statement may take unless --timeout says otherwise.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Run SQL test files, each in a transaction that is rolled back
#[derive(Debug, Args)]
pub(crate) struct PgTestCommand {
    /// Connection string, in the syntax of psql
    dsn: String,
    /// A test file, or a folder whose *.sql files are tests
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    schema: SchemaFlag,
    /// Write the results as JUnit XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A test file that was run.
struct TestFileRun {
    name: String,
    report: TestReport,
    took: Duration,
}

impl PgTestCommand {
    pub(super) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let target = schema_arguments::parse_target(&self.dsn)?;
        let files = files::read(&self.files)?;
        let statement_timeout = options.timeout().unwrap_or(STATEMENT_TIMEOUT);
        let options = TestOptions { schema: self.schema.name().clone(), statement_timeout };
        let shutdown = Shutdown::on_signals()?;
        let mut tested = Vec::with_capacity(files.len());
        for file in files {
            let began = Instant::now();
            let run = run_test_file(&target, &file.text, &options, &shutdown.graceful);
            let report = shutdown
                .run_until_forced(run)
                .await?
                .map_err(|error| CommandError::Other(anyhow::Error::from(error)))?;
            let file = TestFileRun { name: file.name, report, took: began.elapsed() };
            console_report::print_file(&file)?;
            tested.push(file);
        }
        if let Some(path) = &self.junit {
            let written = std::fs::write(path, junit::render_junit(&tested));
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        console_report::print_summary(&tested)?;
        match tested.iter().map(|file| file.report.failed()).sum::<usize>() {
            0 => Ok(()),
            1 => Err(CommandError::Other(anyhow::anyhow!("1 test failed"))),
            count => Err(CommandError::Other(anyhow::anyhow!("{count} tests failed"))),
        }
    }
}
