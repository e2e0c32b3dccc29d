//! What the writers, the background task and the owner of a folder share.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tidegate_core::Error;
use tokio::sync::{Notify, OwnedSemaphorePermit, RwLock, Semaphore, watch};

use super::error::unavailable;
use super::keys::{KeyAccess, KeyLog, KeyTable};
use super::options::IngestOptions;
use super::recovery::FolderLock;
use super::state::{AppliedWrite, FolderState, TableState};
use super::{IngestError, TIDEGATE_FOLDER, TRASH_FOLDER};
use crate::delta::{DeltaSnapshot, StopFlag, WriterOptions};
use crate::write_ahead_log::{WriteAheadLog, WriteAheadLogError};

/// The unit in which memory is counted, as semaphores count to 32 bits.
const MEMORY_UNIT_BYTES: usize = 1024;

#[derive(Debug)]
pub(crate) struct FolderShared {
    /// The name of the database.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) options: IngestOptions,
    /// The id of the log, under which Delta tables keep how far they have its records.
    pub(crate) application: String,
    /// What other users could open when the folder was opened.
    pub(crate) permission_problem: Option<String>,
    pub(crate) state: Mutex<FolderState>,
    pub(crate) log: WriteAheadLog,
    /// Held while records are released.
    pub(crate) key_log: tokio::sync::Mutex<KeyLog>,
    /// Held for reading from the admission of a write to its acknowledgement, for writing while a removal is logged.
    pub(crate) commits: RwLock<()>,
    /// The room in memory for rows that no Delta table has.
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) memory_waiters: AtomicUsize,
    /// Wakes the background task.
    pub(crate) flush_due: Notify,
    /// Counts failed moves of rows, so that those who wait for memory learn of them.
    pub(crate) flush_failures: watch::Sender<u64>,
    pub(crate) version: watch::Sender<u64>,
    pub(crate) stop: watch::Sender<bool>,
    /// Ends moves of rows in the middle, whose rows remain in the log.
    pub(crate) flush_stop: StopFlag,
    /// Ends maintenance in the middle, and writes whose end would be refused.
    pub(crate) maintenance_stop: StopFlag,
    pub(crate) counters: IngestCounters,
    pub(crate) lock: FolderLock,
}

/// What happened since the folder was opened. All values only grow.
#[derive(Debug, Default)]
pub struct IngestCounters {
    /// Writes that were stored.
    pub writes: AtomicU64,
    /// Rows that were stored, with those in tables of rejected rows.
    pub rows: AtomicU64,
    /// Rows that were stored in tables of rejected rows.
    pub rejected_rows: AtomicU64,
    /// Rows that were sent and are stored nowhere.
    pub refused_rows: AtomicU64,
    /// Bytes that were stored: in the log and in data files that writes made themselves.
    pub bytes: AtomicU64,
    /// Writes that were answered from their key.
    pub repeated_writes: AtomicU64,
    /// Writes that failed at their end.
    pub failed_writes: AtomicU64,
    /// Moves of rows from the log to a Delta table.
    pub flushes: AtomicU64,
    /// Moves that failed.
    pub failed_flushes: AtomicU64,
    /// Groups of files that were joined.
    pub compactions: AtomicU64,
    /// Files that were joined with others.
    pub compacted_files: AtomicU64,
    /// Files that were deleted because no version needed them.
    pub deleted_files: AtomicU64,
}

impl IngestCounters {
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

/// The semaphore of the room in memory.
pub(crate) fn memory_semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((bytes / MEMORY_UNIT_BYTES).clamp(1, u32::MAX as usize >> 3)))
}

pub(crate) fn memory_units(bytes: usize) -> usize {
    bytes.div_ceil(MEMORY_UNIT_BYTES)
}

impl FolderShared {
    /// Makes a write visible whose record is in the log. Called in the order of the records.
    pub(crate) fn apply(&self, sequence: u64, write: AppliedWrite) {
        let mut state = self.state.lock();
        let names: Vec<String> = write.tables.iter().map(|(name, _, _)| name.clone()).collect();
        state.apply(sequence, write);
        let is_due = names.iter().any(|name| state.table_mut(name).is_flush_due(&self.options));
        self.version.send_replace(state.version);
        drop(state);
        // The first row of a table starts the time after which it is moved, so the task must wake for it too. Writes that
        // wait for memory have woken it before these rows could be moved.
        if is_due || self.memory_waiters.load(Ordering::SeqCst) > 0 {
            self.flush_due.notify_one();
        }
    }

