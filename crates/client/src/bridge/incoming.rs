//! A message of the server: one JSON value, in memory under a bound, and parsed when it is complete.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;

use super::output::{OutgoingMessage, Output};
use super::shape::MessageShape;

/// Default maximum size of a message of the server in bytes. A message is in memory until the client has received it.
pub(super) const SERVER_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Larger messages are large ones, whose number in memory is limited.
const LARGE_BYTES_MIN: usize = 256 * 1024;

/// Why a message could not be received.
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

/// A complete message.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) shape: MessageShape,
    pub(super) line: OutgoingMessage,
}

/// Counts the bytes of a message while it arrives.
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
    ///
    /// # Errors
    /// When the message is too large.
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

    /// Forgets the counted bytes.
    pub(super) fn reset(&self) {
        *self.state.lock() = MeterState::default();
    }

    /// Parses the complete message `text`, and begins to count the next one.
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

/// Collects the body of `response`, which is one message.
pub(super) async fn receive_body(
    mut response: reqwest::Response,
    meter: &MessageMeter,
) -> Result<ReceivedMessage, ReceiveError> {
    let mut body = BytesMut::new();
    let lost = |error: reqwest::Error| ReceiveError::ConnectionLost(crate::http_client::innermost_cause(&error));
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
