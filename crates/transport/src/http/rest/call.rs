//! Turns a request into the call of one tool.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Map, Value};
use tidegate_core::{CallTarget, Caller, Format};

use super::super::answer::{Accept, ProblemDetails, QueryParameter, new_call, parse_query};
use super::super::caller::{HttpCallerResolver, REVALIDATE_AFTER, RequestCredentials};
use super::super::state::HttpState;
use super::answer::answer;
use super::arguments::{BodyKind, is_read_method, read_body};
use super::route::{RestHandler, RestRoute};

pub(super) async fn call(
    http_state: &Arc<HttpState>,
    route: &RestRoute<'_>,
    tool: &str,
    parts: &Parts,
    body: &mut Body,
    credentials: &RequestCredentials,
    caller: Caller,
) -> Result<Response, ProblemDetails> {
    let (accept, mut arguments, payload) = parse_head(route, parts)?;
    let requested = Instant::now();
    let body = read_body(http_state, parts, std::mem::take(body)).await?;
    // Reading the body may have taken long, so the permissions of the caller are resolved again.
    let is_recent = requested.elapsed() <= REVALIDATE_AFTER;
    let caller = if is_recent { caller } else { credentials.resolve_caller(http_state).await? };
    for (name, value) in payload.parse_arguments(&body)? {
        if arguments.contains_key(&name) {
            let detail = format!("the argument {name} is given both in the body and in the query string");
            return Err(ProblemDetails::bad_request(detail));
        }
        arguments.insert(name, value);
    }
    let revalidator = HttpCallerResolver::new(http_state, credentials.clone(), &caller).into_revalidator();
    let target = CallTarget::Tool(tool.to_owned());
    let call = new_call(target, caller, arguments, accept.best(), &parts.headers);
    let registry = http_state.service.registry();
    let cache = registry.snapshot_for(&call.caller).tool_cache_hint(tool);
    let reply = registry.call(call)?;
    answer(reply, revalidator, &accept, parts, cache).await
}

/// Parses everything before the body: accepted formats, arguments, and the type of the body.
fn parse_head(route: &RestRoute<'_>, parts: &Parts) -> Result<(Accept, Map<String, Value>, BodyKind), ProblemDetails> {
    let (parameters, in_path): (&[QueryParameter], Vec<_>) = match route.handler {
        RestHandler::Call { parameters, .. } => (parameters, route.parameters().collect()),
        _ => (&[], Vec::new()),
    };
    let (mut arguments, format) = parse_query(&parts.uri, parameters)?;
    let accept = Accept::read(&parts.headers, format.as_deref(), &Format::FOR_REST)?;
    // A text is accepted where a list is expected.
    let argument = |name: &'static str| if name == "field" { "fields" } else { name };
    arguments.extend(in_path.into_iter().map(|(name, value)| (argument(name).to_owned(), value.into())));
    let payload = match is_read_method(&parts.method) {
        true => BodyKind::Nothing,
        false => BodyKind::from_headers(&parts.headers, route.handler.takes_sql())?,
    };
    Ok((accept, arguments, payload))
}
