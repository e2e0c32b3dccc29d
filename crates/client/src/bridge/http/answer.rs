//! Reads the server's response to a POST: one JSON document, an event stream, or a refusal.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event_parser::{EventParser, EventPart};
use super::root_cause;
use crate::bridge::BridgeOptions;
use crate::bridge::error::{BridgeError, ServerMessage};
use crate::bridge::incoming::{PartialMessage, ReceiveError, ReceivedMessage};
use crate::bridge::output::Output;
use crate::bridge::request::ClientCall;
use crate::bridge::scanner::MessageShape;
use crate::outbox::OutgoingMessage;
use crate::spool::SpoolError;

/// Maximum size of a refusal in bytes, and the time limit for reading it.
const REFUSAL_BYTES_MAX: usize = 16 * 1024;
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

#[derive(Deserialize)]
struct ErrorMessage {
    message: String,
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
            _ => Err(self.read_refusal(response).await),
        }
    }

    async fn receive_json(&self, response: Response, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
        let status = response.status();
        match self.read_json(response).await.and_then(|arrived| validate_answer(arrived, call)) {
            // A body that is not an answer adds nothing to its status.
            Err(BridgeError::InvalidAnswer { .. }) if !status.is_success() => {
                Err(self.error_for_status(status, ServerMessage::default()))
            }
            judged => judged,
        }
    }

    async fn read_json(&self, mut response: Response) -> Result<ReceivedMessage, BridgeError> {
        let mut arriving = PartialMessage::new(self.options.answer_bytes_max);
        while let Some(piece) = response.chunk().await.map_err(|error| connection_lost(&error))? {
            arriving.push(piece).await.map_err(|error| self.receive_failed(error))?;
        }
        arriving.finish().map_err(|error| self.receive_failed(error.into()))
    }

    async fn receive_events(&self, mut response: Response, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
        let mut events = EventParser::new();
        let mut arriving = PartialMessage::new(self.options.answer_bytes_max);
        let mut open = call.ids.clone();
        while let Some(piece) = response.chunk().await.map_err(|error| connection_lost(&error))? {
            events.feed(piece);
            while let Some(item) = events.next() {
                match item {
                    EventPart::Data(data) if arriving.is_empty() && data.trim_ascii().is_empty() => {}
                    EventPart::Data(data) => arriving.push(data).await.map_err(|error| self.receive_failed(error))?,
                    EventPart::End if arriving.is_empty() => {}
                    EventPart::End => {
                        let whole =
                            std::mem::replace(&mut arriving, PartialMessage::new(self.options.answer_bytes_max));
                        let arrived = whole.finish().map_err(|error| self.receive_failed(error.into()))?;
                        if !arrived.shape.is_batch && arrived.shape.has_method {
                            self.output.send(arrived.line).await;
                            continue;
                        }
                        let arrived = validate_answer(arrived, call)?;
                        let answered = arrived.shape.id.as_deref().and_then(|id| call.position_of(id));
                        open.retain(|id| answered.is_none_or(|position| *id != call.ids[position]));
                        if open.is_empty() || arrived.shape.is_batch || answered.is_none() {
                            return Ok(arrived);
                        }
                        self.output.send(arrived.line).await;
                    }
                }
            }
        }
        Err(BridgeError::InvalidAnswer { what: "the event stream ended without an answer".to_owned() })
    }

    /// The error for a response that is not an answer, with the server's own message if it has one.
    async fn read_refusal(&self, mut response: Response) -> BridgeError {
        let status = response.status();
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(piece)) = response.chunk().await {
                let room = REFUSAL_BYTES_MAX - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if body.len() == REFUSAL_BYTES_MAX {
                    break;
                }
            }
        };
        // A partial refusal is sufficient.
        let _ = tokio::time::timeout(REFUSAL_WITHIN, reading).await;
        let text = serde_json::from_slice::<ErrorResponse<'_>>(&body)
            .ok()
            .and_then(|refusal| serde_json::from_str::<ErrorMessage>(refusal.error.get()).ok())
            .map(|error| error.message);
        self.error_for_status(status, text.map_or_else(ServerMessage::default, |text| self.server_message(&text)))
    }

    fn server_message(&self, text: &str) -> ServerMessage {
        ServerMessage::new(text, self.options.bearer.as_ref())
    }

    fn error_for_status(&self, status: StatusCode, words: ServerMessage) -> BridgeError {
        let code = status.as_u16();
        match code {
            401 if self.options.bearer.is_some() => BridgeError::WrongToken { words },
            401 => BridgeError::NoToken { words },
            403 => BridgeError::Forbidden { words },
            404 | 405 => {
                BridgeError::NoEndpoint { status: code, usual_path: self.options.address.default_path(), words }
            }
            300..=399 => BridgeError::Redirects { status: code },
            500.. => BridgeError::Failed { status: code, words },
            _ => BridgeError::Refused { status: code, words },
        }
    }

    fn receive_failed(&self, broken: ReceiveError) -> BridgeError {
        match broken {
            ReceiveError::Malformed(malformed) => BridgeError::InvalidAnswer { what: malformed.to_string() },
            ReceiveError::Spool(SpoolError::TooLarge(bytes)) => BridgeError::TooLarge {
                what: format!("the answer is larger than {bytes} bytes, the limit of the bridge"),
            },
            ReceiveError::Spool(SpoolError::Io(error)) => {
                // A full disk concerns the operator, but it also prevents the answer from arriving.
                BridgeError::TooLarge { what: format!("the bridge cannot store the answer on disk: {error}") }
            }
        }
    }
}

fn connection_lost(error: &reqwest::Error) -> BridgeError {
    BridgeError::ConnectionLost { reason: root_cause(error) }
}

/// Accepts a message that answers `call`. An error without an id belongs to this call, the only one of its POST.
fn validate_answer(arrived: ReceivedMessage, call: &ClientCall) -> Result<ReceivedMessage, BridgeError> {
    let shape = &arrived.shape;
    if shape.is_batch {
        return if call.is_batch {
            Ok(arrived)
        } else {
            Err(invalid_answer("it is a batch, but the request is a single one"))
        };
    }
    if !shape.is_answer() {
        return Err(invalid_answer("it is not a JSON-RPC response"));
    }
    match &shape.id {
        Some(id) if call.position_of(id).is_some() => Ok(arrived),
        Some(id) => {
            let requested: Vec<&str> = call.ids.iter().map(tidegate_mcp::RequestId::as_json).collect();
            Err(invalid_answer(&format!(
                "it has the id {}, but the request has {}",
                ServerMessage::new(id, None).text(),
                requested.join(", ")
            )))
        }
        None if shape.has_error && call.is_batch => Ok(arrived),
        None => {
            let refusal = arrived.bytes().and_then(|bytes| serde_json::from_slice::<ErrorResponse<'_>>(bytes).ok());
            let (Some(refusal), Some(id)) = (refusal, call.ids.first()) else {
                return Err(invalid_answer("it has no id"));
            };
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{}}}", id.as_json(), refusal.error.get());
            let shape = MessageShape { id: Some(id.as_json().to_owned()), ..arrived.shape.clone() };
            Ok(ReceivedMessage { shape, line: OutgoingMessage::Whole(Bytes::from(line)) })
        }
    }
}

fn invalid_answer(subject: &str) -> BridgeError {
    BridgeError::InvalidAnswer { what: subject.to_owned() }
}
