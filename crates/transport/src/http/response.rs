//! Answers as HTTP responses.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use tidegate_core::{CallOrigin, LimitLevel, TransportKind};
use tidegate_mcp::{CallRejection, RequestId, ResponseFrame, ResponseMessage, ResponseStream, RpcError};
use tidegate_runtime::TransportGroup;

use super::answer::ProblemDetails;
use super::body::{REVOKED_REASON, broken_body_error};
use super::protected_resource::{Challenge, SharedProtectedResource};
use super::state::HttpState;
use crate::revalidation::{CallerRevalidator, Revoked};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The response to a request that is not processed further; boxed, because results carry it.
#[derive(Debug)]
pub(super) struct RefusalResponse(Box<Response>);

impl From<Response> for RefusalResponse {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for RefusalResponse {
    fn into_response(self) -> Response {
        *self.0
    }
}

pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

pub(super) fn refusal(status: StatusCode, id: Option<&RequestId>, error: &RpcError) -> Response {
    json(status, error.to_bytes(id))
}

/// The response to a request that is refused before its endpoint: a problem over REST, a JSON-RPC error over MCP.
pub(super) fn refused_request(http_state: &HttpState, origin: CallOrigin, problem: ProblemDetails) -> Response {
    http_state.report_rejection(origin, problem.detail());
    match origin.transport {
        TransportKind::Rest => problem.into_response(http_state),
        _ => refusal(problem.status(), None, &RpcError::invalid_request(problem.detail())),
    }
}

/// 503 for a caller that may not open more sessions, because the limit at `level` is reached.
pub(super) fn too_many_sessions(id: Option<&RequestId>, level: LimitLevel) -> Response {
    let subject = match level {
        LimitLevel::Principal => "you have",
        LimitLevel::Tenant => "your tenant has",
        LimitLevel::Tool | LimitLevel::Node => "there are",
    };
    let error = RpcError::new(RpcError::INTERNAL_ERROR, format!("{subject} too many open sessions; try again later"));
    refusal(StatusCode::SERVICE_UNAVAILABLE, id, &error)
}

/// 503 while an operator has stopped MCP. Cancellations and responses of clients pass, because running calls need them.
pub(super) fn require_mcp(http_state: &HttpState, id: Option<&RequestId>) -> Result<(), RefusalResponse> {
    let running = http_state.service.registry().transport_switches().require_running(TransportGroup::Mcp);
    running.map_err(|error| {
        let error = RpcError::new(RpcError::INTERNAL_ERROR, error.to_string());
        refusal(StatusCode::SERVICE_UNAVAILABLE, id, &error).into()
    })
}

/// The id of the session that a request belongs to; 400 if it has none.
pub(super) fn session_id<'a>(headers: &'a HeaderMap, request: Option<&RequestId>) -> Result<&'a str, RefusalResponse> {
    headers.get(SESSION_ID).and_then(|id| id.to_str().ok()).ok_or_else(|| {
        let error = RpcError::invalid_request(
            "the header Mcp-Session-Id is missing: clients of 2025-11-25 or older start with initialize; \
             clients of 2026-07-28 declare their version in params._meta",
        );
        refusal(StatusCode::BAD_REQUEST, request, &error).into()
    })
}

/// 404, which makes a client start a new session.
pub(super) fn no_such_session(request: Option<&RequestId>) -> Response {
    let error = RpcError::invalid_request("the session does not exist or has ended; open a new one with initialize");
    refusal(StatusCode::NOT_FOUND, request, &error)
}

/// Some older clients abandon their session on any other status than one that requests authentication.
pub(super) fn message_response(
    published: &SharedProtectedResource,
    message: ResponseMessage,
    is_modern: bool,
) -> Response {
    if let Some(rejection) = &message.rejection {
        return rejected_response(published, rejection, message.bytes, is_modern);
    }
    let status = match message.error_code {
        Some(RpcError::METHOD_NOT_FOUND) if is_modern => StatusCode::NOT_FOUND,
        Some(RpcError::MISSING_CLIENT_CAPABILITY) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json(status, message.bytes)
}

/// A rejected call, with the status and headers that HTTP has for it.
fn rejected_response(
    published: &SharedProtectedResource,
    rejection: &CallRejection,
    bytes: Bytes,
    is_modern: bool,
) -> Response {
    let (status, field) = match rejection {
        // Without published metadata, a challenge is useless.
        CallRejection::Unauthenticated { scopes } if published.is_published() => {
            let challenge = Challenge::Missing { scopes: scopes.clone() };
            (StatusCode::UNAUTHORIZED, Some((header::WWW_AUTHENTICATE, published.challenge_header(&challenge))))
        }
        CallRejection::InsufficientScope(scopes) => {
            let challenge = Challenge::Scopes(scopes.clone());
            (StatusCode::FORBIDDEN, Some((header::WWW_AUTHENTICATE, published.challenge_header(&challenge))))
        }
        CallRejection::RateLimited { retry_after } if is_modern => {
            (StatusCode::TOO_MANY_REQUESTS, Some((header::RETRY_AFTER, retry_after_value(*retry_after))))
        }
        CallRejection::Unauthenticated { .. } | CallRejection::RateLimited { .. } => (StatusCode::OK, None),
    };
    let mut response = json(status, bytes);
    response.headers_mut().extend(field);
    response
}

/// `time` as the value of `Retry-After`: whole seconds, rounded up; one second if it is unknown.
pub(super) fn retry_after_value(time: Option<Duration>) -> HeaderValue {
    let seconds = time.map_or(1, |time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
    HeaderValue::from(seconds.max(1))
}

/// 202 without a body.
pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A streamed answer as one chunked JSON object without notifications; it breaks when its caller is no longer admitted.
pub(super) fn streamed_json(answer: Box<ResponseStream>, revalidator: CallerRevalidator) -> Response {
    let pieces = stream::unfold(Some((answer, revalidator)), |streaming| async move {
        let (mut answer, mut revalidator) = streaming?;
        loop {
            match revalidator.next_frame(&mut answer).await {
                Ok(Some(ResponseFrame::ResponseBytes(piece))) => {
                    return Some((Ok(piece), Some((answer, revalidator))));
                }
                Ok(Some(ResponseFrame::Notification(_))) => {}
                Ok(None) => return None,
                Err(Revoked) => return Some((Err(broken_body_error(REVOKED_REASON).await), None)),
            }
        }
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

pub(super) fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}
