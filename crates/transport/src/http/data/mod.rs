//! Rows that are sent: `POST`, `PUT` and `DELETE` of `/data/{database}/{table}`.
//!
//! A request becomes one call of one entry, whose handler reads the body while it arrives. What the body means is the matter
//! of the entry: this module passes on bytes, and at most one piece of them is in memory here.

mod answer;
mod request;
mod route;
mod streamed_body;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use tidegate_core::Format;
use tidegate_runtime::{Call, RequestBodyTypes, TransportGroup};

pub(super) use self::answer::to_problem;
pub(super) use self::request::PARAMETERS;
use self::request::{prefers_minimal, read_arguments, read_body_type};
use self::route::DataRoute;
pub(super) use self::streamed_body::StreamedBody;
use super::answer::{ProblemDetails, into_response, new_call, options_response};
use super::caller::{HttpCallerResolver, admit_rest_caller};
use super::state::{HttpState, PeerAddress};

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = StreamedBody::new(body);
    let result = respond(&http_state, &parts, &body).await;
    if result.is_err() {
        body.discard_rest(&parts.headers, http_state.options.read_within).await;
    }
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: &StreamedBody) -> Result<Response, ProblemDetails> {
    let route = DataRoute::parse(parts.uri.path(), &parts.method)?;
    if parts.method == Method::OPTIONS {
        return Ok(options_response(route.endpoint));
    }
    let registry = http_state.service.registry();
    registry.transport_switches().require_running(TransportGroup::Rest)?;
    let (credentials, caller) = admit_rest_caller(http_state, &parts.headers, &parts.extensions).await?;
    let revalidator = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
    let build = |target, caller, types: Option<RequestBodyTypes>| -> Result<Call, ProblemDetails> {
        let arguments = read_arguments(&route, parts, types.is_some())?;
        let mut call = new_call(target, caller, arguments, Format::Json, &parts.headers);
        if let Some(types) = types {
            let (media_type, coding) = read_body_type(parts, types)?;
            call.request_body = Some(body.request_body(&media_type, coding, &http_state.reloadable_options())?);
        }
        Ok(call)
    };
    let table = Some((route.database.as_str(), route.table.as_str()));
    let reply = registry.write_rows(route.entry, table, caller, to_problem, build)?;
    let answered = answer::answer(reply, revalidator, prefers_minimal(parts)).await;
    answered.map_err(|problem| body.describe_failure(problem))
}
