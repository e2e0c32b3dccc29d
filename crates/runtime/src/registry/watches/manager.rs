//! The state that all listeners share, and the task that polls stamps while there are listeners.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tidegate_core::{Caller, Error, ErrorKind};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::tenant_scheduler::{CONCURRENT_MAX, PolledEntryId};
use super::watch_table::{PollStep, StampRequest, WatchTable};
use crate::event::{EventDispatcher, emit_internal_error};
use crate::handler::panic_to_error;
use crate::registry::current_snapshot::CurrentSnapshot;

/// The interval between two polls of a stamp.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The maximum time for a stamp; after it, the stamp counts as unchanged.
const STAMP_TIMEOUT: Duration = Duration::from_secs(5);

/// The watches of one registry.
#[derive(Debug)]
pub(crate) struct WatchManager {
    pub(super) table: Mutex<WatchTable>,
    pub(super) snapshot: Arc<CurrentSnapshot>,
    /// Notified when something is due earlier than the poller expects.
    wake_poller: Notify,
    events: EventDispatcher,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl WatchManager {
    pub(crate) fn new(snapshot: Arc<CurrentSnapshot>, events: EventDispatcher) -> Self {
        Self {
            table: Mutex::default(),
            snapshot,
            wake_poller: Notify::new(),
            events,
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Stops polling permanently.
    pub(crate) async fn drain(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Makes sure that due stamps are polled.
    pub(super) fn ensure_polling(self: &Arc<Self>) {
        if self.table.lock().begin_polling() {
            self.tasks.spawn(self.clone().poll());
        }
        self.wake_poller.notify_one();
    }

    /// Polls until there are no more listeners, or the registry is drained.
    async fn poll(self: Arc<Self>) {
        let mut running = FuturesUnordered::new();
        loop {
            let mut next_at = None;
            while running.len() < CONCURRENT_MAX {
                let version = self.snapshot.version();
                match self.table.lock().next_step(Instant::now(), version) {
                    PollStep::Poll(request) => running.push(poll_stamp(request)),
                    PollStep::WaitUntil(due) => {
                        next_at = Some(due);
                        break;
                    }
                    PollStep::Idle => break,
                }
            }
            if running.is_empty() && next_at.is_none() && self.table.lock().end_polling() {
                return;
            }
            tokio::select! {
                biased;
                () = self.ended.cancelled() => return,
                Some((id, caller, stamp)) = running.next() => {
                    let next_poll_at = Instant::now() + POLL_INTERVAL;
                    let is_new_failure = self.table.lock().record_stamp(id, &caller, stamp.as_ref().ok(), next_poll_at);
                    if let Err(error) = stamp && is_new_failure {
                        emit_internal_error(&self.events, &error, Uuid::new_v4());
                    }
                }
                () = self.wake_poller.notified() => {}
                () = sleep_until(next_at.unwrap_or_else(Instant::now)), if next_at.is_some() => {}
            }
        }
    }
}

/// The stamp of one entry.
async fn poll_stamp(request: StampRequest) -> (PolledEntryId, Arc<Caller>, Result<Option<String>, Error>) {
    let StampRequest { id, caller, watcher } = request;
    let stamp = AssertUnwindSafe(watcher.watcher.stamp(&watcher.variables, &caller)).catch_unwind();
    let stamp = match tokio::time::timeout(STAMP_TIMEOUT, stamp).await {
        Ok(stamp) => stamp.unwrap_or_else(|panic| Err(panic_to_error(&*panic))),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "checking whether a resource has changed took too long")),
    };
    (id, caller, stamp)
}
