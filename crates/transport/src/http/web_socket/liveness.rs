//! Signs of life of one WebSocket: what was heard and what has left, told by those who read and write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A quiet client is asked whether it is there this often; one that gives no sign until the next time is gone.
pub(super) const PING_EVERY: Duration = Duration::from_secs(30);

/// What is known of the other end.
pub(super) struct Liveness {
    /// Whether there was any sign since it was asked last.
    had_activity: AtomicBool,
    /// Whether a message is on its way: that the client reads is watched by the connection itself.
    is_writing: AtomicBool,
    /// When a message came or left last. Pings and pongs are no messages.
    last_used: Mutex<Instant>,
}

impl Liveness {
    /// Of a connection that begins now.
    pub(super) fn new() -> Self {
        let last_used = Mutex::new(Instant::now());
        Self { had_activity: AtomicBool::new(true), is_writing: AtomicBool::new(false), last_used }
    }

    /// Something was heard, be it a pong.
    pub(super) fn record_activity(&self) {
        self.had_activity.store(true, Ordering::Relaxed);
    }

    /// A message came.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// A message begins to leave, or has left.
    pub(super) fn set_writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Relaxed);
        self.touch();
    }

    /// Whether a message is on its way.
    pub(super) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// Whether there was a sign since this was called last, or need not be any.
    pub(super) fn take_activity(&self) -> bool {
        self.had_activity.swap(false, Ordering::Relaxed) || self.is_writing.load(Ordering::Relaxed)
    }

    /// Since when no message came or left.
    pub(super) fn idle_since(&self) -> Instant {
        if self.is_writing.load(Ordering::Relaxed) { Instant::now() } else { *self.last_used.lock() }
    }
}
