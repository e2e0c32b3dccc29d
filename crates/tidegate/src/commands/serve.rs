//! `tidegate serve`: MCP over Streamable HTTP.

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use tidegate_core::LinkVerifier;
use tidegate_transport::http::{self, HttpOptions};

use crate::command_error::CommandError;
use crate::config::{LoadedConfig, requires_authentication};
use crate::open_node::{NodeSpec, OpenNode};
use crate::options::{GlobalOptions, LimitDefaults};
use crate::quantity;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};
use crate::source::DatabaseSource;
use crate::startup_checks;
use crate::startup_help::{self, StartupHelp};

/// Serve files and databases over Streamable HTTP
#[derive(Debug, Args)]
pub(crate) struct ServeCommand {
    /// Folder, file, SQLite file or postgres:// address to serve as a database, named after it, or NAME [default: the
    /// current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseSource::parse)]
    paths: Vec<DatabaseSource>,

    #[command(flatten)]
    http: HttpArguments,
}

/// The arguments of all commands that listen.
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
    /// A flag overrides the environment, then the file, then the default; lists are combined.
    fn http_options(&self, open_node: &OpenNode) -> Result<HttpOptions, CommandError> {
        let server = &open_node.loaded_config.config.server;
        let default = HttpOptions::default();
        let configured_max_body =
            server.max_body.map(|size| quantity::to_usize(size.0)).transpose().map_err(CommandError::Usage)?;
        Ok(HttpOptions {
            authenticator: open_node.authenticator.clone(),
            protected_resource: open_node.assembly.protected_resource.clone(),
            tls: open_node.assembly.tls.load_for_server(&open_node.loaded_config).map_err(anyhow::Error::from)?,
            body_bytes_max: self.max_body.or(configured_max_body).unwrap_or(default.body_bytes_max),
            allowed_origins: [&self.allow_origin[..], &server.allow_origins].concat(),
            allowed_hosts: [&self.allow_host[..], &server.allow_hosts].concat(),
            has_mcp: server.transports.mcp,
            has_sse: server.transports.sse,
            has_web_socket: server.transports.ws,
            has_rest: server.transports.rest,
            has_metrics: server.transports.metrics,
            links: open_node.node().store().map(|store| store.clone() as Arc<dyn LinkVerifier>),
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

/// Logs which files were merged into one table, and which were skipped.
async fn log_notes(open_node: &OpenNode) {
    for database in open_node.assembly.open_databases() {
        let name = database.name();
        // Calls report a database that does not answer.
        for note in database.notes().await.unwrap_or_default() {
            match note.starts_with("skipped") {
                true => tracing::warn!("database {name}: {note}"),
                false => tracing::info!("database {name}: {note}"),
            }
        }
    }
}

/// Serves `sources` until a signal arrives.
pub(crate) async fn serve(
    sources: &[DatabaseSource],
    http: &HttpArguments,
    help: StartupHelp,
    options: &GlobalOptions,
) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let spec = NodeSpec::read(Some(sources), options)?;
    // Before anything is opened, so that no files are left if the address is refused.
    let listener =
        startup_checks::listen(http.address(&spec.loaded_config), requires_authentication(&spec.loaded_config.config))
            .await?;
    let open_node = spec.open(LimitDefaults::Clients).await?;
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    let http = http.http_options(&open_node)?;
    if !address.ip().to_canonical().is_loopback() {
        open_node.assembly.require_authentication();
        if http.tls.is_none() {
            tracing::warn!(
                "keys, tokens and data are sent unencrypted; configure server.tls, unless a proxy in front of this \
                 server encrypts them"
            );
        }
    }
    open_node.watch_changes(&shutdown.graceful)?;
    let node = open_node.node();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let server =
        http::serve(listener, service, metrics, http, shutdown.graceful.clone()).map_err(anyhow::Error::from)?;
    startup_help::print_address(scheme, server.address(), help);
    log_notes(&open_node).await;
    open_node.serve_until_closed(server.wait(), &shutdown).await
}
