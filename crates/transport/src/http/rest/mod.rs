//! The registry as REST: each tool has a path, each refusal is a problem, and each answer has the requested format.
//!
//! A request becomes one call of one tool, like over MCP. Lists, schemas and the OpenAPI document are read from the
//! caller's view of the registry. Operators stop and start groups of transports.

mod call;
mod openapi;

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use headers::HeaderMapExt;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tidegate_core::{Caller, Error, ErrorKind};
use tidegate_mcp::NAME_BYTES_MAX;
use tidegate_runtime::TransportGroup;
use tidegate_runtime::event::Event;
use uuid::Uuid;

use super::answer::{
    ProblemDetails, ProblemType, content_hash, entity_tag, into_response, matches_none_match, not_modified,
    options_response,
};
use super::body;
use super::caller::admit_rest_caller;
use super::endpoints::{Endpoint, EndpointHandler, endpoint_at};
use super::parameters::{QueryParameter, require_no_parameters};
use super::response::json;
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
            return switch_transport(http_state, &route, &caller);
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
    let tag = entity_tag(&content_hash(text.as_bytes()), false);
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

/// What answers at an endpoint of REST.
#[derive(Debug, Clone, Copy)]
pub(super) enum RestHandler {
    /// The page that lists the tools and lets people try them.
    Page,
    Document(RestDocument),
    /// The tool that the path names.
    CallNamed,
    Call {
        tool: &'static str,
        parameters: &'static [QueryParameter],
    },
    /// The transports that an operator can stop and start.
    Transports,
    SwitchTransport {
        starts: bool,
    },
}

/// A document that is read from the registry itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestDocument {
    Tools,
    Tool,
    /// The schema of the arguments of a tool.
    Schema,
    OpenApi,
}

impl RestHandler {
    /// Whether the body may be a plain SQL statement.
    fn takes_sql(self) -> bool {
        matches!(self, Self::Call { tool: "sql", .. })
    }
}

impl RestDocument {
    fn media_type(self) -> &'static str {
        if self == Self::Schema { "application/schema+json" } else { "application/json" }
    }
}

struct RestRoute<'a> {
    endpoint: &'static Endpoint,
    handler: RestHandler,
    segments: Vec<Cow<'a, str>>,
}

impl<'a> RestRoute<'a> {
    /// Parses a path. Each segment is percent-decoded separately, because names may contain slashes.
    fn parse(path: &'a str, method: &Method) -> Result<Self, ProblemDetails> {
        let segments: Option<Vec<_>> =
            path.split('/').map(|segment| percent_decode_str(segment).decode_utf8().ok()).collect();
        let segments =
            segments.ok_or_else(|| ProblemDetails::bad_request("the path is not UTF-8 after percent-decoding"))?;
        if let Some(name) = segments.iter().find(|segment| segment.len() > NAME_BYTES_MAX) {
            let detail = format!("the name is {} bytes long; at most {NAME_BYTES_MAX}", name.len());
            return Err(ProblemDetails::bad_request(detail));
        }
        let at_path = if path.contains('%') {
            let plain: Vec<String> = segments.iter().map(|segment| segment.replace('/', "_")).collect();
            endpoint_at(&plain.join("/"))
        } else {
            endpoint_at(path)
        };
        let EndpointHandler::Rest(Some(_)) = at_path.handler else { return Err(no_such_path(path)) };
        let endpoint = at_path.for_method(method)?;
        let EndpointHandler::Rest(Some(handler)) = endpoint.handler else { return Err(no_such_path(path)) };
        Ok(Self { endpoint, handler, segments })
    }

    /// The parameters of the path with their values.
    fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.endpoint.parameters(self.segments.iter().map(|segment| &**segment))
    }

    /// The first parameter of the path; empty if it has none.
    fn name(&self) -> &str {
        self.parameters().next().map_or("", |(_, name)| name)
    }
}

fn no_such_path(path: &str) -> ProblemDetails {
    ProblemDetails::new(ProblemType::NoSuchPath, format!("there is no path {path}; /rest/ lists the tools"))
}

/// Switches the group of `route`, if it names one, and answers with the state of all groups.
fn switch_transport(
    http_state: &HttpState,
    route: &RestRoute<'_>,
    caller: &Caller,
) -> Result<Response, ProblemDetails> {
    // The operator of one tenant must not stop the others.
    let may_operate = caller.principal.grants.is_operator() && caller.principal.tenant.is_none();
    if http_state.options.authenticator.enforces_authentication() && !may_operate {
        let message = "this requires a role with the access name \"operator\", and a caller without a tenant";
        return Err(ProblemDetails::new(ProblemType::Call(ErrorKind::Forbidden), message));
    }
    let registry = http_state.service.registry();
    let switches = registry.transport_switches();
    if let RestHandler::SwitchTransport { starts } = route.handler {
        let (name, action) = (route.name(), if starts { "start" } else { "stop" });
        let group = TransportGroup::ALL.into_iter().find(|group| group.name() == name).ok_or_else(|| {
            let choices = TransportGroup::ALL.map(|group| group.name().to_owned());
            Error::new(ErrorKind::NotFound, format!("there is no transport {name:?} to {action}")).with_choices(choices)
        })?;
        switches.set_running(group, starts)?;
        let state = switches.state(group).name();
        registry.events().emit(Event::TransportSwitched { caller, group: group.name(), state });
    }
    let states = TransportGroup::ALL.map(|group| json!({"name": group.name(), "state": switches.state(group).name()}));
    Ok(json(StatusCode::OK, Bytes::from(json!({"transports": states}).to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_before_they_are_compared() {
        let route = RestRoute::parse("/rest/%64atabases/a%2Fb/tables/", &Method::GET).unwrap();
        assert_eq!(route.parameters().collect::<Vec<_>>(), [("database", "a/b"), ("table", "")]);
        assert!(RestRoute::parse("/rest/databases/a/b/tables", &Method::GET).is_err());
    }
}
