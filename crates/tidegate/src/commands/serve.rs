//! `tidegate serve`: MCP over Streamable HTTP.

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use tidegate_core::LinkVerifier;
use tidegate_transport::http::{self, HttpOptions};

use crate::command_error::CommandError;
use crate::config::{LoadedConfig, requires_authentication};
use crate::open_node::{NodeSpec, OpenNode, ServedSources};
use crate::options::{Audience, GlobalOptions};
use crate::quantity;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};
use crate::source::DatabaseSource;
use crate::startup_checks;
use crate::startup_help::{self, StartupHelp};

/// Serve folders of data over Streamable HTTP
#[derive(Debug, Args)]
pub(crate) struct ServeCommand {
    /// Folder or file to serve as a database, named after the folder, or NAME [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseSource::parse)]
    paths: Vec<DatabaseSource>,

    #[command(flatten)]
    http: HttpArguments,
}

/// What every verb takes that listens.
#[derive(Debug, Args)]
pub(crate) struct HttpArguments {
    /// Address to listen on; beyond this machine only if callers must authenticate [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_LISTEN", hide_env_values = true)]
    pub(crate) listen: Option<String>,

    /// Origin of web pages that may call, in addition to those of this machine; can be repeated
    #[arg(long, value_name = "ORIGIN", env = "TIDEGATE_ALLOW_ORIGIN", hide_env_values = true, value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Host name of this server that requests may use, in addition to those of this machine; can be repeated
    #[arg(long, value_name = "HOST", env = "TIDEGATE_ALLOW_HOST", hide_env_values = true, value_delimiter = ',')]
    allow_host: Vec<String>,

    /// Maximum size of a request body [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "TIDEGATE_MAX_BODY", hide_env_values = true)]
    #[arg(value_parser = quantity::size_in_memory)]
    max_body: Option<usize>,
}

impl HttpArguments {
    /// Flag over environment over file over default; lists add up.
    fn http_options(&self, opened: &OpenNode) -> Result<HttpOptions, CommandError> {
        let server = &opened.loaded_config.config.server;
        let default = HttpOptions::default();
        let of_file =
            server.max_body.map(|size| quantity::to_usize(size.0)).transpose().map_err(CommandError::Usage)?;
        Ok(HttpOptions {
            authenticator: opened.authenticator.clone(),
            protected_resource: opened.assembly.protected_resource.clone(),
            tls: opened.assembly.tls.load_for_server(&opened.loaded_config).map_err(anyhow::Error::from)?,
            body_bytes_max: self.max_body.or(of_file).unwrap_or(default.body_bytes_max),
            allowed_origins: [&self.allow_origin[..], &server.allow_origins].concat(),
            allowed_hosts: [&self.allow_host[..], &server.allow_hosts].concat(),
            has_mcp: server.transports.mcp,
            has_sse: server.transports.sse,
            has_web_socket: server.transports.ws,
            has_rest: server.transports.rest,
            has_metrics: server.transports.metrics,
            links: opened.node().store().map(|store| store.clone() as Arc<dyn LinkVerifier>),
            drain_within: DRAIN_TIMEOUT,
            ..default
        })
    }

    fn address<'a>(&'a self, loaded: &'a LoadedConfig) -> &'a str {
        self.listen.as_deref().unwrap_or_else(|| startup_checks::configured_address(loaded))
    }
}

impl ServeCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let help = if std::io::stderr().is_terminal() { StartupHelp::ConnectionHelp } else { StartupHelp::None };
        serve(&self.paths, &self.http, help, options).await
    }
}

/// Says which files were merged into one table, and warns of those that are in none.
async fn log_notes(opened: &OpenNode) {
    for database in opened.assembly.open_databases() {
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
    sources: &[DatabaseSource],
    http: &HttpArguments,
    help: StartupHelp,
    options: &GlobalOptions,
) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let plan = NodeSpec::read(ServedSources::Named(sources), options)?;
    // Before anything is opened: a node that is refused its address leaves no files behind.
    let listener =
        startup_checks::listen(http.address(&plan.loaded_config), requires_authentication(&plan.loaded_config.config))
            .await?;
    let opened = plan.open(Audience::Clients).await?;
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    let http = http.http_options(&opened)?;
    if !address.ip().to_canonical().is_loopback() {
        opened.assembly.require_authentication();
        if http.tls.is_none() {
            tracing::warn!(
                "keys, tokens and data travel in the clear to whoever can listen on the way: server.tls encrypts them, \
                 unless a proxy in front of this node does"
            );
        }
    }
    opened.watch_changes(&shutdown.graceful)?;
    let node = opened.node();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let server =
        http::serve(listener, service, metrics, http, shutdown.graceful.clone()).map_err(anyhow::Error::from)?;
    startup_help::print_address(scheme, server.address(), help);
    log_notes(&opened).await;
    opened.serve_until_closed(server.wait(), &shutdown).await
}
