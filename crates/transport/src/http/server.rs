//! Listens, accepts connections, and shuts down in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tidegate_core::{CallOrigin, TransportKind};
use tidegate_mcp::McpService;
use tidegate_runtime::event::Event;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::routes::build_routes;
use super::state::{HttpConnectionPermit, HttpOptions, HttpState, PeerAddress};
use super::write_timeout::WriteTimeoutStream;
use crate::metrics::Metrics;
use crate::tls::TlsPeer;

/// Interval at which idle sessions are ended and metrics are maintained.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(10);
/// Bytes of the request line with headers. It also bounds each read, and the data that waits to be written.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Delay after a failed accept (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that runs in its own tasks.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    running: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the server has shut down.
    pub async fn wait(self) {
        // The task neither panics nor is it aborted.
        let _ = self.running.await;
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
    let address = listener.local_addr()?;
    let http_state = HttpState::new(service, metrics, options);
    let running = tokio::spawn(run(listener, http_state, shutdown));
    Ok(RunningServer { address, running })
}

async fn run(listener: TcpListener, http_state: Arc<HttpState>, shutdown: CancellationToken) {
    let app = build_routes(http_state.clone());
    let semaphore = Arc::new(Semaphore::new(http_state.options.connections_max));
    let connections = TaskTracker::new();
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING_EVERY);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            _ = housekeeping.tick() => {
                http_state.sessions.end_idle();
                http_state.metrics.run_upkeep();
            }
            accepted = accept(&listener, &semaphore) => {
                let Some((stream, peer, permit)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let http_connection_permit = HttpConnectionPermit::new(permit);
                connections.spawn(serve_connection(stream, peer, http_connection_permit, app.clone(), http_state.clone(), shutdown.clone()));
            }
        }
    }
    drop(listener);
    drain(&http_state, &connections).await;
}

async fn accept(
    listener: &TcpListener,
    semaphore: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = semaphore.clone().acquire_owned().await.ok()?;
    let (stream, peer) = listener.accept().await.ok()?;
    Some((stream, peer, permit))
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    permit: HttpConnectionPermit,
    app: Router,
    http_state: Arc<HttpState>,
    shutdown: CancellationToken,
) {
    let transport = TransportKind::StreamableHttp;
    let events = http_state.service.registry().events();
    events.emit(Event::ConnectionOpened { transport });
    // Without it, small events wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeoutStream::new(stream, http_state.options.write_within);
    match &http_state.options.tls {
        None => HttpConnection { peer, permit, tls: None, app, http_state: &http_state, shutdown }.serve(stream).await,
        Some(tls) => match shutdown.run_until_cancelled(tls.accept(stream)).await {
            None => {}
            Some(Ok((stream, tls_peer))) => {
                let tls = Some(tls_peer);
                HttpConnection { peer, permit, tls, app, http_state: &http_state, shutdown }.serve(stream).await;
            }
            Some(Err(error)) => report_failed_handshake(&http_state, peer, &error),
        },
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
struct HttpConnection<'a> {
    peer: SocketAddr,
    permit: HttpConnectionPermit,
    tls: Option<Arc<TlsPeer>>,
    app: Router,
    http_state: &'a HttpState,
    shutdown: CancellationToken,
}

impl HttpConnection<'_> {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { peer, permit, tls, app, http_state, shutdown } = self;
        let service = app.map_request(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(PeerAddress(peer.ip()));
            extensions.insert(permit.clone());
            if let Some(tls) = &tls {
                extensions.insert(tls.clone());
            }
            request
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
