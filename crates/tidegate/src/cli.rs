//! The command line: the subcommands and the options of all of them.

use clap::{Parser, Subcommand};

use crate::command_error::CommandError;
use crate::commands::{
    access, audit, call, client, completions, config, demo, doctor, export, fetch, key, pg, query, serve, stdio, token,
    tools,
};
use crate::options::GlobalOptions;

/// MCP data server: serves files, PostgreSQL and SQLite as tables, and streams its answers
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
}

/// The subcommands. Each one has a file in `commands`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoCommand),
    Serve(serve::ServeCommand),
    Stdio(stdio::StdioCommand),
    Query(query::QueryCommand),
    Export(export::ExportCommand),
    Fetch(fetch::FetchCommand),
    Call(call::CallCommand),
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
    Completions(completions::CompletionsCommand),
}

impl Command {
    /// Servers log events by default; other commands print their output alone.
    pub(crate) fn log_level_default(&self) -> &'static str {
        match self {
            Self::Demo(_) | Self::Serve(_) | Self::Stdio(_) => "info",
            Self::Query(_)
            | Self::Export(_)
            | Self::Fetch(_)
            | Self::Call(_)
            | Self::Tools(_)
            | Self::Client(_)
            | Self::Doctor(_)
            | Self::Config(_)
            | Self::Key(_)
            | Self::Token(_)
            | Self::Access(_)
            | Self::Audit(_)
            | Self::Pg(_)
            | Self::Completions(_) => "warn",
        }
    }

    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        match self {
            Self::Demo(demo) => demo.run(options).await,
            Self::Serve(serve) => serve.run(options).await,
            Self::Stdio(stdio) => stdio.run(options).await,
            Self::Query(query) => query.run(options).await,
            Self::Export(export) => export.run(options).await,
            Self::Fetch(fetch) => fetch.run().await,
            Self::Call(call) => call.run(options).await,
            Self::Tools(tools) => tools.run(options).await,
            Self::Client(client) => client.run(options),
            Self::Doctor(doctor) => doctor.run(options).await,
            Self::Config(config) => config.run(options).await,
            Self::Key(key) => key.run(options),
            Self::Token(token) => token.run(options),
            Self::Access(access) => access.run(options).await,
            Self::Audit(audit) => audit.run(options),
            Self::Pg(pg) => pg.run(options).await,
            Self::Completions(completions) => completions.run(),
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
