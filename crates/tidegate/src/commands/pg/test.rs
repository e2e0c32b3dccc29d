//! `tidegate pg test`: runs SQL test files of handlers.

mod junit;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use clap::Args;
use tidegate_postgres_handlers::{TestOptions, TestReport, run_test_file};

use super::{SchemaFlag, parse_target};
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::shutdown::Shutdown;
use crate::standard_stream::standard_output;

const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

const FILE_BYTES_MAX: u64 = 16 << 20;

const PASSED_STYLE: Style = AnsiColor::Green.on_default();
const FAILED_STYLE: Style = AnsiColor::Red.on_default().bold();
const DIMMED_STYLE: Style = Style::new().dimmed();

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

struct TestFileRun {
    name: String,
    report: TestReport,
    took: Duration,
}

impl PgTestCommand {
    pub(super) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let target = parse_target(&self.dsn)?;
        let files = read_files(&self.files)?;
        let statement_timeout = options.limits.timeout.unwrap_or(STATEMENT_TIMEOUT);
        let options = TestOptions { schema: self.schema.name.clone(), statement_timeout };
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
            print_file(&file)?;
            tested.push(file);
        }
        if let Some(path) = &self.junit {
            let written = std::fs::write(path, junit::render_junit(&tested));
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        print_summary(&tested)?;
        match tested.iter().map(|file| file.report.failed()).sum::<usize>() {
            0 => Ok(()),
            1 => Err(CommandError::Other(anyhow::anyhow!("1 test failed"))),
            count => Err(CommandError::Other(anyhow::anyhow!("{count} tests failed"))),
        }
    }
}

struct SqlTestFile {
    name: String,
    text: String,
}

/// Reads `paths`; a folder stands for the SQL files in it, in the order of their names.
fn read_files(paths: &[PathBuf]) -> Result<Vec<SqlTestFile>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            for path in list_sql_files(path)? {
                files.push(read_file(&path)?);
            }
        } else {
            files.push(read_file(path)?);
        }
    }
    Ok(files)
}

fn list_sql_files(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unreadable = |error| CommandError::Usage(format!("cannot read {}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "sql") && path.is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(CommandError::Usage(format!("there is no *.sql file in {}", folder.display())));
    }
    paths.sort();
    Ok(paths)
}

fn read_file(path: &Path) -> Result<SqlTestFile, CommandError> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| CommandError::Usage(format!("cannot read {name}: {error}"));
    if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(CommandError::Usage(format!(
            "{name} is larger than a test file may be, which is {} MiB",
            FILE_BYTES_MAX >> 20
        )));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(SqlTestFile { name, text })
}

fn print_file(file: &TestFileRun) -> Result<(), CommandError> {
    let mut output = standard_output();
    let TestFileRun { name, report, took } = file;
    let (passed, failed) = (report.passed(), report.failed());
    if failed == 0 {
        output.write_styled(PASSED_STYLE, "ok")?;
        write!(output, "    {name}  {passed} passed  ")?;
    } else {
        output.write_styled(FAILED_STYLE, "FAIL")?;
        write!(output, "  {name}  {passed} passed, {failed} failed  ")?;
    }
    output.write_styled(DIMMED_STYLE, format_args!("{} ms", took.as_millis()))?;
    writeln!(output)?;
    for result in report.results.iter().filter(|result| !result.is_ok) {
        let line = result.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(output, "      {name}{line}: ")?;
        output.write_styled(FAILED_STYLE, &result.name)?;
        writeln!(output)?;
        for note in &result.notes {
            writeln!(output, "          {note}")?;
        }
    }
    Ok(output.flush()?)
}

fn print_summary(tested: &[TestFileRun]) -> Result<(), CommandError> {
    let mut output = standard_output();
    let sum = |count: fn(&TestFileRun) -> usize| tested.iter().map(count).sum::<usize>();
    let (passed, failed) = (sum(|file| file.report.passed()), sum(|file| file.report.failed()));
    let style = if failed == 0 { PASSED_STYLE } else { FAILED_STYLE };
    writeln!(output)?;
    output.write_styled(style, format_args!("{passed} passed, {failed} failed"))?;
    Ok(writeln!(output)?)
}
