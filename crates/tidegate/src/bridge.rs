//! `--connect`: standard input and output as a bridge to a server that runs already.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tidegate_transport::bridge::{self, Bearer, BridgeOptions, Notice, ServerAddress};

use crate::failure::Failure;
use crate::shutdown::{DRAIN_WITHIN, Shutdown};

/// Holds the token where neither the flag nor the file does.
const BEARER_VARIABLE: &str = "TIDEGATE_BEARER";

/// Where the server is, and who calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for a bridge")]
pub(crate) struct Bridge {
    /// Bridge to the server that runs there (http, https, ws, wss) instead of serving data here
    #[arg(long, value_name = "URL", conflicts_with_all = ["paths", "toolset"])]
    connect: Option<String>,

    /// Token that proves who calls [env: TIDEGATE_BEARER, which lists of processes do not show]
    #[arg(long, value_name = "TOKEN", requires = "connect", conflicts_with = "bearer_file")]
    bearer: Option<Token>,

    /// File that holds the token
    #[arg(long, value_name = "FILE", requires = "connect")]
    bearer_file: Option<PathBuf>,
}

/// Text of the command line that must not be shown.
#[derive(Clone)]
struct Token(String);

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Bridge {
    /// What the bridge needs; none when the command line asks for no bridge.
    pub(crate) fn options(&self) -> Result<Option<BridgeOptions>, Failure> {
        let Some(url) = &self.connect else { return Ok(None) };
        let usage = |error: &dyn fmt::Display| Failure::Usage(format!("--connect: {error}"));
        let address = ServerAddress::parse(url).map_err(|error| usage(&error))?;
        let bearer = self.bearer()?;
        if bearer.is_some() && address.is_in_the_clear() {
            tracing::warn!(server = %address, "the token and all data travel unencrypted; use https or wss");
        }
        Ok(Some(BridgeOptions {
            bearer,
            drain_within: DRAIN_WITHIN,
            heard_by: Arc::new(|notice: &Notice| match notice {
                Notice::Back | Notice::Renewed => tracing::info!("{notice}"),
                Notice::Lost(_) | Notice::Refused(_) | Notice::Ignored(_) => tracing::warn!("{notice}"),
            }),
            ..BridgeOptions::new(address)
        }))
    }

    fn bearer(&self) -> Result<Option<Bearer>, Failure> {
        let (text, place) = match (&self.bearer, &self.bearer_file) {
            (Some(Token(text)), _) => (text.clone(), "--bearer".to_owned()),
            (None, Some(file)) => {
                let place = format!("--bearer-file {}", file.display());
                let text = std::fs::read_to_string(file);
                (text.map_err(|error| Failure::Usage(format!("{place}: {error}")))?, place)
            }
            (None, None) => match std::env::var(BEARER_VARIABLE) {
                Ok(text) if !text.is_empty() => (text, BEARER_VARIABLE.to_owned()),
                _ => return Ok(None),
            },
        };
        Bearer::parse(&text).map(Some).map_err(|error| Failure::Usage(format!("{place}: {error}")))
    }
}

/// Bridges standard input and output until the client closes its side or a signal comes.
pub(crate) async fn run(options: BridgeOptions) -> Result<(), Failure> {
    let shutdown = Shutdown::on_signals()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let bridged = shutdown.guard(bridge::serve(input, output, options, shutdown.graceful.clone())).await;
    Ok(bridged?.context("the bridge ended")?)
}
