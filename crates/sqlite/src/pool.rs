//! A bounded number of connections. Each has its own thread, since SQLite blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::policy_views::PolicyCaller;
use crate::session::{ReadTransaction, SqliteSession, StopOnDrop, WorkCancellation};
use crate::tables::{DatabaseFiles, SqliteOptions};
use crate::work_error::WorkError;

/// Reserved, not allocated. Suffices for SQLite's recursion up to its limits, also in unoptimised builds.
const STACK_BYTES: usize = 16 << 20;

pub(crate) struct Pool {
    pub(crate) database: Arc<str>,
    pub(crate) files: Arc<DatabaseFiles>,
    pub(crate) options: Arc<SqliteOptions>,
    permits: Arc<Semaphore>,
    /// Idle threads; the most recently used is last.
    idle: Mutex<Vec<Worker>>,
}

impl Pool {
    pub(crate) fn new(database: Arc<str>, files: DatabaseFiles, options: SqliteOptions) -> Self {
        let permits = Arc::new(Semaphore::new(options.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
        Self { database, files: Arc::new(files), options: Arc::new(options), permits, idle: Mutex::default() }
    }

    /// The number of unused connections, open or not.
    pub(crate) fn available(&self) -> usize {
        self.permits.available_permits()
    }

    /// Waits for a permit. If the future is dropped, nothing is held.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, Error> {
        let permit = self.permits.clone().acquire_owned().await;
        permit.map_err(|_| Error::new(ErrorKind::Unavailable, "the server is shutting down"))
    }

    /// Runs `work` on a connection and waits for its result. If the future is dropped, the work stops.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        policy_caller: Option<Arc<PolicyCaller>>,
        work: impl FnOnce(&ReadTransaction<'_>) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.acquire().await?;
        let (sender, receiver) = oneshot::channel();
        let cancellation = WorkCancellation::unbounded();
        let _stop = StopOnDrop(cancellation.clone());
        self.start(permit, move |session| {
            let outcome = session.read(&cancellation, policy_caller.as_deref(), work);
            // The caller may have stopped waiting.
            Box::new(move || drop(sender.send(outcome)))
        })?;
        match receiver.await {
            Ok(outcome) => outcome.map_err(|failure| failure.into_error(&self.database)),
            Err(_) => Err(Error::internal("work on a connection to SQLite panicked")),
        }
    }

    /// When `work` ends, the connection is released first; then the returned callback is called.
    pub(crate) fn start(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        work: impl FnOnce(&mut SqliteSession) -> CompletionCallback + Send + 'static,
    ) -> Result<(), Error> {
        let mut item = WorkItem { work: Box::new(work), permit };
        loop {
            let idle = self.idle.lock().pop();
            let worker = match idle {
                Some(worker) => worker,
                None => Worker::start(self).map_err(|error| {
                    Error::new(ErrorKind::Unavailable, "cannot start a thread for SQLite")
                        .with_detail(error.to_string())
                })?,
            };
            match worker.send(item) {
                Ok(()) => return Ok(()),
                // The thread has ended, which only a defect in this crate causes. Another one may be alive.
                Err(returned) => item = returned,
            }
        }
    }
}

struct WorkItem {
    work: Box<dyn FnOnce(&mut SqliteSession) -> CompletionCallback + Send>,
    permit: OwnedSemaphorePermit,
}

/// Called after the connection is released, so that the next query of the same caller finds it free.
pub(crate) type CompletionCallback = Box<dyn FnOnce() + Send>;

/// The sending end of a thread. It has only one owner at a time, so at most one work item is in transit.
struct Worker {
    id: u64,
    work_items: SyncSender<(WorkItem, Worker)>,
}

impl Worker {
    fn start(pool: &Arc<Pool>) -> io::Result<Self> {
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

    /// The worker returns to the pool when the work is done. Returns the item if the thread has ended.
    fn send(self, item: WorkItem) -> Result<(), WorkItem> {
        let work_items = self.work_items.clone();
        work_items.send((item, self)).map_err(|error| error.0.0)
    }
}

struct WorkerThread {
    id: u64,
    work_items: Receiver<(WorkItem, Worker)>,
    session: SqliteSession,
    pool: Weak<Pool>,
    idle_timeout: Duration,
}

impl WorkerThread {
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
