//! The routes of the HTTP server.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any as on_any, get as on_get, post as on_post};
use tidegate_mcp::McpService;
use tower::ServiceExt as _;

use super::caller::AuthenticatedRequest;
use super::host_check::check_host;
use super::protected_resource::{WELL_KNOWN, metadata};
use super::state::{HttpOptions, HttpState};
use super::transfer_encoding::check_transfer_encoding;
use super::{browser_page, data, get, health, http_sse, post, rest, results, telemetry, web_socket};
use crate::metrics::Metrics;

/// The endpoint of the whole server.
const MCP: &str = "/mcp";
const REST: &str = "/rest/";

/// The routes of the HTTP server, to be mounted in a server of the host application. Requests without a
/// [`PeerAddress`](super::PeerAddress) extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    let http_state = HttpState::new(service, metrics, options);
    let checks = async |State(http_state): State<Arc<HttpState>>, request: Request, next: Next| {
        check_request(&http_state, request, |request| next.run(request)).await
    };
    build_routes(http_state.clone()).layer(from_fn_with_state(http_state, checks))
}

/// The checks that precede all routes. `next` answers the requests that pass.
pub(super) async fn check_request<F: Future<Output = Response>>(
    http_state: &HttpState,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let next = |request| check_transfer_encoding(http_state, request, next);
    check_host(http_state, request, next).await
}

/// Answers a request that passed [`check_request`]. Calls of MCP and REST do not pass the router, which allocates a dozen
/// times for each request. Futures are boxed, because an idle connection has room for the largest one.
pub(super) async fn answer_request(http_state: Arc<HttpState>, routes: Router, request: Request) -> Response {
    match request.uri().path() {
        MCP if request.method() == Method::POST => Box::pin(post_message(http_state, request)).await,
        path if path.starts_with(REST) && request.method() == Method::POST => {
            Box::pin(rest::answer(State(http_state), request)).await
        }
        _ => routes.oneshot(request).await.unwrap_or_else(|never| match never {}),
    }
}

async fn post_message(http_state: Arc<HttpState>, request: Request) -> Response {
    match AuthenticatedRequest::authenticate(request, None, &http_state).await {
        Ok(request) => post::post(State(http_state), request).await.into_response(),
        Err(refused) => refused,
    }
}

/// The routes of our own server, which has a page for browsers at all other paths. In a host application, those are its
/// own.
pub(super) fn build_app(http_state: Arc<HttpState>) -> Router {
    build_routes(http_state.clone()).fallback(move |headers: HeaderMap| {
        let options = http_state.reloadable_options();
        async move { browser_page::not_found(&headers, &options) }
    })
}

/// The routes, for requests that passed [`check_request`].
fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mcp = || on_post(post::post).get(get::get).delete(get::delete);
    // Paths of disabled endpoints are refused before, because a reload can enable them.
    let mut routes = Router::new()
        .route(MCP, mcp())
        .route("/mcp/{toolset}", mcp())
        // People write addresses with a slash at the end.
        .route("/mcp/", mcp())
        .route("/mcp/{toolset}/", mcp())
        .route("/mcp/sse", on_get(http_sse::open))
        .route("/mcp/{toolset}/sse", on_get(http_sse::open))
        .route("/mcp/messages/{session}", on_post(http_sse::post))
        .route("/mcp/ws", on_get(web_socket::open))
        .route("/mcp/{toolset}/ws", on_get(web_socket::open))
        .route("/metrics", on_get(health::metrics));
    // The handlers of these authenticate callers in other ways: the REST page is public, and links open results.
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
        .with_state(http_state)
}
