//! Whether the server takes connections, found out by one attempt at a time for all calls that wait for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;

use crate::bridge::BridgeOptions;
use crate::bridge::backoff::Backoff;
use crate::bridge::notice::BridgeNotice;

/// What is known of the way to the server.
#[derive(Debug, Default)]
pub(super) struct Reachability {
    /// Counts how often the server took a connection after it was away.
    epoch: AtomicU64,
    is_lost: AtomicBool,
    backoff: Mutex<Backoff>,
    /// Held by whoever tries.
    retry_lock: tokio::sync::Mutex<()>,
}

impl Reachability {
    /// To be taken before an attempt, and given to [`Reachability::wait_until_reachable`] after it failed.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The server answered.
    pub(super) fn mark_reachable(&self, options: &BridgeOptions) {
        if self.is_lost.swap(false, Ordering::AcqRel) {
            self.backoff.lock().reset();
            options.notify(&BridgeNotice::Reconnected);
        }
    }

    /// Waits until the server takes a connection again, for whoever found it away in `epoch`. Tries longer apart each
    /// time, until [`Reachability::mark_reachable`].
    pub(super) async fn wait_until_reachable(&self, epoch: u64, reason: &str, options: &BridgeOptions) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            options.notify(&BridgeNotice::Disconnected(reason.to_owned()));
        }
        let _trying = self.retry_lock.lock().await;
        while self.epoch() == epoch {
            let delay: Duration = self.backoff.lock().next_delay();
            tokio::time::sleep(delay).await;
            // Asking for a connection asks for nothing else: no call can run because of it.
            let connecting = TcpStream::connect((options.address.host(), options.address.port()));
            if let Ok(Ok(_)) = tokio::time::timeout(options.wait_within, connecting).await {
                self.epoch.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}
