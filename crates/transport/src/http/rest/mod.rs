//! The registry as REST: every tool a path, every refusal a problem, every answer in the form that was asked for.
//!
//! A request becomes one call of one tool, through the same door as everywhere; what else there is (lists, schemas,
//! OpenAPI) is read from the caller's state of the registry.

mod accept;
mod answer;
mod arguments;
mod blocks;
mod call;
mod document;
mod openapi;
mod page;
mod pieces;
mod problem;
mod route;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tidegate_core::{Caller, Origin, TransportKind};

pub(super) use self::accept::{Accept, quality};
pub(super) use self::answer::{begun, describe, first, told};
pub(super) use self::arguments::{FORMAT, Kind, Parameter, of_address};
pub(super) use self::call::trace;
pub(super) use self::document::not_modified;
pub(super) use self::pieces::{Begun, Encoding, Pieces, broken_off};
pub(super) use self::problem::{Problem, Sort};
use self::route::Route;
use super::identify::Shown;
use super::{Door, PeerAddress, body};

/// Which pages may load an answer without asking: a GET of another site's page has no `Origin` to be refused for.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Answers any request under `/rest`.
pub(super) async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answered = respond(&door, &parts, body).await;
    finish(&door, PeerAddress::of(&parts.extensions), answered)
}

/// The response to a request that was answered or refused: refusals are told, and pages of others get nothing of it.
pub(super) fn finish(door: &Door, peer: Option<IpAddr>, answered: Result<Response, Problem>) -> Response {
    let mut response = answered.unwrap_or_else(|problem| {
        if problem.is_of_message() {
            door.tell_of_refusal(Origin { transport: TransportKind::Rest, peer }, problem.detail());
        }
        problem.response(door)
    });
    let headers = response.headers_mut();
    // What data holds is no part of the page of somebody else.
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

async fn respond(door: &Arc<Door>, parts: &Parts, body: Body) -> Result<Response, Problem> {
    let found = Route::find(parts.uri.path()).and_then(|route| route.taking(&parts.method).map(|taken| (route, taken)));
    let (route, taken) = match found {
        Ok(found) => found,
        Err(problem) => return Err(discarding(door, body, problem).await),
    };
    if taken == route::Taken::Options {
        return Ok(options(route.allowed()));
    }
    if route == Route::Page {
        return Ok(page::page());
    }
    let shown = Shown::by(door, &parts.headers, &parts.extensions, TransportKind::Rest, None);
    let caller = match shown.caller(door).await {
        Ok(caller) => caller,
        Err(refused) => return Err(discarding(door, body, Problem::refused(&refused)).await),
    };
    if let Err(error) = door.service.registry().admit_request(&caller).await {
        return Err(discarding(door, body, error.into()).await);
    }
    match listed(door, &route, parts, &caller) {
        Some(response) => response,
        None => call::call(door, &route, parts, body, &shown, caller).await,
    }
}

/// What is read from the registry itself; none for what is a call.
fn listed(door: &Door, route: &Route, parts: &Parts, caller: &Caller) -> Option<Result<Response, Problem>> {
    let state = door.service.registry().state_for(caller);
    let described = || match route {
        Route::Tools => {
            let tools: Vec<_> = state.tools(caller).map(|tool| tidegate_mcp::tool_json(tool)).collect();
            Some(Ok((document::JSON, serde_json::json!({ "tools": tools }))))
        }
        Route::Tool(name) => Some(state.tool(name, caller).map(|tool| (document::JSON, tidegate_mcp::tool_json(tool)))),
        Route::Schema(name) => {
            Some(state.tool(name, caller).map(|tool| (document::SCHEMA, tool.input_schema.json().clone())))
        }
        Route::OpenApi => Some(Ok((document::JSON, openapi::openapi(door, &state, caller)))),
        _ => None,
    };
    let described = described()?;
    let checked = arguments::none(&parts.uri).and_then(|()| described.map_err(Problem::from));
    Some(checked.map(|(media_type, value)| document::document(&parts.headers, media_type, &value)))
}

/// The answer to OPTIONS where `allowed` methods are taken.
pub(super) fn options(allowed: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

/// Reads a body that nobody wants, so that its connection lives on.
async fn discarding(door: &Door, body: Body, problem: Problem) -> Problem {
    body::discard(body, door.options.read_within).await;
    problem
}

/// Whether a method asks for nothing but what is there.
fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}
