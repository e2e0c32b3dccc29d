//! A message of the server, from its first byte to the output of the client.
//!
//! It is one JSON value, in memory under a bound, and parsed when it is complete. Only the members that determine its kind
//! are read; everything else is forwarded unread. The output has complete lines, in the order in which they are complete.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use thiserror::Error;
use tidegate_http_client::innermost_cause;
use tidegate_mcp::{RequestId, RpcError};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Larger messages are large ones, whose number in memory is limited.
const LARGE_BYTES_MIN: usize = 256 * 1024;

#[derive(Debug, Error)]
pub(super) enum ReceiveError {
    #[error("it is not valid JSON-RPC: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is not a valid event stream: {0}")]
    MalformedEvents(String),
    #[error("the answer is larger than {0} bytes, the limit of the bridge")]
    TooLarge(usize),
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
}

#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) shape: MessageShape,
    pub(super) line: OutgoingMessage,
}

#[derive(Debug, Clone)]
pub(super) struct MessageMeter {
    output: Output,
    bytes_max: usize,
    state: Arc<Mutex<MeterState>>,
}

#[derive(Debug, Default)]
struct MeterState {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl MessageMeter {
    pub(super) fn new(output: &Output, bytes_max: usize) -> Self {
        Self { output: output.clone(), bytes_max, state: Arc::default() }
    }

    /// Counts the next bytes of the message. Waits while too many large messages are in memory.
    pub(super) async fn add(&self, bytes: usize) -> Result<(), ReceiveError> {
        let needs_permit = {
            let mut state = self.state.lock();
            state.bytes += bytes;
            if state.bytes > self.bytes_max {
                return Err(ReceiveError::TooLarge(self.bytes_max));
            }
            state.bytes > LARGE_BYTES_MIN && state.permit.is_none()
        };
        if needs_permit {
            let permit = self.output.large_message_permit().await;
            self.state.lock().permit = permit;
        }
        Ok(())
    }

    pub(super) fn reset(&self) {
        *self.state.lock() = MeterState::default();
    }

    pub(super) fn finish(&self, text: impl Into<Bytes> + AsRef<str>) -> Result<ReceivedMessage, ReceiveError> {
        let MeterState { permit, .. } = std::mem::take(&mut *self.state.lock());
        let shape = MessageShape::parse(text.as_ref())?;
        Ok(ReceivedMessage { shape, line: OutgoingMessage::new(replace_line_breaks(text.into()), permit) })
    }
}

impl ReceivedMessage {
    pub(super) fn bytes(&self) -> &Bytes {
        self.line.bytes()
    }
}

pub(super) async fn receive_body(
    mut response: reqwest::Response,
    meter: &MessageMeter,
) -> Result<ReceivedMessage, ReceiveError> {
    let mut body = BytesMut::new();
    let lost = |error: reqwest::Error| ReceiveError::ConnectionLost(innermost_cause(&error));
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        meter.add(chunk.len()).await?;
        body.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(body.into()).map_err(|_| ReceiveError::NotUtf8)?;
    meter.finish(text)
}

/// Replaces line breaks between members, which would end the line. Strings cannot contain unescaped ones.
pub(super) fn replace_line_breaks(message: Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !message.iter().any(is_break) {
        return message;
    }
    message.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect()
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MessageShape {
    pub(super) is_batch: bool,
    /// Requests and notifications have one.
    pub(super) has_method: bool,
    pub(super) has_result: bool,
    pub(super) has_error: bool,
    /// The ids in their JSON form that are strings or numbers: at most one, or several of a batch.
    pub(super) ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "a JSON-RPC message")]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that exists, even if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl MessageShape {
    /// Parses the whole of `message`: one JSON object, or an array.
    pub(super) fn parse(message: &str) -> serde_json::Result<Self> {
        if message.trim_start().starts_with('[') {
            let messages: Vec<&RawValue> = serde_json::from_str(message)?;
            // A message without valid members is for the client to reject.
            let shapes = messages.iter().filter_map(|message| Self::parse(message.get()).ok());
            return Ok(Self { is_batch: true, ids: shapes.flat_map(|shape| shape.ids).collect(), ..Self::default() });
        }
        let Members { id, method, result, error } = serde_json::from_str(message)?;
        let id = id.map(RawValue::get).filter(|id| id.starts_with(|first| matches!(first, '"' | '-' | '0'..='9')));
        Ok(Self {
            is_batch: false,
            has_method: method.is_some(),
            has_result: result.is_some(),
            has_error: error.is_some(),
            ids: id.map(str::to_owned).into_iter().collect(),
        })
    }

    pub(super) fn is_answer(&self) -> bool {
        !self.has_method && (self.has_result || self.has_error)
    }

    pub(super) fn id(&self) -> Option<&str> {
        self.ids.first().map(String::as_str).filter(|_| !self.is_batch)
    }
}

/// Maximum number of messages in the outgoing queue. Calls wait while it is full.
const LINES_MAX: usize = 64;
/// Maximum number of large messages in memory, complete or not. Others wait until the client has received one.
const LARGE_MESSAGES_MAX: usize = 4;

#[derive(Debug)]
pub(super) struct OutgoingMessage {
    line: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
}

impl OutgoingMessage {
    /// `line` contains no line break.
    pub(super) fn new(line: Bytes, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { line, _permit: permit }
    }

