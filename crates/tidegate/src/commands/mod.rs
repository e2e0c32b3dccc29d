//! The command line: the subcommands, one a file, and the options of all of them.

mod access;
mod audit;
mod call;
mod client;
mod completions;
mod config;
mod demo;
mod doctor;
mod export;
mod fetch;
mod health;
mod import;
mod ingest;
mod init;
mod key;
mod logs;
mod man;
mod metrics;
mod mysql;
mod pg;
mod query;
mod serve;
mod stdio;
mod table_server;
mod token;
mod tools;
mod transport;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Parser, Subcommand};
use tidegate_core::escape_control_characters;

use crate::argument_secrets::mask_secrets;
use crate::command_error::CommandError;
use crate::config::RUNTIME_THREADS;
use crate::log_writer::ServerLogWriter;
use crate::logging;
use crate::options::GlobalOptions;

/// MCP data server: serves files, PostgreSQL, MySQL and SQLite as tables, and streams its answers
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    options: GlobalOptions,
    /// Dropped when the subcommand has ended, before its error is reported.
    #[arg(skip)]
    log_writer: Option<ServerLogWriter>,
}

impl Cli {
    /// Prints the words that fit at the cursor of a command line, if a shell requests them through the environment. Whether
    /// it does: the arguments are that line then.
    ///
    /// # Errors
    /// If the request is none of a shell that is supported, or if the words cannot be written.
    pub fn complete_line() -> Result<bool, CommandError> {
        completions::complete_line()
    }

    /// Parses the arguments of the process and starts the log. Exits at `--help`, and if the arguments are wrong.
    ///
    /// # Errors
    /// If the log cannot be started, or if wrong arguments contain control characters or a password.
    pub fn parse_arguments(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, CommandError> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let is_escaped =
            |argument: &OsString| matches!(escape_control_characters(&argument.to_string_lossy()), Cow::Owned(_));
        let has_control_characters = arguments.iter().any(is_escaped);
        let parsed = Self::try_parse_from(arguments);
        let mut cli = parsed.map_err(|error| exit_or_convert(&error, has_control_characters))?;
        let is_server = cli.command.is_server();
        cli.log_writer = logging::start(&cli.options.log, is_server)?;
        Ok(cli)
    }

    /// The number of threads on which a server runs calls, if its configuration states it. What is wrong with the
    /// configuration is an error of [`Cli::run`].
    pub fn runtime_threads(&self) -> Option<usize> {
        if !matches!(self.command, Command::Serve(_) | Command::Stdio(_)) {
            return None;
        }
        let threads = self.options.load_config().ok()??.config.server.threads?;
        usize::try_from(threads).ok().filter(|_| RUNTIME_THREADS.contains(&threads))
    }

    /// Runs the subcommand.
    ///
    /// # Errors
    /// Why it failed, for [`CommandError::report`].
    pub async fn run(self) -> Result<(), CommandError> {
        self.command.run(&self.options).await
    }
}

/// Exits as clap does, with its colours. An error that may quote control characters, or quotes a password, is reported as
/// those of commands are.
fn exit_or_convert(error: &clap::Error, has_control_characters: bool) -> CommandError {
    let has_secrets = || matches!(mask_secrets(&error.to_string()), Cow::Owned(_));
    if error.use_stderr() && (has_control_characters || has_secrets()) {
        return usage_error(error);
    }
    error.exit()
}

fn usage_error(error: &clap::Error) -> CommandError {
    CommandError::Usage(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
}

/// The subcommands. Each one has a file in `commands`.
#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoCommand),
    Init(init::InitCommand),
    Serve(serve::ServeCommand),
    Stdio(stdio::StdioCommand),
    Query(query::QueryCommand),
    Export(export::ExportCommand),
    Fetch(fetch::FetchCommand),
    Import(import::ImportCommand),
    #[command(subcommand)]
    Ingest(ingest::IngestCommand),
    Call(call::CallCommand),
    Logs(logs::LogsCommand),
    Metrics(metrics::MetricsCommand),
    Tools(tools::ToolsCommand),
    Client(client::ClientCommand),
    Doctor(doctor::DoctorCommand),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    #[command(subcommand)]
    Key(key::KeyCommand),
    #[command(subcommand)]
    Token(token::TokenCommand),
    #[command(subcommand)]
    Access(access::AccessCommand),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    #[command(subcommand)]
    Pg(pg::PgCommand),
    #[command(subcommand, name = "mysql")]
    MySql(mysql::MySqlCommand),
    #[command(subcommand)]
    Transport(transport::TransportCommand),
    Health(health::HealthCommand),
    Completions(completions::CompletionsCommand),
    #[command(hide = true)]
    Man(man::ManCommand),
}

impl Command {
    /// Servers log events by default; other commands print their output alone.
    fn is_server(&self) -> bool {
        matches!(self, Self::Demo(_) | Self::Serve(_) | Self::Stdio(_))
    }

    async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Demo(demo) => demo.run(options).await,
            Self::Init(init) => init.run(options).await,
            Self::Serve(serve) => serve.run(options).await,
            Self::Stdio(stdio) => stdio.run(options).await,
            Self::Query(query) => query.run(options).await,
            Self::Export(export) => export.run(options).await,
            Self::Fetch(fetch) => fetch.run().await,
            Self::Import(import) => import.run(options).await,
            Self::Ingest(ingest) => ingest.run(options).await,
            Self::Call(call) => call.run(options).await,
            Self::Logs(logs) => logs.run(options).await,
            Self::Metrics(metrics) => metrics.run(options).await,
            Self::Tools(tools) => tools.run(options).await,
            Self::Client(client) => client.run(options),
            Self::Doctor(doctor) => doctor.run(options).await,
            Self::Config(config) => config.run(options).await,
            Self::Key(key) => key.run(options),
            Self::Token(token) => token.run(options),
            Self::Access(access) => access.run(options).await,
            Self::Audit(audit) => audit.run(options),
            Self::Pg(pg) => pg.run(options).await,
            Self::MySql(mysql) => mysql.run(),
            Self::Transport(transport) => transport.run().await,
            Self::Health(health) => health.run().await,
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_debug_assert() {
        Cli::command().debug_assert();
    }
}
