//! `tidegate stdio`: MCP over the standard streams, for clients that start their servers. Serves local data, or is a
//! bridge to a running server.

use std::fmt::Display;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidegate_client::TrustedAuthorities;
use tidegate_client::bridge::{self, BridgeNotice, BridgeOptions, ServerAddress};
use tidegate_transport::stdio::{self, StdioOptions};

use crate::application::StartOptions;
use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;
use crate::database_argument::DatabaseArgument;
use crate::options::GlobalOptions;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};
use crate::startup_help;

/// The arguments of a bridge.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a bridge")]
pub(crate) struct BridgeArguments {
    /// Bridge to the server at this address (http, https, ws, wss) instead of serving local data
    #[arg(long, value_name = "URL", conflicts_with_all = ["paths", "toolset"])]
    connect: Option<String>,

    /// Bearer token [env: TIDEGATE_BEARER, which is not visible in process lists]
    #[arg(long, value_name = "TOKEN", requires = "connect", conflicts_with = "bearer_file")]
    bearer: Option<SecretArgument>,

    /// File that contains the bearer token
    #[arg(long, value_name = "FILE", requires = "connect")]
    bearer_file: Option<PathBuf>,

    /// File with the certificate of the server's authority, or its own [default: those of the system]
    #[arg(long, value_name = "FILE", value_parser = bearer::parse_authorities, requires = "connect")]
    ca: Option<TrustedAuthorities>,
}

/// Serve files and databases over standard input and output, for the client that started this process
#[derive(Debug, Args)]
pub(crate) struct StdioCommand {
    /// Folder, file, SQLite file, postgres:// or mysql:// address to serve as a database, named after it, or NAME
    /// [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,

    /// Serve only the tools, resources and prompts of this toolset
    #[arg(long, value_name = "NAME", env = "TIDEGATE_TOOLSET", hide_env_values = true)]
    toolset: Option<String>,

    #[command(flatten)]
    bridge: BridgeArguments,
}

impl StdioCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        if let Some(bridged) = self.bridge.options()? {
            if options.config.is_some() {
                let message = "--connect passes everything on to a running server; --config is for serving data here";
                return Err(CommandError::Usage(message.to_owned()));
            }
            return run_bridge(bridged).await;
        }
        let shutdown = Shutdown::on_signals()?;
        let application = StartOptions::of_server(&self.paths, options)?.open().await?;
        // An unknown toolset is an error at start; after a reload, it is empty.
        application.local_caller(self.toolset.as_deref())?;
        application.spawn_background_tasks(&shutdown.graceful)?;
        if std::io::stdin().is_terminal() {
            startup_help::print_stdio_help(&self.paths, &application);
        }
        let streams = StdioOptions {
            authenticator: application.applier.authenticator.clone(),
            toolset: self.toolset,
            drain_within: DRAIN_TIMEOUT,
            ..StdioOptions::default()
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let service = application.node().service().clone();
        let serving = stdio::serve(service, input, output, streams, shutdown.graceful.clone());
        Ok(application.serve_until_closed(serving, &shutdown).await?.context("a standard stream broke")?)
    }
}

impl BridgeArguments {
    fn options(&self) -> Result<Option<BridgeOptions>, CommandError> {
        let Some(url) = &self.connect else { return Ok(None) };
        let usage = |error: &dyn Display| CommandError::Usage(format!("--connect: {error}"));
        let address = ServerAddress::parse(url).map_err(|error| usage(&error))?;
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref())?;
        if bearer.is_some() && address.is_sent_unencrypted() {
            tracing::warn!(server = %address, "the token and all data travel unencrypted; use https or wss");
        }
        Ok(Some(BridgeOptions {
            bearer,
            authorities: self.ca.clone(),
            drain_within: DRAIN_TIMEOUT,
            notice_listener: Arc::new(|notice: &BridgeNotice| match notice {
                BridgeNotice::Reconnected | BridgeNotice::HandshakeRenewed => tracing::info!("{notice}"),
                BridgeNotice::Disconnected(_) | BridgeNotice::Refused(_) | BridgeNotice::Ignored(_) => {
                    tracing::warn!("{notice}")
                }
            }),
            ..BridgeOptions::new(address)
        }))
    }
}

/// Bridges standard input and output until the client closes its side or a signal arrives.
async fn run_bridge(options: BridgeOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let bridged = shutdown.run_until_forced(bridge::serve(input, output, options, shutdown.graceful.clone())).await;
    Ok(bridged?.context("the bridge ended")?)
}
