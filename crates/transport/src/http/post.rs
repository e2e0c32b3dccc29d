//! POST: one message of a client, modern or legacy, and its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tidegate_core::{CallOrigin, Caller};
use tidegate_mcp::{
    Answer, AnswerStream, DecodeError, InFlightRequests, IncomingMessage, ListenStream, RequestId, Revision, RpcError,
    RpcNotification, decode,
};

use super::TRACE;
use super::body::BodyError;
use super::identify::{AdmissionError, HttpCallerResolver, RequestCredentials};
use super::replay::{ReplayBuffer, ReplayLost, event_id, replay_body};
use super::response::{
    BoxedResponse, SESSION_ID, accepted, event_stream, json, message_response, no_such_session, refusal, session_id,
    streamed_json, too_many_sessions,
};
use super::session::HttpSession;
use super::sse::EventWriter;
use super::{HttpOptions, HttpState, body, listen, mirrored_headers, sse};
use crate::revalidation::with_callers;
use crate::revalidation::{Revoked, SessionValidity};

/// A caller that was resolved less than this time ago is not resolved again.
const REVALIDATE_AFTER: Duration = Duration::from_millis(10);
/// The parsed head of a request.
struct RequestHead {
    headers: HeaderMap,
    caller: Caller,
    credentials: RequestCredentials,
    accepts_events: bool,
}

pub(super) async fn post(
    State(http_state): State<Arc<HttpState>>,
    Extension(request_credentials): Extension<RequestCredentials>,
    Extension(mut caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let requested = Instant::now();
    let read = read_message(&parts.headers, body, &http_state, request_credentials.origin).await;
    // Reading the body may have taken long, so the permissions of the caller are resolved again.
    if requested.elapsed() > REVALIDATE_AFTER {
        caller = match request_credentials.resolve_caller(&http_state).await {
            Ok(caller) => caller,
            Err(refused) => return refused.to_response(&http_state, request_credentials.origin),
        };
    }
    let head = RequestHead {
        accepts_events: accepts_events(&parts.headers),
        headers: parts.headers,
        caller,
        credentials: request_credentials,
    };
    match read {
        Ok(Ok(IncomingMessage::Request(request))) => answer_request(&http_state, &head, request).await,
        Ok(Ok(IncomingMessage::Notification(notification))) => receive_notification(&http_state, &head, &notification),
        Ok(Ok(IncomingMessage::Response(response))) => receive_response(&http_state, &head, &response),
        Ok(Ok(IncomingMessage::Batch(messages))) => answer_batch(&http_state, &head, messages).await,
        Ok(Err(rejection)) => {
            http_state.report_rejection(head.credentials.origin, &rejection.error.message);
            refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error)
        }
        Err(refusal) => *refusal,
    }
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.contains("text/event-stream"))
}

