//! A thread with a connection: it takes one piece of work after the other, and ends when none comes for a while.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::{PoolPermit, PoolState};
use crate::session::SqliteSession;

/// The stack of a thread, reserved but not held: SQLite walks expressions and subqueries recursively, as deep as its
/// limits let it, in unoptimised builds too.
const STACK_BYTES: usize = 16 << 20;

/// A piece of work, and the place that it holds until it is done.
pub(super) struct WorkItem {
    pub(super) work: Box<dyn FnOnce(&mut SqliteSession) -> CompletionCallback + Send>,
    pub(super) permit: PoolPermit,
}

/// Tells of the work's outcome. This comes after the connection is free again, so that whoever hears of it and asks
/// the next question finds it.
pub(crate) type CompletionCallback = Box<dyn FnOnce() + Send>;

/// The way to a thread. Only one owner at a time has it, so there is never more than one order on the way.
pub(super) struct Worker {
    id: u64,
    work_items: SyncSender<(WorkItem, Worker)>,
}

impl Worker {
    /// Starts a thread for the connections of `pool`.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(super) fn start(pool: &Arc<PoolState>) -> io::Result<Self> {
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

    /// Hands `order` over, and the worker with it, which comes back to the pool when the work is done.
    ///
    /// # Errors
    /// The order, when the thread has ended.
    pub(super) fn send(self, order: WorkItem) -> Result<(), WorkItem> {
        let orders = self.work_items.clone();
        orders.send((order, self)).map_err(|back| back.0.0)
    }
}

/// The thread's side.
struct WorkerThread {
    id: u64,
    work_items: Receiver<(WorkItem, Worker)>,
    session: SqliteSession,
    pool: Weak<PoolState>,
    idle_timeout: Duration,
}

impl WorkerThread {
    /// Works until the pool is gone or nothing came for long.
    fn run(mut self) {
        loop {
            let order = match self.work_items.recv_timeout(self.idle_timeout) {
                Err(RecvTimeoutError::Timeout) if self.try_retire() => return,
                // Somebody has taken the worker just now, so an order comes.
                Err(RecvTimeoutError::Timeout) => self.work_items.recv().ok(),
                received => received.ok(),
            };
            let Some((WorkItem { work, permit: place }, worker)) = order else { return };
            let session = &mut self.session;
            let message = catch_unwind(AssertUnwindSafe(|| work(session)));
            if message.is_err() {
                self.session.close();
            }
            if let Some(pool) = self.pool.upgrade() {
                pool.idle.lock().push(worker);
            }
            drop(place);
            // After a panic who waits for the work sees that nothing came of it.
            if let Ok(message) = message {
                message();
            }
        }
    }

    /// Takes this thread from the idle ones, if it is among them or the pool is gone.
    fn try_retire(&self) -> bool {
        let Some(pool) = self.pool.upgrade() else { return true };
        let mut idle = pool.idle.lock();
        let position = idle.iter().position(|worker| worker.id == self.id);
        position.map(|position| idle.remove(position)).is_some()
    }
}
