//! MCP over Streamable HTTP in every revision that has it, over HTTP+SSE and over WebSocket; also REST, stored results,
//! rows that are sent, the console, health and metrics. Here are the routes, made from the table of endpoints, and those for operators.
//!
//! [MCP 2026-07-28, Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)

mod answer;
mod body;
mod browser;
mod caller;
mod console;
mod data;
mod endpoints;
mod http_sse;
mod kept_events;
mod listen;
mod parameters;
mod post;
mod protected_resource;
mod response;
mod rest;
mod results;
mod server;
mod session;
mod sse;
mod state;
mod telemetry;
mod web_socket;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any as on_any, get as on_get, post as on_post};
use tidegate_mcp::McpService;
use tower::ServiceExt as _;

use crate::metrics::Metrics;
use body::check_transfer_encoding;
use browser::check_host;
use caller::AuthenticatedRequest;
use endpoints::{ENDPOINTS, Endpoint, EndpointHandler, endpoint_at};
use protected_resource::metadata;
use rest::RestHandler;
use state::HttpState;

pub use answer::problem_types;
pub use endpoints::is_reserved_toolset_name;
pub use protected_resource::{ProtectedResource, SharedProtectedResource};
pub use server::{OptionsReloader, RunningServer, serve, serve_addresses};
pub use state::{EVENT_BYTES_MAX, HttpOptions, PeerAddress, ReadinessCheck};

/// The routes of the HTTP server, to be mounted in a server of the host application. Requests without a
/// [`PeerAddress`] extension count as local.
pub fn router(service: Arc<McpService>, metrics: Arc<Metrics>, options: HttpOptions) -> Router {
    let http_state = HttpState::new(service, metrics, options);
    let checks = async |State(http_state): State<Arc<HttpState>>, request: Request, next: Next| {
        check_request(&http_state, request, |request, _| next.run(request)).await
    };
    build_routes(http_state.clone()).layer(from_fn_with_state(http_state, checks))
}

/// The checks that precede all routes. `next` answers the requests that pass, at their endpoint.
async fn check_request<F: Future<Output = Response>>(
    http_state: &HttpState,
    request: Request,
    next: impl FnOnce(Request, &'static Endpoint) -> F,
) -> Response {
    let endpoint = endpoint_at(request.uri().path());
    let next =
        move |request| check_transfer_encoding(http_state, endpoint, request, move |request| next(request, endpoint));
    let response = check_host(http_state, endpoint, request, next).await;
    http_state.metrics.count_http_request(endpoint.path, response.status().as_u16());
    response
}

/// Answers a request that passed [`check_request`]. Calls of MCP and REST do not pass the router, which allocates a dozen
/// times for each request. Futures are boxed, because an idle connection has room for the largest one.
async fn answer_request(
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
fn build_app(http_state: Arc<HttpState>) -> Router {
    build_routes(http_state.clone()).fallback(move |headers: HeaderMap| {
        let options = http_state.reloadable_options();
        async move { browser::not_found(&headers, &options) }
    })
}

/// The routes, for requests that passed [`check_request`]. It refuses paths of disabled endpoints, because a reload can
/// enable them.
fn build_routes(http_state: Arc<HttpState>) -> Router {
    let mut routes = Router::new();
    for endpoint in ENDPOINTS {
        let methods: MethodRouter<Arc<HttpState>> = match endpoint.handler {
            EndpointHandler::Mcp => on_post(post::post).get(listen::get).delete(listen::delete),
            EndpointHandler::SseStream => on_get(http_sse::open),
            EndpointHandler::SseMessages => on_post(http_sse::post),
            EndpointHandler::WebSocket => on_get(web_socket::open),
            EndpointHandler::Metrics => on_get(metrics),
            // They authenticate callers in other ways: the REST page is public, and links open results.
            EndpointHandler::Rest(None | Some(RestHandler::Page)) => on_any(rest::answer),
            EndpointHandler::Results(None) => on_any(results::answer),
            EndpointHandler::Rows(None) => on_any(data::answer),
            EndpointHandler::Telemetry(..) => on_any(telemetry::answer),
            EndpointHandler::Console => on_get(console::file),
            EndpointHandler::Metadata => on_any(metadata),
            EndpointHandler::Health => on_get(health),
            EndpointHandler::Ready => on_get(ready),
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

const METRICS_ACCESS: &str = "metrics";

/// The process runs.
async fn health() -> &'static str {
    "ok\n"
}

/// The server accepts calls, and the databases that it needs answer.
async fn ready(State(http_state): State<Arc<HttpState>>) -> Response {
    let problem = if http_state.draining.is_cancelled() {
        Some("shutting down".to_owned())
    } else if !http_state.service.registry().admits_calls() {
        Some("the audit log cannot be written".to_owned())
    } else if let Some(check) = &http_state.options.readiness {
        check.problem().await
    } else {
        None
    };
    match problem {
        Some(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
        None => "ready\n".into_response(),
    }
}

/// Metrics name tools and databases, so reading them requires an access name where callers authenticate.
async fn metrics(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { caller, .. }: AuthenticatedRequest,
) -> Response {
    let may_read = caller.principal.grants.access.includes(METRICS_ACCESS);
    if http_state.options.authenticator.enforces_authentication() && !may_read {
        return (StatusCode::FORBIDDEN, "reading metrics requires the access name \"metrics\"\n").into_response();
    }
    let text = http_state.metrics.render(http_state.service.registry());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
