//! MCP over Streamable HTTP in every revision that has it, over HTTP+SSE and over WebSocket; also REST, stored results,
//! health and metrics.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod authorization;
mod body;
mod challenge;
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
mod sse;
mod state;
mod web_socket;
mod write_timeout;

use std::sync::Arc;

use axum::Router;
use axum::routing::{any as on_any, get as on_get, post as on_post};
use tidegate_mcp::McpService;

pub use answer::problem_types;
pub use protected_resource::{ProtectedResource, ProtectedResourceError, SharedProtectedResource};
pub use server::{RunningServer, serve};
pub(crate) use state::HttpState;
use state::{CONVERSATION_LIMITS, TRACE};
pub use state::{HttpOptions, PeerAddress};

use crate::metrics::Metrics;

/// The routes of the HTTP server, to be mounted in a server of the host application. Requests without a [`PeerAddress`]
/// extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    build_routes(HttpState::new(service, metrics, options))
}

fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mut routes = Router::new();
    if http_state.options.has_mcp {
        let mcp = || on_post(post::post).get(get::get).delete(get::delete);
        routes = routes.route("/mcp", mcp()).route("/mcp/{toolset}", mcp());
    }
    if http_state.options.has_sse {
        routes = routes.route("/mcp/sse", on_get(http_sse::open)).route("/mcp/{toolset}/sse", on_get(http_sse::open));
        routes = routes.route("/mcp/messages/{session}", on_post(http_sse::post));
    }
    if http_state.options.has_web_socket {
        routes = routes.route("/mcp/ws", on_get(web_socket::open)).route("/mcp/{toolset}/ws", on_get(web_socket::open));
    }
    if http_state.options.has_metrics {
        routes = routes.route("/metrics", on_get(health::metrics));
    }
    if routes.has_routes() {
        routes = routes.route_layer(axum::middleware::from_fn_with_state(http_state.clone(), identify::identify));
    }
    if http_state.options.has_rest {
        // These routes authenticate callers themselves: the REST page is public, and links open results.
        for path in ["/rest", "/rest/", "/rest/{*path}"] {
            routes = routes.route(path, on_any(rest::answer));
        }
        for path in ["/results", "/results/", "/results/{*path}"] {
            routes = routes.route(path, on_any(results::answer));
        }
    }
    routes
        .route(protected_resource::WELL_KNOWN, on_any(protected_resource::metadata))
        .route(&format!("{}/{{*path}}", protected_resource::WELL_KNOWN), on_any(protected_resource::metadata))
        .route("/health", on_get(health::health))
        .route("/ready", on_get(health::ready))
        .layer(axum::middleware::from_fn_with_state(http_state.clone(), host_check::check_host))
        .with_state(http_state)
}
