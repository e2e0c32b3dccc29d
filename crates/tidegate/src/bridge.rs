//! `--connect`: standard input and output as a bridge to a server that runs already.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidegate_client::bridge::{self, BridgeNotice, BridgeOptions, ServerAddress};

use crate::bearer::{self, SecretArgument};
use crate::command_error::CommandError;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};

/// Where the server is, and who calls.
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
}

impl BridgeArguments {
    /// What the bridge needs; none when the command line asks for no bridge.
    pub(crate) fn options(&self) -> Result<Option<BridgeOptions>, CommandError> {
        let Some(url) = &self.connect else { return Ok(None) };
        let usage = |error: &dyn Display| CommandError::Usage(format!("--connect: {error}"));
        let address = ServerAddress::parse(url).map_err(|error| usage(&error))?;
        let bearer = bearer::read_bearer(self.bearer.as_ref(), self.bearer_file.as_deref())?;
        if bearer.is_some() && address.is_sent_unencrypted() {
            tracing::warn!(server = %address, "the token and all data travel unencrypted; use https or wss");
        }
        Ok(Some(BridgeOptions {
            bearer,
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

/// Bridges standard input and output until the client closes its side or a signal comes.
pub(crate) async fn run(options: BridgeOptions) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let bridged = shutdown.run_until_forced(bridge::serve(input, output, options, shutdown.graceful.clone())).await;
    Ok(bridged?.context("the bridge ended")?)
}
