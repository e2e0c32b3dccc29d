//! The task that polls stamps while there are listeners.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tidegate_core::{Caller, Error, ErrorKind};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::WatchShared;
use super::tenant_scheduler::{CONCURRENT_MAX, PolledEntryId};
use super::watch_table::{PollStep, StampRequest};
use crate::event::emit_internal_error;
use crate::registry::execution::panic_to_error;

/// The interval between two polls of a stamp.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum time for a stamp; after it, the stamp counts as unchanged.
const STAMP_TIMEOUT: Duration = Duration::from_secs(5);

/// Polls until there are no more listeners, or the registry is drained.
pub(super) async fn poll(shared: Arc<WatchShared>) {
    let mut futures_unordered = FuturesUnordered::new();
    loop {
        let mut next_at = None;
        while futures_unordered.len() < CONCURRENT_MAX {
            let version = *shared.versions.borrow();
            match shared.table.lock().next_step(Instant::now(), version) {
                PollStep::Poll(question) => futures_unordered.push(poll_stamp(question)),
                PollStep::WaitUntil(due) => {
                    next_at = Some(due);
                    break;
                }
                PollStep::Idle => break,
            }
        }
        if futures_unordered.is_empty() && next_at.is_none() && shared.table.lock().end_polling() {
            return;
        }
        tokio::select! {
            biased;
            () = shared.ended.cancelled() => return,
            Some((id, caller, stamp)) = futures_unordered.next() => {
                let again_at = Instant::now() + POLL_INTERVAL;
                let has_failed_now = shared.table.lock().record_stamp(id, &caller, stamp.as_ref().ok(), again_at);
                if let Err(error) = stamp && has_failed_now {
                    emit_internal_error(&shared.events, &error, Uuid::new_v4());
                }
            }
            () = shared.wake_poller.notified() => {}
            () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {}
        }
    }
}

/// The stamp of one entry.
async fn poll_stamp(question: StampRequest) -> (PolledEntryId, Arc<Caller>, Result<Option<String>, Error>) {
    let StampRequest { id, caller, resolved_watcher: found } = question;
    let stamp = AssertUnwindSafe(found.watcher.stamp(&found.variables, &caller)).catch_unwind();
    let stamp = match tokio::time::timeout(STAMP_TIMEOUT, stamp).await {
        Ok(stamp) => stamp.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "checking whether a resource has changed took too long")),
    };
    (id, caller, stamp)
}
