//! Reads what the server sends: the response to a POST, which is one JSON document, an event stream or a refusal, and by GET
//! the messages that belong to a legacy session but to no request.
//!
//! [Server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html),
//! [MCP 2025-11-25, Listening for Messages from the Server](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#listening-for-messages-from-the-server)

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::{Error, Sse, SseByteStream};
use tidegate_core::Backoff;
use tidegate_http_client::innermost_cause;

use super::super::request::{BridgeError, ClientRequest};
use super::super::server_message::{MessageMeter, MessageShape, ReceiveError, ReceivedMessage, receive_body};
use super::super::{BridgeNotice, reconnection_backoff};
use super::{HandshakeState, HttpTransport, NegotiatedSession, headers};
use crate::server::{BearerToken, ServerMessage, ServerRefusal, read_refusal, sanitize};

const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct ErrorResponse<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

impl HttpTransport {
    /// The answer to `request`. Messages of the server before it go to the client immediately.
    pub(super) async fn read_answer(
        &self,
        response: Response,
        request: &ClientRequest,
    ) -> Result<ReceivedMessage, BridgeError> {
        let status = response.status();
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_for_the_caller = !matches!(status.as_u16(), 300..=399 | 401 | 403);
        match media_type.as_str() {
            "text/event-stream" if status.is_success() => self.read_events(response, request).await,
            "application/json" if is_for_the_caller => self.read_json(response, request).await,
            _ if status.is_success() => Err(invalid_answer(&format!(
                "it has the status {status} and the type {media_type:?}, but must be JSON or an event stream"
            ))),
            _ => {
                let body = read_refusal(response, REFUSAL_WITHIN).await;
                let secret = self.options.bearer.as_ref().map(BearerToken::token);
                Err(self.error_for_status(status, ServerMessage::from_body(&body, secret)))
            }
        }
    }

    async fn read_json(&self, response: Response, request: &ClientRequest) -> Result<ReceivedMessage, BridgeError> {
        let status = response.status();
        let message = receive_body(response, &self.meter()).await.map_err(BridgeError::from);
        match message.and_then(|message| validate_answer(message, request)) {
            // A body that is not an answer adds nothing to its status.
            Err(BridgeError::InvalidAnswer { .. }) if !status.is_success() => {
                Err(self.error_for_status(status, ServerMessage::default()))
            }
            result => result,
        }
    }

    async fn read_events(&self, response: Response, request: &ClientRequest) -> Result<ReceivedMessage, BridgeError> {
        let meter = self.meter();
        let mut events = EventReader::new(response, meter.clone());
        let mut open = request.ids.clone();
        while let Some(event) = events.next().await? {
            let Some(data) = event.data.filter(|data| !data.trim_ascii().is_empty()) else { continue };
            let message = meter.finish(data)?;
            if !message.shape.is_batch && message.shape.has_method {
                self.output.send(message.line).await;
                continue;
            }
            let message = validate_answer(message, request)?;
            let answered = message.shape.id().and_then(|id| request.position_of(id));
            open.retain(|id| answered.is_none_or(|position| *id != request.ids[position]));
            if open.is_empty() || message.shape.is_batch || answered.is_none() {
                return Ok(message);
            }
            self.output.send(message.line).await;
        }
        Err(invalid_answer("the event stream ended without an answer"))
    }

    fn meter(&self) -> MessageMeter {
        MessageMeter::new(&self.output, self.options.server_message_bytes_max)
    }

    fn error_for_status(&self, status: StatusCode, message: ServerMessage) -> BridgeError {
        let status = status.as_u16();
        let message = match ServerRefusal::from_status(status, self.options.bearer.is_some(), message) {
            Ok(refusal) => return refusal.into(),
            Err(message) => message,
        };
        match status {
            404 | 405 => BridgeError::NoEndpoint { status, usual_path: self.options.address.default_path(), message },
            500.. => BridgeError::Failed { status, message },
            _ => BridgeError::Refused { status, message },
        }
    }
}

/// Accepts a message that answers `request`. An error without an id belongs to this request, the only one of its POST.
fn validate_answer(message: ReceivedMessage, request: &ClientRequest) -> Result<ReceivedMessage, BridgeError> {
    let shape = &message.shape;
    if shape.is_batch {
        let is_expected = request.is_batch.then_some(message);
        return is_expected.ok_or_else(|| invalid_answer("it is a batch, but the request is a single one"));
    }
    if !shape.is_answer() {
        return Err(invalid_answer("it is not a JSON-RPC response"));
    }
    match shape.id() {
        Some(id) if request.position_of(id).is_some() => Ok(message),
        Some(id) => {
            let requested = request.ids.iter().map(tidegate_mcp::RequestId::as_json).collect::<Vec<_>>().join(", ");
            Err(invalid_answer(&format!("it has the id {}, but the request has {requested}", sanitize(id))))
        }
        None if shape.has_error && request.is_batch => Ok(message),
        None => {
            let refusal = serde_json::from_slice::<ErrorResponse<'_>>(message.bytes());
            let (Ok(refusal), Some(id)) = (refusal, request.ids.first()) else {
                return Err(invalid_answer("it has no id"));
            };
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}", id.as_json(), refusal.error.get());
            let shape = MessageShape { ids: vec![id.as_json().to_owned()], ..message.shape };
            Ok(ReceivedMessage { shape, line: message.line.with_line(Bytes::from(line)) })
        }
    }
}

fn invalid_answer(reason: &str) -> BridgeError {
    BridgeError::InvalidAnswer { what: reason.to_owned() }
}

