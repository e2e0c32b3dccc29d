//! Connections to one server: opened with the first request, kept, and opened again after a failure.

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_client::FlightServiceClient;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::options::{FlightTls, NodeAddress};
use super::server_kind::ServerKind;

/// Bytes of one message of a server. Tidegate sends at most 3 MiB, unless a single row is larger.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections to one server, and open requests of each before another one is opened.
const CONNECTIONS_MAX: usize = 4;
const REQUESTS_PER_CONNECTION: usize = 16;
/// Open requests of one server.
const REQUESTS_MAX: usize = 256;
/// Bytes that wait in the buffers of this process for one answer, and for all answers of a connection: answers that are
/// not read do not stop the others.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * (REQUESTS_MAX / CONNECTIONS_MAX) as u32;
/// Bytes of a frame, of which a batch has many.
const FRAME_BYTES_MAX: u32 = 256 * 1024;
/// A connection whose peer is gone is closed. Most of this is left to TCP, because servers in C++ and Java close
/// connections with a ping of HTTP/2 more often than every five minutes.
const PROBE_EVERY: Duration = Duration::from_secs(15);
const PROBE_AGAIN_EVERY: Duration = Duration::from_secs(5);
const PROBES_MAX: u32 = 3;
const PING_EVERY: Duration = Duration::from_secs(301);
const PING_WITHIN: Duration = Duration::from_secs(20);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of the headers of an answer.
const HEADER_BYTES_MAX: u32 = 64 * 1024;

/// One server, with its open connections.
pub(super) struct NodeConnection {
    pub(super) address: NodeAddress,
    endpoint: Endpoint,
    channels: Mutex<Vec<SharedChannel>>,
    permits: Arc<Semaphore>,
    runtime: Option<Handle>,
    kind: Mutex<Option<ServerKind>>,
}

struct SharedChannel {
    channel: Channel,
    /// One reference for each open request, and one for this list.
    requests: Arc<()>,
}

impl SharedChannel {
    fn open_requests(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }
}

/// A client for one request. The connection counts it until it is dropped.
pub(super) struct ConnectionLease {
    pub(super) client: FlightServiceClient<Channel>,
    _request: Arc<()>,
    _permit: OwnedSemaphorePermit,
}

impl NodeConnection {
    /// A server that is not connected yet.
    ///
    /// # Errors
    /// When the certificates cannot be used.
    pub(super) fn new(address: NodeAddress, tls: &FlightTls) -> Result<Self, Error> {
        let invalid = |problem: String| {
            Error::new(ErrorKind::InvalidArguments, format!("the server {address} cannot be used: {problem}"))
        };
        let mut endpoint = Endpoint::from_shared(address.http_url())
            .and_then(|endpoint| endpoint.user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION"))))
            .map_err(|error| invalid(error.to_string()))?
            .connect_timeout(CONNECT_WITHIN)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(PROBE_EVERY))
            .tcp_keepalive_interval(Some(PROBE_AGAIN_EVERY))
            .tcp_keepalive_retries(Some(PROBES_MAX))
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES_MAX)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_WITHIN)
            .keep_alive_while_idle(false);
        if address.has_tls {
            check_pem(tls).map_err(|problem| invalid(problem.to_owned()))?;
            let config = tls_config(tls);
            endpoint = endpoint.tls_config(config).map_err(|error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                invalid(format!("TLS: {}", source.unwrap_or_else(|| error.to_string())))
            })?;
        } else if tls.authorities.is_some() || tls.certificate.is_some() {
            return Err(invalid("it has certificates, but its URL has no TLS; write grpc+tls".to_owned()));
        }
        Ok(Self {
            address,
            endpoint,
            channels: Mutex::default(),
            permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
            runtime: Handle::try_current().ok(),
            kind: Mutex::default(),
        })
    }

    /// A client on the connection with the fewest open requests.
    pub(super) async fn lease(&self) -> ConnectionLease {
        #[expect(clippy::expect_used, reason = "the semaphore is never closed")]
        let permit = self.permits.clone().acquire_owned().await.expect("an open semaphore");
        let (channel, request) = self.share_channel();
        let client = FlightServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        ConnectionLease { client, _request: request, _permit: permit }
    }

    fn share_channel(&self) -> (Channel, Arc<()>) {
        let mut channels = self.channels.lock();
        let is_full = channels.len() >= CONNECTIONS_MAX;
        let least = channels.iter().min_by_key(|shared| shared.open_requests());
        if let Some(shared) = least.filter(|shared| is_full || shared.open_requests() < REQUESTS_PER_CONNECTION) {
            return (shared.channel.clone(), shared.requests.clone());
        }
        let shared = SharedChannel { channel: self.open_channel(), requests: Arc::default() };
        let lease = (shared.channel.clone(), shared.requests.clone());
        channels.push(shared);
        lease
    }

    /// The tasks of a connection run where the database was created: a runtime for computation may have no sockets.
    fn open_channel(&self) -> Channel {
        let _context = self.runtime.as_ref().map(Handle::enter);
        self.endpoint.connect_lazy()
    }

    /// Connects once more, only to see whether that is possible.
    pub(super) async fn is_reachable(&self) -> bool {
        self.endpoint.connect().await.is_ok()
    }

    /// The program of the server, if it is known since the last failure.
    pub(super) fn kind(&self) -> Option<ServerKind> {
        *self.kind.lock()
    }

    pub(super) fn set_kind(&self, kind: ServerKind) {
        *self.kind.lock() = Some(kind);
    }

    /// Forgets the program, and returns it.
    pub(super) fn take_kind(&self) -> Option<ServerKind> {
        self.kind.lock().take()
    }

    /// Closes the connections when their last request ends.
    pub(super) fn close(&self) {
        self.channels.lock().clear();
    }
}

/// Fails if a text has no block of its kind. The library would take it for an empty list.
fn check_pem(tls: &FlightTls) -> Result<(), &'static str> {
    let has_block = |text: &str, label: &str| text.contains(&format!("{label}-----"));
    if tls.authorities.as_ref().is_some_and(|text| !has_block(text, "BEGIN CERTIFICATE")) {
        return Err("the authorities have no certificates in PEM (BEGIN CERTIFICATE)");
    }
    match &tls.certificate {
        Some((chain, _)) if !has_block(chain, "BEGIN CERTIFICATE") => {
            Err("the certificate of the client is not in PEM (BEGIN CERTIFICATE)")
        }
        Some((_, key)) if !has_block(key, "PRIVATE KEY") => {
            Err("the key of the client is not in PEM (BEGIN PRIVATE KEY)")
        }
        _ => Ok(()),
    }
}

fn tls_config(tls: &FlightTls) -> ClientTlsConfig {
    let config = match &tls.authorities {
        Some(authorities) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    let config = config.timeout(CONNECT_WITHIN);
    match &tls.certificate {
        Some((chain, key)) => config.identity(Identity::from_pem(chain, key)),
        None => config,
    }
}
