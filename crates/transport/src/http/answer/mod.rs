//! What the answers of REST and of stored results share: problems, formats, headers and bodies.

mod accept;
mod answer_body;
mod answer_headers;
mod content_writer;
mod parameter;
mod problem;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use headers::{ETag, HeaderMapExt, IfNoneMatch};
use http_body::Frame;
use serde_json::{Map, Value};
use tidegate_core::{CallOrigin, CallTarget, Caller, Format, TransportKind};
use tidegate_runtime::Call;

pub(super) use self::accept::{Accept, parse_quality};
pub(super) use self::answer_body::{AnswerBody, AnswerStart, begin_response, next_part};
pub(super) use self::answer_headers::{ROWS, add_job_header, add_missing_nodes_header, describe};
pub(super) use self::content_writer::ContentWriter;
pub(super) use self::parameter::{
    FORMAT, ParameterKind, QueryParameter, parse_parameters, parse_query, require_no_parameters,
};
pub use self::problem::problem_types;
pub(super) use self::problem::{PROBLEM_MEDIA_TYPE, ProblemDetails, ProblemType, TYPE_PREFIX};
use super::endpoints::Endpoint;
use super::state::{HttpState, TRACE};

/// [W3C Trace Context](https://www.w3.org/TR/trace-context/#traceparent-header)
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// Which sites may load an answer without CORS: a GET by another site's page has no `Origin` that could be rejected.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The final response: reports refusals, and prevents other sites from loading the answer.
pub(super) fn into_response(
    http_state: &HttpState,
    peer: Option<IpAddr>,
    result: Result<Response, ProblemDetails>,
) -> Response {
    let mut response = result.unwrap_or_else(|problem| {
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

pub(super) fn options_response(endpoint: &Endpoint) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, endpoint.allow_header());
    response
}

/// A call with the trace that the headers of its request state.
pub(super) fn new_call(
    target: CallTarget,
    caller: Caller,
    arguments: Map<String, Value>,
    format: Format,
    headers: &HeaderMap,
) -> Call {
    let mut call = Call::new(target, caller);
    (call.arguments, call.format) = (arguments, Some(format));
    call.trace = headers.get(TRACE).is_some_and(|value| value == "1");
    let trace_parent = headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    call.trace_parent = trace_parent.filter(|value| tidegate_mcp::is_trace_parent(value)).map(str::to_owned);
    call
}

/// `None` if a header may not have the characters of `opaque`. Weak tags mean equivalent content, not equal bytes.
pub(super) fn entity_tag(opaque: &str, is_weak: bool) -> Option<ETag> {
    format!("{}\"{opaque}\"", if is_weak { "W/" } else { "" }).parse().ok()
}

/// Whether the client has the version with `tag`, or any version if it sends `*`.
pub(super) fn matches_none_match(headers: &HeaderMap, tag: Option<&ETag>) -> bool {
    let Some(tags) = headers.typed_get::<IfNoneMatch>() else { return false };
    tag.map_or(tags == IfNoneMatch::any(), |tag| !tags.precondition_passes(tag))
}

pub(super) fn not_modified() -> Response {
    let mut response = Response::new(Body::new(UnsentBody));
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// A body without a known length: otherwise `Content-Length` would be 0, although it describes the client's version.
struct UnsentBody;

impl http_body::Body for UnsentBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}
