//! The registry as REST: each tool has a path, each refusal is a problem, and each answer has the requested format.
//!
//! A request becomes one call of one tool, like over MCP. Lists, schemas and the OpenAPI document are read from the
//! caller's view of the registry.

mod answer;
mod arguments;
mod call;
mod openapi;
pub(super) mod parameters;
mod route;
mod transports;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use headers::HeaderMapExt;
use serde_json::{Value, json};
use tidegate_core::Caller;
use tidegate_runtime::TransportGroup;
use uuid::Uuid;

use self::route::RestRoute;
pub(super) use self::route::{RestDocument, RestHandler};
use super::answer::{
    ProblemDetails, entity_tag, into_response, matches_none_match, not_modified, options_response,
    require_no_parameters,
};
use super::body;
use super::caller::admit_rest_caller;
use super::state::{HttpState, PeerAddress};

/// The HTML page that lists the tools and lets people try them: one file without external resources.
const PAGE: &str = include_str!("page.html");
const NONCE: &str = "{nonce}";

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, mut body) = request.into_parts();
    let result = respond(&http_state, &parts, &mut body).await;
    if result.is_err() {
        // What was not read, so that the connection can be reused.
        body::discard(body, http_state.options.read_within).await;
    }
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: &mut Body) -> Result<Response, ProblemDetails> {
    let route = RestRoute::parse(parts.uri.path(), &parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    // An operator can start what is stopped.
    let is_control = matches!(route.handler, RestHandler::Transports | RestHandler::SwitchTransport { .. });
    if !is_control {
        http_state.service.registry().transport_switches().require_running(TransportGroup::Rest)?;
    }
    let admit = || admit_rest_caller(http_state, &parts.headers, &parts.extensions);
    let tool = match route.handler {
        RestHandler::Page => return Ok(page()),
        RestHandler::Document(document) => {
            let (_, caller) = admit().await?;
            return registry_document(http_state, document, route.name(), parts, &caller);
        }
        RestHandler::Transports | RestHandler::SwitchTransport { .. } => {
            let (_, caller) = admit().await?;
            body::discard(std::mem::take(body), http_state.options.read_within).await;
            return transports::respond(http_state, &route, &caller);
        }
        RestHandler::CallNamed => route.name(),
        RestHandler::Call { tool, .. } => tool,
    };
    let (credentials, caller) = admit().await?;
    call::call(http_state, &route, tool, parts, body, &credentials, caller).await
}

fn registry_document(
    http_state: &HttpState,
    document: RestDocument,
    name: &str,
    parts: &Parts,
    caller: &Caller,
) -> Result<Response, ProblemDetails> {
    require_no_parameters(&parts.uri)?;
    let state = http_state.service.registry().snapshot_for(caller);
    let value = match document {
        RestDocument::Tools => {
            let tools: Vec<_> = state.tools(caller).map(|tool| tidegate_mcp::tool_json(tool)).collect();
            json!({ "tools": tools })
        }
        RestDocument::Tool => tidegate_mcp::tool_json(state.tool(name, caller)?),
        RestDocument::Schema => state.tool(name, caller)?.call_schema().json().clone(),
        RestDocument::OpenApi => openapi::build_document(http_state, &state, caller),
    };
    Ok(document_response(&parts.headers, document.media_type(), &value))
}

/// The response with `value`, or 304 if the client has the current version.
///
/// [RFC 9110, ETag](https://www.rfc-editor.org/rfc/rfc9110#name-etag)
fn document_response(header_map: &HeaderMap, media_type: &'static str, value: &Value) -> Response {
    let text = value.to_string();
    let tag = entity_tag(&hash(&text), false);
    let is_current = matches_none_match(header_map, tag.as_ref());
    let mut response = if is_current { not_modified() } else { Response::new(Body::from(text)) };
    let headers = response.headers_mut();
    if !is_current {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    if let Some(tag) = tag {
        headers.typed_insert(tag);
    }
    // The content depends on the caller, and may change with each configuration.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("authorization"));
    response
}

/// A 128-bit hash of the text. It need not be cryptographic, because callers do not choose the text.
fn hash(text: &str) -> String {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
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
