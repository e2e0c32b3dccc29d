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
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use tidegate_core::{CallTarget, Caller, Error, ErrorKind, Format, TransportKind};
use tidegate_runtime::event::Event;
use tidegate_runtime::{Call, RequestBodyTypes, TransportGroup};

pub(super) use self::answer::to_problem;
use self::request::DataRequest;
pub(super) use self::request::PARAMETERS;
use self::route::DataRoute;
use self::route::METHODS;
pub(super) use self::route::tool_for;
pub(super) use self::streamed_body::StreamedBody;
use super::answer::{ProblemDetails, ProblemType, apply_trace_headers, into_response, options_response};
use super::body;
use super::caller::{HttpCallerResolver, RequestCredentials};
use super::state::{HttpState, PeerAddress};

pub(super) async fn answer(State(http_state): State<Arc<HttpState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = StreamedBody::new(body);
    let result = respond(&http_state, &parts, &body).await;
    let result = match result {
        Ok(response) => Ok(response),
        Err(problem) => {
            // So that the client reads the refusal, and the connection can be reused. A client that waits for
            // `100 Continue` sends nothing after the refusal.
            if body.was_read() || !expects_continue(&parts) {
                body::discard(body.take(), http_state.options.read_within).await;
            }
            Err(problem)
        }
    };
    into_response(&http_state, PeerAddress::from_extensions(&parts.extensions), result)
}

async fn respond(http_state: &Arc<HttpState>, parts: &Parts, body: &StreamedBody) -> Result<Response, ProblemDetails> {
    let route = DataRoute::parse(parts.uri.path())?;
    let allowed = HeaderValue::from_static(METHODS);
    if parts.method == Method::OPTIONS {
        return Ok(options_response(allowed));
    }
    let Some(tool) = tool_for(&parts.method) else {
        let method = &parts.method;
        let detail = format!("{method} is not supported here; supported methods: {METHODS}");
        return Err(ProblemDetails::new(ProblemType::MethodNotAllowed, detail).with_allow(allowed));
    };
    let registry = http_state.service.registry();
    registry.transport_switches().require_running(TransportGroup::Rest)?;
    let credentials =
        RequestCredentials::from_request(http_state, &parts.headers, &parts.extensions, TransportKind::Rest, None);
    let caller = credentials.resolve_caller(http_state).await?;
    registry.admit_request(&caller).await?;
    let types = body_types(http_state, &caller, tool, &route)?;
    let data_request = DataRequest::read(&route, parts, types)?;
    let validity = HttpCallerResolver::new(http_state, credentials, &caller).into_revalidator();
    let mut call = Call::new(CallTarget::Tool(tool.to_owned()), caller);
    call.arguments = data_request.arguments.clone();
    call.format = Some(Format::Json);
    apply_trace_headers(&mut call, &parts.headers);
    if let Some((media_type, coding)) = &data_request.body {
        let options = http_state.reloadable_options();
        call.request_body = Some(body.request_body(media_type, coding.clone(), &options)?);
    }
    let reply = registry.call(call).map_err(to_problem)?;
    let answered = answer::answer(reply, validity, &data_request).await;
    answered.map_err(|problem| body.describe_failure(problem))
}

/// [RFC 9110, Expect](https://www.rfc-editor.org/rfc/rfc9110#section-10.1.1)
pub(super) fn expects_continue(parts: &Parts) -> bool {
    parts.headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The bodies that `tool` takes; `None` if it takes none.
fn body_types(
    http_state: &HttpState,
    caller: &Caller,
    tool: &'static str,
    route: &DataRoute,
) -> Result<Option<RequestBodyTypes>, ProblemDetails> {
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
    let DataRoute { database, table } = route;
    Err(Error::takes_no_rows(database, table).into())
}
