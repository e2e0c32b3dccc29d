//! Signs of life of one WebSocket, recorded by its reader and its writer.
//!
//! Detects messages that do not end in time, by counting bytes below the frames. An unfinished message holds memory,
//! and its fragments are not visible above this layer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Read buffer size. A smaller amount of received data does not count as an unfinished message.
pub(super) const READ_BYTES: usize = 16 * 1024;

/// A control frame has a header of two bytes and a mask of four before its payload.
const CONTROL_HEAD_BYTES: usize = 6;

/// A message times out if it was unfinished at two consecutive checks and did not end between them.
#[derive(Default)]
pub(super) struct MessageTimeout {
    bytes_at_message_end: u64,
    was_under_way: bool,
}

impl MessageTimeout {
    pub(super) fn message_ended(&mut self, arrived: u64) {
        *self = Self { bytes_at_message_end: arrived, was_under_way: false };
    }

    /// Records a ping or pong, which is not part of a message.
    pub(super) fn control_frame_received(&mut self, payload_bytes: usize) {
        self.bytes_at_message_end += (CONTROL_HEAD_BYTES + payload_bytes) as u64;
    }

    pub(super) fn is_within_limit(&mut self, arrived: u64) -> bool {
        let is_under_way = arrived.saturating_sub(self.bytes_at_message_end) > READ_BYTES as u64;
        let was_under_way = std::mem::replace(&mut self.was_under_way, is_under_way);
        !(is_under_way && was_under_way)
    }
}

/// Ping interval. A client without a sign of life between two pings counts as disconnected.
pub(super) const PING_EVERY: Duration = Duration::from_secs(30);

pub(super) struct Liveness {
    had_activity: AtomicBool,
    /// Whether a message is being sent. Then the write timeout of the connection detects a client that does not read.
    is_writing: AtomicBool,
    /// The time of the last message in either direction. Pings and pongs are not messages.
    last_used: Mutex<Instant>,
}

impl Liveness {
    pub(super) fn new() -> Self {
        let last_used = Mutex::new(Instant::now());
        Self { had_activity: AtomicBool::new(true), is_writing: AtomicBool::new(false), last_used }
    }

    /// Records received data, including a pong.
    pub(super) fn record_activity(&self) {
        self.had_activity.store(true, Ordering::Relaxed);
    }

    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    pub(super) fn set_writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Relaxed);
        self.touch();
    }

    pub(super) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// Whether there was a sign of life since the last call, or none is required.
    pub(super) fn take_activity(&self) -> bool {
        self.had_activity.swap(false, Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed)
    }

    pub(super) fn idle_since(&self) -> Instant {
        if self.is_writing.load(Ordering::Relaxed) { Instant::now() } else { *self.last_used.lock() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_frames_never_time_out() {
        let mut message_timeout = MessageTimeout::default();
        for look in 1..100 {
            message_timeout.control_frame_received(100_000 - CONTROL_HEAD_BYTES);
            assert!(message_timeout.is_within_limit(look * 100_000 + READ_BYTES as u64), "{look}");
        }
    }

    #[test]
    fn only_an_unfinished_message_times_out() {
        let mut message_timeout = MessageTimeout::default();
        for look in 1..10 {
            assert!(message_timeout.is_within_limit(look * 100_000), "{look}");
            message_timeout.message_ended(look * 100_000);
        }
        assert!(message_timeout.is_within_limit(1_000_000));
        assert!(!message_timeout.is_within_limit(1_000_001));
    }
}
