//! Listening, accepting, and shutting down in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tidegate_core::event::Event;
use tidegate_core::{CallOrigin, TransportKind};
use tidegate_mcp::McpService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::write_timeout::WriteTimeoutStream;
use super::{HttpOptions, HttpState, PeerAddress, build_routes};
use crate::metrics::Metrics;
use crate::tls::TlsPeer;

/// How often idle sessions are looked for and metrics are kept up.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(10);
/// The first line and the headers of a request are refused when there is more to come beyond that size, in bytes; what
/// comes is read in pieces of at most as many. As many of what is written wait to be taken by the socket.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long to wait after the system refused a connection (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A place among the connections, held as long as the connection lives: also by what it is upgraded to.
#[derive(Clone)]
pub(super) struct HttpConnectionPermit(#[expect(dead_code, reason = "it is held, not read")] Arc<OwnedSemaphorePermit>);

/// A server that runs on tasks of its own.
#[derive(Debug)]
pub struct RunningServer {
    address: SocketAddr,
    running: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when it has shut down.
    pub async fn wait(self) {
        // The task neither panics nor is it aborted.
        let _ = self.running.await;
    }
}

/// Serves on `listener` until `shutdown` fires, then lets running calls end within the bound.
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
                let Some((stream, peer, place)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let http_connection_permit = HttpConnectionPermit(Arc::new(place));
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
    let place = semaphore.clone().acquire_owned().await.ok()?;
    let (stream, peer) = listener.accept().await.ok()?;
    Some((stream, peer, place))
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    http_connection_permit: HttpConnectionPermit,
    app: Router,
    endpoint: Arc<HttpState>,
    shutdown: CancellationToken,
) {
    let transport = TransportKind::StreamableHttp;
    let events = endpoint.service.registry().events();
    events.emit(Event::ConnectionOpened { transport });
    // Without it small events wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let stream = WriteTimeoutStream::new(stream, endpoint.options.write_within);
    match &endpoint.options.tls {
        None => {
            HttpConnection { peer, permit: http_connection_permit, tls: None, app, http_state: &endpoint, shutdown }
                .serve(stream)
                .await
        }
        Some(tls) => {
            let shaken = tokio::select! {
                biased;
                () = shutdown.cancelled() => None,
                shaken = tls.accept(stream) => Some(shaken),
            };
            match shaken {
                None => {}
                Some(Ok((stream, of_tls))) => {
                    HttpConnection {
                        peer,
                        permit: http_connection_permit,
                        tls: Some(of_tls),
                        app,
                        http_state: &endpoint,
                        shutdown,
                    }
                    .serve(stream)
                    .await;
                }
                Some(Err(error)) => report_failed_handshake(&endpoint, peer, &error),
            }
        }
    }
    events.emit(Event::ConnectionClosed { transport });
}

/// Says why there is no connection. Who only looks whether the port is open is none of anybody's affairs.
fn report_failed_handshake(http_state: &HttpState, peer: SocketAddr, error: &std::io::Error) {
    use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
    if matches!(error.kind(), ConnectionReset | UnexpectedEof) {
        return;
    }
    let why = if is_plaintext(error) {
        "the client did not send TLS; it may have used plain HTTP".to_owned()
    } else {
        error.to_string()
    };
    http_state.report_rejection(origin_of_peer(peer), &format!("TLS handshake failed: {why}"));
}

/// Whether not even the first byte was one of TLS.
fn is_plaintext(error: &std::io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType)))
}

fn origin_of_peer(peer: SocketAddr) -> CallOrigin {
    CallOrigin { transport: TransportKind::StreamableHttp, peer: Some(peer.ip()) }
}

/// A connection on which requests are about to come.
struct HttpConnection<'a> {
    peer: SocketAddr,
    permit: HttpConnectionPermit,
    tls: Option<Arc<TlsPeer>>,
    app: Router,
    http_state: &'a HttpState,
    shutdown: CancellationToken,
}

impl HttpConnection<'_> {
    /// Answers until the client goes, or the server shuts down.
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { peer, permit: http_connection_permit, tls, app, http_state: endpoint, shutdown } = self;
        let service = app.map_request(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(PeerAddress(peer.ip()));
            extensions.insert(http_connection_permit.clone());
            if let Some(tls) = &tls {
                extensions.insert(tls.clone());
            }
            request
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(endpoint.options.read_within).max_buf_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = connection.with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            served = connection.as_mut() => {
                // A broken connection is the client's affair, but whoever looks for the bound on heads is told of.
                if served.is_err_and(|error| error.is_parse_too_large()) {
                    endpoint.report_rejection(origin_of_peer(peer), "the request headers are too large");
                }
            }
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = tokio::time::timeout(endpoint.options.drain_within * 2, connection).await;
            }
        }
    }
}

async fn drain(http_state: &HttpState, connections: &TaskTracker) {
    let within = http_state.options.drain_within;
    http_state.draining.cancel();
    http_state.service.drain(within).await;
    // The calls have ended; their answers may still be on their way to buffers and sockets. A client
    // that does not read is left behind.
    http_state.tasks.close();
    let _ = tokio::time::timeout(within, http_state.tasks.wait()).await;
    connections.close();
    let _ = tokio::time::timeout(within, connections.wait()).await;
    http_state.sessions.end_all();
}
