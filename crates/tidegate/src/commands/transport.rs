//! `tidegate transport`: stops and starts transports of a running server.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tidegate_client::TrustedAuthorities;
use tidegate_client::fetch::{FetchOptions, ResultServer, TransportChange, control_transports};

use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;
use crate::output;
use crate::shutdown::Shutdown;

/// Stop and start MCP or REST on a running server, while the other one runs on
#[derive(Debug, Subcommand)]
pub(crate) enum TransportCommand {
    /// Show which transports run
    Status(ServerFlags),
    /// Refuse new requests with 503; requests that are being answered continue
    Stop(SwitchCommand),
    /// Answer requests again
    Start(SwitchCommand),
}

#[derive(Debug, Args)]
pub(crate) struct SwitchCommand {
    /// mcp (Streamable HTTP, HTTP+SSE and WebSocket), or rest (REST, and downloads of stored results)
    #[arg(value_enum, hide_possible_values = true)]
    transport: TransportName,

    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TransportName {
    Mcp,
    Rest,
}

#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Address of the server (http, https)
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    connect: String,

    /// Bearer token [env: TIDEGATE_BEARER, which is not visible in process lists]
    #[arg(long, value_name = "TOKEN", conflicts_with = "bearer_file")]
    bearer: Option<SecretArgument>,

    /// File that contains the bearer token
    #[arg(long, value_name = "FILE")]
    bearer_file: Option<PathBuf>,

    /// File with the certificate of the server's authority, or its own [default: those of the system]
    #[arg(long, value_name = "FILE", value_parser = bearer::parse_authorities)]
    ca: Option<TrustedAuthorities>,
}

impl TransportCommand {
    pub(crate) async fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Status(server) => server.control(None).await,
            Self::Stop(SwitchCommand { transport, server }) => server.control(Some(transport.change(false))).await,
            Self::Start(SwitchCommand { transport, server }) => server.control(Some(transport.change(true))).await,
        }
    }
}

impl TransportName {
    fn change(self, is_running: bool) -> TransportChange<'static> {
        let name = match self {
            Self::Mcp => "mcp",
            Self::Rest => "rest",
        };
        TransportChange { name, is_running }
    }
}

impl ServerFlags {
    async fn control(&self, change: Option<TransportChange<'_>>) -> Result<(), CommandError> {
        let usage = |error| CommandError::Usage(format!("--connect: {error}"));
        let server = ResultServer::parse(&self.connect).map_err(usage)?;
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref())?;
        if bearer.is_some() && server.is_sent_unencrypted() {
            tracing::warn!(%server, "the token is sent unencrypted; use https");
        }
        let shutdown = Shutdown::on_signals()?;
        let options = FetchOptions { bearer, authorities: self.ca.clone(), ..FetchOptions::default() };
        let controlling = control_transports(&server, change, options, &shutdown.graceful);
        for (name, state) in shutdown.run_until_forced(controlling).await?? {
            output::print(format_args!("{name}: {state}\n"))?;
        }
        Ok(())
    }
}
