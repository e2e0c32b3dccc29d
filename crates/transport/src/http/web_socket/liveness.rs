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
    has_given_sign: AtomicBool,
    /// When a message came or left last. Pings and pongs are no messages.
    last_used: Mutex<Instant>,
}

impl Liveness {
    /// Of a connection that begins now.
    pub(super) fn new() -> Self {
        Self { has_given_sign: AtomicBool::new(true), last_used: Mutex::new(Instant::now()) }
    }

    /// Something was heard, be it a pong.
    pub(super) fn give_sign(&self) {
        self.has_given_sign.store(true, Ordering::Relaxed);
    }

    /// A message came, or some of one has left: what a slow client reads is a sign of it, too.
    pub(super) fn touch(&self) {
        self.give_sign();
        *self.last_used.lock() = Instant::now();
    }

    /// Whether there was a sign since this was called last.
    pub(super) fn take_sign(&self) -> bool {
        self.has_given_sign.swap(false, Ordering::Relaxed)
    }

    /// When a message came or left last.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }
}
