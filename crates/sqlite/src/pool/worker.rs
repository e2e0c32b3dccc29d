//! A thread with a connection. It processes one work item after the other and ends after an idle time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Pool;
use crate::session::SqliteSession;

/// The stack of a thread; reserved, not allocated. SQLite processes expressions and subqueries recursively, up to its
/// limits. The size also suffices for unoptimised builds.
const STACK_BYTES: usize = 16 << 20;

/// A piece of work and the permit that it holds until it is done.
pub(super) struct WorkItem {
    pub(super) work: Box<dyn FnOnce(&mut SqliteSession) -> CompletionCallback + Send>,
    pub(super) permit: OwnedSemaphorePermit,
}

/// Reports the outcome of the work. It is called after the connection is released, so that the next query of the same
/// caller finds it free.
pub(crate) type CompletionCallback = Box<dyn FnOnce() + Send>;

/// The sending end of a thread. It has only one owner at a time, so at most one work item is in transit.
pub(super) struct Worker {
    id: u64,
    work_items: SyncSender<(WorkItem, Worker)>,
}

impl Worker {
    /// Starts a thread for the connections of `pool`.
    pub(super) fn start(pool: &Arc<Pool>) -> io::Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = sync_channel(1);
        let thread = WorkerThread {
            id,
            work_items: receiver,
            session: SqliteSession::new(pool.files.clone(), pool.options.clone()),
            pool: Arc::downgrade(pool),
            idle_timeout: pool.options.idle_timeout,
        };
        thread::Builder::new()
            .name("tidegate-sqlite".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || thread.run())?;
        Ok(Self { id, work_items: sender })
    }

    /// Sends a work item together with the worker, which returns to the pool when the work is done. Returns the item if
    /// the thread has ended.
    pub(super) fn send(self, item: WorkItem) -> Result<(), WorkItem> {
        let work_items = self.work_items.clone();
        work_items.send((item, self)).map_err(|error| error.0.0)
    }
}

/// The receiving end, in the thread.
struct WorkerThread {
    id: u64,
    work_items: Receiver<(WorkItem, Worker)>,
    session: SqliteSession,
    pool: Weak<Pool>,
    idle_timeout: Duration,
}

impl WorkerThread {
    /// Processes work items until the pool is closed or the idle time is over.
    fn run(mut self) {
        loop {
            let received = match self.work_items.recv_timeout(self.idle_timeout) {
                Err(RecvTimeoutError::Timeout) if self.try_retire() => return,
                // The worker was taken from the pool just now, so a work item follows.
                Err(RecvTimeoutError::Timeout) => self.work_items.recv().ok(),
                received => received.ok(),
            };
            let Some((WorkItem { work, permit }, worker)) = received else { return };
            let session = &mut self.session;
            let callback = catch_unwind(AssertUnwindSafe(|| work(session)));
            if callback.is_err() {
                self.session.close();
            }
            if let Some(pool) = self.pool.upgrade() {
                pool.idle.lock().push(worker);
            }
            drop(permit);
            // After a panic, the dropped callback reports the failure to the caller.
            if let Ok(callback) = callback {
                callback();
            }
        }
    }

    /// Removes this thread from the idle threads. Returns true if it was idle, or if the pool is closed.
    fn try_retire(&self) -> bool {
        let Some(pool) = self.pool.upgrade() else { return true };
        let mut idle = pool.idle.lock();
        let position = idle.iter().position(|worker| worker.id == self.id);
        position.map(|position| idle.remove(position)).is_some()
    }
}
