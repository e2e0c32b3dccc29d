//! Reads the server's response to a POST: one JSON document, an event stream, or a refusal.
//!
//! [Server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html)

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use sse_stream::{Error, Sse, SseByteStream};

use crate::bearer_token::BearerToken;
use crate::bridge::BridgeOptions;
use crate::bridge::call::ClientCall;
use crate::bridge::error::BridgeError;
use crate::bridge::incoming::{MessageMeter, MessageShape, ReceiveError, ReceivedMessage, receive_body};
use crate::bridge::output::Output;
use crate::http_client::{innermost_cause, read_refusal};
use crate::refusal::{ServerMessage, ServerRefusal, sanitize};

/// Time limit for reading a refusal.
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// The context for reading an answer.
pub(super) struct AnswerReceiver<'a> {
    pub(super) options: &'a BridgeOptions,
    pub(super) output: &'a Output,
}

#[derive(Deserialize)]
struct ErrorResponse<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

impl AnswerReceiver<'_> {
    /// The answer to `call`. Messages of the server before it go to the client immediately.
    pub(super) async fn receive(&self, response: Response, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
        let status = response.status();
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_for_the_caller = !matches!(status.as_u16(), 300..=399 | 401 | 403);
        match media_type.as_str() {
            "text/event-stream" if status.is_success() => self.receive_events(response, call).await,
            "application/json" if is_for_the_caller => self.receive_json(response, call).await,
            _ if status.is_success() => {
                let subject = format!(
                    "it has the status {status} and the type {media_type:?}, but must be JSON or an event stream"
                );
                Err(BridgeError::InvalidAnswer { what: subject })
            }
            _ => {
                let body = read_refusal(response, REFUSAL_WITHIN).await;
                Err(self.error_for_status(status, ServerMessage::from_body(&body, self.secret())))
            }
        }
    }

    async fn receive_json(&self, response: Response, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
        let status = response.status();
        match receive_body(response, &self.meter())
            .await
            .map_err(BridgeError::from)
            .and_then(|message| validate_answer(message, call))
        {
            // A body that is not an answer adds nothing to its status.
            Err(BridgeError::InvalidAnswer { .. }) if !status.is_success() => {
                Err(self.error_for_status(status, ServerMessage::default()))
            }
            judged => judged,
        }
    }

    async fn receive_events(&self, response: Response, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
        let meter = self.meter();
        let mut events = EventReader::new(response, meter.clone());
        let mut open = call.ids.clone();
        while let Some(event) = events.next().await? {
            let Some(data) = event.data.filter(|data| !data.trim_ascii().is_empty()) else { continue };
            let message = meter.finish(data)?;
            if !message.shape.is_batch && message.shape.has_method {
                self.output.send(message.line).await;
                continue;
            }
            let message = validate_answer(message, call)?;
            let answered = message.shape.id().and_then(|id| call.position_of(id));
            open.retain(|id| answered.is_none_or(|position| *id != call.ids[position]));
            if open.is_empty() || message.shape.is_batch || answered.is_none() {
                return Ok(message);
            }
            self.output.send(message.line).await;
        }
        Err(invalid_answer("the event stream ended without an answer"))
    }

    fn meter(&self) -> MessageMeter {
        MessageMeter::new(self.output, self.options.server_message_bytes_max)
    }

    fn secret(&self) -> Option<&str> {
        self.options.bearer.as_ref().map(BearerToken::token)
    }

    fn error_for_status(&self, status: StatusCode, words: ServerMessage) -> BridgeError {
        let status = status.as_u16();
        let words = match ServerRefusal::from_status(status, self.options.bearer.is_some(), words) {
            Ok(refusal) => return refusal.into(),
            Err(words) => words,
        };
        match status {
            404 | 405 => BridgeError::NoEndpoint { status, usual_path: self.options.address.default_path(), words },
            500.. => BridgeError::Failed { status, words },
            _ => BridgeError::Refused { status, words },
        }
    }
}

/// Accepts a message that answers `call`. An error without an id belongs to this call, the only one of its POST.
fn validate_answer(message: ReceivedMessage, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
    let shape = &message.shape;
    if shape.is_batch {
        return if call.is_batch {
            Ok(message)
        } else {
            Err(invalid_answer("it is a batch, but the request is a single one"))
        };
    }
    if !shape.is_answer() {
        return Err(invalid_answer("it is not a JSON-RPC response"));
    }
    match shape.id() {
        Some(id) if call.position_of(id).is_some() => Ok(message),
        Some(id) => {
            let requested: Vec<&str> = call.ids.iter().map(tidegate_mcp::RequestId::as_json).collect();
            Err(invalid_answer(&format!(
                "it has the id {}, but the request has {}",
                sanitize(id),
                requested.join(", ")
            )))
        }
        None if shape.has_error && call.is_batch => Ok(message),
        None => {
            let refusal = serde_json::from_slice::<ErrorResponse<'_>>(message.bytes());
            let (Ok(refusal), Some(id)) = (refusal, call.ids.first()) else {
                return Err(invalid_answer("it has no id"));
            };
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}", id.as_json(), refusal.error.get());
            let shape = MessageShape { ids: vec![id.as_json().to_owned()], ..message.shape };
            Ok(ReceivedMessage { shape, line: message.line.with_line(Bytes::from(line)) })
        }
    }
}

fn invalid_answer(subject: &str) -> BridgeError {
    BridgeError::InvalidAnswer { what: subject.to_owned() }
}

/// Reads the events of a response.
pub(super) struct EventReader(SseByteStream<BoxStream<'static, Result<Bytes, ReceiveError>>>);

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

    /// The next event; `None` at the end of the response.
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
