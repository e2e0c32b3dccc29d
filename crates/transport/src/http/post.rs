//! POST: one message of a client, modern or legacy, and its answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tidegate_core::{Caller, Origin};
use tidegate_mcp::{
    Answer, AnswerStream, InFlight, Incoming, ListenStream, Notification, Rejection, RequestId, Revision, RpcError,
    decode,
};

use super::body::Unread;
use super::get::{event_id, replayed};
use super::identify::{Known, Refused, Shown};
use super::replay::{Lost, Replay};
use super::response::{accepted, event_stream, json, message, refusal, streamed_json, too_many_sessions};
use super::session::HttpSession;
use super::sse::EventWriter;
use super::{Door, HttpOptions, body, listen, mirror, sse};
use crate::batch::with_callers;
use crate::standing::{Lapsed, Standing};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Of a caller that was asked about so short a time ago nothing else would be heard.
const ASKED_JUST_NOW: Duration = Duration::from_millis(10);
/// `Tidegate-Trace: 1` has everything about the request logged, whatever the level.
pub(super) const TRACE: HeaderName = HeaderName::from_static("tidegate-trace");

/// What the rest of the request needs to know of its head.
struct Head {
    headers: HeaderMap,
    caller: Caller,
    shown: Shown,
    accepts_events: bool,
}

pub(super) async fn post(
    State(door): State<Arc<Door>>,
    Extension(shown): Extension<Shown>,
    Extension(mut caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let asked = Instant::now();
    let read = read_message(&parts.headers, body, &door, shown.origin).await;
    // If the body took its time, what its sender may do is settled now.
    if asked.elapsed() > ASKED_JUST_NOW {
        caller = match shown.caller(&door).await {
            Ok(caller) => caller,
            Err(refused) => return refused.response(&door, shown.origin),
        };
    }
    let head = Head { accepts_events: accepts_events(&parts.headers), headers: parts.headers, caller, shown };
    match read {
        Ok(Ok(Incoming::Request(request))) => answer_request(&door, &head, request).await,
        Ok(Ok(Incoming::Notification(notification))) => hear_notification(&door, &head, &notification),
        Ok(Ok(Incoming::Response(response))) => hear_response(&door, &head, &response),
        Ok(Ok(Incoming::Batch(messages))) => answer_batch(&door, &head, messages).await,
        Ok(Err(rejection)) => {
            door.tell_of_refusal(head.shown.origin, &rejection.error.message);
            refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error)
        }
        Err(refusal) => *refusal,
    }
}

pub(super) type BoxedResponse = Box<Response>;

fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepted.any(|accept| accept.contains("text/event-stream"))
}

/// Media types ignore case and may carry parameters.
fn is_json(content_type: &HeaderValue) -> bool {
    let media_type = content_type.to_str().ok().and_then(|text| text.split(';').next());
    media_type.is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("application/json"))
}

/// The message of a body, or why it was not read.
pub(super) async fn read_message(
    headers: &HeaderMap,
    body: Body,
    door: &Door,
    origin: Origin,
) -> Result<Result<Incoming, Rejection>, BoxedResponse> {
    let refuse = |status, message: &str| {
        door.tell_of_refusal(origin, message);
        Box::new(refusal(status, None, &RpcError::invalid_request(format!("Invalid request: {message}"))))
    };
    let HttpOptions { body_bytes_max, read_within, .. } = door.options;
    if !headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        body::discard(body, read_within).await;
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    match body::read(body, body_bytes_max, read_within).await {
        Ok(bytes) => Ok(decode(&bytes)),
        Err(Unread::TooLarge) => {
            let message = format!("the body is larger than {body_bytes_max} bytes");
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &message))
        }
        Err(Unread::BrokeOff) => Err(refuse(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(Unread::TooSlow) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
    }
}

async fn answer_request(door: &Arc<Door>, head: &Head, mut request: tidegate_mcp::Request) -> Response {
    request.meta.trace |= head.headers.get(TRACE).is_some_and(|value| value == "1");
    let version = head.headers.get(mirror::PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"));
    let is_modern = request.meta.protocol_version.is_some()
        || version.and_then(Revision::parse).is_some_and(|revision| !revision.is_legacy());
    if is_modern {
        return answer_modern(door, head, request).await;
    }
    if let Some(version) = version.filter(|version| Revision::parse(version).is_none()) {
        return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &RpcError::unsupported_version(version));
    }
    if request.method == "initialize" {
        return open_session(door, head, &request).await;
    }
    match find_session(door, head, &request) {
        Ok(session) => answer_legacy(door, head, request, session).await,
        Err(refusal) => *refusal,
    }
}

