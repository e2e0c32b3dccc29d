//! `tidegate stdio`: MCP over the standard streams, for clients that start their servers.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use tidegate_engines::Engine;
use tidegate_transport::stdio::{self, StdioOptions};

use crate::connecting;
use crate::failure::Failure;
use crate::options::Options;
use crate::shutdown::{DRAIN_WITHIN, Shutdown};
use crate::source::{self, Source};

/// Serve folders of data over standard input and output, to the program that started this one
#[derive(Debug, Args)]
pub(crate) struct Stdio {
    /// Folder or file to serve as a database, called like the folder or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,
}

impl Stdio {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let shutdown = Shutdown::on_signals()?;
        let engine = Engine::start(options.engine())?;
        let node = source::node(&self.paths, options.limits_for_clients(), &engine)?;
        if std::io::stdin().is_terminal() {
            connecting::announce_stdio(&self.paths);
        }
        let streams = StdioOptions { drain_within: DRAIN_WITHIN, ..StdioOptions::default() };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let serving = stdio::serve(node.service().clone(), input, output, streams, shutdown.graceful.clone());
        let served = shutdown.guard(serving).await;
        engine.shutdown(DRAIN_WITHIN).await;
        Ok(served?.context("a standard stream broke")?)
    }
}