struct EventReader(SseByteStream<BoxStream<'static, Result<Bytes, ReceiveError>>>);

impl EventReader {
    /// `meter` counts the bytes since the last complete event.
    pub(super) fn new(response: Response, meter: MessageMeter) -> Self {
        let chunks =
            stream::try_unfold((response, meter, true), |(mut response, meter, is_between_events)| async move {
                let chunk =
                    response.chunk().await.map_err(|error| ReceiveError::ConnectionLost(innermost_cause(&error)))?;
                let Some(chunk) = chunk else { return Ok(None) };
                if is_between_events {
                    meter.reset();
                }
                meter.add(chunk.len()).await?;
                // Comments that only keep the connection alive do not add up.
                let is_between_events = chunk.ends_with(b"\n\n") || chunk.ends_with(b"\r\n\r\n");
                Ok(Some((chunk, (response, meter, is_between_events))))
            });
        Self(SseByteStream::new(chunks.boxed()))
    }

    pub(super) async fn next(&mut self) -> Result<Option<Sse>, ReceiveError> {
        match self.0.next().await.transpose() {
            Ok(event) => Ok(event),
            Err(Error::Body(error)) => Err(match error.downcast() {
                Ok(error) => *error,
                Err(other) => ReceiveError::ConnectionLost(other.to_string()),
            }),
            Err(error) => Err(ReceiveError::MalformedEvents(error.to_string())),
        }
    }
}

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Maximum reconnection delay. A server may request a longer one, but the client then receives changes too late.
const PAUSE_MAX: Duration = Duration::from_secs(30);

struct ListenProgress {
    last_id: Option<HeaderValue>,
    pause: Option<Duration>,
    has_gap: bool,
    backoff: Backoff,
}

impl HttpTransport {
    /// Listens to the current session, until it is dropped.
    pub(super) async fn listen(&self) {
        let mut states = self.session.subscribe();
        loop {
            let session = match &*states.borrow_and_update() {
                // Nothing is sent before the client has completed the handshake.
                HandshakeState::Negotiated(session) if session.handshake.initialized.is_some() => Some(session.clone()),
                _ => None,
            };
            tokio::select! {
                changed = states.changed() => if changed.is_err() { return },
                () = self.listen_to_session(session) => if states.changed().await.is_err() { return },
            }
        }
    }

    /// Returns when the server offers no event stream for that session.
    async fn listen_to_session(&self, session: Option<Arc<NegotiatedSession>>) {
        let Some(session) = session else { return };
        let mut progress =
            ListenProgress { last_id: None, pause: None, has_gap: false, backoff: reconnection_backoff() };
        loop {
            let epoch = self.reachability.epoch();
            let mut headers = headers::listen_headers(self.options.bearer.as_ref(), &session);
            headers.extend(progress.last_id.clone().map(|id| (LAST_EVENT_ID, id)));
            match self.client.get(self.options.address.url().clone()).headers(headers).send().await {
                Err(error) if error.is_connect() => {
                    self.reachability.wait_until_reachable(epoch, &innermost_cause(&error), &self.options).await;
                }
                Err(_) => tokio::time::sleep(progress.backoff.next_delay()).await,
                Ok(response) if response.status() == StatusCode::NOT_FOUND && session.id.is_some() => {
                    match self.renew_session(&session, self.deadline()).await {
                        // The listener switches to the new session.
                        Ok(_) | Err(BridgeError::VersionChanged { .. }) => return,
                        Err(_) => tokio::time::sleep(progress.backoff.next_delay()).await,
                    }
                }
                Ok(response) if is_event_stream(&response) => {
                    self.reachability.mark_reachable(&self.options);
                    progress.backoff.reset();
                    if progress.has_gap && progress.last_id.is_none() {
                        self.notify_lists_changed(&session).await;
                    }
                    self.forward_events(response, &mut progress).await;
                    let pause = progress.pause.map(|pause| pause.min(PAUSE_MAX));
                    tokio::time::sleep(pause.unwrap_or_else(|| progress.backoff.next_delay())).await;
                }
                // Servers need not offer an event stream. After a refusal the bridge does not retry.
                Ok(_) => return,
            }
            progress.has_gap = true;
        }
    }

    async fn forward_events(&self, response: Response, progress: &mut ListenProgress) {
        let meter = self.meter();
        let mut events = EventReader::new(response, meter.clone());
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) | Err(ReceiveError::ConnectionLost(_)) => return,
                Err(error) => return self.options.notify(&BridgeNotice::Ignored(error.to_string())),
            };
            if let Some(data) = event.data.filter(|data| !data.trim_ascii().is_empty()) {
                self.forward_message(meter.finish(data)).await;
            }
            let id = event.id.and_then(|id| HeaderValue::try_from(id).ok());
            progress.last_id = id.or(progress.last_id.take());
            progress.pause = event.retry.map(Duration::from_millis).or(progress.pause);
        }
    }

    async fn forward_message(&self, message: Result<ReceivedMessage, ReceiveError>) {
        match message {
            Ok(message) if message.shape.has_method => self.output.send(message.line).await,
            Ok(_) => self.options.notify(&BridgeNotice::Ignored("an answer to no open request".to_owned())),
            Err(error) => self.options.notify(&BridgeNotice::Ignored(error.to_string())),
        }
    }
}

fn is_event_stream(response: &Response) -> bool {
    let media_type = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    response.status().is_success() && media_type.is_some_and(|text| text.trim_start().starts_with("text/event-stream"))
}
