//! `tidegate stdio`: MCP over the standard streams, for clients that start their servers: of data here, or of a server
//! that runs already.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use tidegate_transport::stdio::{self, StdioOptions};

use crate::bridge::{self, Bridge};
use crate::connecting;
use crate::failure::Failure;
use crate::following;
use crate::opened::{Opened, Sources};
use crate::options::{Audience, Options};
use crate::reload;
use crate::shutdown::{DRAIN_WITHIN, Shutdown};
use crate::source::Source;

/// Serve folders of data over standard input and output, to the program that started this one
#[derive(Debug, Args)]
pub(crate) struct Stdio {
    /// Folder or file to serve as a database, called like the folder or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,

    /// Serve only the tools, resources and prompts of this toolset
    #[arg(long, value_name = "NAME", env = "TIDEGATE_TOOLSET", hide_env_values = true)]
    toolset: Option<String>,

    #[command(flatten)]
    bridge: Bridge,
}

impl Stdio {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        if let Some(bridged) = self.bridge.options()? {
            if options.config.is_some() {
                let message = "--connect passes everything on to a running server; --config is for serving data here";
                return Err(Failure::Usage(message.to_owned()));
            }
            return bridge::run(bridged).await;
        }
        let shutdown = Shutdown::on_signals()?;
        let opened = Opened::open(Sources::Named(&self.paths), options, Audience::Clients).await?;
        // One that is not there is a mistake now; one that a reload takes away is empty.
        opened.local_caller(self.toolset.as_deref())?;
        if opened.has_file {
            reload::follow(
                opened.assembly.clone(),
                opened.loaded.path(),
                opened.seen.clone(),
                shutdown.graceful.clone(),
            )?;
            following::follow(opened.assembly.clone(), shutdown.graceful.clone());
        }
        if std::io::stdin().is_terminal() {
            connecting::announce_stdio(&self.paths, &opened);
        }
        let streams = StdioOptions {
            authenticator: opened.doorkeeper.clone(),
            toolset: self.toolset,
            drain_within: DRAIN_WITHIN,
            ..StdioOptions::default()
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let service = opened.node().service().clone();
        let serving = async {
            let served = stdio::serve(service, input, output, streams, shutdown.graceful.clone()).await;
            opened.close().await;
            served
        };
        let served = shutdown.guard(serving).await;
        if served.is_err() {
            opened.close_at_once().await;
        }
        Ok(served?.context("a standard stream broke")?)
    }
}
