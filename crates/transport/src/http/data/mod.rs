//! Rows that are sent: `POST`, `PUT` and `DELETE` of `/data/{database}/{table}`.
//!
//! A request becomes one call of one tool, whose handler reads the body while it arrives. What the body means is the matter
//! of the tool: this module passes on bytes, and at most one piece of them is in memory here.

mod answer;
mod request;
mod route;
mod streamed_body;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::Response;
use tidegate_core::{CallTarget, Caller, Error, ErrorKind, Format};
use tidegate_runtime::event::Event;
use tidegate_runtime::{RequestBodyTypes, TransportGroup};

pub(super) use self::answer::to_problem;
use self::request::DataRequest;
pub(super) use self::request::PARAMETERS;
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
    let types = body_types(http_state, &caller, &route)?;
    let data_request = DataRequest::read(&route, parts, types)?;
    let revalidator = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
    let (target, arguments) = (CallTarget::Tool(route.tool.to_owned()), data_request.arguments.clone());
    let mut call = new_call(target, caller, arguments, Format::Json, &parts.headers);
    if let Some((media_type, coding)) = &data_request.body {
        let options = http_state.reloadable_options();
        call.request_body = Some(body.request_body(media_type, coding.clone(), &options)?);
    }
    let reply = registry.call(call).map_err(to_problem)?;
    let answered = answer::answer(reply, revalidator, &data_request).await;
    answered.map_err(|problem| body.describe_failure(problem))
}

/// The bodies that the tool takes; `None` if it takes none.
fn body_types(
    http_state: &HttpState,
    caller: &Caller,
    route: &DataRoute,
) -> Result<Option<RequestBodyTypes>, ProblemDetails> {
    let DataRoute { tool, database, table, .. } = route;
    let registry = http_state.service.registry();
    let snapshot = registry.snapshot_for(caller);
    let error = match snapshot.tool(tool, caller) {
        Ok(tool) => return Ok(tool.request_body),
        Err(error) => error,
    };
    registry.events().emit(Event::CallRefused { caller, kind: "tool", name: tool, outcome: error.kind().name() });
    if error.kind() != ErrorKind::NotFound {
        return Err(error.into());
    }
    Err(Error::takes_no_rows(database, table).into())
}
