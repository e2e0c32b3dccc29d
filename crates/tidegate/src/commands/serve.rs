//! `tidegate serve`: MCP over Streamable HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use tidegate_core::LinkVerifier;
use tidegate_postgres_handlers::SchemaName;
use tidegate_transport::http::{self, HttpOptions, OptionsReloader};
use tidegate_transport::tls::ApplicationProtocol;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::application::{Application, StartOptions};
use crate::command_error::CommandError;
use crate::config::{ConfigApplier, LoadedConfig, ServerAddress, verifies_callers};
use crate::database_argument::DatabaseArgument;
use crate::file_limit;
use crate::flight::{FlightServer, find_flight_problems};
use crate::open_browser::open_in_browser;
use crate::options::GlobalOptions;
use crate::quantity;
use crate::readiness::DatabaseReadiness;
use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};
use crate::standard_stream::standard_error;
use crate::startup_checks;
use crate::startup_help::{self, StartupHelp};
use crate::table_problems::{database_notes, first_unreadable_tables};

/// Serve files and databases over Streamable HTTP
#[derive(Debug, Args)]
pub(crate) struct ServeCommand {
    /// Folder, file, SQLite file, postgres:// or mysql:// address to serve as a database, named after it, or NAME
    /// [default: the current folder]
    #[arg(value_name = "[NAME=]PATH", value_parser = DatabaseArgument::parse)]
    paths: Vec<DatabaseArgument>,

    /// Serve the handlers in this schema of the databases of PostgreSQL; they may only read. tidegate pg install creates
    /// it [default schema: api]
    #[arg(long, value_name = "SCHEMA", num_args = 0..=1, require_equals = true, default_missing_value = "api")]
    #[arg(value_parser = SchemaName::parse)]
    handlers: Option<SchemaName>,

    #[command(flatten)]
    http: HttpArguments,
}

/// The arguments of all commands that listen.
#[derive(Debug, Clone, Args)]
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

    /// Open the console in the browser of this machine
    #[arg(long)]
    open: bool,
}

impl HttpArguments {
    /// The options of `address` at the start. A flag overrides the environment, then the file, then the default; lists
    /// are combined.
    fn http_options(
        &self,
        application: &Application,
        address: ServerAddress<'_>,
        common: &HttpOptions,
    ) -> Result<HttpOptions, CommandError> {
        let (is_listed, protocol) = (self.listen.is_none(), ApplicationProtocol::Http1);
        let tls = &application.applier.tls;
        let tls = tls.load_for_address(address, is_listed, protocol, &application.loaded_config);
        let options = HttpOptions { tls: tls.map_err(anyhow::Error::from)?, ..common.clone() };
        self.with_reloadable_options(options, &application.loaded_config, address).map_err(CommandError::Usage)
    }

    /// The options that all addresses share and that stay as they are at the start.
    fn common_options(&self, application: &Application, connections_max: usize) -> HttpOptions {
        HttpOptions {
            authenticator: application.applier.authenticator.clone(),
            protected_resource: application.applier.protected_resource.clone(),
            links: application.node().store().map(|store| store.clone() as Arc<dyn LinkVerifier>),
            readiness: Some(Arc::new(DatabaseReadiness::new(application.applier.clone()))),
            connections_max,
            drain_within: DRAIN_TIMEOUT,
            ..HttpOptions::default()
        }
    }

    fn with_reloadable_options(
        &self,
        options: HttpOptions,
        loaded: &LoadedConfig,
        address: ServerAddress<'_>,
    ) -> Result<HttpOptions, String> {
        let server = &loaded.config.server;
        let configured_max_body = server.max_body.map(|size| quantity::to_usize(size.0)).transpose()?;
        let max_event = server.max_event.map(|size| quantity::to_usize(size.0)).transpose()?;
        Ok(HttpOptions {
            body_bytes_max: self
                .max_body
                .or(configured_max_body)
                .unwrap_or_else(|| HttpOptions::default().body_bytes_max),
            sse_resume_within: server.sse_resume.map(|time| time.0),
            event_bytes_max: max_event.unwrap_or_else(|| HttpOptions::default().event_bytes_max),
            allowed_origins: [&self.allow_origin[..], &server.allow_origins].concat(),
            allowed_hosts: [&self.allow_host[..], &server.allow_hosts].concat(),
            has_mcp: address.transports.mcp,
            has_sse: address.transports.sse,
            has_web_socket: address.transports.ws,
            has_rest: address.transports.rest,
            has_console: address.transports.console,
            has_metrics: address.transports.metrics,
            ..options
        })
    }

