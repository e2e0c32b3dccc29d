//! One piece of work on a connection, as those see it who may end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rusqlite::InterruptHandle;
use tidegate_core::Job;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One piece of work on a connection.
pub(crate) struct WorkCancellation {
    cancellation: CancellationToken,
    /// Asked again and again for its deadline, which may be moved.
    job: Option<Arc<Job>>,
    is_stopped: AtomicBool,
    /// There only while the work has the connection: an interrupt that comes later would hit somebody else's query.
    interrupt: Mutex<Option<InterruptHandle>>,
}

impl WorkCancellation {
    /// Work that ends when `start_job` is cancelled or its deadline passes.
    pub(crate) fn for_job(job: &Arc<Job>) -> Arc<Self> {
        Self::new(job.cancellation(), Some(job.clone()))
    }

    fn new(cancellation: CancellationToken, job: Option<Arc<Job>>) -> Arc<Self> {
        Arc::new(Self { cancellation, job, is_stopped: AtomicBool::new(false), interrupt: Mutex::new(None) })
    }

    /// Work that ends when it is stopped, and not before.
    pub(crate) fn unbounded() -> Arc<Self> {
        Self::new(CancellationToken::new(), None)
    }

    /// Fires when nobody wants the work any more.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Ends the work at once, within a single instruction of SQLite too where SQLite looks at its flag there.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        if let Some(handle) = self.interrupt.lock().as_ref() {
            handle.interrupt();
        }
    }

    /// Whether the work must end.
    pub(crate) fn must_stop(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
            || self.cancellation.is_cancelled()
            || self.job.as_ref().is_some_and(|job| job.is_cancelled() || Instant::now() >= job.deadline())
    }

    /// The work has a connection from now on.
    pub(super) fn attach(&self, handle: InterruptHandle) {
        let mut interrupt = self.interrupt.lock();
        *interrupt = Some(handle);
    }

    /// The work has a connection no longer.
    pub(super) fn detach(&self) {
        self.interrupt.lock().take();
    }
}

/// Stops the work when whoever waits for it goes away.
pub(crate) struct StopOnDrop(pub(crate) Arc<WorkCancellation>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
