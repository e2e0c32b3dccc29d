//! Server-sent events: each message is one event with one `data:` line, which may be written in pieces.
//!
//! JSON text on one line needs no further framing, because its line feeds are escaped.

use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use tidegate_mcp::{AnswerFrame, AnswerStream};

use super::body::{REVOKED_REASON, broken_body_error};
use crate::revalidation::{CallerRevalidator, Revoked};

const DATA_PREFIX: &[u8] = b"data: ";
pub(super) const EVENT_END: Bytes = Bytes::from_static(b"\n\n");

pub(super) const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(15);
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

pub(super) struct EventWriter {
    is_open: bool,
}

impl EventWriter {
    pub(super) fn new() -> Self {
        Self { is_open: false }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The bytes of `frame`. `id` precedes the `data:` of an event that begins here.
    pub(super) fn encode_frame(&mut self, frame: AnswerFrame, id: Option<&str>) -> Bytes {
        match frame {
            AnswerFrame::Notification(message) => encode_event(&message, id),
            AnswerFrame::ResponseBytes(piece) if self.is_open => piece,
            AnswerFrame::ResponseBytes(piece) => {
                self.is_open = true;
                let mut bytes = begin_event(id, piece.len());
                bytes.put_slice(&piece);
                bytes.freeze()
            }
        }
    }

    pub(super) fn end(&mut self) -> Option<Bytes> {
        std::mem::take(&mut self.is_open).then_some(EVENT_END)
    }
}

pub(super) fn encode_event(message: &[u8], id: Option<&str>) -> Bytes {
    let mut bytes = begin_event(id, message.len());
    bytes.put_slice(message);
    bytes.put_slice(&EVENT_END);
    bytes.freeze()
}

/// An event without data: it gives a client an id to resume from, and the delay before it reconnects.
pub(super) fn priming_event(id: &str) -> Bytes {
    format!("id: {id}\nretry: 1000\ndata: \n\n").into()
}

/// Whether an event ends with `bytes`. Within an event, line feeds occur only between its fields.
pub(super) fn ends_event(bytes: &[u8]) -> bool {
    bytes.ends_with(&EVENT_END)
}

fn begin_event(id: Option<&str>, message_bytes: usize) -> BytesMut {
    let mut bytes = BytesMut::with_capacity(message_bytes + 48);
    if let Some(id) = id {
        bytes.put_slice(b"id: ");
        bytes.put_slice(id.as_bytes());
        bytes.put_u8(b'\n');
    }
    bytes.put_slice(DATA_PREFIX);
    bytes
}

/// The end of the answer ends the stream, dropping the stream cancels the call, and a revoked caller breaks it.
pub(super) fn event_stream_body(answer: Box<AnswerStream>, revalidator: CallerRevalidator) -> Body {
    let state = Some((answer, revalidator, EventWriter::new()));
    Body::from_stream(stream::unfold(state, |state| async move {
        let (mut answer, mut revalidator, mut writer) = state?;
        let frame = match tokio::time::timeout(KEEP_ALIVE_EVERY, revalidator.next_frame(&mut answer)).await {
            Ok(frame) => frame,
            // A comment is not allowed within an event.
            Err(_) if writer.is_open() => revalidator.next_frame(&mut answer).await,
            Err(_) => return Some((Ok(KEEP_ALIVE), Some((answer, revalidator, writer)))),
        };
        match frame {
            Ok(Some(frame)) => {
                let bytes = writer.encode_frame(frame, None);
                Some((Ok(bytes), Some((answer, revalidator, writer))))
            }
            Ok(None) => writer.end().map(|bytes| (Ok(bytes), None)),
            Err(Revoked) => Some((Err(broken_body_error(REVOKED_REASON).await), None)),
        }
    }))
}
