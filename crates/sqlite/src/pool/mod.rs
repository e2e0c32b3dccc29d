//! A bounded number of connections. Each has its own thread, since SQLite blocks.

mod worker;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::files::DatabaseFiles;
use crate::options::SqliteOptions;
use crate::policy_views::PolicyCaller;
use crate::session::{ReadTransaction, SqliteSession, StopOnDrop, WorkCancellation};
use crate::work_error::WorkError;
use tidegate_core::{Error, ErrorKind};
use worker::{CompletionCallback, WorkItem, Worker};

/// The connections of one database.
pub(crate) struct Pool {
    pub(crate) database: Arc<str>,
    pub(crate) files: Arc<DatabaseFiles>,
    pub(crate) options: Arc<SqliteOptions>,
    permits: Arc<Semaphore>,
    /// Idle threads; the most recently used is last.
    idle: Mutex<Vec<Worker>>,
}

impl Pool {
    /// Creates a pool of connections to `files`; opens none.
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
        cancellation: Arc<WorkCancellation>,
        policy_caller: Option<Arc<PolicyCaller>>,
        work: impl FnOnce(&ReadTransaction<'_>) -> Result<T, WorkError> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = self.acquire().await?;
        let (sender, receiver) = oneshot::channel();
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

    /// Starts `work` on a connection. When it ends, the connection is released first; then the returned callback is
    /// called.
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
