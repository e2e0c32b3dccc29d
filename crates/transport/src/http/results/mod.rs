//! Stored results: downloads of large answers, as a whole or block by block.
//!
//! A request becomes one read of a resource, like over MCP. Entity tags, ranges and content codings are applied here to
//! the bytes of that call.

mod answer;
mod coding;
mod conditions;
mod link;
mod range;
mod request;
mod route;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use tidegate_core::{CallTarget, Caller, Error, ErrorKind};
use tidegate_runtime::{TransportGroup, event::Event};

pub(super) use self::link::link_parameter;
use self::request::ResultRequest;
pub(super) use self::request::{PARTIAL, offered_formats};
use self::route::ResultRoute;
pub(super) use self::route::{ResultView, view_uri};
use super::answer::{ProblemDetails, into_response, new_call, options_response};
use super::body;
use super::state::{HttpState, PeerAddress};

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let result = respond(&http_state, &parts, body).await;
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: Body) -> Result<Response, ProblemDetails> {
    // No path accepts a body. It is read so that the connection can be reused.
    body::discard(body, http_state.options.read_within).await;
    let route = ResultRoute::parse(parts.uri.path(), &parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    http_state.service.registry().transport_switches().require_running(TransportGroup::Rest)?;
    let (caller, revalidator) = link::resolve_caller(http_state, parts, &route).await?;
    http_state.service.registry().admit_request(&caller).await?;
    let mut result_request = ResultRequest::read(&route, parts)?;
    let Some(uri) = route.uri() else { return Err(not_found_problem(http_state, &caller, &route)) };
    let (arguments, format) = (result_request.arguments.clone(), result_request.format);
    let call = new_call(CallTarget::Resource(uri), caller, arguments, format, &parts.headers);
    let reply = http_state.service.registry().call(call)?;
    answer::answer(reply, revalidator, &route, &mut result_request, parts).await
}

/// The problem of a path that no result can have: the same as for a result that does not exist.
fn not_found_problem(http_state: &HttpState, caller: &Caller, route: &ResultRoute) -> ProblemDetails {
    let outcome = ErrorKind::NotFound.name();
    // The path itself is not logged: if the `?` before a link is mistyped, the path contains the link.
    http_state.service.registry().events().emit(Event::CallRefused {
        caller,
        kind: "resource",
        name: "tidegate://results/{id}",
        outcome,
    });
    Error::new(ErrorKind::NotFound, format!("there is no resource {:?}", route.requested_uri())).into()
}