async fn answer_modern(door: &Arc<Door>, head: &Head, request: tidegate_mcp::Request) -> Response {
    let wants_events = head.accepts_events && wants_notices(&request);
    let peer = door.peer(&head.caller, None, wants_events);
    let checked = mirror::check(&head.headers, &request, door.service.registry(), &head.caller)
        .and_then(|()| door.service.revision_of(&request, None));
    if let Err(error) = checked {
        door.tell_of_refusal(head.shown.origin, &error.message);
        return refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error);
    }
    let id = request.id.clone();
    let mut standing = Known::standing(door, &head.shown, &head.caller);
    match standing.during(door.service.answer(request, &peer)).await {
        Err(lapsed) => Refused::from(lapsed).response(door, head.shown.origin),
        Ok(Answer::Silence) => accepted(),
        Ok(Answer::Whole(whole)) => message(door, whole, true),
        Ok(Answer::Listen(stream)) => open_listening(door, head, &id, stream),
        Ok(Answer::Stream(answer)) if wants_events => event_stream(sse::body(answer, standing)),
        Ok(Answer::Stream(answer)) => streamed_json(answer, standing),
    }
}

fn open_listening(door: &Arc<Door>, head: &Head, id: &RequestId, stream: ListenStream) -> Response {
    listen::open(door, &head.caller, &head.shown, id, head.accepts_events, stream)
}

fn wants_notices(request: &tidegate_mcp::Request) -> bool {
    request.meta.progress_token.is_some() || request.meta.log_level.is_some()
}

async fn open_session(door: &Door, head: &Head, request: &tidegate_mcp::Request) -> Response {
    let (session, whole) = match door.service.initialize(request, &head.caller, Arc::new(InFlight::default())).await {
        Ok(opened) => opened,
        Err(error) => return refusal(StatusCode::OK, Some(&request.id), &error),
    };
    let place = match door.place(&head.caller) {
        Ok(place) => place,
        Err(level) => return too_many_sessions(Some(&request.id), level),
    };
    let id = door.sessions.open(session, head.caller.principal.clone(), place);
    let mut response = message(door, whole, false);
    // An id is hexadecimal digits.
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

/// The name of the session that a request belongs to; 400 when it names none.
pub(super) fn session_id<'a>(headers: &'a HeaderMap, request: Option<&RequestId>) -> Result<&'a str, BoxedResponse> {
    headers.get(SESSION_ID).and_then(|id| id.to_str().ok()).ok_or_else(|| {
        let error = RpcError::invalid_request(
            "the header Mcp-Session-Id is missing: a client of 2025-11-25 or older begins with initialize; \
             one of 2026-07-28 says its version in params._meta",
        );
        Box::new(refusal(StatusCode::BAD_REQUEST, request, &error))
    })
}

/// 404, upon which a client begins a new session.
pub(super) fn no_such_session(request: Option<&RequestId>) -> Response {
    let error = RpcError::invalid_request("the session does not exist or has ended; begin again with initialize");
    refusal(StatusCode::NOT_FOUND, request, &error)
}

fn find_session(door: &Door, head: &Head, request: &tidegate_mcp::Request) -> Result<Arc<HttpSession>, BoxedResponse> {
    let id = session_id(&head.headers, Some(&request.id))?;
    door.sessions.get(id, &head.caller.principal).ok_or_else(|| Box::new(no_such_session(Some(&request.id))))
}

async fn answer_legacy(
    door: &Arc<Door>,
    head: &Head,
    request: tidegate_mcp::Request,
    session: Arc<HttpSession>,
) -> Response {
    let peer = door.peer(&head.caller, Some(session.session.clone()), head.accepts_events);
    let id = request.id.clone();
    let mut standing = Known::standing(door, &head.shown, &head.caller);
    match standing.during(door.service.answer(request, &peer)).await {
        Err(lapsed) => Refused::from(lapsed).response(door, head.shown.origin),
        Ok(Answer::Silence) => accepted(),
        Ok(Answer::Whole(whole)) => message(door, whole, false),
        Ok(Answer::Listen(stream)) => open_listening(door, head, &id, stream),
        Ok(Answer::Stream(answer)) if head.accepts_events && answer.may_notify() => {
            resumable(door, &session, &id, answer, standing)
        }
        Ok(Answer::Stream(answer)) => streamed_json(answer, standing),
    }
}

