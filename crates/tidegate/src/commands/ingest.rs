//! `tidegate ingest`: what an operator does with tables that take rows.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tidegate_client::fetch::{FetchOptions, call_tool};
use tidegate_core::{CallTarget, Error, Format};
use tidegate_ingest::delta::StopFlag;
use tidegate_ingest::{IngestError, TableVerification, verify_folder};
use tidegate_runtime::Call;

use super::table_server::{RunningServer, ServerFlags};
use crate::application::{StartOptions, WrittenDatabases};
use crate::command_error::CommandError;
use crate::options::GlobalOptions;
use crate::output;
use crate::shutdown::Shutdown;

const VERIFY: &str = "verify";

/// Keep up tables that take rows, on a running server or while it is stopped
#[derive(Debug, Subcommand)]
pub(crate) enum IngestCommand {
    /// Show how many rows wait in the log, the files, and the last error of each table
    Status(TableFlags),
    /// Move the rows that wait in the log to files
    Flush(TableFlags),
    /// Join small files
    Compact(TableFlags),
    /// Read all files, and compare their checksums and rows with what was written
    Verify(TableFlags),
}

#[derive(Debug, Args)]
pub(crate) struct TableFlags {
    /// Database, or one table of it [default: all]
    #[arg(value_name = "DATABASE[.TABLE]")]
    tables: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerFlags,
}

impl IngestCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let (action, flags) = match self {
            Self::Status(flags) => (None, flags),
            Self::Flush(flags) => (Some("flush"), flags),
            Self::Compact(flags) => (Some("compact"), flags),
            Self::Verify(flags) => (Some(VERIFY), flags),
        };
        let (tool, arguments) = flags.call(action);
        let answer = flags.answer(tool, arguments, options).await?;
        let tables: Vec<&Value> = answer["tables"].as_array().into_iter().flatten().collect();
        if flags.json {
            output::print(format_args!("{answer}\n"))?;
        } else if tables.is_empty() {
            output::print_note("There are no tables with rows.\n");
        }
        for table in tables.iter().filter(|_| !flags.json) {
            output::print(describe(action, table))?;
        }
        match tables.iter().filter(|table| table["intact"] == false).count() {
            0 => Ok(()),
            damaged => Err(anyhow::anyhow!("{damaged} of {} tables are damaged", tables.len()).into()),
        }
    }
}

impl TableFlags {
    fn call(&self, action: Option<&str>) -> (&'static str, Map<String, Value>) {
        let mut arguments = Map::new();
        if let Some(tables) = &self.tables {
            let (database, table) =
                tables.split_once('.').map_or((tables.as_str(), None), |(database, table)| (database, Some(table)));
            arguments.insert("database".to_owned(), database.into());
            arguments.extend(table.map(|table| ("table".to_owned(), table.into())));
        }
        match action {
            None => ("ingest_status", arguments),
            Some(action) => {
                arguments.insert("action".to_owned(), action.into());
                ("maintain_ingest", arguments)
            }
        }
    }

    async fn answer(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &GlobalOptions,
    ) -> Result<Value, CommandError> {
        let shutdown = Shutdown::on_signals()?;
        if let Some(RunningServer { server, bearer, authorities }) = self.server.server()? {
            let options = FetchOptions { bearer, authorities, ..FetchOptions::default() };
            let calling = call_tool(&server, tool, &arguments, options, &shutdown.graceful);
            return Ok(shutdown.run_until_forced(calling).await??);
        }
        if arguments.get("action").is_some_and(|action| action == VERIFY) {
            return self.verify(options, &shutdown).await;
        }
        let database = arguments.get("database").and_then(Value::as_str).map(str::to_owned);
        let written = database.as_deref().map_or(WrittenDatabases::All, WrittenDatabases::One);
        let application = StartOptions::of_writer(options, written)?.open().await?;
        let mut call = Call::new(CallTarget::Tool(tool.to_owned()), application.local_caller(None)?);
        call.arguments = arguments;
        call.format = Some(Format::Json);
        call.cancellation = shutdown.graceful.clone();
        let answered = async {
            let (body, _) = application.node().registry().call(call)?.collect_body(usize::MAX).await?;
            serde_json::from_slice(&body).map_err(|error| Error::internal(format!("the answer of {tool}: {error}")))
        };
        let answered = shutdown.run_until_forced(answered).await;
        application.close().await;
        Ok(answered??)
    }
}

