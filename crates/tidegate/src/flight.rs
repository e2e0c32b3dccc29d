//! The Flight SQL server beside the HTTP addresses: `server.flight`.

use crate::config::{ConfigProblem, LoadedConfig};

/// The problems of `server.flight` that prevent the server from starting.
pub(crate) fn find_flight_problems(loaded: &LoadedConfig) -> Vec<ConfigProblem> {
    let Some(address) = &loaded.config.server.flight else { return Vec::new() };
    let problem = imp::find_problem(address, loaded);
    problem.map(|message| ConfigProblem::new("server.flight", message)).into_iter().collect()
}

pub(crate) use imp::FlightServer;

#[cfg(not(feature = "network"))]
mod imp {
    use crate::application::Application;
    use crate::command_error::CommandError;
    use crate::config::LoadedConfig;
    use crate::shutdown::Shutdown;

    pub(super) fn find_problem(_address: &str, _loaded: &LoadedConfig) -> Option<String> {
        Some("this program was built without Flight SQL; build it with the feature `full`".to_owned())
    }

    pub(crate) struct FlightServer;

    impl FlightServer {
        pub(crate) async fn listen(_loaded: &LoadedConfig) -> Result<Option<Self>, CommandError> {
            Ok(None)
        }

        pub(crate) fn start(self, _application: &Application, _shutdown: &Shutdown) -> Result<Running, CommandError> {
            Ok(Running)
        }
    }

    pub(crate) struct Running;

    impl Running {
        pub(crate) fn url(&self) -> String {
            String::new()
        }

        pub(crate) async fn wait(self) {}
    }
}

#[cfg(feature = "network")]
mod imp {
    use std::net::{SocketAddr, ToSocketAddrs as _};

    use anyhow::Context as _;
    use tidegate_network::{FlightOptions, RunningFlightServer, serve_flight};
    use tidegate_transport::tls::ApplicationProtocol;
    use tokio::net::TcpListener;

    use crate::application::Application;
    use crate::command_error::CommandError;
    use crate::config::{LoadedConfig, ServerAddress, verifies_callers};
    use crate::shutdown::{DRAIN_TIMEOUT, Shutdown};

    /// Open connections. Clients of Flight SQL usually share one for all of their statements.
    const CONNECTIONS_MAX: usize = 256;

    pub(super) fn find_problem(address: &str, loaded: &LoadedConfig) -> Option<String> {
        resolve(address, loaded).err()
    }

    /// The addresses of `address`. Beyond this machine, TLS and authentication are required.
    fn resolve(address: &str, loaded: &LoadedConfig) -> Result<Vec<SocketAddr>, String> {
        let addresses: Vec<SocketAddr> = address
            .to_socket_addrs()
            .map_err(|error| format!("{address} is no address to listen on: {error}; write it as 127.0.0.1:7071"))?
            .collect();
        let is_reachable = addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
        if !is_reachable {
            return Ok(addresses);
        }
        if loaded.config.server.tls.is_none() {
            return Err(format!(
                "{address} can be reached from other machines, and keys and data would be sent unencrypted; configure \
                 server.tls, or listen on 127.0.0.1:7071"
            ));
        }
        if !verifies_callers(&loaded.config) {
            return Err(format!(
                "{address} can be reached from other machines, and callers are not authenticated; configure auth \
                 without auth.development, or listen on 127.0.0.1:7071"
            ));
        }
        Ok(addresses)
    }

    /// A listener for Flight SQL. Nothing is accepted yet.
    pub(crate) struct FlightServer(TcpListener);

    impl FlightServer {
        /// The listener that the configuration asks for, if it does.
        pub(crate) async fn listen(loaded: &LoadedConfig) -> Result<Option<Self>, CommandError> {
            let Some(address) = &loaded.config.server.flight else { return Ok(None) };
            let addresses = resolve(address, loaded).map_err(CommandError::Usage)?;
            let listener = TcpListener::bind(&addresses[..]).await;
            let listener =
                listener.with_context(|| format!("cannot listen on {address}; server.flight takes another address"))?;
            Ok(Some(Self(listener)))
        }

        /// Serves until `shutdown` begins.
        pub(crate) fn start(self, application: &Application, shutdown: &Shutdown) -> Result<Running, CommandError> {
            let server = &application.loaded_config.config.server;
            // As an address of the command line, it has the TLS of `server.tls`, which is read again when it changes.
            let address =
                ServerAddress { address: "server.flight", transports: server.transports, tls: server.tls.as_ref() };
            let protocol = ApplicationProtocol::Http2;
            let tls = &application.applier.tls;
            let tls = tls.load_for_address(address, false, protocol, &application.loaded_config);
            let tls = tls.map_err(anyhow::Error::from)?;
            let scheme = if tls.is_some() { "grpc+tls" } else { "grpc" };
            let options = FlightOptions {
                authenticator: application.applier.authenticator.clone(),
                tls,
                connections_max: CONNECTIONS_MAX,
                drain_within: DRAIN_TIMEOUT,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let registry = application.node().registry().clone();
            let server = serve_flight(self.0, registry, options, shutdown.graceful.clone());
            let server = server.map_err(anyhow::Error::from)?;
            if !server.address().ip().to_canonical().is_loopback() {
                application.applier.require_authentication();
            }
            Ok(Running { server, scheme })
        }
    }

    /// The running server.
    pub(crate) struct Running {
        server: RunningFlightServer,
        scheme: &'static str,
    }

    impl Running {
        pub(crate) fn url(&self) -> String {
            format!("{}://{}", self.scheme, self.server.address())
        }

        pub(crate) async fn wait(self) {
            self.server.wait().await;
        }
    }
}
