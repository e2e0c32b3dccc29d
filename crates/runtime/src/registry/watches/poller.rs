//! The task that polls version tags while there are listeners.

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
use super::watch_table::{PollStep, VersionTagRequest};
use crate::event::emit_internal_error;
use crate::registry::execution::panic_to_error;

/// The interval between two polls of a version tag.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum time for a version tag; after it, the version tag counts as unchanged.
const VERSION_TAG_TIMEOUT: Duration = Duration::from_secs(5);

/// Polls until there are no more listeners, or the registry is drained.
pub(super) async fn poll(shared: Arc<WatchShared>) {
    let mut futures_unordered = FuturesUnordered::new();
    loop {
        let mut next_at = None;
        while futures_unordered.len() < CONCURRENT_MAX {
            let version = *shared.versions.borrow();
            match shared.table.lock().next_step(Instant::now(), version) {
                PollStep::Poll(question) => futures_unordered.push(poll_version_tag(question)),
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
            Some((id, caller, version_tag)) = futures_unordered.next() => {
                let again_at = Instant::now() + POLL_INTERVAL;
                let has_failed_now = shared.table.lock().record_version_tag(id, &caller, version_tag.as_ref().ok(), again_at);
                if let Err(error) = version_tag && has_failed_now {
                    emit_internal_error(&shared.events, &error, Uuid::new_v4());
                }
            }
            () = shared.wake_poller.notified() => {}
            () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {}
        }
    }
}

/// The version tag of one entry.
async fn poll_version_tag(question: VersionTagRequest) -> (PolledEntryId, Arc<Caller>, Result<Option<String>, Error>) {
    let VersionTagRequest { id, caller, resolved_watcher: found } = question;
    let version_tag = AssertUnwindSafe(found.watcher.version_tag(&found.variables, &caller)).catch_unwind();
    let version_tag = match tokio::time::timeout(VERSION_TAG_TIMEOUT, version_tag).await {
        Ok(version_tag) => version_tag.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "checking whether a resource has changed took too long")),
    };
    (id, caller, version_tag)
}
