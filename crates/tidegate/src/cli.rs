//! The command line: verbs and the options that all of them take.

use clap::{Parser, Subcommand};

use crate::commands::{
    access, audit, call, client, completions, config, demo, doctor, export, fetch, key, pg, query, serve, stdio, token,
    tools,
};
use crate::failure::Failure;
use crate::options::Options;

/// Makes a data node an MCP server: files, PostgreSQL and SQLite as tables, answers as streams
#[derive(Debug, Parser)]
#[command(name = "tidegate", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) options: Options,
}

/// One verb a file, in `commands`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Serve(serve::Serve),
    Stdio(stdio::Stdio),
    Query(query::Query),
    Export(export::Export),
    Fetch(fetch::Fetch),
    Call(call::Call),
    Tools(tools::Tools),
    Client(client::Client),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Config(config::Config),
    #[command(subcommand)]
    Key(key::Key),
    #[command(subcommand)]
    Token(token::Token),
    #[command(subcommand)]
    Access(access::Access),
    #[command(subcommand)]
    Audit(audit::Audit),
    #[command(subcommand)]
    Pg(pg::Pg),
    Completions(completions::Completions),
}

impl Command {
    /// Servers tell what happens; whoever asks one question wants its answer alone.
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

    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
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
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
