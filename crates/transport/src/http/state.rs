//! The options of the HTTP server, and the state that all its handlers share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use axum::extract::FromRef;
use axum::http::{Extensions, HeaderName};
use tidegate_core::{AllowAll, Authenticator, Budget, CallOrigin, Caller, CallerIdentity, LinkVerifier};
use tidegate_mcp::{McpService, McpSession, RequestContext, RequestId};
use tidegate_runtime::event::Event;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http_sse::EventStream;
use super::kept_events::DetachedStreams;
use super::protected_resource::SharedProtectedResource;
use super::response::{RefusalResponse, too_many_sessions};
use super::session::{HttpSessions, SessionPermit, SessionPermits, SseSessions};
use crate::mcp_connection::ConnectionLimits;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// `Tidegate-Trace: 1` logs everything about the request, whatever the log level.
pub(super) const TRACE: HeaderName = HeaderName::from_static("tidegate-trace");
/// The default of [`HttpOptions::event_bytes_max`]. Common clients refuse SSE events and WebSocket messages over 1 MiB.
/// JSON escaping at most doubles rows, except for control characters.
pub const EVENT_BYTES_MAX: usize = 450 * 1024;

/// Limits, allowlists and enabled endpoints of one address of the HTTP server.
#[derive(Clone)]
pub struct HttpOptions {
    /// Authenticates callers.
    pub authenticator: Arc<dyn Authenticator>,
    /// The TLS configuration; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// The OAuth metadata for clients; it may change while the server runs.
    pub protected_resource: SharedProtectedResource,
    /// Verifies links to stored results; `None` disables links.
    pub links: Option<Arc<dyn LinkVerifier>>,
    /// Whether MCP is served at `/mcp`.
    pub has_mcp: bool,
    /// Whether MCP over HTTP+SSE (2024-11-05) is served at `/mcp/sse` and `/mcp/messages`.
    pub has_sse: bool,
    /// Whether MCP over WebSocket is served at `/mcp/ws`.
    pub has_web_socket: bool,
    /// Whether REST is served at `/rest`, stored results at `/results`, and rows are taken at `/data`.
    pub has_rest: bool,
    /// Whether the console is served at `/`, for browsers; only with REST.
    pub has_console: bool,
    /// Whether Prometheus metrics are served at `/metrics`.
    pub has_metrics: bool,
    /// Maximum size of request bodies and messages in bytes; larger ones are refused.
    pub body_bytes_max: usize,
    /// Maximum size of an inline answer in an event or a WebSocket message, in bytes before JSON escaping, where answers
    /// are bounded. Memory does not depend on it: larger answers wait on disk, or are sent as they are produced.
    pub event_bytes_max: usize,
    /// Maximum size of a body of rows in bytes, as it is sent; it is streamed, so memory does not depend on it.
    pub data_bytes_max: u64,
    /// How long a client may take to send its headers, and then its body; of a body of rows, each piece.
    pub read_within: Duration,
    /// How long written data may stay unread by a client before its connection is broken.
    pub write_within: Duration,
    /// Maximum number of connections over all addresses. A further one ends the oldest connection without a request, or
    /// waits if all have one.
    pub connections_max: usize,
    /// Maximum number of sessions. A further one ends the oldest unused legacy session, or is refused if all are in use.
    /// Legacy sessions, HTTP+SSE streams, WebSockets and modern listeners over Streamable HTTP count together.
    pub sessions_max: usize,
    /// Maximum number of sessions of one principal, where callers authenticate. The principals of one tenant together
    /// have at most half of all sessions.
    pub sessions_per_principal_max: usize,
    /// A session ends after this time without a request.
    pub session_idle_max: Duration,
    /// How long an HTTP+SSE session waits for its client after its connection broke (`Last-Event-ID`); `None` ends it at
    /// once.
    pub sse_resume_within: Option<Duration>,
    /// Host names that requests may use in addition to the loopback names; port and case are ignored.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call and read answers, in addition to loopback hosts (`https://example.com`).
    pub allowed_origins: Vec<String>,
    /// Whether the databases that the node needs answer, for `/ready`; `None` if it needs none.
    pub readiness: Option<Arc<dyn ReadinessCheck>>,
    /// How long running calls may take to end at shutdown.
    pub drain_within: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            authenticator: Arc::new(AllowAll),
            tls: None,
            protected_resource: SharedProtectedResource::default(),
            links: None,
            has_mcp: true,
            has_sse: true,
            has_web_socket: true,
            has_rest: true,
            has_console: true,
            has_metrics: true,
            body_bytes_max: 4 * 1024 * 1024,
            event_bytes_max: EVENT_BYTES_MAX,
            data_bytes_max: 16 * 1024 * 1024 * 1024,
            read_within: Duration::from_secs(15),
            write_within: Duration::from_secs(120),
            connections_max: 4_096,
            sessions_max: 1_024,
            sessions_per_principal_max: 256,
            session_idle_max: Duration::from_secs(30 * 60),
            sse_resume_within: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            readiness: None,
            drain_within: Duration::from_secs(10),
        }
    }
}

/// Whether a node can answer calls, beyond what its own process knows.
#[async_trait]
pub trait ReadinessCheck: Send + Sync {
    /// Why the node is not ready, in words that any client may read; `None` if it is ready. Must end within a few seconds.
    async fn problem(&self) -> Option<String>;
}

