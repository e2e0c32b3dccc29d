//! `tidegate serve`: MCP over Streamable HTTP.

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use tidegate_core::Links;
use tidegate_transport::http::{self, HttpOptions};

use crate::address::listen;
use crate::config::{Loaded, callers_are_asked};
use crate::connecting;
use crate::failure::Failure;
use crate::following;
use crate::opened::{Opened, Plan, Sources};
use crate::options::{Audience, Options};
use crate::quantity;
use crate::reload;
use crate::serving;
use crate::shutdown::{DRAIN_WITHIN, Shutdown};
use crate::source::Source;

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
    /// Address to listen on; beyond this machine only if callers must prove who they are [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// Web page origin that may call, beside those of this machine; may be repeated
    #[arg(long, value_name = "ORIGIN", env = "TIDEGATE_ALLOW_ORIGIN", hide_env_values = true, value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Host name that requests may be addressed to, beside this machine's; may be repeated
    #[arg(long, value_name = "HOST", env = "TIDEGATE_ALLOW_HOST", hide_env_values = true, value_delimiter = ',')]
    allow_host: Vec<String>,

    /// Size of a request body [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "TIDEGATE_MAX_BODY", hide_env_values = true)]
    #[arg(value_parser = quantity::size_in_memory)]
    max_body: Option<usize>,
}

impl HttpArguments {
    /// Flag over environment over file over default; lists add up.
    fn options(&self, opened: &Opened) -> Result<HttpOptions, Failure> {
        let server = &opened.loaded.config.server;
        let default = HttpOptions::default();
        let of_file = server.max_body.map(|size| quantity::in_memory(size.0)).transpose().map_err(Failure::Usage)?;
        Ok(HttpOptions {
            authenticator: opened.doorkeeper.clone(),
            protected_resource: opened.assembly.published().clone(),
            tls: opened.assembly.tls().start(&opened.loaded).map_err(anyhow::Error::from)?,
            body_bytes_max: self.max_body.or(of_file).unwrap_or(default.body_bytes_max),
            allowed_origins: [&self.allow_origin[..], &server.allow_origins].concat(),
            allowed_hosts: [&self.allow_host[..], &server.allow_hosts].concat(),
            has_mcp: server.doors.mcp,
            has_sse: server.doors.sse,
            has_web_socket: server.doors.ws,
            has_rest: server.doors.rest,
            has_metrics: server.doors.metrics,
            links: opened.node().store().map(|store| store.clone() as Arc<dyn Links>),
            drain_within: DRAIN_WITHIN,
            ..default
        })
    }

    fn address<'a>(&'a self, loaded: &'a Loaded) -> &'a str {
        self.listen.as_deref().unwrap_or_else(|| serving::address(loaded))
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

/// Says which files were merged into one table, and warns of those that are in none.
async fn tell_notes(opened: &Opened) {
    for database in opened.assembly.databases_open() {
        let name = database.name();
        // A database that does not answer is seen in each call.
        for note in database.notes().await.unwrap_or_default() {
            match note.starts_with("skipped") {
                true => tracing::warn!("database {name}: {note}"),
                false => tracing::info!("database {name}: {note}"),
            }
        }
    }
}

/// Serves `sources` until a signal comes.
pub(crate) async fn serve(
    sources: &[Source],
    http: &HttpArguments,
    help: Help,
    options: &Options,
) -> Result<(), Failure> {
    let shutdown = Shutdown::on_signals()?;
    let plan = Plan::read(Sources::Named(sources), options)?;
    // Before anything is opened: a node that is refused its address leaves no files behind.
    let listener = listen(http.address(&plan.loaded), callers_are_asked(&plan.loaded.config)).await?;
    let opened = plan.open(Audience::Clients).await?;
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    let http = http.options(&opened)?;
    if !address.ip().to_canonical().is_loopback() {
        opened.assembly.must_ask();
        if http.tls.is_none() {
            tracing::warn!(
                "keys, tokens and data travel in the clear to whoever can listen on the way: server.tls encrypts them, \
                 unless a proxy in front of this node does"
            );
        }
    }
    if opened.has_file {
        reload::follow(opened.assembly.clone(), opened.loaded.path(), opened.seen.clone(), shutdown.graceful.clone())?;
        following::follow(opened.assembly.clone(), shutdown.graceful.clone());
    }
    let node = opened.node();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let server =
        http::serve(listener, service, metrics, http, shutdown.graceful.clone()).map_err(anyhow::Error::from)?;
    connecting::announce(scheme, server.address(), help);
    tell_notes(&opened).await;
    let ending = async {
        server.ended().await;
        opened.close().await;
    };
    let ended = shutdown.guard(ending).await;
    if ended.is_err() {
        opened.close_at_once().await;
    }
    ended
}
