//! POST: one message of a client, modern or legacy, and its answer.
//!
//! The headers of a modern request mirror its body so that a proxy can route it: both must agree.
//!
//! [MCP 2026-07-28, Request Metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata)

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::{CallOrigin, Caller};
use tidegate_mcp::{
    DecodeError, InFlightRequests, IncomingMessage, RequestContext, RequestId, ResponseStream, Revision, RpcAnswer,
    RpcError, RpcRequest, decode, needs_session,
};
use tidegate_runtime::Registry;

use super::answer::{ProblemDetails, ProblemType};
use super::caller::{AuthenticatedRequest, CallerError, HttpCallerResolver, REVALIDATE_AFTER, RequestCredentials};
use super::response::{
    RefusalResponse, SESSION_ID, accepted, event_stream, json, message_response, no_such_session, refusal, require_mcp,
    session_id, streamed_json,
};
use super::session::HttpSession;
use super::sse::{self, EventWriter, ReplayBuffer, ReplayLost, event_id, replay_body};
use super::state::{HttpOptions, HttpState, TRACE};
use super::{body, listen};
use crate::revalidation::{CallerRevalidator, Revoked, with_callers};

struct RequestHead {
    headers: HeaderMap,
    caller: Caller,
    credentials: RequestCredentials,
    accepts_events: bool,
}

impl RequestHead {
    fn revalidator(&self, http_state: &Arc<HttpState>) -> CallerRevalidator {
        HttpCallerResolver::new(http_state, self.credentials.clone(), &self.caller).into_revalidator()
    }

    fn session(&self, http_state: &HttpState, id: Option<&RequestId>) -> Result<Arc<HttpSession>, RefusalResponse> {
        let session = http_state.sessions.get(session_id(&self.headers, id)?, &self.caller.principal);
        session.ok_or_else(|| no_such_session(id).into())
    }

    /// The context of a notification or response; `None` if it names no session.
    fn session_context(&self, http_state: &HttpState) -> Result<Option<RequestContext>, RefusalResponse> {
        if session_id(&self.headers, None).is_err() {
            return Ok(None);
        }
        let session = self.session(http_state, None)?;
        Ok(Some(http_state.request_context(&self.caller, Some(&session.session), false)))
    }
}

