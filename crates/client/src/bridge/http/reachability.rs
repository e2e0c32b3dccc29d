//! Detects whether the server accepts connections, with one attempt at a time for all waiting calls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_core::Backoff;
use tokio::net::TcpStream;

use crate::bridge::options::{BridgeNotice, BridgeOptions, reconnection_backoff};

#[derive(Debug)]
pub(super) struct Reachability {
    epoch: AtomicU64,
    is_lost: AtomicBool,
    has_answered: AtomicBool,
    backoff: Mutex<Backoff>,
    retry_lock: tokio::sync::Mutex<()>,
}

impl Reachability {
    /// A server that is reachable until an attempt fails.
    pub(super) fn new() -> Self {
        Self {
            epoch: AtomicU64::default(),
            is_lost: AtomicBool::default(),
            has_answered: AtomicBool::default(),
            backoff: Mutex::new(reconnection_backoff()),
            retry_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Read before an attempt, and passed to [`Reachability::wait_until_reachable`] after it failed.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether the server has answered in HTTP.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Acquire)
    }

    pub(super) fn mark_reachable(&self, options: &BridgeOptions) {
        self.has_answered.store(true, Ordering::Release);
        if self.is_lost.swap(false, Ordering::AcqRel) {
            self.backoff.lock().reset();
            options.notify(&BridgeNotice::Reconnected);
        }
    }

    /// Waits after a failed attempt in `epoch`; the delay grows until [`Reachability::mark_reachable`] is called.
    pub(super) async fn wait_until_reachable(&self, epoch: u64, reason: &str, options: &BridgeOptions) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            options.notify(&BridgeNotice::Disconnected(reason.to_owned()));
        }
        let _attempt = self.retry_lock.lock().await;
        while self.epoch() == epoch {
            let delay = self.backoff.lock().next_delay();
            tokio::time::sleep(delay).await;
            // A bare connection runs no call.
            let connecting = TcpStream::connect((options.address.host(), options.address.port()));
            if let Ok(Ok(_)) = tokio::time::timeout(options.wait_within, connecting).await {
                self.epoch.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
