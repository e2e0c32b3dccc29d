//! Listens, accepts connections, and shuts down in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tidegate_core::{CallOrigin, TransportKind};
use tidegate_mcp::McpService;
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connections::{Connections, OpenConnection, ResponseBody, WriteTimeoutStream};
use super::endpoints::ENDPOINTS;
use super::state::{HttpConnectionPermit, HttpOptions, HttpState, PeerAddress};
use super::{answer_request, build_app, check_request};
use crate::metrics::Metrics;
use crate::tls::TlsPeer;

/// Interval at which idle sessions are ended and metrics are maintained.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(10);
/// Bytes of the request line with headers. It also bounds each read, and the data that waits to be written.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Delay after a failed accept (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long an idle connection that makes room may take to end.
const ROOM_WITHIN: Duration = Duration::from_secs(1);

/// A server that runs in its own tasks.
#[derive(Debug)]
pub struct RunningServer {
    addresses: Vec<SocketAddr>,
    reloader: OptionsReloader,
    running: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    /// The first address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The addresses that it listens on, in the order of its listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Changes options while the server runs.
    pub fn options_reloader(&self) -> OptionsReloader {
        self.reloader.clone()
    }

    /// Resolves when the server has shut down.
    pub async fn wait(self) {
        // The task neither panics nor is it aborted.
        let _ = self.running.await;
    }
}

/// Changes the options of a running server.
#[derive(Clone)]
pub struct OptionsReloader(Arc<[Arc<HttpState>]>);

impl OptionsReloader {
    /// Sets the options of the addresses with these indexes. The enabled endpoints, the allowlists and `body_bytes_max`
    /// apply to the next request or WebSocket; other options stay as they were.
    pub fn reload(&self, options: impl IntoIterator<Item = (usize, HttpOptions)>) {
        for (index, options) in options {
            if let Some(http_state) = self.0.get(index) {
                http_state.reload_options(options);
            }
        }
        // Only now: a group that moves from one address to another is served all the time.
        announce_transports(&self.0);
    }
}

/// Records which groups of transports the addresses serve together.
fn announce_transports(http_states: &[Arc<HttpState>]) {
    let Some(first) = http_states.first() else { return };
    let options: Vec<_> = http_states.iter().map(|http_state| http_state.reloadable_options()).collect();
    let switches = first.service.registry().transport_switches();
    for group in TransportGroup::ALL {
        let mut endpoints = ENDPOINTS.iter().filter(|endpoint| endpoint.switch.group() == Some(group));
        let is_served = endpoints.any(|endpoint| options.iter().any(|options| endpoint.switch.is_on(options)));
        switches.set_served(group, is_served);
    }
}

impl std::fmt::Debug for OptionsReloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OptionsReloader({})", self.0.len())
    }
}

/// Serves on `listener` until `shutdown` fires, then waits up to `drain_within` for running calls.
///
/// # Errors
/// When the listener has no address.
pub fn serve(
    listener: TcpListener,
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    options: HttpOptions,
    shutdown: CancellationToken,
) -> std::io::Result<RunningServer> {
    serve_addresses(vec![(listener, options)], service, metrics, shutdown)
}

/// The same on several addresses, each with its own options. They share sessions, and the limits of the first.
///
/// # Errors
/// When there is no listener, or one has no address.
pub fn serve_addresses(
    listeners: Vec<(TcpListener, HttpOptions)>,
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
) -> std::io::Result<RunningServer> {
    let no_listener = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "there is no listener");
    let first = listeners.first().map(|(_, options)| HttpState::new(service, metrics, options.clone()));
    let first = first.ok_or_else(no_listener)?;
    let listeners: Vec<_> =
        listeners.into_iter().map(|(listener, options)| (listener, first.with_options(options))).collect();
    let addresses: Vec<_> =
        listeners.iter().map(|(listener, _)| listener.local_addr()).collect::<std::io::Result<_>>()?;
    let reloader = OptionsReloader(listeners.iter().map(|(_, http_state)| http_state.clone()).collect());
    announce_transports(&reloader.0);
    let running = tokio::spawn(run(listeners, first, shutdown));
    Ok(RunningServer { addresses, reloader, running })
}

async fn run(listeners: Vec<(TcpListener, Arc<HttpState>)>, first: Arc<HttpState>, shutdown: CancellationToken) {
    let limit = Connections::new(first.options.connections_max, first.service.registry().events().clone());
    let connections = TaskTracker::new();
    let accepting = TaskTracker::new();
    for (listener, http_state) in listeners {
        let acceptor = Acceptor {
            listener,
            app: build_app(http_state.clone()),
            http_state,
            limit: limit.clone(),
            connections: connections.clone(),
            shutdown: shutdown.clone(),
        };
        accepting.spawn(acceptor.run());
    }
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING_EVERY);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            _ = housekeeping.tick() => {
                first.sessions.end_idle();
                first.metrics.run_upkeep();
            }
        }
    }
    accepting.close();
    accepting.wait().await;
    drain(&first, &connections).await;
}