/// Media types are case-insensitive and may have parameters.
fn is_json(content_type: &HeaderValue) -> bool {
    let media_type = content_type.to_str().ok().and_then(|text| text.split(';').next());
    media_type.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

/// The message in a body, or the response to a body that could not be read.
pub(super) async fn read_message(
    headers: &HeaderMap,
    body: Body,
    http_state: &HttpState,
    origin: CallOrigin,
) -> Result<Result<IncomingMessage, DecodeError>, BoxedResponse> {
    let refuse = |status, message: &str| {
        http_state.report_rejection(origin, message);
        Box::new(refusal(status, None, &RpcError::invalid_request(format!("Invalid request: {message}"))))
    };
    let HttpOptions { body_bytes_max, read_within, .. } = http_state.options;
    if !headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        body::discard(body, read_within).await;
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    match body::read(body, body_bytes_max, read_within).await {
        Ok(bytes) => Ok(decode(&bytes)),
        Err(BodyError::TooLarge) => {
            let message = format!("the body is larger than {body_bytes_max} bytes");
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Err(BodyError::Incomplete) => Err(refuse(StatusCode::BAD_REQUEST, "the body is incomplete")),
        Err(BodyError::TooSlow) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body arrived too slowly")),
    }
}

async fn answer_request(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    mut request: tidegate_mcp::RpcRequest,
) -> Response {
    request.meta.trace |= head.headers.get(TRACE).is_some_and(|value| value == "1");
    let version = head.headers.get(mirrored_headers::PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"));
    let is_modern = request.meta.protocol_version.is_some()
        || version.and_then(Revision::parse).is_some_and(|revision| !revision.is_legacy());
    if is_modern {
        return answer_modern(http_state, head, request).await;
    }
    if let Some(version) = version.filter(|version| Revision::parse(version).is_none()) {
        return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &RpcError::unsupported_version(version));
    }
    if request.method == "initialize" {
        return open_session(http_state, head, &request).await;
    }
    match find_session(http_state, head, &request) {
        Ok(session) => answer_legacy(http_state, head, request, session).await,
        Err(refusal) => *refusal,
    }
}

async fn answer_modern(http_state: &Arc<HttpState>, head: &RequestHead, request: tidegate_mcp::RpcRequest) -> Response {
    let wants_events = head.accepts_events && requests_notifications(&request);
    let peer = http_state.new_peer(&head.caller, None, wants_events);
    let checked = mirrored_headers::check_headers(&head.headers, &request, http_state.service.registry(), &head.caller)
        .and_then(|()| http_state.service.resolve_revision(&request, None));
    if let Err(error) = checked {
        http_state.report_rejection(head.credentials.origin, &error.message);
        return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error);
    }
    let id = request.id.clone();
    let mut validity = HttpCallerResolver::session_validity(http_state, &head.credentials, &head.caller);
    match validity.run_while_valid(http_state.service.answer(request, &peer)).await {
        Err(revoked) => AdmissionError::from(revoked).to_response(http_state, head.credentials.origin),
        Ok(Answer::NoResponse) => accepted(),
        Ok(Answer::Whole(whole)) => message_response(http_state, whole, true),
        Ok(Answer::Listen(stream)) => open_subscription(http_state, head, &id, stream),
        Ok(Answer::Stream(answer)) if wants_events => event_stream(sse::event_stream_body(answer, validity)),
        Ok(Answer::Stream(answer)) => streamed_json(answer, validity),
    }
}

fn open_subscription(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    id: &RequestId,
    stream: ListenStream,
) -> Response {
    listen::open_stream(http_state, &head.caller, &head.credentials, id, head.accepts_events, stream)
}

fn requests_notifications(request: &tidegate_mcp::RpcRequest) -> bool {
    request.meta.progress_token.is_some() || request.meta.log_level.is_some()
}

async fn open_session(http_state: &HttpState, head: &RequestHead, request: &tidegate_mcp::RpcRequest) -> Response {
    let (session, whole) =
        match http_state.service.initialize(request, &head.caller, Arc::new(InFlightRequests::default())).await {
            Ok(opened) => opened,
            Err(error) => return refusal(StatusCode::OK, Some(&request.id), &error),
        };
    let permit = match http_state.acquire_session_permit(&head.caller) {
        Ok(permit) => permit,
        Err(level) => return too_many_sessions(Some(&request.id), level),
    };
    let id = http_state.sessions.open(session, head.caller.principal.clone(), permit);
    let mut response = message_response(http_state, whole, false);
    // An id consists of hexadecimal digits.
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

fn find_session(
    http_state: &HttpState,
    head: &RequestHead,
    request: &tidegate_mcp::RpcRequest,
) -> Result<Arc<HttpSession>, BoxedResponse> {
    let id = session_id(&head.headers, Some(&request.id))?;
    http_state.sessions.get(id, &head.caller.principal).ok_or_else(|| Box::new(no_such_session(Some(&request.id))))
}

async fn answer_legacy(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    request: tidegate_mcp::RpcRequest,
    session: Arc<HttpSession>,
) -> Response {
    let peer = http_state.new_peer(&head.caller, Some(session.session.clone()), head.accepts_events);
    let id = request.id.clone();
    let mut validity = HttpCallerResolver::session_validity(http_state, &head.credentials, &head.caller);
    match validity.run_while_valid(http_state.service.answer(request, &peer)).await {
        Err(revoked) => AdmissionError::from(revoked).to_response(http_state, head.credentials.origin),
        Ok(Answer::NoResponse) => accepted(),
        Ok(Answer::Whole(whole)) => message_response(http_state, whole, false),
        Ok(Answer::Listen(stream)) => open_subscription(http_state, head, &id, stream),
        Ok(Answer::Stream(answer)) if head.accepts_events && answer.may_notify() => {
            stream_resumable(http_state, &session, &id, answer, validity)
        }
        Ok(Answer::Stream(answer)) => streamed_json(answer, validity),
    }
}

/// A legacy event stream. A disconnect does not cancel the call, so the call writes into a buffer in a task of its own,
/// and the response reads from the buffer.
fn stream_resumable(
    http_state: &HttpState,
    session: &HttpSession,
    id: &RequestId,
    answer: Box<AnswerStream>,
    session_validity: SessionValidity,
) -> Response {
    let Some((number, replay)) = session.open_stream() else {
        let error = RpcError::new(RpcError::INTERNAL_ERROR, "this session has too many open event streams");
        return refusal(StatusCode::TOO_MANY_REQUESTS, Some(id), &error);
    };
    let Ok(reader) = replay.read_after(None) else { return accepted() };
    let ended = session.ended.clone();
    let is_primed = session.session.revision() >= Revision::V2025_11_25;
    http_state.tasks.spawn(async move {
        let written = tokio::select! {
            biased;
            () = ended.cancelled() => Ok(()),
            written = write_events(answer, session_validity, number, &replay, is_primed) => written,
        };
        match written {
            Ok(()) => replay.end(),
            Err(ReplayLost) => replay.mark_lost(),
        }
    });
    event_stream(replay_body(reader))
}

async fn write_events(
    mut answer: Box<AnswerStream>,
    mut session_validity: SessionValidity,
    number: u64,
    replay: &ReplayBuffer,
    is_primed: bool,
) -> Result<(), ReplayLost> {
    let mut writer = EventWriter::new();
    let mut event = 0;
    if is_primed {
        replay.push(event, sse::priming_event(&event_id(number, event))).await?;
    }
    // The stored events of a caller that is no longer admitted are discarded.
    while let Some(frame) = session_validity.next_frame(&mut answer).await.map_err(|Revoked| ReplayLost)? {
        if !writer.is_open() {
            event += 1;
        }
        let bytes = writer.encode_frame(frame, Some(&event_id(number, event)));
        replay.push(event, bytes).await?;
    }
    // The event of a response that was cancelled midway stays open: clients discard it.
    match writer.end().filter(|_| answer.is_complete()) {
        Some(bytes) => replay.push(event, bytes).await,
        None => Ok(()),
    }
}

fn receive_notification(http_state: &HttpState, head: &RequestHead, notification: &RpcNotification) -> Response {
    if let Ok(id) = session_id(&head.headers, None) {
        let Some(session) = http_state.sessions.get(id, &head.caller.principal) else { return no_such_session(None) };
        let peer = http_state.new_peer(&head.caller, Some(session.session.clone()), false);
        http_state.service.handle_notification(notification, &peer);
    }
    accepted()
}

/// Handles the response of a client to a server request that was sent on the event stream of its own request.
fn receive_response(http_state: &HttpState, head: &RequestHead, response: &tidegate_mcp::RpcResponse) -> Response {
    if let Ok(id) = session_id(&head.headers, None) {
        let Some(session) = http_state.sessions.get(id, &head.caller.principal) else { return no_such_session(None) };
        http_state
            .service
            .handle_response(response, &http_state.new_peer(&head.caller, Some(session.session.clone()), false));
    }
    accepted()
}

async fn answer_batch(
    endpoint: &Arc<HttpState>,
    head: &RequestHead,
    messages: Vec<Result<IncomingMessage, DecodeError>>,
) -> Response {
    let session = match session_id(&head.headers, None).map(|id| endpoint.sessions.get(id, &head.caller.principal)) {
        Ok(Some(session)) => Some(session.session.clone()),
        Ok(None) => return no_such_session(None),
        // The rejection of the batch says more than a missing session id would.
        Err(_) => None,
    };
    let peer = endpoint.new_peer(&head.caller, session, false);
    let resolver = HttpCallerResolver {
        http_state: endpoint.clone(),
        credentials: head.credentials.clone(),
        owner: head.caller.principal.clone(),
    };
    let messages = with_callers(messages, Arc::new(resolver), head.caller.clone());
    let mut validity = HttpCallerResolver::session_validity(endpoint, &head.credentials, &head.caller);
    match validity.run_while_valid(endpoint.service.answer_batch(messages, &peer)).await {
        Err(revoked) => AdmissionError::from(revoked).to_response(endpoint, head.credentials.origin),
        Ok(Ok(Some(answers))) => json(StatusCode::OK, answers),
        Ok(Ok(None)) => accepted(),
        Ok(Err(error)) => refusal(StatusCode::BAD_REQUEST, None, &error),
    }
}