/// A legacy event stream: a disconnect is no cancellation, so the call writes into a buffer on a
/// task of its own, and the response reads from there.
fn resumable(
    door: &Door,
    session: &HttpSession,
    id: &RequestId,
    answer: Box<AnswerStream>,
    standing: Standing,
) -> Response {
    let Some((number, replay)) = session.open_stream() else {
        let error = RpcError::new(RpcError::INTERNAL_ERROR, "too many event streams of this session are open");
        return refusal(StatusCode::TOO_MANY_REQUESTS, Some(id), &error);
    };
    let Ok(reader) = replay.read_after(None) else { return accepted() };
    let ended = session.ended.clone();
    let is_primed = session.session.revision() >= Revision::V2025_11_25;
    door.tasks.spawn(async move {
        let written = tokio::select! {
            biased;
            () = ended.cancelled() => Ok(()),
            written = write_events(answer, standing, number, &replay, is_primed) => written,
        };
        match written {
            Ok(()) => replay.end(),
            Err(Lost) => replay.lose(),
        }
    });
    event_stream(replayed(reader))
}

async fn write_events(
    mut answer: Box<AnswerStream>,
    mut standing: Standing,
    number: u64,
    replay: &Replay,
    is_primed: bool,
) -> Result<(), Lost> {
    let mut writer = EventWriter::new();
    let mut event = 0;
    if is_primed {
        replay.push(event, sse::priming_event(&event_id(number, event))).await?;
    }
    // What was kept for one who is let in no longer is lost to it.
    while let Some(frame) = standing.next(&mut answer).await.map_err(|Lapsed| Lost)? {
        if !writer.is_open() {
            event += 1;
        }
        let bytes = writer.frame(frame, Some(&event_id(number, event)));
        replay.push(event, bytes).await?;
    }
    // The event of a response that was cancelled half-way stays open: clients drop it.
    match writer.end().filter(|_| answer.is_complete()) {
        Some(bytes) => replay.push(event, bytes).await,
        None => Ok(()),
    }
}

fn hear_notification(door: &Door, head: &Head, notification: &Notification) -> Response {
    if let Ok(id) = session_id(&head.headers, None) {
        let Some(session) = door.sessions.get(id, &head.caller.principal) else { return no_such_session(None) };
        let peer = door.peer(&head.caller, Some(session.session.clone()), false);
        door.service.notified(notification, &peer);
    }
    accepted()
}

/// What a client answers to a request of ours, which it read on the event stream of its own request.
fn hear_response(door: &Door, head: &Head, response: &tidegate_mcp::Response) -> Response {
    if let Ok(id) = session_id(&head.headers, None) {
        let Some(session) = door.sessions.get(id, &head.caller.principal) else { return no_such_session(None) };
        door.service.answered(response, &door.peer(&head.caller, Some(session.session.clone()), false));
    }
    accepted()
}

async fn answer_batch(door: &Arc<Door>, head: &Head, messages: Vec<Result<Incoming, Rejection>>) -> Response {
    let session = match session_id(&head.headers, None).map(|id| door.sessions.get(id, &head.caller.principal)) {
        Ok(Some(session)) => Some(session.session.clone()),
        Ok(None) => return no_such_session(None),
        // The refusal of batches says more than that of a session that is not named.
        Err(_) => None,
    };
    let peer = door.peer(&head.caller, session, false);
    let known = Known { door: door.clone(), shown: head.shown.clone(), owner: head.caller.principal.clone() };
    let messages = with_callers(messages, Arc::new(known), head.caller.clone());
    let mut standing = Known::standing(door, &head.shown, &head.caller);
    match standing.during(door.service.answer_batch(messages, &peer)).await {
        Err(lapsed) => Refused::from(lapsed).response(door, head.shown.origin),
        Ok(Ok(Some(answers))) => json(StatusCode::OK, answers),
        Ok(Ok(None)) => accepted(),
        Ok(Err(error)) => refusal(StatusCode::BAD_REQUEST, None, &error),
    }
}
