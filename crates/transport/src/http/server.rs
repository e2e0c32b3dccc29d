//! Listens, accepts connections, and shuts down in order.
//!
//! At the maximum of connections, a further one ends the oldest one without a request, so that idle clients cannot keep others
//! out. Connections beyond the maximum wait before anything is read from them.
//!
//! A connection breaks if its peer takes no written data within a timeout. Otherwise, a client that stops reading would keep
//! it and the pending data for as long as it likes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{self, Error, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tidegate_core::{CallOrigin, TransportKind};
use tidegate_mcp::McpService;
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::{Event, EventDispatcher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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

/// Interval of reports that connections are scarce.
const REPORT_EVERY: Duration = Duration::from_secs(10);

struct Connections {
    max: usize,
    semaphore: Arc<Semaphore>,
    open: Mutex<OpenConnections>,
    idle_added: Notify,
    events: EventDispatcher,
    reported_at: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct OpenConnections {
    next_number: u64,
    by_number: BTreeMap<u64, Arc<ConnectionActivity>>,
}

/// An open connection, until it is dropped.
struct OpenConnection {
    number: u64,
    connections: Arc<Connections>,
    activity: Arc<ConnectionActivity>,
}

struct ConnectionActivity {
    /// The requests whose responses are not completely written to the connection.
    requests: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// Fires when the connection has to make room.
    pub(super) ended: CancellationToken,
}

/// A request that is being answered.
struct OpenRequest {
    connections: Arc<Connections>,
    activity: Arc<ConnectionActivity>,
}

impl Connections {
    pub(super) fn new(max: usize, events: EventDispatcher) -> Arc<Self> {
        Arc::new(Self {
            max,
            semaphore: Arc::new(Semaphore::new(max)),
            open: Mutex::default(),
            idle_added: Notify::new(),
            events,
            reported_at: Mutex::default(),
        })
    }

    /// A permit for a connection that was accepted. Ends idle connections until there is one.
    async fn acquire_permit(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            let mut idle_added = std::pin::pin!(self.idle_added.notified());
            idle_added.as_mut().enable();
            if let Ok(permit) = self.semaphore.clone().try_acquire_owned() {
                return Some(permit);
            }
            self.make_room(&format!("all {} connections are in use", self.max));
            tokio::select! {
                permit = self.semaphore.clone().acquire_owned() => return permit.ok(),
                () = idle_added => {}
            }
        }
    }

    /// Handles a failed accept: the client was gone already, or the process has too many open files.
    fn handle_failed_accept(&self, error: &io::Error) {
        if error.kind() != io::ErrorKind::ConnectionAborted {
            self.make_room(&format!("a connection could not be accepted ({error})"));
        }
    }

    pub(super) fn open(self: &Arc<Self>) -> OpenConnection {
        let activity = Arc::new(ConnectionActivity {
            requests: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            ended: CancellationToken::new(),
        });
        let mut open = self.open.lock();
        open.next_number += 1;
        let number = open.next_number;
        open.by_number.insert(number, activity.clone());
        OpenConnection { number, connections: self.clone(), activity }
    }

    /// Ends the oldest idle connection, if there is one, and reports it because of `problem`.
    fn make_room(&self, problem: &str) {
        let action = if self.end_oldest_idle() { "the oldest idle one is closed" } else { "further ones wait" };
        let mut reported_at = self.reported_at.lock();
        if reported_at.is_none_or(|time| time.elapsed() >= REPORT_EVERY) {
            *reported_at = Some(Instant::now());
            self.events.emit(Event::ConnectionsScarce { problem: &format!("{problem}; {action}") });
        }
    }

    fn end_oldest_idle(&self) -> bool {
        let open = self.open.lock();
        let idle = open.by_number.values().filter(|activity| !activity.has_request() && !activity.ended.is_cancelled());
        let oldest = idle.min_by_key(|activity| *activity.idle_since.lock());
        oldest.inspect(|activity| activity.ended.cancel()).is_some()
    }
}

impl ConnectionActivity {
    fn has_request(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }
}

impl OpenConnection {
    /// The beginning of a request, which lasts until the value is dropped.
    fn begin_request(&self) -> OpenRequest {
        self.activity.requests.fetch_add(1, Ordering::AcqRel);
        OpenRequest { connections: self.connections.clone(), activity: self.activity.clone() }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().by_number.remove(&self.number);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        *self.activity.idle_since.lock() = Instant::now();
        if self.activity.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.connections.idle_added.notify_waiters();
        }
    }
}

/// The body of a response. Its request is open until the body is dropped.
struct ResponseBody {
    pub(super) body: Body,
    _open_request: OpenRequest,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct WriteTimeoutStream<S> {
    stream: S,
    timeout: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    /// Wraps `stream`. The peer must take some written data within each `timeout`.
    pub(super) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    fn poll_with_timeout<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let within = self.timeout;
        let limit = self.deadline.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(limit.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_with_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.poll_with_timeout(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}