    /// Notes a new version of a Delta table, unless a newer one is noted already.
    pub(crate) fn set_snapshot(
        &self,
        key: &str,
        incarnation: u64,
        snapshot: Arc<DeltaSnapshot>,
        change: impl FnOnce(&mut TableState),
    ) {
        let mut state = self.state.lock();
        if let Some(table) = state.tables.get_mut(key).filter(|table| table.incarnation == incarnation) {
            change(table);
            if table.snapshot.as_ref().is_none_or(|known| known.version < snapshot.version) {
                table.set_snapshot(snapshot);
            }
        }
    }

    /// How data files are written, until `stop`.
    pub(crate) fn writer_options(&self, stop: &StopFlag) -> WriterOptions {
        WriterOptions {
            spill_folder: Some(self.path.join(TIDEGATE_FOLDER).join(TRASH_FOLDER)),
            stop: stop.clone(),
            ..self.options.writer.clone()
        }
    }

    /// Waits for room in memory.
    pub(crate) async fn reserve(&self, units: usize) -> Result<Option<OwnedSemaphorePermit>, Error> {
        // A write alone may have more than all the room, if the owner set little.
        let units = u32::try_from(units.min(memory_units(self.options.waiting_bytes_max))).unwrap_or(u32::MAX);
        if units == 0 {
            return Ok(None);
        }
        if let Ok(permit) = self.memory.clone().try_acquire_many_owned(units) {
            return Ok(Some(permit));
        }
        let _waiter = MemoryWaiter::new(&self.memory_waiters);
        let mut failures = self.flush_failures.subscribe();
        self.flush_due.notify_one();
        let name = &self.name;
        tokio::select! {
            permit = self.memory.clone().acquire_many_owned(units) => {
                permit.map(Some).map_err(|_| unavailable(format!("database \"{name}\" is closed")))
            }
            _ = failures.changed() => {
                let message = format!(
                    "database \"{name}\" takes no rows now: its memory for new rows is full, and they cannot be moved to \
                     their tables; nothing was stored"
                );
                Err(self.name_waiting_table(unavailable(message)))
            }
            () = tokio::time::sleep(self.options.wait_max) => Err(self.name_waiting_table(unavailable(format!(
                "database \"{name}\" has taken more rows than it could move to their tables within {} seconds; nothing \
                 was stored",
                self.options.wait_max.as_secs()
            )))),
        }
    }

    /// The error of a write that the log refused.
    pub(crate) fn refused_by_log(&self, error: WriteAheadLogError) -> Error {
        let is_full = matches!(error, WriteAheadLogError::Full { .. });
        let error = IngestError::from(error).for_caller(&self.name);
        if is_full { self.name_waiting_table(error) } else { error }
    }

    /// Names the table for whose rows all others wait: the one that has a problem, or has waited longest. For the log only,
    /// as callers may not know the table.
    fn name_waiting_table(&self, error: Error) -> Error {
        let state = self.state.lock();
        let waiting = state.tables.values().filter_map(|table| Some((table.oldest_unflushed()?, table)));
        let Some((_, table)) = waiting.min_by_key(|(oldest, table)| (table.problem().is_none(), *oldest)) else {
            return error;
        };
        let problem = table.problem().unwrap_or("they are being moved");
        let hint = "The log of the server and \"tidegate ingest status\" name the table whose rows cannot be moved.";
        error.with_detail(format!("rows of table \"{}\" wait: {problem}", table.name)).with_hint(hint)
    }

    /// Releases the records that the Delta tables have. Their keys are saved before.
    pub(crate) async fn release_log(&self) {
        if let Err(error) = self.try_release_log().await {
            tracing::warn!(database = %self.name, %error, "records of the log could not be released; they are kept");
        }
    }

    async fn try_release_log(&self) -> Result<(), IngestError> {
        let mut key_log = self.key_log.lock().await;
        let (up_to, tables) = {
            let state = self.state.lock();
            (state.releasable_sequence(), state.released_tables())
        };
        // The log may be what says that they are needed no more.
        self.delete_kept_records(tables).await?;
        key_log.save(up_to, self).await?;
        Ok(self.log.release(up_to).await?)
    }
}

impl KeyAccess for &FolderShared {
    fn with_keys<T>(&self, action: impl FnOnce(&mut KeyTable) -> T) -> T {
        action(&mut self.state.lock().keys)
    }
}

/// Counts a write that waits for memory.
struct MemoryWaiter<'a>(&'a AtomicUsize);

impl<'a> MemoryWaiter<'a> {
    fn new(waiters: &'a AtomicUsize) -> Self {
        waiters.fetch_add(1, Ordering::SeqCst);
        Self(waiters)
    }
}

impl Drop for MemoryWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