pub(super) async fn post(
    State(http_state): State<Arc<HttpState>>,
    AuthenticatedRequest { mut caller, credentials, request }: AuthenticatedRequest,
) -> Result<Response, RefusalResponse> {
    let (parts, body) = request.into_parts();
    let requested = Instant::now();
    let message = read_message(&parts.headers, body, &http_state, credentials.origin).await;
    // Reading the body may have taken long, so the permissions of the caller are resolved again.
    if requested.elapsed() > REVALIDATE_AFTER {
        let resolved = credentials.resolve_caller(&http_state).await;
        caller = resolved.map_err(|refused| refused.to_response(&http_state, credentials.origin))?;
    }
    let accepts_events = accepts_events(&parts.headers);
    let head = RequestHead { accepts_events, headers: parts.headers, caller, credentials };
    match message? {
        Ok(IncomingMessage::Request(request)) => answer_request(&http_state, &head, request).await,
        Ok(IncomingMessage::Notification(notification)) => {
            if let Some(context) = head.session_context(&http_state)? {
                http_state.service.handle_notification(&notification, &context);
            }
            Ok(accepted())
        }
        // The response to a server request that was sent on the event stream of the client's own request.
        Ok(IncomingMessage::Response(response)) => {
            if let Some(context) = head.session_context(&http_state)? {
                http_state.service.handle_response(&response, &context);
            }
            Ok(accepted())
        }
        Ok(IncomingMessage::RpcBatch(messages)) => Box::pin(answer_rpc_batch(&http_state, &head, messages)).await,
        Err(rejection) => {
            http_state.report_rejection(head.credentials.origin, &rejection.error.message);
            Err(refusal(StatusCode::BAD_REQUEST, rejection.id.as_ref(), &rejection.error).into())
        }
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
) -> Result<Result<IncomingMessage, DecodeError>, RefusalResponse> {
    let refuse = |problem: ProblemDetails| {
        http_state.report_rejection(origin, problem.detail());
        let error = RpcError::invalid_request(format!("Invalid request: {}", problem.detail()));
        RefusalResponse::from(refusal(problem.status(), None, &error))
    };
    let HttpOptions { body_bytes_max, read_within, .. } = *http_state.reloadable_options();
    if !headers.get(header::CONTENT_TYPE).is_some_and(is_json) {
        body::discard(body, read_within).await;
        let detail = "Content-Type must be application/json";
        return Err(refuse(ProblemDetails::new(ProblemType::UnsupportedMediaType, detail)));
    }
    body::read(body, body_bytes_max, read_within).await.map(|bytes| decode(&bytes)).map_err(refuse)
}

async fn answer_request(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    mut request: RpcRequest,
) -> Result<Response, RefusalResponse> {
    require_mcp(http_state, Some(&request.id))?;
    request.meta.trace |= head.headers.get(TRACE).is_some_and(|value| value == "1");
    let version = head.headers.get(PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"));
    let revision = version.and_then(Revision::parse);
    if request.meta.protocol_version.is_some() || revision.is_some_and(|revision| !revision.is_legacy()) {
        return answer_modern(http_state, head, request).await;
    }
    if let Some(version) = version.filter(|_| revision.is_none()) {
        let error = RpcError::unsupported_version(version);
        return Err(refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error).into());
    }
    if request.method == "initialize" {
        return open_session(http_state, head, &request).await;
    }
    if !head.headers.contains_key(SESSION_ID) && !needs_session(&request.method) {
        // Clients before 2025-06-18 send no version; the specification assumes their newest revision.
        let revision = revision.unwrap_or(Revision::V2025_03_26);
        return answer_in_revision(http_state, head, request, revision, None, false).await;
    }
    let session = head.session(http_state, Some(&request.id))?;
    answer_in_revision(http_state, head, request, session.session.revision(), Some(session), head.accepts_events).await
}

async fn answer_modern(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    request: RpcRequest,
) -> Result<Response, RefusalResponse> {
    let requests_notifications = request.meta.progress_token.is_some() || request.meta.log_level.is_some();
    let wants_events = head.accepts_events && requests_notifications;
    let checked = check_headers(&head.headers, &request, http_state.service.registry(), &head.caller)
        .and_then(|()| http_state.service.resolve_revision(&request, None));
    let revision = checked.map_err(|error| {
        http_state.report_rejection(head.credentials.origin, &error.message);
        refusal(StatusCode::BAD_REQUEST, Some(&request.id), &error)
    })?;
    answer_in_revision(http_state, head, request, revision, None, wants_events).await
}

async fn answer_in_revision(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    request: RpcRequest,
    revision: Revision,
    session: Option<Arc<HttpSession>>,
    wants_events: bool,
) -> Result<Response, RefusalResponse> {
    let id = request.id.clone();
    let mcp_session = session.as_ref().map(|session| &session.session);
    let context = http_state.request_context(&head.caller, mcp_session, wants_events);
    let mut revalidator = None;
    let mut answering = pin!(http_state.service.answer_in_revision(request, revision, &context));
    let answer = tokio::select! {
        biased;
        answer = answering.as_mut() => Ok(answer),
        // Not created for an answer that is ready at once: the caller was resolved a moment ago.
        revoked = async { revalidator.insert(head.revalidator(http_state)).revoked().await } => Err(revoked),
    };
    let revalidator = || revalidator.unwrap_or_else(|| head.revalidator(http_state));
    match (answer.map_err(|revoked| revoked_response(http_state, head, revoked))?, session) {
        (RpcAnswer::NoResponse, _) => Ok(accepted()),
        (RpcAnswer::Whole(whole), _) => {
            Ok(message_response(&http_state.options.protected_resource, whole, !revision.is_legacy()))
        }
        (RpcAnswer::Listen(listening), _) => {
            listen::open_stream(http_state, &head.caller, &head.credentials, &id, head.accepts_events, listening)
        }
        (RpcAnswer::Stream(answer), Some(session)) if wants_events && answer.may_notify() => {
            stream_resumable(http_state, session, &id, answer, revalidator())
        }
        (RpcAnswer::Stream(answer), None) if wants_events => {
            Ok(event_stream(sse::event_stream_body(answer, revalidator())))
        }
        (RpcAnswer::Stream(answer), _) => Ok(streamed_json(answer, revalidator())),
    }
}

fn revoked_response(http_state: &HttpState, head: &RequestHead, revoked: Revoked) -> Response {
    CallerError::from(revoked).to_response(http_state, head.credentials.origin)
}

async fn open_session(
    http_state: &HttpState,
    head: &RequestHead,
    request: &RpcRequest,
) -> Result<Response, RefusalResponse> {
    let initialized = http_state.service.initialize(request, &head.caller, Arc::new(InFlightRequests::default())).await;
    let (session, whole) = initialized.map_err(|error| refusal(StatusCode::OK, Some(&request.id), &error))?;
    let permit = http_state.acquire_session_permit(&head.caller, Some(&request.id))?;
    let id = http_state.sessions.open(session, head.caller.principal.clone(), permit);
    let mut response = message_response(&http_state.options.protected_resource, whole, false);
    // An id consists of hexadecimal digits.
    response.headers_mut().extend(HeaderValue::from_str(&id).map(|id| (SESSION_ID, id)));
    Ok(response)
}

/// A disconnect does not cancel the call: it writes into a buffer in a task of its own, which the response reads.
fn stream_resumable(
    http_state: &HttpState,
    session: Arc<HttpSession>,
    id: &RequestId,
    answer: Box<ResponseStream>,
    revalidator: CallerRevalidator,
) -> Result<Response, RefusalResponse> {
    let (number, replay) = session.open_stream().ok_or_else(|| {
        let error = RpcError::new(RpcError::INTERNAL_ERROR, "this session has too many open event streams");
        refusal(StatusCode::TOO_MANY_REQUESTS, Some(id), &error)
    })?;
    let Ok(reader) = replay.read_after(None) else { return Ok(accepted()) };
    let ended = session.ended.clone();
    // A session whose call has just ended is not the one that is unused for the longest time.
    let used_by = session.clone();
    let is_primed = session.session.revision() >= Revision::V2025_11_25;
    http_state.tasks.spawn(async move {
        let writing = write_events(answer, revalidator, number, &replay, is_primed);
        match ended.run_until_cancelled(writing).await.unwrap_or(Ok(())) {
            Ok(()) => replay.end(),
            Err(ReplayLost) => replay.mark_lost(),
        }
        used_by.touch();
    });
    Ok(event_stream(replay_body(reader, session)))
}

async fn write_events(
    mut answer: Box<ResponseStream>,
    mut revalidator: CallerRevalidator,
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
    while let Some(frame) = revalidator.next_frame(&mut answer).await.map_err(|Revoked| ReplayLost)? {
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

async fn answer_rpc_batch(
    http_state: &Arc<HttpState>,
    head: &RequestHead,
    messages: Vec<Result<IncomingMessage, DecodeError>>,
) -> Result<Response, RefusalResponse> {
    require_mcp(http_state, None)?;
    // If the session id is missing, the rejection of the JSON-RPC batch is the more useful error.
    let without_session = || http_state.request_context(&head.caller, None, false);
    let context = head.session_context(http_state)?.unwrap_or_else(without_session);
    let resolver = HttpCallerResolver::new(http_state, head.credentials.clone(), &head.caller);
    let messages = with_callers(messages, Arc::new(resolver), head.caller.clone());
    let answers = http_state.service.answer_rpc_batch(messages, &context);
    match head.revalidator(http_state).run_while_valid(answers).await {
        Err(revoked) => Err(revoked_response(http_state, head, revoked).into()),
        Ok(Ok(Some(answers))) => Ok(json(StatusCode::OK, answers)),
        Ok(Ok(None)) => Ok(accepted()),
        Ok(Err(error)) => Err(refusal(StatusCode::BAD_REQUEST, None, &error).into()),
    }
}

const PROTOCOL_VERSION: &str = "mcp-protocol-version";

const DEPTH_MAX: usize = 16;

#[derive(Deserialize)]
struct MirroredParams {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "taskId")]
    task_id: Option<String>,
    arguments: Option<Box<RawValue>>,
}

fn check_headers(
    headers: &HeaderMap,
    request: &RpcRequest,
    registry: &Registry,
    caller: &Caller,
) -> Result<(), RpcError> {
    let version = require_header(headers, "MCP-Protocol-Version")?;
    if let Some(in_body) = request.meta.protocol_version.as_deref().filter(|in_body| *in_body != version) {
        return Err(mismatch_error("MCP-Protocol-Version", version, in_body));
    }
    let method = require_header(headers, "Mcp-Method")?;
    if method != request.method {
        return Err(mismatch_error("Mcp-Method", method, &request.method));
    }
    let read_name = match request.method.as_str() {
        "tools/call" | "prompts/get" => |body: &MirroredParams| body.name.clone(),
        "resources/read" => |body: &MirroredParams| body.uri.clone(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => |body: &MirroredParams| body.task_id.clone(),
        _ => return Ok(()),
    };
    let body: MirroredParams = request.params()?;
    let name = decode_value("Mcp-Name", require_header(headers, "Mcp-Name")?)?;
    let in_body = read_name(&body).unwrap_or_default();
    if name != in_body {
        return Err(mismatch_error("Mcp-Name", &name, &in_body));
    }
    if request.method == "tools/call"
        && let Ok(tool) = registry.snapshot_for(caller).tool(&in_body, caller)
    {
        check_parameters(headers, tool.input_schema.json(), body.arguments.as_deref())?;
    }
    Ok(())
}

/// Checks `Mcp-Param-*` for the properties that the schema marks. Most schemas mark none: no arguments are parsed.
fn check_parameters(headers: &HeaderMap, schema: &Value, arguments: Option<&RawValue>) -> Result<(), RpcError> {
    let mut marked = Vec::new();
    collect_marked_properties(schema, &mut Vec::new(), &mut marked);
    if marked.is_empty() {
        return Ok(());
    }
    let arguments: Value = serde_json::from_str(arguments.map_or("null", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("invalid arguments: {error}")))?;
    for (path, header) in marked {
        let value = path.iter().fold(&arguments, |value, name| value.get(name).unwrap_or(&Value::Null));
        check_parameter(headers, &format!("Mcp-Param-{header}"), value)?;
    }
    Ok(())
}

/// The paths of the properties with `x-mcp-header`, reached through `properties` only.
fn collect_marked_properties<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    marked: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        path.push(name);
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            marked.push((path.clone(), header));
        }
        if path.len() < DEPTH_MAX {
            collect_marked_properties(property, path, marked);
        }
        path.pop();
    }
}

