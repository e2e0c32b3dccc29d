//! `tidegate config`: checks a configuration, converts that of another server, or prints the JSON Schema.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use serde_json::Map;
use tidegate_core::{CallTarget, ErrorKind, Format};
use tidegate_runtime::Call;
use tokio::time::timeout;

use crate::application::Application;
use crate::command_error::CommandError;
use crate::config::{CONFIG_FILE_NAME, ConfigProblem, ForeignFormat, declared_examples, import_config, schema};
use crate::logging;
use crate::options::GlobalOptions;
use crate::output;
use crate::startup_checks;
use crate::table_problems::{column_notes, database_notes, first_unreadable_tables};

/// The largest file that is converted, in bytes.
const IMPORTED_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How long one example of a database runs.
const EXAMPLE_TIME: Duration = Duration::from_secs(10);
/// Bytes of its answer, which has one row.
const EXAMPLE_BYTES_MAX: usize = 1 << 20;

/// Check a configuration, convert that of another server, or print the JSON Schema
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report all errors of a configuration and of its statements
    Check {
        /// The configuration [default: tidegate.yaml in the current folder]
        file: Option<PathBuf>,
    },
    /// Print the configuration of another server as one of Tidegate; list what has no equivalent on standard error
    Import {
        /// YAML of MCP Toolbox for Databases, TOML of DBHub, or JSON of a client with mcpServers
        file: PathBuf,
    },
    /// Print the JSON Schema of a configuration, for editors
    Schema,
}

impl ConfigCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Schema => output::print(format_args!("{:#}\n", schema())),
            Self::Import { file } => import_file(&file),
            Self::Check { file } => {
                let named = file.or_else(|| options.config.clone());
                let file = named.unwrap_or_else(|| PathBuf::from(CONFIG_FILE_NAME));
                check_file(file, options).await
            }
        }
    }
}

fn import_file(file: &Path) -> Result<(), CommandError> {
    let failed = |reason: String| CommandError::Usage(format!("{}: {reason}", file.display()));
    let mut text = String::new();
    let read = File::open(file).and_then(|opened| opened.take(IMPORTED_BYTES_MAX + 1).read_to_string(&mut text));
    read.map_err(|error| failed(format!("cannot be read: {error}")))?;
    if text.len() as u64 > IMPORTED_BYTES_MAX {
        return Err(failed(format!("is larger than {IMPORTED_BYTES_MAX} bytes")));
    }
    let format = ForeignFormat::recognize(&text).ok_or_else(|| {
        failed(
            "is not the configuration of MCP Toolbox for Databases, of DBHub, or of a client with mcpServers"
                .to_owned(),
        )
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let imported = import_config(format, &text, &name).map_err(failed)?;
    imported.notes.iter().for_each(|note| output::print_note(format_args!("{note}\n")));
    output::print(imported.yaml)
}

async fn check_file(file: PathBuf, options: &GlobalOptions) -> Result<(), CommandError> {
    let options = options.with_config(file.clone());
    let application = Application::open(None, &options).await?;
    let report = &application.apply_report;
    // Otherwise the log contains them.
    if !logging::contains_warnings(&options.log) {
        report.warnings.iter().try_for_each(|warning| output::print(format_args!("warning: {warning}\n")))?;
    }
    report.notes.iter().try_for_each(|note| output::print(format_args!("{note}\n")))?;
    let further = print_table_problems(&application).await? + print_failing_examples(&application).await?;
    let result = match report.warnings.len() + further {
        0 => "nothing wrong".to_owned(),
        1 => "no errors; 1 warning above".to_owned(),
        count => format!("no errors; {count} warnings above"),
    };
    let mut problems = startup_checks::find_startup_problems(&application.loaded_config);
    problems.extend(report.refused_logins.iter().cloned());
    application.close().await;
    if !problems.is_empty() {
        return Err(application.loaded_config.to_error(&problems).into());
    }
    let (databases, tools) = (report.databases, report.tools);
    let file = file.display();
    output::print(format_args!("{file}: {databases} databases and {tools} tools, {result}\n"))
}

/// Prints which tables cannot be read, and how files were read. Returns the number of these tables, as far as they are named.
async fn print_table_problems(application: &Application) -> Result<usize, CommandError> {
    let caller = application.local_caller(None)?;
    let mut unreadable = 0;
    for database in application.applier.open_databases() {
        let problems = first_unreadable_tables(&*database, &caller.principal).await;
        unreadable += problems.len();
        problems.iter().try_for_each(|problem| output::print(format_args!("warning: {problem}\n")))?;
        let (notes, of_columns) = (database_notes(&*database).await, column_notes(&*database).await);
        notes.iter().chain(&of_columns).try_for_each(|note| output::print(format_args!("{note}\n")))?;
    }
    Ok(unreadable)
}

/// Runs the examples of the configuration, as far as it can be planned and this process may use SQL, and prints those that
/// fail. Returns their number.
async fn print_failing_examples(application: &Application) -> Result<usize, CommandError> {
    let (loaded, caller) = (&application.loaded_config, application.local_caller(None)?);
    let mut problems = Vec::new();
    let examples: Vec<(String, &str, &str)> = declared_examples(loaded).collect();
    for (path, database, sql) in examples {
        // What cannot be planned is a warning already.
        if application.apply_report.warnings.iter().any(|warning| warning.contains(&format!(" {path}: "))) {
            continue;
        }
        let mut call = Call::new(CallTarget::Tool("sql".to_owned()), caller.clone());
        call.format = Some(Format::Json);
        call.arguments = Map::from_iter([
            ("database".to_owned(), database.into()),
            ("sql".to_owned(), sql.into()),
            ("max_rows".to_owned(), 1.into()),
        ]);
        let Ok(mut reply) = application.node().registry().call(call) else { continue };
        let message = match timeout(EXAMPLE_TIME, reply.collect_body(EXAMPLE_BYTES_MAX)).await {
            Ok(Ok(_)) => continue,
            // This process may not read it.
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden) => continue,
            Ok(Err(error)) => format!("fails when it runs: {error}"),
            Err(_) => format!("takes longer than {} seconds", EXAMPLE_TIME.as_secs()),
        };
        problems.push(ConfigProblem::new(path, message));
    }
    let lines = loaded.warning_lines(&problems);
    lines.iter().try_for_each(|line| output::print(format_args!("warning: {line}\n")))?;
    Ok(lines.len())
}
