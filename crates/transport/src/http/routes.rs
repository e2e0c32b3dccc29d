//! The routes of the HTTP server, made from the table of endpoints.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any as on_any, get as on_get, post as on_post};
use tidegate_mcp::McpService;
use tower::ServiceExt as _;

use super::caller::AuthenticatedRequest;
use super::endpoints::{ENDPOINTS, Endpoint, EndpointHandler, endpoint_at};
use super::host_check::check_host;
use super::protected_resource::metadata;
use super::rest::RestHandler;
use super::state::{HttpOptions, HttpState};
use super::transfer_encoding::check_transfer_encoding;
use super::{browser_page, data, get, health, http_sse, post, rest, results, telemetry, web_socket};
use crate::metrics::Metrics;

/// The routes of the HTTP server, to be mounted in a server of the host application. Requests without a
/// [`PeerAddress`](super::PeerAddress) extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    let http_state = HttpState::new(service, metrics, options);
    let checks = async |State(http_state): State<Arc<HttpState>>, request: Request, next: Next| {
        check_request(&http_state, request, |request, _| next.run(request)).await
    };
    build_routes(http_state.clone()).layer(from_fn_with_state(http_state, checks))
}

/// The checks that precede all routes. `next` answers the requests that pass, at their endpoint.
pub(super) async fn check_request<F: Future<Output = Response>>(
    http_state: &HttpState,
    request: Request,
    next: impl FnOnce(Request, &'static Endpoint) -> F,
) -> Response {
    let endpoint = endpoint_at(request.uri().path());
    let next =
        move |request| check_transfer_encoding(http_state, endpoint, request, move |request| next(request, endpoint));
    check_host(http_state, endpoint, request, next).await
}

/// Answers a request that passed [`check_request`]. Calls of MCP and REST do not pass the router, which allocates a dozen
/// times for each request. Futures are boxed, because an idle connection has room for the largest one.
pub(super) async fn answer_request(
    http_state: Arc<HttpState>,
    routes: Router,
    request: Request,
    endpoint: &'static Endpoint,
) -> Response {
    match endpoint.handler {
        EndpointHandler::Mcp if request.method() == Method::POST && endpoint.pattern.is_empty() => {
            Box::pin(post_message(http_state, request)).await
        }
        EndpointHandler::Rest(_) if request.method() == Method::POST => {
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

/// The routes, for requests that passed [`check_request`]. It refuses paths of disabled endpoints, because a reload can
/// enable them.
fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mut routes = Router::new();
    for endpoint in ENDPOINTS {
        let methods: MethodRouter<Arc<HttpState>> = match endpoint.handler {
            EndpointHandler::Mcp => on_post(post::post).get(get::get).delete(get::delete),
            EndpointHandler::SseStream => on_get(http_sse::open),
            EndpointHandler::SseMessages => on_post(http_sse::post),
            EndpointHandler::WebSocket => on_get(web_socket::open),
            EndpointHandler::Metrics => on_get(health::metrics),
            // They authenticate callers in other ways: the REST page is public, and links open results.
            EndpointHandler::Rest(None | Some(RestHandler::Page)) => on_any(rest::answer),
            EndpointHandler::Results(None) => on_any(results::answer),
            EndpointHandler::Rows(None) => on_any(data::answer),
            EndpointHandler::Telemetry(..) => on_any(telemetry::answer),
            EndpointHandler::Metadata => on_any(metadata),
            EndpointHandler::Health => on_get(health::health),
            EndpointHandler::Ready => on_get(health::ready),
            // They have no route, or are below a path whose handler finds them.
            EndpointHandler::Rest(_)
            | EndpointHandler::Results(_)
            | EndpointHandler::Rows(_)
            | EndpointHandler::NotFound => continue,
        };
        routes = routes.route(endpoint.path, methods);
    }
    routes.with_state(http_state)
}
