//! The cancellation of a piece of work on a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::InterruptHandle;
use tidegate_runtime::Job;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::work_error::WorkError;

/// A handle that can end one piece of work on a connection.
pub(crate) struct WorkCancellation {
    cancellation: CancellationToken,
    /// Its deadline is read repeatedly, since it may be extended.
    job: Option<Arc<Job>>,
    is_stopped: AtomicBool,
    /// Present only while the work has the connection. A later interrupt would end the query of another caller.
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl WorkCancellation {
    /// Work that ends when `job` is cancelled or its deadline passes.
    pub(crate) fn for_job(job: &Arc<Job>) -> Arc<Self> {
        Self::new(job.cancellation(), Some(job.clone()))
    }

    fn new(cancellation: CancellationToken, job: Option<Arc<Job>>) -> Arc<Self> {
        Arc::new(Self { cancellation, job, is_stopped: AtomicBool::new(false), interrupt: Mutex::new(None) })
    }

    /// Work that ends only when it is stopped.
    pub(crate) fn unbounded() -> Arc<Self> {
        Self::new(CancellationToken::new(), None)
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Ends the work at once. SQLite also checks its interrupt flag inside some long instructions.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        if let Some(handle) = self.interrupt.lock().as_ref() {
            handle.interrupt();
        }
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
            || self.cancellation.is_cancelled()
            || self.is_overdue()
            || self.job.as_ref().is_some_and(|job| job.is_cancelled())
    }

    fn is_overdue(&self) -> bool {
        self.job.as_ref().is_some_and(|job| Instant::now() >= job.deadline())
    }

    /// Why work that must stop ends. The work may notice the deadline before its job does, which is then cancelled.
    pub(crate) fn stop_error(&self) -> WorkError {
        if self.is_overdue() { WorkError::TimedOut } else { WorkError::Cancelled }
    }

    pub(super) fn attach(&self, handle: InterruptHandle) {
        *self.interrupt.lock() = Some(handle);
    }

    pub(super) fn detach(&self) {
        self.interrupt.lock().take();
    }
}

/// Stops the work when the caller that waits for it is dropped.
pub(crate) struct StopOnDrop(pub(crate) Arc<WorkCancellation>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
