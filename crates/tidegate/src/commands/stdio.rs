//! `tidegate stdio`: MCP over the standard streams, for clients that start their servers: of data here, or of a server
//! that runs already.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use tidegate_transport::stdio::{self, StdioOptions};

use crate::bridge::{self, BridgeArguments};
use crate::command_error::CommandError;
use crate::handler_updates;
use crate::open_node::{OpenNode, ServedSources};
use crate::options::{Audience, GlobalOptions};
use crate::reload;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};
use crate::source::DatabaseSource;
use crate::startup_help;

/// Serve folders of data over standard input and output, for the client that started this process
#[derive(Debug, Args)]
pub(crate) struct StdioCommand {
    /// Folder or file to serve as a database, named after the folder, or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseSource::parse)]
    paths: Vec<DatabaseSource>,

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
            return bridge::run(bridged).await;
        }
        let shutdown = Shutdown::on_signals()?;
        let opened = OpenNode::open(ServedSources::Named(&self.paths), options, Audience::Clients).await?;
        // One that is not there is a mistake now; one that a reload takes away is empty.
        opened.local_caller(self.toolset.as_deref())?;
        if opened.has_file {
            reload::spawn_reloader(
                opened.assembly.clone(),
                opened.loaded_config.path(),
                opened.file_hashes.clone(),
                shutdown.graceful.clone(),
            )?;
            handler_updates::watch_handlers(opened.assembly.clone(), shutdown.graceful.clone());
        }
        if std::io::stdin().is_terminal() {
            startup_help::print_stdio_help(&self.paths, &opened);
        }
        let streams = StdioOptions {
            authenticator: opened.authenticator.clone(),
            toolset: self.toolset,
            drain_within: DRAIN_TIMEOUT,
            ..StdioOptions::default()
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let service = opened.node().service().clone();
        let serving = async {
            let served = stdio::serve(service, input, output, streams, shutdown.graceful.clone()).await;
            opened.close().await;
            served
        };
        let served = shutdown.run_until_forced(serving).await;
        if served.is_err() {
            opened.cancel_and_close().await;
        }
        Ok(served?.context("a standard stream broke")?)
    }
}
