//! `tidegate export`: one statement, its rows in a file, however many there are.

use clap::Args;
use serde_json::{Map, json};
use tidegate_fetch::{Destination, Question, Server};

use super::call::Asker;
use crate::failure::Failure;
use crate::fetching::{DownloadFlags, FileFlags};
use crate::options::Options;
use crate::shutdown::Shutdown;
use crate::source::Source;

/// Run one read-only SQL statement and write all its rows to a file
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The statement
    sql: String,

    /// Folder or file to ask, called like the folder or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,

    /// The database to ask, when there are several
    #[arg(long, value_name = "NAME")]
    database: Option<String>,

    #[command(flatten)]
    file: FileFlags,

    /// Ask the server that runs there (http, https) instead of data here
    #[arg(long, value_name = "URL", conflicts_with = "paths")]
    connect: Option<String>,

    #[command(flatten)]
    download: DownloadFlags,
}

impl Export {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let destination = self.file.destination()?;
        match &self.connect {
            Some(url) => {
                if options.config.is_some() {
                    let message = "--connect asks a running server; --config is for asking data here";
                    return Err(Failure::Usage(message.to_owned()));
                }
                self.ask_server(url, &destination).await
            }
            None => {
                self.download.refuse()?;
                self.ask_here(&destination, options).await
            }
        }
    }

    /// The server writes the answer down while it is downloaded.
    async fn ask_server(&self, url: &str, destination: &Destination) -> Result<(), Failure> {
        let server = Server::parse(url).map_err(|error| Failure::Usage(format!("--connect: {error}")))?;
        let options = self.download.options(&server)?;
        let shutdown = Shutdown::on_signals()?;
        let question = Question { sql: self.sql.clone(), database: self.database.clone() };
        let asking = tidegate_fetch::ask(&server, &question, options.clone(), &shutdown.graceful);
        let address = shutdown.guard(asking).await??;
        self.file.download(&address, destination, options, &shutdown).await
    }

    async fn ask_here(&self, destination: &Destination, options: &Options) -> Result<(), Failure> {
        let mut arguments = Map::new();
        arguments.insert("sql".to_owned(), self.sql.as_str().into());
        // The tool has no word for "all"; no table has that many rows.
        arguments.insert("max_rows".to_owned(), json!(i64::MAX as u64));
        if let Some(database) = &self.database {
            arguments.insert("database".to_owned(), database.as_str().into());
        }
        let asker = Asker::open(&self.paths, options).await?;
        let written = asker.write("sql", arguments, destination).await?;
        if written.is_truncated {
            tracing::warn!("there are more rows than the limits of this command line let through");
        }
        self.file.tell(destination.path(), written.rows, written.bytes);
        Ok(())
    }
}
