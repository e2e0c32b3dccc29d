//! MCP over Streamable HTTP, in every revision that has it, with REST, health and metrics beside it.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod body;
mod delete;
mod get;
mod guard;
mod health;
mod identify;
mod mirror;
mod patience;
mod post;
mod replay;
mod response;
mod rest;
mod server;
mod session;
mod sse;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{any as on_any, get as on_get, post as on_post};
use tidegate_core::{Authenticator, Budget, Caller, LetEverybodyIn};
use tidegate_mcp::{InFlight, Peer, Service, Session};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use server::{RunningServer, serve};

use crate::metrics::Metrics;

/// Stock clients refuse longer SSE events than 1 MiB. Rows are counted before they are escaped,
/// which at most doubles them but for control characters.
const EVENT_BYTES_MAX: usize = 450 * 1024;

/// Bounds and allowlists of the HTTP door.
#[derive(Clone)]
pub struct HttpOptions {
    /// Finds out who calls.
    pub authenticator: Arc<dyn Authenticator>,
    /// Whether there is MCP at `/mcp`.
    pub has_mcp: bool,
    /// Whether there is REST at `/rest`.
    pub has_rest: bool,
    /// Whether there is Prometheus at `/metrics`.
    pub has_metrics: bool,
    /// Longer request bodies are refused, in bytes.
    pub body_bytes_max: usize,
    /// How long a client may take to send its headers, and then its body.
    pub read_within: Duration,
    /// How long a client may leave what is written to it unread; then its connection breaks.
    pub write_within: Duration,
    /// More connections wait to be accepted.
    pub connections_max: usize,
    /// More legacy sessions are refused.
    pub sessions_max: usize,
    /// More legacy sessions of one principal are refused, where callers prove who they are.
    pub sessions_of_one_max: usize,
    /// A legacy session without a request for this long ends.
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
            authenticator: Arc::new(LetEverybodyIn),
            has_mcp: true,
            has_rest: true,
            has_metrics: true,
            body_bytes_max: 4 * 1024 * 1024,
            read_within: Duration::from_secs(15),
            write_within: Duration::from_secs(120),
            connections_max: 4_096,
            sessions_max: 1_024,
            sessions_of_one_max: 256,
            session_idle_max: Duration::from_secs(30 * 60),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            drain_within: Duration::from_secs(10),
        }
    }
}

/// What every handler of the door shares.
pub(crate) struct Door {
    service: Arc<Service>,
    metrics: Arc<Metrics>,
    options: HttpOptions,
    sessions: session::Sessions,
    /// The calls of legacy event streams, which outlive their connections.
    tasks: TaskTracker,
    /// Fires when the server shuts down: no more calls are taken, and nobody listens any more.
    draining: CancellationToken,
}

/// The address of the client, set for each connection.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

impl Door {
    pub(crate) fn new(service: Arc<Service>, metrics: Arc<Metrics>, options: HttpOptions) -> Arc<Self> {
        let events = service.registry().events().clone();
        let sessions = session::Sessions::new(options.sessions_max, options.session_idle_max, events);
        Arc::new(Self {
            service,
            metrics,
            options,
            sessions,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
        })
    }

    /// How many sessions one principal may have; without a bound of its own where callers cannot be told apart.
    fn sessions_of_one_max(&self) -> Option<usize> {
        self.options.authenticator.is_configured().then_some(self.options.sessions_of_one_max)
    }

    /// What the protocol must know of a caller. `streams_events` says that the answer must fit one SSE event.
    fn peer(&self, caller: &Caller, session: Option<Arc<Session>>, streams_events: bool) -> Peer {
        let is_bounded = self.service.registry().limits().inline.bytes.is_some();
        let in_flight: Option<Arc<InFlight>> = session.as_ref().map(|session| session.in_flight().clone());
        Peer {
            caller: caller.clone(),
            carries: Budget { rows: None, bytes: (is_bounded && streams_events).then_some(EVENT_BYTES_MAX) },
            session,
            in_flight,
        }
    }
}

/// The routes of the door, to be mounted in a server of a host's own. Requests without a
/// [`PeerAddress`] extension count as local.
pub fn router(service: Arc<Service>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    routes(Door::new(service, metrics, options))
}

fn routes(door: Arc<Door>) -> Router {
    let mut asking = Router::new();
    if door.options.has_mcp {
        let mcp = || on_post(post::post).get(get::get).delete(delete::delete);
        asking = asking.route("/mcp", mcp()).route("/mcp/{toolset}", mcp());
    }
    if door.options.has_metrics {
        asking = asking.route("/metrics", on_get(health::metrics));
    }
    if asking.has_routes() {
        asking = asking.route_layer(axum::middleware::from_fn_with_state(door.clone(), identify::identify));
    }
    if door.options.has_rest {
        // It asks who calls by itself: its page is for everybody.
        for path in ["/rest", "/rest/", "/rest/{*path}"] {
            asking = asking.route(path, on_any(rest::answer));
        }
    }
    asking
        .route("/health", on_get(health::health))
        .route("/ready", on_get(health::ready))
        .layer(axum::middleware::from_fn_with_state(door.clone(), guard::guard))
        .with_state(door)
}
