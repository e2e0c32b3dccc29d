//! `tidegate pg test`: SQL test files of handlers, and what became of them.

mod files;
mod junit;
mod shown;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tidegate_postgres::handlers::{TestOptions, TestReport, run_test_file};

use super::place::{self, SchemaFlag};
use crate::failure::Failure;
use crate::options::Options;
use crate::shutdown::Shutdown;

/// How long a statement may take unless --timeout says otherwise.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Run SQL test files, each in a transaction that is rolled back
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Connection string, as psql takes it
    dsn: String,
    /// A test file, or a folder whose *.sql files are tests
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    schema: SchemaFlag,
    /// Write the results as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A test file that was run.
struct Tested {
    name: String,
    report: TestReport,
    took: Duration,
}

impl Test {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let target = place::target(&self.dsn)?;
        let files = files::read(&self.files)?;
        let statement_timeout = options.timeout().unwrap_or(STATEMENT_TIMEOUT);
        let options = TestOptions { schema: self.schema.name().clone(), statement_timeout };
        let shutdown = Shutdown::on_signals()?;
        let mut tested = Vec::with_capacity(files.len());
        for file in files {
            let began = Instant::now();
            let run = run_test_file(&target, &file.text, &options, &shutdown.graceful);
            let report = shutdown.guard(run).await?.map_err(|error| Failure::Other(anyhow::Error::from(error)))?;
            let file = Tested { name: file.name, report, took: began.elapsed() };
            shown::file(&file)?;
            tested.push(file);
        }
        if let Some(path) = &self.junit {
            let written = std::fs::write(path, junit::document(&tested));
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        shown::summary(&tested)?;
        match tested.iter().map(|file| file.report.failed()).sum::<usize>() {
            0 => Ok(()),
            1 => Err(Failure::Other(anyhow::anyhow!("1 test failed"))),
            count => Err(Failure::Other(anyhow::anyhow!("{count} tests failed"))),
        }
    }
}
