//! The last events of an HTTP+SSE stream, for a client that lost its connection, and the streams that wait for such
//! clients.
//!
//! A stream waits for a limited time, and only if the event that was being sent is kept. Meanwhile, its calls fill their
//! bounded queue and then wait.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Maximum number of bytes that one stream keeps. The oldest events are removed first.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct KeptEvents {
    events: VecDeque<KeptEvent>,
    bytes: usize,
}

#[derive(Debug)]
struct KeptEvent {
    number: u64,
    /// `None` if the event is too large to be kept.
    pieces: Option<Vec<Bytes>>,
    bytes: usize,
}

impl KeptEvents {
    /// Begins the event `number` with `piece`.
    pub(super) fn begin(&mut self, number: u64, piece: Bytes) {
        self.events.push_back(KeptEvent { number, pieces: Some(Vec::new()), bytes: 0 });
        self.push(piece);
    }

    /// Adds `piece` to the last event.
    pub(super) fn push(&mut self, piece: Bytes) {
        let Some(event) = self.events.back_mut() else { return };
        let Some(pieces) = &mut event.pieces else { return };
        event.bytes += piece.len();
        self.bytes += piece.len();
        pieces.push(piece);
        if event.bytes > KEPT_BYTES_MAX {
            // No client can continue before or within it, so that the earlier events are of no use.
            let number = event.number;
            self.bytes = 0;
            self.events.clear();
            return self.events.push_back(KeptEvent { number, pieces: None, bytes: 0 });
        }
        while self.bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.bytes;
        }
    }

    /// Whether all bytes of the last event are kept, so that a client can continue within it.
    pub(super) fn has_last(&self) -> bool {
        self.events.back().is_none_or(|event| event.pieces.is_some())
    }

    /// The bytes after the event `number`; `None` if some of them are not kept.
    pub(super) fn after(&self, number: u64) -> Option<VecDeque<Bytes>> {
        let last = self.events.back().map_or(0, |event| event.number);
        let first = self.events.front().map_or(1, |event| event.number);
        if number > last || number + 1 < first {
            return None;
        }
        let missed = self.events.iter().filter(|event| event.number > number);
        let missed: Option<Vec<&Vec<Bytes>>> = missed.map(|event| event.pieces.as_ref()).collect();
        Some(missed?.into_iter().flatten().cloned().collect())
    }
}

/// Streams without a connection, by session. Each has the number of its detachment, because it may come back and leave
/// again before its time is over.
#[derive(Debug)]
pub(super) struct DetachedStreams<T> {
    streams: Mutex<HashMap<String, (u64, T)>>,
    detachments: AtomicU64,
    changed: Notify,
}

impl<T> Default for DetachedStreams<T> {
    fn default() -> Self {
        Self { streams: Mutex::default(), detachments: AtomicU64::new(0), changed: Notify::new() }
    }
}

impl<T> DetachedStreams<T> {
    /// Adds the stream of `session`. Returns the number of its detachment.
    pub(super) fn insert(&self, session: String, stream: T) -> u64 {
        let number = self.detachments.fetch_add(1, Ordering::Relaxed);
        self.streams.lock().insert(session, (number, stream));
        self.changed.notify_waiters();
        number
    }

    /// Removes the stream of `session`, if it is there since the detachment `number`.
    pub(super) fn remove(&self, session: &str, number: u64) -> Option<T> {
        let mut streams = self.streams.lock();
        if streams.get(session).is_none_or(|(current, _)| *current != number) {
            return None;
        }
        streams.remove(session).map(|(_, stream)| stream)
    }

    /// Removes the stream of `session` as soon as it is there.
    pub(super) async fn take(&self, session: &str) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some((_, stream)) = self.streams.lock().remove(session) {
                return stream;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kept: &KeptEvents, number: u64) -> Option<String> {
        let bytes: Vec<u8> = kept.after(number)?.into_iter().flatten().collect();
        Some(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn continues_after_the_given_event() {
        let mut kept = KeptEvents::default();
        assert_eq!(text(&kept, 0).as_deref(), Some(""));
        for (number, pieces) in [(1, ["a", "b"]), (2, ["c", "d"])] {
            kept.begin(number, Bytes::from_static(pieces[0].as_bytes()));
            kept.push(Bytes::from_static(pieces[1].as_bytes()));
        }
        assert_eq!([0, 1, 2].map(|number| text(&kept, number)), ["abcd", "cd", ""].map(|text| Some(text.to_owned())));
        assert_eq!(text(&kept, 3), None);
        assert_eq!(text(&kept, u64::MAX), None);
    }

    #[test]
    fn removes_the_oldest_and_what_is_too_large() {
        let mut kept = KeptEvents::default();
        for number in 1..=4 {
            kept.begin(number, Bytes::from(vec![b'x'; KEPT_BYTES_MAX / 2]));
        }
        assert!(kept.after(1).is_none() && kept.after(2).is_some() && kept.has_last());
        kept.begin(5, Bytes::from(vec![b'x'; KEPT_BYTES_MAX + 1]));
        assert!(kept.after(4).is_none() && !kept.has_last());
        assert_eq!(text(&kept, 5).as_deref(), Some(""));
        kept.begin(6, Bytes::from_static(b"y"));
        assert!(kept.after(4).is_none() && kept.has_last());
        assert_eq!(text(&kept, 5).as_deref(), Some("y"));
    }
}
