//! The state that all listeners share, and the tasks that poll version tags while there are listeners.
//!
//! Each polled entry has a task. A poll waits for a permit of its tenant and then for one of the registry, in the order
//! of requests. Few polls of a tenant wait for a permit of the registry, so slow watchers of one tenant leave room for
//! those of others.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tidegate_core::{Caller, Error, ErrorKind};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::watch_table::{CONCURRENT_MAX, ResolvedWatcher, VersionTagPoll, WatchTable};
use crate::event::EventDispatcher;
use crate::handler::panic_to_error;
use crate::registry::current_snapshot::CurrentSnapshot;

const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum time for a version tag; after it, the version tag counts as unchanged.
const VERSION_TAG_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct WatchManager {
    pub(super) table: Mutex<WatchTable>,
    pub(super) snapshot: Arc<CurrentSnapshot>,
    poll_permits: Semaphore,
    events: EventDispatcher,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl WatchManager {
    pub(crate) fn new(snapshot: Arc<CurrentSnapshot>, events: EventDispatcher) -> Self {
        Self {
            table: Mutex::default(),
            snapshot,
            poll_permits: Semaphore::new(CONCURRENT_MAX),
            events,
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) async fn drain(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(super) fn start_polls(self: &Arc<Self>) {
        let polls = self.table.lock().take_new_polls();
        for poll in polls {
            let manager = self.clone();
            self.tasks.spawn(async move {
                tokio::select! {
                    biased;
                    () = manager.ended.cancelled() => {}
                    () = poll.ended.cancelled() => {}
                    () = manager.poll(&poll) => {}
                }
            });
        }
    }

    /// Polls until the registry has another version.
    async fn poll(&self, poll: &VersionTagPoll) {
        while let Some(version_tag) = self.next_version_tag(poll).await {
            let is_new_failure = self.table.lock().record_version_tag(poll.id, version_tag.as_ref().ok());
            if let Err(error) = version_tag
                && is_new_failure
            {
                self.events.emit_error_detail(&error, Uuid::new_v4());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn next_version_tag(&self, poll: &VersionTagPoll) -> Option<Result<Option<String>, Error>> {
        // The semaphores are never closed.
        let _tenant_permit = poll.tenant_permits.acquire().await.ok()?;
        let _permit = self.poll_permits.acquire().await.ok()?;
        let is_current = self.table.lock().is_current(poll.id, self.snapshot.version());
        if is_current { Some(version_tag(&poll.watcher, &poll.caller).await) } else { None }
    }
}

async fn version_tag(watcher: &ResolvedWatcher, caller: &Caller) -> Result<Option<String>, Error> {
    let version_tag = AssertUnwindSafe(watcher.watcher.version_tag(&watcher.variables, caller)).catch_unwind();
    match tokio::time::timeout(VERSION_TAG_TIMEOUT, version_tag).await {
        Ok(version_tag) => version_tag.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "checking whether a resource has changed took too long")),
    }
}