/// The state of one address. All addresses of a server share everything but the options.
pub(crate) struct HttpState {
    pub(super) service: Arc<McpService>,
    pub(super) metrics: Arc<Metrics>,
    /// The options at the start.
    pub(super) options: HttpOptions,
    /// The options after the last reload.
    reloaded: ArcSwap<HttpOptions>,
    pub(super) session_permits: Arc<SessionPermits>,
    pub(super) sessions: Arc<HttpSessions>,
    pub(super) streams: Arc<SseSessions>,
    /// The streams of HTTP+SSE whose clients may come back.
    pub(super) detached_streams: Arc<DetachedStreams<EventStream>>,
    /// The calls of legacy event streams, which outlive their connections, and WebSockets.
    pub(super) tasks: TaskTracker,
    /// Fires when the server shuts down: it accepts no more calls, and listeners end.
    pub(super) draining: CancellationToken,
}

/// The address of the client, set for each connection.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

impl PeerAddress {
    pub(super) fn from_extensions(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|Self(address)| *address)
    }
}

/// A permit for a connection, held until the connection ends, also after an upgrade.
#[derive(Clone)]
pub(super) struct HttpConnectionPermit(#[expect(dead_code, reason = "it is held, not read")] Arc<OwnedSemaphorePermit>);

impl HttpConnectionPermit {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(permit))
    }
}

impl FromRef<Arc<HttpState>> for SharedProtectedResource {
    fn from_ref(http_state: &Arc<HttpState>) -> Self {
        http_state.options.protected_resource.clone()
    }
}

impl HttpState {
    pub(crate) fn new(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Arc<Self> {
        let (events, sessions) = (service.registry().events().clone(), service.registry().sessions().clone());
        Arc::new(Self {
            service,
            metrics,
            session_permits: SessionPermits::new(options.sessions_max, events, sessions),
            sessions: Arc::new(HttpSessions::new(options.session_idle_max)),
            streams: Arc::default(),
            detached_streams: Arc::default(),
            reloaded: ArcSwap::from_pointee(options.clone()),
            options,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
        })
    }

    /// The state of a further address of the same server.
    pub(super) fn with_options(&self, options: HttpOptions) -> Arc<Self> {
        Arc::new(Self {
            service: self.service.clone(),
            metrics: self.metrics.clone(),
            session_permits: self.session_permits.clone(),
            sessions: self.sessions.clone(),
            streams: self.streams.clone(),
            detached_streams: self.detached_streams.clone(),
            reloaded: ArcSwap::from_pointee(options.clone()),
            options,
            tasks: self.tasks.clone(),
            draining: self.draining.clone(),
        })
    }

    /// Limits of a new connection over HTTP+SSE or WebSocket.
    pub(super) fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            requests_max: 64,
            outgoing_max: 16,
            inline_bytes_max: self.reloadable_options().event_bytes_max,
            answer_bytes_max: 16 * 1024 * 1024 * 1024,
            streams_lone_answers: false,
        }
    }

    /// The options that change while the server runs: the enabled endpoints, the allowlists, `body_bytes_max`,
    /// `event_bytes_max`, `sse_resume_within` and `data_bytes_max`.
    pub(super) fn reloadable_options(&self) -> Arc<HttpOptions> {
        self.reloaded.load_full()
    }

    pub(super) fn reload_options(&self, options: HttpOptions) {
        self.reloaded.store(Arc::new(options));
    }

    pub(super) fn acquire_session_permit(
        &self,
        caller: &Caller,
        id: Option<&RequestId>,
    ) -> Result<SessionPermit, RefusalResponse> {
        self.sessions.end_idle();
        // Read each time: a later configuration may be the first one that requires authentication.
        let per_principal_max =
            self.options.authenticator.enforces_authentication().then_some(self.options.sessions_per_principal_max);
        loop {
            match self.session_permits.acquire(caller, per_principal_max) {
                Ok(permit) => return Ok(permit),
                // Many clients leave without DELETE. A client whose session ended opens a new one.
                Err(level) if self.sessions.end_oldest_unused(level, &CallerIdentity::for_quota(caller)) => {}
                Err(level) => return Err(too_many_sessions(id, level).into()),
            }
        }
    }

    pub(super) fn report_rejection(&self, origin: CallOrigin, reason: &str) {
        let CallOrigin { transport, peer } = origin;
        self.service.registry().events().emit(Event::MessageRefused { transport, peer, reason });
    }

    /// The context of a request of `caller`. If `streams_events` is true, the answer must fit into one SSE event.
    pub(super) fn request_context(
        &self,
        caller: &Caller,
        session: Option<&Arc<McpSession>>,
        streams_events: bool,
    ) -> RequestContext {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        let bytes_max = self.reloadable_options().event_bytes_max;
        RequestContext {
            caller: caller.clone(),
            inline_limit: Budget { rows: None, bytes: (is_bounded && streams_events).then_some(bytes_max) },
            // A request of the server is sent on the event stream of the client's own request.
            accepts_server_requests: streams_events,
            session: session.cloned(),
            in_flight: session.map(|session| session.in_flight().clone()),
        }
    }
}