/// Accepts the connections of one address.
struct Acceptor {
    listener: TcpListener,
    app: Router,
    http_state: Arc<HttpState>,
    limit: Arc<Connections>,
    connections: TaskTracker,
    shutdown: CancellationToken,
}

impl Acceptor {
    async fn run(self) {
        while let Some(accepted) = self.shutdown.run_until_cancelled(self.accept()).await {
            let Some((stream, peer, permit)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let connection = HttpConnection {
                peer,
                permit: HttpConnectionPermit::new(permit),
                open: self.limit.open(),
                tls: None,
                app: self.app.clone(),
                http_state: self.http_state.clone(),
                shutdown: self.shutdown.clone(),
            };
            self.connections.spawn(serve_connection(stream, connection));
        }
    }

    async fn accept(&self) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let accepted = self.listener.accept().await.inspect_err(|error| self.limit.handle_failed_accept(error));
        let (stream, peer) = accepted.ok()?;
        Some((stream, peer, self.limit.acquire_permit().await?))
    }
}

async fn serve_connection(stream: TcpStream, mut connection: HttpConnection) {
    let transport = TransportKind::StreamableHttp;
    let http_state = connection.http_state.clone();
    let events = http_state.service.registry().events();
    events.emit(Event::ConnectionOpened { transport });
    // Without it, small events wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeoutStream::new(stream, http_state.options.write_within);
    match &http_state.options.tls {
        None => connection.serve(stream).await,
        Some(tls) => {
            let handshake = tokio::select! {
                biased;
                () = connection.shutdown.cancelled() => None,
                () = connection.open.activity.ended.cancelled() => None,
                handshake = tls.accept(stream) => Some(handshake),
            };
            match handshake {
                None => {}
                Some(Ok((stream, tls_peer))) => {
                    connection.tls = Some(tls_peer);
                    connection.serve(stream).await;
                }
                Some(Err(error)) => report_failed_handshake(&http_state, connection.peer, &error),
            }
        }
    }
    events.emit(Event::ConnectionClosed { transport });
}

/// Reports a failed handshake. Port scans and closed connections are not reported.
fn report_failed_handshake(http_state: &HttpState, peer: SocketAddr, error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
    if matches!(error.kind(), ConnectionReset | UnexpectedEof) {
        return;
    }
    let problem = if is_plaintext(error) {
        "the client did not send TLS; it may have used plain HTTP".to_owned()
    } else {
        error.to_string()
    };
    http_state.report_rejection(origin_of_peer(peer), &format!("TLS handshake failed: {problem}"));
}

/// Whether the first byte was already not TLS.
fn is_plaintext(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}

fn origin_of_peer(peer: SocketAddr) -> CallOrigin {
    CallOrigin { transport: TransportKind::StreamableHttp, peer: Some(peer.ip()) }
}

/// A connection before its first request.
struct HttpConnection {
    peer: SocketAddr,
    permit: HttpConnectionPermit,
    open: OpenConnection,
    tls: Option<Arc<TlsPeer>>,
    app: Router,
    http_state: Arc<HttpState>,
    shutdown: CancellationToken,
}

impl HttpConnection {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { peer, permit, open, tls, app, http_state, shutdown } = self;
        let activity = open.activity.clone();
        let open = Arc::new(open);
        let checked = http_state.clone();
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(PeerAddress(peer.ip()));
            extensions.insert(permit.clone());
            if let Some(tls) = &tls {
                extensions.insert(tls.clone());
            }
            let open_request = open.begin_request();
            let (app, http_state) = (app.clone(), checked.clone());
            async move {
                let request = request.map(Body::new);
                let answer = |request, endpoint| answer_request(http_state.clone(), app, request, endpoint);
                let response = check_request(&http_state, request, answer).await;
                Ok::<_, Infallible>(response.map(|body| ResponseBody { body, _open_request: open_request }))
            }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(http_state.options.read_within)
            .max_buf_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = connection.with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            served = connection.as_mut() => {
                // Errors of the connection concern only the client. Oversized headers are reported, so that the limit
                // is visible.
                if served.is_err_and(|error| error.is_parse_too_large()) {
                    http_state.report_rejection(origin_of_peer(peer), "the request headers are too large");
                }
            }
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(http_state.options.drain_within * 2, connection).await;
            }
            () = activity.ended.cancelled() => {
                connection.as_mut().graceful_shutdown();
                // A request that arrived at the same moment is still answered.
                while tokio::time::timeout(ROOM_WITHIN, connection.as_mut()).await.is_err() && activity.has_request() {}
            }
        }
    }
}

async fn drain(http_state: &HttpState, connections: &TaskTracker) {
    let within = http_state.options.drain_within;
    http_state.draining.cancel();
    http_state.service.drain(within).await;
    // The calls have ended; their answers may still be in transit to buffers and sockets. The server does not wait for
    // a client that does not read.
    http_state.tasks.close();
    let _ = tokio::time::timeout(within, http_state.tasks.wait()).await;
    connections.close();
    let _ = tokio::time::timeout(within, connections.wait()).await;
    http_state.sessions.end_all();
}