    fn addresses<'a>(&'a self, loaded: &'a LoadedConfig) -> Vec<ServerAddress<'a>> {
        let server = &loaded.config.server;
        match &self.listen {
            Some(address) => {
                vec![ServerAddress { address, transports: server.transports, tls: server.tls.as_ref() }]
            }
            None => server.addresses(),
        }
    }
}

/// Applies the changes of each new configuration to the running addresses.
struct ServerReloader {
    arguments: HttpArguments,
    /// The addresses as configured at the start, and their options.
    running: Vec<(String, HttpOptions)>,
    reloader: OptionsReloader,
    /// The address of Flight SQL as configured at the start.
    flight: Option<String>,
}

impl ServerReloader {
    fn spawn(self, applier: Arc<ConfigApplier>, ended: CancellationToken) {
        let mut generations = applier.generations();
        tokio::spawn(async move {
            while let Some(Ok(())) = ended.run_until_cancelled(generations.changed()).await {
                if let Some(loaded) = applier.current_config() {
                    self.reload(&loaded);
                }
            }
        });
    }

    fn reload(&self, loaded: &LoadedConfig) {
        let addresses = self.arguments.addresses(loaded);
        let configured = addresses.iter().map(|address| address.address);
        if !configured.eq(self.running.iter().map(|(address, _)| address.as_str())) {
            tracing::warn!("server.listen: changed addresses take effect when the server restarts");
        }
        if loaded.config.server.flight != self.flight {
            tracing::warn!("server.flight: a changed address takes effect when the server restarts");
        }
        let reloaded = self.running.iter().enumerate().filter_map(|(index, (running, options))| {
            // Several addresses may have port 0, so the one in the same place comes first.
            let same_place = addresses.get(index).into_iter();
            let address = same_place.chain(&addresses).find(|address| address.address == running)?;
            match self.arguments.with_reloadable_options(options.clone(), loaded, *address) {
                Ok(options) => Some((index, options)),
                Err(error) => {
                    tracing::error!(
                        "the new options of {running} cannot be applied; the old ones remain in use: {error}"
                    );
                    None
                }
            }
        });
        self.reloader.reload(reloaded);
    }
}

impl ServeCommand {
    pub(crate) async fn run(self, options: &GlobalOptions) -> Result<(), CommandError> {
        let help = if standard_error().is_terminal() { StartupHelp::ConnectionHelp } else { StartupHelp::None };
        let paths = match &self.handlers {
            Some(schema) => DatabaseArgument::with_handlers(&self.paths, schema)?,
            None => self.paths,
        };
        serve(&paths, &self.http, help, options, |_, _| {}).await
    }
}

/// Logs which tables cannot be read, which files were merged into one table, and which were skipped.
async fn log_notes(application: &Application) -> Result<(), CommandError> {
    let caller = application.local_caller(None)?;
    for database in application.applier.open_databases() {
        for problem in first_unreadable_tables(&*database, &caller.principal).await {
            tracing::warn!("{problem}");
        }
        for note in database_notes(&*database).await {
            match note.contains(": skipped ") {
                true => tracing::warn!("{note}"),
                false => tracing::info!("{note}"),
            }
        }
    }
    Ok(())
}