fn check_parameter(headers: &HeaderMap, header: &str, value: &Value) -> Result<(), RpcError> {
    let in_body = match value {
        // Lists and objects have no header form.
        Value::Null | Value::Array(_) | Value::Object(_) if headers.contains_key(header) => {
            return Err(RpcError::header_mismatch(format!("{header} is given, but the body has no such value")));
        }
        Value::Null | Value::Array(_) | Value::Object(_) => return Ok(()),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let in_header = decode_value(header, require_header(headers, header)?)?;
    if in_header == in_body || (value.is_number() && are_equal_numbers(&in_header, &in_body)) {
        return Ok(());
    }
    Err(mismatch_error(header, &in_header, &in_body))
}

/// `42.0` equals `42`. Integers are compared exactly: above 2^53 a float stands for several.
fn are_equal_numbers(in_header: &str, in_body: &str) -> bool {
    if let (Ok(in_header), Ok(in_body)) = (in_header.parse::<i128>(), in_body.parse::<i128>()) {
        return in_header == in_body;
    }
    in_header.parse::<f64>().is_ok_and(|in_header| in_body.parse() == Ok(in_header))
}

fn require_header<'a>(headers: &'a HeaderMap, header: &str) -> Result<&'a str, RpcError> {
    let missing = || RpcError::header_mismatch(format!("the header {header} is missing"));
    let mut values = headers.get_all(header).iter();
    let value = values.next().ok_or_else(missing)?;
    if values.next().is_some() {
        // A proxy may have routed by another value.
        return Err(RpcError::header_mismatch(format!("the header {header} is given more than once")));
    }
    value.to_str().map_err(|_| RpcError::header_mismatch(format!("the header {header} contains non-ASCII characters")))
}

/// Decodes `=?base64?…?=`; other values are literal.
fn decode_value(header: &str, value: &str) -> Result<String, RpcError> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = STANDARD.decode(encoded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| RpcError::header_mismatch(format!("the header {header} is not Base64 of UTF-8")))
}

fn mismatch_error(header: &str, in_header: &str, in_body: &str) -> RpcError {
    RpcError::header_mismatch(format!("Header mismatch: {header} is {in_header:?}, but the body has {in_body:?}"))
}
