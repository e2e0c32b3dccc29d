//! The routes of the HTTP server.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any as on_any, get as on_get, post as on_post};
use tidegate_mcp::McpService;

use super::caller::authenticate_request;
use super::host_check::check_host;
use super::protected_resource::{WELL_KNOWN, metadata};
use super::state::{HttpOptions, HttpState};
use super::transfer_encoding::check_transfer_encoding;
use super::{data, get, health, http_sse, post, rest, results, telemetry, web_socket};
use crate::metrics::Metrics;

/// The routes of the HTTP server, to be mounted in a server of the host application. Requests without a
/// [`PeerAddress`](super::PeerAddress) extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    build_routes(HttpState::new(service, metrics, options))
}

pub(super) fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mcp = || on_post(post::post).get(get::get).delete(get::delete);
    // Paths of disabled endpoints are refused before, because a reload can enable them.
    let mut routes = Router::new()
        .route("/mcp", mcp())
        .route("/mcp/{toolset}", mcp())
        .route("/mcp/sse", on_get(http_sse::open))
        .route("/mcp/{toolset}/sse", on_get(http_sse::open))
        .route("/mcp/messages/{session}", on_post(http_sse::post))
        .route("/mcp/ws", on_get(web_socket::open))
        .route("/mcp/{toolset}/ws", on_get(web_socket::open))
        .route("/metrics", on_get(health::metrics))
        .route_layer(from_fn_with_state(http_state.clone(), authenticate_request));
    // These routes authenticate callers themselves: the REST page is public, and links open results.
    for path in ["/rest", "/rest/", "/rest/{*path}"] {
        routes = routes.route(path, on_any(rest::answer));
    }
    for path in ["/results", "/results/", "/results/{*path}"] {
        routes = routes.route(path, on_any(results::answer));
    }
    for path in ["/data", "/data/", "/data/{*path}"] {
        routes = routes.route(path, on_any(data::answer));
    }
    for path in telemetry::PATHS {
        routes = routes.route(path, on_any(telemetry::answer));
    }
    routes
        .route(WELL_KNOWN, on_any(metadata))
        .route(&format!("{WELL_KNOWN}/{{*path}}"), on_any(metadata))
        .route("/health", on_get(health::health))
        .route("/ready", on_get(health::ready))
        .layer(from_fn_with_state(http_state.clone(), check_transfer_encoding))
        .layer(from_fn_with_state(http_state.clone(), check_host))
        .with_state(http_state)
}