    pub(super) fn bytes(&self) -> &Bytes {
        &self.line
    }

    pub(super) fn with_line(self, line: Bytes) -> Self {
        Self { line, ..self }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    lines: mpsc::Sender<OutgoingMessage>,
    large_messages: Arc<Semaphore>,
}

impl Output {
    pub(super) fn new() -> (Self, mpsc::Receiver<OutgoingMessage>) {
        let (lines, receiver) = mpsc::channel(LINES_MAX);
        (Self { lines, large_messages: Arc::new(Semaphore::new(LARGE_MESSAGES_MAX)) }, receiver)
    }

    /// Waits while the client reads slowly. Does nothing if the client has disconnected.
    pub(super) async fn send(&self, message: OutgoingMessage) {
        let _ = self.lines.send(message).await;
    }

    /// Sends a line of the bridge itself.
    pub(super) async fn send_line(&self, line: Bytes) {
        self.send(OutgoingMessage::new(line, None)).await;
    }

    async fn large_message_permit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.large_messages.clone().acquire_owned().await.ok()
    }

    /// Answers a request with an error. `id` is `None` if it could not be read.
    pub(super) async fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.send_line(error.to_bytes(id)).await;
    }

    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }
}

pub(super) async fn write_lines(
    mut lines: mpsc::Receiver<OutgoingMessage>,
    writer: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let mut writer = BufWriter::new(writer);
    while let Some(message) = lines.recv().await {
        writer.write_all(message.bytes()).await?;
        writer.write_all(b"\n").await?;
        if lines.is_empty() {
            writer.flush().await?;
        }
    }
    writer.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> MessageShape {
        MessageShape::parse(text).unwrap()
    }

    #[test]
    fn classifies_by_outermost_members() {
        let answer = shape(r#" {"jsonrpc":"2.0","result":{"id":7,"method":"x","error":{}}, "\u0069d" : "a\"b" } "#);
        assert_eq!(answer.id(), Some(r#""a\"b""#));
        assert!(answer.is_answer() && !answer.has_error);
        assert!(shape(r#"{"id":1,"result":null}"#).is_answer());
        let request = shape(r#"{"id":-1.5e+3,"method":"ping","params":{"result":1}}"#);
        assert_eq!(request.id(), Some("-1.5e+3"));
        assert!(!request.is_answer());
        for nobody in [r#"{"id":null,"error":{}}"#, r#"{"id":{"a":"b"},"error":1}"#, r#"{"id":true,"error":1}"#] {
            assert_eq!(shape(nobody).id(), None, "{nobody}");
        }
        let batch = shape(r#" [{"id":1,"result":{}}, 7, {"id":null,"error":{}}, {"id":"b","result":{}}]"#);
        assert!(batch.is_batch && batch.id().is_none());
        assert_eq!(batch.ids, ["1", "\"b\""]);
    }

    #[test]
    fn rejects_malformed_messages() {
        for malformed in ["<html>", "7", "", "{\"a\":01}", "{} {}", "{\"a\":[1,2}", "{\"a\":", "{\"a\":\"\n\"}", "[1,"]
        {
            assert!(MessageShape::parse(malformed).is_err(), "{malformed}");
        }
        let error = MessageShape::parse("7").unwrap_err().to_string();
        assert_eq!(error, "invalid type: integer `7`, expected a JSON-RPC message at line 1 column 1");
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let depth = 1_000_000;
        assert!(shape(&format!("{{\"id\":1,\"result\":{}{}}}", "[".repeat(depth), "]".repeat(depth))).is_answer());
    }
}
