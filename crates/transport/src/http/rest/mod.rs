//! The registry as REST: each tool has a path, each refusal is a problem, and each answer has the requested format.
//!
//! A request becomes one call of one tool, like over MCP. Lists, schemas and the OpenAPI document are read from the
//! caller's view of the registry.

mod answer;
mod arguments;
mod call;
mod document;
mod openapi;
mod route;
mod telemetry_parameters;
mod transports;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use tidegate_core::{Caller, TransportKind};
use tidegate_runtime::TransportGroup;
use uuid::Uuid;

use self::arguments::discard_body;
use self::route::RestRoute;
use super::answer::{ProblemDetails, into_response, options_response, require_no_parameters};
use super::body;
use super::caller::RequestCredentials;
use super::state::{HttpState, PeerAddress};

/// The HTML page that lists the tools and lets people try them: one file without external resources.
const PAGE: &str = include_str!("page.html");
const NONCE: &str = "{nonce}";

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let result = respond(&http_state, &parts, body).await;
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: Body) -> Result<Response, ProblemDetails> {
    let route = RestRoute::parse(parts.uri.path());
    let route = match route.and_then(|route| route.check_method(&parts.method).map(|()| route)) {
        Ok(route) => route,
        Err(problem) => return Err(discard_body(http_state, body, problem).await),
    };
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.allow_header()));
    }
    // An operator can start what is stopped.
    let is_control = matches!(route, RestRoute::Transports | RestRoute::Transport { .. });
    let running = http_state.service.registry().transport_switches().require_running(TransportGroup::Rest);
    if let Err(error) = running.or_else(|error| if is_control { Ok(()) } else { Err(error) }) {
        return Err(discard_body(http_state, body, error.into()).await);
    }
    if route == RestRoute::Page {
        return Ok(page());
    }
    let request_credentials =
        RequestCredentials::from_request(http_state, &parts.headers, &parts.extensions, TransportKind::Rest, None);
    let caller = match request_credentials.resolve_caller(http_state).await {
        Ok(caller) => caller,
        Err(refused) => {
            return Err(discard_body(http_state, body, refused.into()).await);
        }
    };
    if let Err(error) = http_state.service.registry().admit_request(&caller).await {
        return Err(discard_body(http_state, body, error.into()).await);
    }
    if is_control {
        body::discard(body, http_state.options.read_within).await;
        return transports::respond(http_state, &route, &caller);
    }
    match registry_document(http_state, &route, parts, &caller) {
        Some(response) => response,
        None => call::call(http_state, &route, parts, body, &request_credentials, caller).await,
    }
}

/// The documents that are read from the registry itself; `None` if the route calls a tool.
fn registry_document(
    http_state: &HttpState,
    route: &RestRoute,
    parts: &Parts,
    caller: &Caller,
) -> Option<Result<Response, ProblemDetails>> {
    let state = http_state.service.registry().snapshot_for(caller);
    let described = || match route {
        RestRoute::Tools => {
            let tools: Vec<_> = state.tools(caller).map(|tool| tidegate_mcp::tool_json(tool)).collect();
            Some(Ok((document::JSON, serde_json::json!({ "tools": tools }))))
        }
        RestRoute::Tool(name) => {
            Some(state.tool(name, caller).map(|tool| (document::JSON, tidegate_mcp::tool_json(tool))))
        }
        RestRoute::Schema(name) => {
            Some(state.tool(name, caller).map(|tool| (document::SCHEMA, tool.call_schema().json().clone())))
        }
        RestRoute::OpenApi => Some(Ok((document::JSON, openapi::build_document(http_state, &state, caller)))),
        _ => None,
    };
    let described = described()?;
    let checked = require_no_parameters(&parts.uri).and_then(|()| described.map_err(ProblemDetails::from));
    Some(checked.map(|(media_type, value)| document::document_response(&parts.headers, media_type, &value)))
}

/// The page. It contains nothing confidential: it loads the tools with the reader's own key.
fn page() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = Response::new(Body::from(PAGE.replace(NONCE, &nonce)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // A nonce consists of hexadecimal digits.
    headers.extend(HeaderValue::from_str(&policy).map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    response
}