/// Serves `sources` until a signal arrives. `start_beside` starts what runs beside the calls until the token fires.
pub(crate) async fn serve(
    sources: &[DatabaseArgument],
    http: &HttpArguments,
    help: StartupHelp,
    options: &GlobalOptions,
    start_beside: impl FnOnce(&Application, &CancellationToken),
) -> Result<(), CommandError> {
    let shutdown = Shutdown::on_signals()?;
    let connections_max = file_limit::connections_that_fit(HttpOptions::default().connections_max);
    let spec = StartOptions::of_server(sources, options)?;
    let loaded = spec.loaded_config.clone();
    let addresses = http.addresses(&loaded);
    if addresses.is_empty() {
        return Err(loaded.to_error(&[startup_checks::empty_list_problem()]).into());
    }
    // Before anything is opened, so that no files are left if an address is refused.
    let mut listeners = Vec::with_capacity(addresses.len());
    for ServerAddress { address, .. } in &addresses {
        listeners.push(startup_checks::listen(address, verifies_callers(&loaded.config)).await?);
    }
    let flight_problems = find_flight_problems(&loaded);
    if !flight_problems.is_empty() {
        return Err(loaded.to_error(&flight_problems).into());
    }
    let flight = FlightServer::listen(&loaded).await?;
    let application = spec.open().await?;
    let common = http.common_options(&application, connections_max);
    let mut running = Vec::with_capacity(addresses.len());
    for (address, listener) in addresses.iter().zip(&listeners) {
        let options = http.http_options(&application, *address, &common)?;
        check_reachable_address(&application, listener, &options)?;
        running.push((address.address.to_owned(), options));
    }
    let node = application.node();
    let (service, metrics) = (node.service().clone(), node.metrics().clone());
    let listeners = listeners.into_iter().zip(running.iter().map(|(_, options)| options.clone())).collect();
    let server =
        http::serve_addresses(listeners, service, metrics, shutdown.graceful.clone()).map_err(anyhow::Error::from)?;
    let flight = flight.map(|flight| flight.start(&application, &shutdown)).transpose()?;
    application.spawn_background_tasks(&shutdown.graceful)?;
    start_beside(&application, &shutdown.graceful);
    let reloader = ServerReloader {
        arguments: http.clone(),
        running,
        reloader: server.options_reloader(),
        flight: loaded.config.server.flight.clone(),
    };
    let urls = server.addresses().iter().zip(&reloader.running).map(|(address, (_, options))| {
        let path = if options.has_rest && !options.has_mcp { "rest/" } else { "mcp" };
        format!("{}{path}", root_url(*address, options))
    });
    let urls: Vec<String> = flight.iter().map(|flight| flight.url()).chain(urls).collect();
    let mut addresses = server.addresses().iter().zip(&reloader.running);
    let console = addresses.find(|(_, (_, options))| options.has_console && options.has_rest);
    let console = console.map(|(address, (_, options))| root_url(local_address(*address), options));
    reloader.spawn(application.applier.clone(), shutdown.graceful.clone());
    // After the watches are ready, because a reader of the address may signal a reload.
    for (index, url) in urls.iter().enumerate() {
        let is_last = index + 1 == urls.len();
        let help = if is_last { help } else { StartupHelp::None };
        startup_help::print_address(url, console.as_deref(), help, is_last.then_some(&application));
    }
    if http.open {
        open_in_browser(console.as_deref());
    }
    log_notes(&application).await?;
    let flight = async move {
        if let Some(flight) = flight {
            flight.wait().await;
        }
    };
    let serving = async { tokio::join!(server.wait(), flight) };
    application.serve_until_closed(serving, &shutdown).await.map(drop)
}

/// The address of a server with `options` that listens on `address`: `http://127.0.0.1:7070/`.
fn root_url(address: SocketAddr, options: &HttpOptions) -> String {
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}/")
}

/// The address by which a browser on this machine reaches `address`, which may stand for all addresses of the machine.
fn local_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Requires authentication from now on if `listener` can be reached from other machines, and warns without TLS.
fn check_reachable_address(
    application: &Application,
    listener: &TcpListener,
    options: &HttpOptions,
) -> Result<(), CommandError> {
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    if !address.ip().to_canonical().is_loopback() {
        application.applier.require_authentication();
        if options.tls.is_none() {
            tracing::warn!(
                "keys, tokens and data are sent unencrypted; configure server.tls, unless a proxy in front of this \
                 server encrypts them"
            );
        }
    }
    Ok(())
}
