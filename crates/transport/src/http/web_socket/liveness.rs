//! Signs of life of one WebSocket, recorded by its reader and its writer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Ping interval. A client without a sign of life between two pings counts as disconnected.
pub(super) const PING_EVERY: Duration = Duration::from_secs(30);

/// The state of the other end.
pub(super) struct Liveness {
    /// Whether there was a sign of life since the last check.
    had_activity: AtomicBool,
    /// Whether a message is being sent. Then the write timeout of the connection detects a client that does not read.
    is_writing: AtomicBool,
    /// The time of the last message in either direction. Pings and pongs are not messages.
    last_used: Mutex<Instant>,
}

impl Liveness {
    /// The state of a new connection.
    pub(super) fn new() -> Self {
        let last_used = Mutex::new(Instant::now());
        Self { had_activity: AtomicBool::new(true), is_writing: AtomicBool::new(false), last_used }
    }

    /// Records received data, including a pong.
    pub(super) fn record_activity(&self) {
        self.had_activity.store(true, Ordering::Relaxed);
    }

    /// Records a received message.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// Records that a message begins to be sent, or was sent.
    pub(super) fn set_writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Relaxed);
        self.touch();
    }

    /// Whether a message is being sent.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// Whether there was a sign of life since the last call, or none is required.
    pub(super) fn take_activity(&self) -> bool {
        self.had_activity.swap(false, Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed)
    }

    /// The time since which no message was received or sent.
    pub(super) fn idle_since(&self) -> Instant {
        if self.is_writing.load(Ordering::Relaxed) { Instant::now() } else { *self.last_used.lock() }
    }
}