impl TableFlags {
    /// Compares the folders themselves with what was written. No node is opened, as one would put the folders in order.
    async fn verify(&self, options: &GlobalOptions, shutdown: &Shutdown) -> Result<Value, CommandError> {
        let folders = StartOptions::of_writer(options, WrittenDatabases::All)?.ingest_folders()?;
        let (only, table) = match self.tables.as_deref().map(|tables| tables.split_once('.').unwrap_or((tables, ""))) {
            Some((database, table)) => (Some(database), Some(table.to_owned()).filter(|table| !table.is_empty())),
            None => (None, None),
        };
        if let Some(unknown) = only.filter(|only| folders.iter().all(|(name, _)| name != only)) {
            let message = format!("there is no database {unknown:?} with a folder of tables that take rows");
            return Err(CommandError::Other(anyhow::anyhow!(message)));
        }
        let mut tables = Vec::new();
        for (database, path) in folders.into_iter().filter(|(name, _)| only.is_none_or(|only| only == name)) {
            let (stop, table) = (StopFlag::default(), table.clone());
            let stopped = stop.clone();
            let verifying = tokio::task::spawn_blocking(move || verify_folder(&path, table.as_deref(), &stop));
            tokio::pin!(verifying);
            let verified = tokio::select! {
                verified = &mut verifying => verified,
                () = shutdown.graceful.cancelled() => {
                    stopped.stop();
                    verifying.await
                }
            };
            let verified = verified.map_err(anyhow::Error::from)?.map_err(|error| match error {
                IngestError::Locked { .. } => anyhow::anyhow!("{error}\nhint: --connect URL uses the running server"),
                _ if stopped.is_stopped() => anyhow::anyhow!("stopped before all files were read"),
                error => error.into(),
            })?;
            tables.extend(verified.into_iter().map(|(table, found)| verification_json(&database, &table, &found)));
        }
        Ok(json!({"tables": tables}))
    }
}

fn verification_json(database: &str, table: &str, found: &TableVerification) -> Value {
    let problems = found.problems.iter().map(|(path, problem)| format!("{}: {problem}", path.display()));
    json!({
        "database": database,
        "table": table,
        "intact": found.is_intact(),
        "files": found.files,
        "file_rows": found.file_rows,
        "log_rows": found.log_rows,
        "problems": problems.collect::<Vec<_>>(),
    })
}

/// A line about a table, with further lines for its problems.
fn describe(action: Option<&str>, table: &Value) -> String {
    let text = |name: &str| table[name].as_str().unwrap_or_default();
    let number = |name: &str| table[name].as_u64().unwrap_or_default();
    let count = |name: &str, one: &str, many: &str| match number(name) {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let name = format!("{}.{}", text("database"), text("table"));
    let files = count("files", "file", "files");
    match action {
        None => {
            let age = table["oldest_seconds"].as_f64().map(|age| format!(" for up to {age:.1} s")).unwrap_or_default();
            let rows = count("rows", "row", "rows");
            let waiting = match number("waiting_rows") {
                1 => "1 row waits in the log",
                _ => "rows wait in the log",
            };
            let waiting = match number("waiting_rows") {
                1 => waiting.to_owned(),
                rows => format!("{rows} {waiting}"),
            };
            let steps = format!(
                "sequence {}, in files up to {}; {}, {}",
                number("sequence"),
                number("flushed_sequence"),
                count("flushes", "flush", "flushes"),
                count("compactions", "compaction", "compactions")
            );
            let error = match text("last_error") {
                "" => String::new(),
                error => format!("  last error: {error}\n"),
            };
            format!(
                "{name}: {waiting}{age} ({} bytes); {rows} in {files} ({} bytes); {steps}\n{error}",
                number("waiting_bytes"),
                number("bytes")
            )
        }
        Some("flush") => format!("{name}: {} moved to files\n", count("flushed_rows", "row", "rows")),
        Some("compact") => format!("{name}: {} joined\n", count("joined_files", "file", "files")),
        Some(_) => {
            let state = if table["intact"] == true { "intact" } else { "damaged" };
            let problems = table["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let problems: String = problems.map(|problem| format!("  {problem}\n")).collect();
            let rows = count("file_rows", "row", "rows");
            format!("{name}: {state}; {rows} in {files}, {} in the log\n{problems}", number("log_rows"))
        }
    }
}
