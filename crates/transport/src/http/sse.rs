//! Server-sent events: each message is one event with one `data:` line, which may be written in pieces. JSON text on one line
//! needs no further framing, because its line feeds are escaped.
//!
//! A legacy event stream survives its connection: the call writes into a bounded buffer, a connection reads from it, and a
//! later connection can resume the stream.
//!
//! [MCP 2025-11-25, Resumability and Redelivery](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery)

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use parking_lot::Mutex;
use tidegate_mcp::{ResponseFrame, ResponseStream};
use tokio::sync::Notify;

use super::body::{REVOKED_REASON, broken_body_error};
use super::session::HttpSession;
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
    pub(super) fn encode_frame(&mut self, frame: ResponseFrame, id: Option<&str>) -> Bytes {
        match frame {
            ResponseFrame::Notification(message) => encode_event(&message, id),
            ResponseFrame::ResponseBytes(piece) if self.is_open => piece,
            ResponseFrame::ResponseBytes(piece) => {
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
fn ends_event(bytes: &[u8]) -> bool {
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
pub(super) fn event_stream_body(answer: Box<ResponseStream>, revalidator: CallerRevalidator) -> Body {
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

/// Maximum number of bytes that one stream stores for redelivery. The oldest delivered ones are removed first.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    state: Mutex<ReplayState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ReplayState {
    items: VecDeque<ReplayItem>,
    kept_bytes: usize,
    first: u64,
    next_read: u64,
    /// The number of the newest reader; earlier readers end.
    reader: u64,
    has_reader: bool,
    has_ended: bool,
    is_lost: bool,
}

#[derive(Debug)]
struct ReplayItem {
    event: u64,
    bytes: Bytes,
}

/// The buffer is full, and there is no reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplayLost;

impl ReplayBuffer {
    /// Appends bytes of an event. Waits while the buffer is full of unread bytes.
    pub(super) async fn push(&self, event: u64, bytes: Bytes) -> Result<(), ReplayLost> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.state.lock();
                state.evict_delivered(bytes.len());
                if state.kept_bytes + bytes.len() <= KEPT_BYTES_MAX || state.items.is_empty() {
                    state.kept_bytes += bytes.len();
                    state.items.push_back(ReplayItem { event, bytes });
                    break;
                }
                if !state.has_reader {
                    return Err(ReplayLost);
                }
            }
            changed.await;
        }
        self.changed.notify_waiters();
        Ok(())
    }

    pub(super) fn end(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_waiters();
    }

    /// Ends the stream without its content, because not everything could be stored. Readers cannot resume it.
    pub(super) fn mark_lost(&self) {
        let mut state = self.state.lock();
        state.items.clear();
        state.kept_bytes = 0;
        state.has_ended = true;
        state.is_lost = true;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    /// Reads from after `event`, or from the beginning. An earlier reader ends.
    pub(super) fn read_after(self: &Arc<Self>, event: Option<u64>) -> Result<ReplayReader, ReplayLost> {
        let mut state = self.state.lock();
        if state.is_lost {
            return Err(ReplayLost);
        }
        let position = match event {
            None => 0,
            Some(event) => match state.items.iter().position(|item| item.event > event) {
                Some(index) => state.first + index as u64,
                None => state.first + state.items.len() as u64,
            },
        };
        // The first byte after the event must still be stored.
        let is_kept = position > state.first || state.first == 0;
        if !is_kept {
            return Err(ReplayLost);
        }
        state.next_read = position;
        state.reader += 1;
        state.has_reader = true;
        let generation = state.reader;
        drop(state);
        self.changed.notify_waiters();
        Ok(ReplayReader { replay: self.clone(), generation })
    }
}

impl ReplayState {
    fn evict_delivered(&mut self, requested_bytes: usize) {
        while self.kept_bytes + requested_bytes > KEPT_BYTES_MAX && self.first < self.next_read {
            let Some(item) = self.items.pop_front() else { return };
            self.kept_bytes -= item.bytes.len();
            self.first += 1;
        }
    }
}

#[derive(Debug)]
pub(super) struct ReplayReader {
    replay: Arc<ReplayBuffer>,
    generation: u64,
}

impl ReplayReader {
    /// The next bytes; `None` at the end of the stream, or when another reader took over.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut changed = std::pin::pin!(self.replay.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = self.replay.state.lock();
                if state.reader != self.generation {
                    return None;
                }
                let index = usize::try_from(state.next_read - state.first).ok()?;
                if let Some(bytes) = state.items.get(index).map(|item| item.bytes.clone()) {
                    state.next_read += 1;
                    drop(state);
                    self.replay.changed.notify_waiters();
                    return Some(bytes);
                }
                if state.has_ended {
                    return None;
                }
            }
            changed.await;
        }
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        let mut state = self.replay.state.lock();
        if state.reader == self.generation {
            state.has_reader = false;
        }
        drop(state);
        self.replay.changed.notify_waiters();
    }
}

/// The bytes of a resumable stream, which uses its `session`. It sends comments between two events while it is quiet.
pub(super) fn replay_body(reader: ReplayReader, session: Arc<HttpSession>) -> Body {
    let state = (reader, true, session);
    Body::from_stream(stream::unfold(state, |(mut reader, is_between_events, session)| async move {
        let bytes = match tokio::time::timeout(KEEP_ALIVE_EVERY, reader.next()).await {
            Ok(bytes) => bytes?,
            Err(_) if is_between_events => KEEP_ALIVE,
            Err(_) => reader.next().await?,
        };
        let is_between_events = ends_event(&bytes);
        Some((Ok::<_, Infallible>(bytes), (reader, is_between_events, session)))
    }))
}

/// The `id:` of an event: `stream-event`.
pub(super) fn event_id(stream: u64, event: u64) -> String {
    format!("{stream}-{event}")
}

pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(reader: &mut ReplayReader) -> String {
        let mut all = String::new();
        while let Some(bytes) = reader.next().await {
            all.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        all
    }

    #[tokio::test]
    async fn resumes_after_the_given_event() {
        let replay = Arc::new(ReplayBuffer::default());
        for (event, text) in [(1, "a"), (2, "b"), (2, "c"), (3, "d")] {
            replay.push(event, Bytes::from_static(text.as_bytes())).await.unwrap();
        }
        replay.end();
        assert_eq!(read_all(&mut replay.read_after(None).unwrap()).await, "abcd");
        assert_eq!(read_all(&mut replay.read_after(Some(1)).unwrap()).await, "bcd");
        assert_eq!(read_all(&mut replay.read_after(Some(3)).unwrap()).await, "");
    }

    #[tokio::test]
    async fn evicts_oldest_delivered_events() {
        let replay = Arc::new(ReplayBuffer::default());
        let mut reader = replay.read_after(None).unwrap();
        let half = Bytes::from(vec![b'x'; KEPT_BYTES_MAX / 2]);
        for event in 1..=4 {
            replay.push(event, half.clone()).await.unwrap();
            reader.next().await.unwrap();
        }
        assert_eq!(replay.read_after(Some(1)).unwrap_err(), ReplayLost);
        assert!(replay.read_after(Some(3)).is_ok());
    }

    #[tokio::test]
    async fn full_buffer_without_reader_is_lost() {
        let replay = Arc::new(ReplayBuffer::default());
        let whole = Bytes::from(vec![b'x'; KEPT_BYTES_MAX]);
        replay.push(1, whole.clone()).await.unwrap();
        assert_eq!(replay.push(2, whole.clone()).await, Err(ReplayLost));
    }
}
