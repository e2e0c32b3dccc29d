//! `tidegate serve`: MCP over Streamable HTTP.

use std::io::IsTerminal as _;

use clap::Args;
use tidegate_engines::Engine;
use tidegate_transport::http::{self, HttpOptions};

use crate::address::listen;
use crate::connecting;
use crate::failure::Failure;
use crate::options::Options;
use crate::quantity;
use crate::shutdown::{DRAIN_WITHIN, Shutdown};
use crate::source::{self, Source};

/// Serve folders of data over Streamable HTTP
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Folder or file to serve as a database, called like the folder or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = Source::parse)]
    paths: Vec<Source>,

    #[command(flatten)]
    http: HttpArguments,
}

/// What every verb takes that listens.
#[derive(Debug, Args)]
pub(crate) struct HttpArguments {
    /// Address to listen on; only loopback addresses, since callers cannot yet prove who they are
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_LISTEN", hide_env_values = true)]
    #[arg(default_value = "127.0.0.1:7070")]
    pub(crate) listen: String,

    /// Web page origin that may call, beside those of this machine; may be repeated
    #[arg(long, value_name = "ORIGIN", env = "TIDEGATE_ALLOW_ORIGIN", hide_env_values = true, value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Host name that requests may be addressed to, beside this machine's; may be repeated
    #[arg(long, value_name = "HOST", env = "TIDEGATE_ALLOW_HOST", hide_env_values = true, value_delimiter = ',')]
    allow_host: Vec<String>,

    /// Size of a request body
    #[arg(long, value_name = "SIZE", env = "TIDEGATE_MAX_BODY", hide_env_values = true)]
    #[arg(default_value = "4MiB", value_parser = quantity::size_in_memory)]
    max_body: usize,
}

impl HttpArguments {
    fn options(&self) -> HttpOptions {
        HttpOptions {
            body_bytes_max: self.max_body,
            allowed_origins: self.allow_origin.clone(),
            allowed_hosts: self.allow_host.clone(),
            drain_within: DRAIN_WITHIN,
            ..HttpOptions::default()
        }
    }
}

impl Serve {
    pub(crate) async fn run(self, options: &Options) -> Result<(), Failure> {
        let help = if std::io::stderr().is_terminal() { Help::Connecting } else { Help::None };
        serve(&self.paths, &self.http, help, options).await
    }
}

/// What is said after the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    None,
    Connecting,
    ConnectingAndAsking,
}

/// Serves `sources` until a signal comes.
pub(crate) async fn serve(
    sources: &[Source],
    http: &HttpArguments,
    help: Help,
    options: &Options,
) -> Result<(), Failure> {
    let shutdown = Shutdown::on_signals()?;
    let listener = listen(&http.listen).await?;
    let engine = Engine::start(options.engine())?;
    let node = source::node(sources, options.limits_for_clients(), &engine)?;
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let server = http::serve(listener, service, metrics, http.options(), shutdown.graceful.clone())
        .map_err(anyhow::Error::from)?;
    connecting::announce(server.address(), help);
    let ended = shutdown.guard(server.ended()).await;
    engine.shutdown(DRAIN_WITHIN).await;
    ended
}
