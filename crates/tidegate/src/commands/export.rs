//! `tidegate export`: runs one statement and writes all its rows to a file.

use clap::Args;
use tidegate_client::fetch::{OutputFile, RemoteQuery, ResultServer};

use super::call::ToolCaller;
use super::query;
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::download_flags::{DownloadFlags, OutputFileFlags};
use crate::options::GlobalOptions;
use crate::quantity::LimitValue;
use crate::shutdown::Shutdown;

/// Run one read-only SQL statement and write all its rows to a file
#[derive(Debug, Args)]
pub(crate) struct ExportCommand {
    /// The statement
    sql: String,

    /// Folder, file, SQLite file, postgres:// or mysql:// address to query, named after it, or NAME [default: the
    /// current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,

    /// The database to query, if there are several
    #[arg(long, value_name = "NAME")]
    database: Option<String>,

    #[command(flatten)]
    file: OutputFileFlags,

    /// Query the server at this address (http, https) instead of local data
    #[arg(long, value_name = "URL", conflicts_with = "paths")]
    connect: Option<String>,

    #[command(flatten)]
    download: DownloadFlags,
}

impl ExportCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let output_file = self.file.output_file()?;
        match &self.connect {
            Some(url) => {
                if options.config.is_some() {
                    let message = "--connect queries a running server; --config is for local data";
                    return Err(CommandError::Usage(message.to_owned()));
                }
                self.export_from_server(url, &output_file).await
            }
            None => {
                self.download.reject_if_set()?;
                self.export_locally(&output_file, options).await
            }
        }
    }

    /// The server stores the answer while it is downloaded.
    async fn export_from_server(&self, url: &str, output_file: &OutputFile) -> Result<(), CommandError> {
        let server = ResultServer::parse(url).map_err(|error| CommandError::Usage(format!("--connect: {error}")))?;
        let options = self.download.options(&server)?;
        let shutdown = Shutdown::on_signals()?;
        let query = RemoteQuery { sql: self.sql.clone(), database: self.database.clone() };
        let starting = tidegate_client::fetch::start_query(&server, &query, options.clone(), &shutdown.graceful);
        let address = shutdown.run_until_forced(starting).await??;
        self.file.download(&address, output_file, options, &shutdown).await
    }

    async fn export_locally(&self, output_file: &OutputFile, options: &GlobalOptions) -> Result<(), CommandError> {
        let arguments = query::sql_arguments(&self.sql, self.database.as_deref(), LimitValue::Unlimited);
        let tool_caller = ToolCaller::open(&self.paths, options).await?;
        let written = tool_caller.call_and_write("sql", arguments, output_file).await?;
        if written.is_truncated {
            tracing::warn!("the limits of this command line have cut off further rows");
        }
        if let Some(missing) = &written.missing {
            tracing::warn!("{missing}");
        }
        self.file.print_summary(output_file.path(), written.rows, written.bytes);
        Ok(())
    }
}
