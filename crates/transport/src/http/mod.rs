//! MCP over Streamable HTTP in every revision that has it, over HTTP+SSE and WebSocket, with REST, stored results,
//! health and metrics beside it.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod authorization;
mod body;
mod delete;
mod get;
mod health;
mod host_check;
mod http_sse;
mod identify;
mod listen;
mod mirrored_headers;
mod path;
mod post;
mod protected_resource;
mod replay;
mod response;
mod rest;
mod results;
mod security_headers;
mod server;
mod session;
mod session_permits;
mod sse;
mod web_socket;
mod write_timeout;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Extensions;
use axum::routing::{any as on_any, get as on_get, post as on_post};
use tidegate_core::event::Event;
use tidegate_core::{AllowAll, Authenticator, Budget, CallOrigin, Caller, LimitLevel, LinkVerifier};
use tidegate_mcp::{InFlightRequests, McpService, McpSession, Peer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use protected_resource::{ProtectedResource, ProtectedResourceError, SharedProtectedResource};
pub use server::{RunningServer, serve};

use self::session_permits::{SessionPermit, SessionPermits};
use crate::conversation::ConversationLimits;
use crate::metrics::Metrics;
use crate::tls::Tls;

/// Stock clients refuse longer SSE events than 1 MiB. Rows are counted before they are escaped,
/// which at most doubles them but for control characters.
const EVENT_BYTES_MAX: usize = 450 * 1024;

/// What bounds a conversation over HTTP+SSE or WebSocket; messages of WebSockets have the same cap in stock clients.
const CONVERSATION_LIMITS: ConversationLimits = ConversationLimits {
    requests_max: 64,
    outgoing_max: 16,
    inline_bytes_max: EVENT_BYTES_MAX,
    answer_bytes_max: 16 * 1024 * 1024 * 1024,
};

/// Bounds and allowlists of the HTTP door.
#[derive(Clone)]
pub struct HttpOptions {
    /// Finds out who calls.
    pub authenticator: Arc<dyn Authenticator>,
    /// How TLS is spoken; none for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// What clients of OAuth are told of the way in; it may change while the door is open.
    pub protected_resource: SharedProtectedResource,
    /// Opens links to stored results; none where no result is linked to.
    pub links: Option<Arc<dyn LinkVerifier>>,
    /// Whether there is MCP at `/mcp`.
    pub has_mcp: bool,
    /// Whether there is MCP over HTTP+SSE of 2024-11-05 at `/mcp/sse` and `/mcp/messages`.
    pub has_sse: bool,
    /// Whether there is MCP over WebSocket at `/mcp/ws`.
    pub has_web_socket: bool,
    /// Whether there is REST at `/rest`, and stored results at `/results`.
    pub has_rest: bool,
    /// Whether there is Prometheus at `/metrics`.
    pub has_metrics: bool,
    /// Longer request bodies and messages are refused, in bytes.
    pub body_bytes_max: usize,
    /// How long a client may take to send its headers, and then its body.
    pub read_within: Duration,
    /// How long a client may leave what is written to it unread; then its connection breaks.
    pub write_within: Duration,
    /// More connections wait to be accepted.
    pub connections_max: usize,
    /// More sessions are refused: legacy ones, event streams of HTTP+SSE, WebSockets and modern clients that listen
    /// over Streamable HTTP together.
    pub sessions_max: usize,
    /// More sessions of one principal are refused, where callers prove who they are. The principals of one tenant have
    /// half of all sessions together.
    pub sessions_per_principal_max: usize,
    /// A session without a request for this long ends.
    pub session_idle_max: Duration,
    /// Host names that requests may name beside the loopback names; port and case do not count.
    pub allowed_hosts: Vec<String>,
    /// Origins that web pages may come from beside those of loopback hosts (`https://example.com`).
    pub allowed_origins: Vec<String>,
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
            has_metrics: true,
            body_bytes_max: 4 * 1024 * 1024,
            read_within: Duration::from_secs(15),
            write_within: Duration::from_secs(120),
            connections_max: 4_096,
            sessions_max: 1_024,
            sessions_per_principal_max: 256,
            session_idle_max: Duration::from_secs(30 * 60),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            drain_within: Duration::from_secs(10),
        }
    }
}

