//! The registry as REST: each tool has a path, each refusal is a problem, and each answer has the requested format.
//!
//! A request becomes one call of one tool, like over MCP. Lists, schemas and the OpenAPI document are read from the
//! caller's view of the registry.

mod accept;
mod answer;
mod answer_body;
mod arguments;
mod call;
mod content_writer;
mod document;
mod openapi;
mod page;
mod problem;
mod route;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tidegate_core::{CallOrigin, Caller, TransportKind};

pub(super) use self::accept::{Accept, parse_quality};
pub(super) use self::answer::{answer_headers, begin_response, describe, next_event};
pub(super) use self::answer_body::{AnswerBody, AnswerStart, ChunkEncoding, broken_body_error};
pub(super) use self::arguments::{FORMAT, ParameterKind, QueryParameter, parse_query};
pub(super) use self::call::apply_trace_headers;
pub(super) use self::document::not_modified;
pub(super) use self::problem::{ProblemDetails, ProblemType};
use self::route::RestRoute;
use super::identify::RequestCredentials;
use super::{HttpState, PeerAddress, body};

/// Which sites may load an answer without CORS: a GET by another site's page has no `Origin` that could be rejected.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Answers any request under `/rest`.
pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answered = respond(&http_state, &parts, body).await;
    finish(&http_state, PeerAddress::from_extensions(&parts.extensions), answered)
}

/// The final response: reports refusals, and prevents other sites from loading the answer.
pub(super) fn finish(
    http_state: &HttpState,
    peer: Option<IpAddr>,
    answered: Result<Response, ProblemDetails>,
) -> Response {
    let mut response = answered.unwrap_or_else(|problem| {
        if problem.is_before_call() {
            http_state.report_rejection(CallOrigin { transport: TransportKind::Rest, peer }, problem.detail());
        }
        problem.into_response(http_state)
    });
    let headers = response.headers_mut();
    // Data is not part of another site's page.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: Body) -> Result<Response, ProblemDetails> {
    let found = RestRoute::parse(parts.uri.path())
        .and_then(|route| route.check_method(&parts.method).map(|taken| (route, taken)));
    let (route, taken) = match found {
        Ok(found) => found,
        Err(problem) => return Err(discard_body(http_state, body, problem).await),
    };
    if taken == route::MethodHandling::Options {
        return Ok(options_response(route.allow_header()));
    }
    if route == RestRoute::Page {
        return Ok(page::page());
    }
    let request_credentials =
        RequestCredentials::from_request(http_state, &parts.headers, &parts.extensions, TransportKind::Rest, None);
    let caller = match request_credentials.resolve_caller(http_state).await {
        Ok(caller) => caller,
        Err(refused) => {
            return Err(discard_body(http_state, body, ProblemDetails::from_admission_error(&refused)).await);
        }
    };
    if let Err(error) = http_state.service.registry().admit_request(&caller).await {
        return Err(discard_body(http_state, body, error.into()).await);
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
            Some(state.tool(name, caller).map(|tool| (document::SCHEMA, tool.input_schema.json().clone())))
        }
        RestRoute::OpenApi => Some(Ok((document::JSON, openapi::build_document(http_state, &state, caller)))),
        _ => None,
    };
    let described = described()?;
    let checked = arguments::require_no_parameters(&parts.uri).and_then(|()| described.map_err(ProblemDetails::from));
    Some(checked.map(|(media_type, value)| document::document_response(&parts.headers, media_type, &value)))
}

/// The response to OPTIONS.
pub(super) fn options_response(allowed: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Reads an unused body, so that the connection can be reused.
async fn discard_body(http_state: &HttpState, body: Body, problem: ProblemDetails) -> ProblemDetails {
    body::discard(body, http_state.options.read_within).await;
    problem
}

/// Whether the method only reads.
fn is_read_method(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