/// What every handler of the door shares.
pub(crate) struct HttpState {
    service: Arc<McpService>,
    metrics: Arc<Metrics>,
    options: HttpOptions,
    session_permits: Arc<SessionPermits>,
    sessions: session::HttpSessions,
    streams: http_sse::SseSessions,
    /// The calls of legacy event streams, which outlive their connections, and WebSockets.
    tasks: TaskTracker,
    /// Fires when the server shuts down: no more calls are taken, and nobody listens any more.
    draining: CancellationToken,
}

/// The address of the client, set for each connection.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

impl PeerAddress {
    fn from_extensions(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|Self(address)| *address)
    }
}

impl HttpState {
    pub(crate) fn new(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Arc<Self> {
        let events = service.registry().events().clone();
        Arc::new(Self {
            service,
            metrics,
            session_permits: SessionPermits::new(options.sessions_max, events),
            sessions: session::HttpSessions::new(options.session_idle_max),
            streams: http_sse::SseSessions::default(),
            options,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
        })
    }

    /// A place for a session of `resolve_caller`.
    ///
    /// # Errors
    /// Whose sessions there are too many of.
    fn acquire_session_permit(&self, caller: &Caller) -> Result<SessionPermit, LimitLevel> {
        self.sessions.end_idle();
        // Asked each time: a configuration that is entered later may be the first that asks who calls.
        let of_one_max =
            self.options.authenticator.enforces_authentication().then_some(self.options.sessions_per_principal_max);
        self.session_permits.acquire(caller, of_one_max)
    }

    /// Tells log and metrics that a message was refused.
    fn report_rejection(&self, origin: CallOrigin, reason: &str) {
        let CallOrigin { transport, peer } = origin;
        self.service.registry().events().emit(Event::MessageRefused { transport, peer, reason });
    }

    /// What the protocol must know of a caller. `streams_events` says that the answer must fit one SSE event.
    fn new_peer(&self, caller: &Caller, session: Option<Arc<McpSession>>, streams_events: bool) -> Peer {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        let in_flight: Option<Arc<InFlightRequests>> = session.as_ref().map(|session| session.in_flight().clone());
        Peer {
            caller: caller.clone(),
            inline_limit: Budget { rows: None, bytes: (is_bounded && streams_events).then_some(EVENT_BYTES_MAX) },
            // A request of ours needs the event stream of the client's own.
            accepts_server_requests: streams_events,
            session,
            in_flight,
        }
    }
}

/// The routes of the door, to be mounted in a server of a host's own. Requests without a
/// [`PeerAddress`] extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    build_routes(HttpState::new(service, metrics, options))
}

fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mut asking = Router::new();
    if http_state.options.has_mcp {
        let mcp = || on_post(post::post).get(get::get).delete(delete::delete);
        asking = asking.route("/mcp", mcp()).route("/mcp/{toolset}", mcp());
    }
    if http_state.options.has_sse {
        asking = asking.route("/mcp/sse", on_get(http_sse::open)).route("/mcp/{toolset}/sse", on_get(http_sse::open));
        asking = asking.route("/mcp/messages/{session}", on_post(http_sse::post));
    }
    if http_state.options.has_web_socket {
        asking = asking.route("/mcp/ws", on_get(web_socket::open)).route("/mcp/{toolset}/ws", on_get(web_socket::open));
    }
    if http_state.options.has_metrics {
        asking = asking.route("/metrics", on_get(health::metrics));
    }
    if asking.has_routes() {
        asking = asking.route_layer(axum::middleware::from_fn_with_state(http_state.clone(), identify::identify));
    }
    if http_state.options.has_rest {
        // These ask who calls by themselves: the page of REST is for everybody, and links open results.
        for path in ["/rest", "/rest/", "/rest/{*path}"] {
            asking = asking.route(path, on_any(rest::answer));
        }
        for path in ["/results", "/results/", "/results/{*path}"] {
            asking = asking.route(path, on_any(results::answer));
        }
    }
    asking
        .route(protected_resource::WELL_KNOWN, on_any(protected_resource::metadata))
        .route(&format!("{}/{{*path}}", protected_resource::WELL_KNOWN), on_any(protected_resource::metadata))
        .route("/health", on_get(health::health))
        .route("/ready", on_get(health::ready))
        .layer(axum::middleware::from_fn_with_state(http_state.clone(), host_check::check_host))
        .with_state(http_state)
}
