//! A folder of Delta tables that take rows: its handle, what an owner reads about its tables, and how an operator keeps it up.
//!
//! A write is one record of the write-ahead log: its rows, or the descriptions of data files that it made itself. When the
//! record is synced, its rows are visible. A background task moves rows from the log to the Delta tables. A Delta table
//! keeps the sequence number up to which it has the records (`txn` of the protocol), in the same commit as the rows. So a
//! crash at any point neither loses nor doubles rows.
//!
//! - `target`: what writers use. `options`: names, declarations and bounds. `error`.
//! - `writer`: a write. `columns`: whether its columns fit. `write_record`: its record.
//! - `state`: the tables in memory, and views of them. `shared`: their owner.
//! - `keys`: the keys of writes. `recovery`: what happens at a start, with the lock. `log_id`, `checked_file`, `permissions`.
//!   `closed_tables`, `kept_records`: what becomes of damage.
//! - `background`: when rows are moved, files joined and tables removed. `storage`: the parts of it that block.
//! - `verify`: whether everything is there.

mod background;
mod checked_file;
mod closed_tables;
mod columns;
mod error;
mod kept_records;
mod keys;
mod log_id;
mod options;
mod permissions;
mod recovery;
mod shared;
mod state;
mod storage;
mod target;
mod verify;
mod write_record;
mod writer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_core::{Error, IngestTotals, WriteTotals};
use tidegate_query::{IngestMaintenance, IngestStatus, IngestVerification};
use tokio::sync::{Notify, RwLock, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use closed_tables::{lost_tables, write_problem};
pub use error::IngestError;
pub use options::{IngestOptions, SchemaEvolution, TableDeclaration};
pub use permissions::permission_problem;
pub use shared::IngestCounters;
pub use state::IngestTableView;
pub use storage::{OpenedTable, open_tables};
pub use verify::{TableVerification, verify_folder};

use crate::delta::StopFlag;
use options::table_key;
use recovery::{OpenedFolder, open_folder};
use shared::{FolderShared, memory_semaphore};
use state::TableState;

/// The folder of our own files in a folder of tables. No table has such a name.
pub(crate) const TIDEGATE_FOLDER: &str = ".tidegate";
/// Where folders of dropped tables are deleted, and where files without a name are created. What a crash leaves there is
/// deleted at the next start.
pub(crate) const TRASH_FOLDER: &str = "trash";

/// How long rows are moved while a folder is closed. A service manager kills what does not end in ten seconds or more.
const FLUSH_AT_CLOSE: Duration = Duration::from_secs(4);

/// A folder of Delta tables that take rows. Implements [`WriteTarget`](tidegate_query::WriteTarget).
///
/// Dropping it ends its background task; rows that are in the log only are there again when it is opened.
/// [`IngestFolder::close`] moves them to their tables before.
#[derive(Debug)]
pub struct IngestFolder {
    pub(crate) shared: Arc<FolderShared>,
    background: Mutex<Option<JoinHandle<()>>>,
}

impl IngestFolder {
    /// Opens the folder at `path` as the database `name`. It is created if it does not exist.
    ///
    /// # Errors
    /// `Locked` if another process writes to it; `Declaration` if a declared table contradicts the table on disk; `Io`,
    /// `Log` and `Record`. Damage closes only the tables that have it.
    pub async fn open(name: &str, path: PathBuf, options: IngestOptions) -> Result<Arc<Self>, IngestError> {
        let open_options = options.clone();
        let open_path = path.clone();
        let open = tokio::task::spawn_blocking(move || open_folder(&open_path, &open_options));
        let OpenedFolder { state, log, key_log, application, permission_problem, lock } =
            open.await.map_err(|_| IngestError::Panicked)??;
        let shared = Arc::new(FolderShared {
            name: name.to_owned(),
            path,
            memory: memory_semaphore(options.waiting_bytes_max),
            options,
            application,
            permission_problem,
            version: watch::Sender::new(state.version),
            state: Mutex::new(state),
            log,
            key_log: tokio::sync::Mutex::new(key_log),
            commits: RwLock::new(()),
            memory_waiters: 0.into(),
            flush_due: Notify::new(),
            flush_failures: watch::Sender::new(0),
            stop: watch::Sender::new(false),
            flush_stop: StopFlag::default(),
            maintenance_stop: StopFlag::default(),
            counters: IngestCounters::default(),
            lock,
        });
        let background = tokio::spawn(background::run(shared.clone()));
        Ok(Arc::new(Self { shared, background: Mutex::new(Some(background)) }))
    }

    /// The table as it is now. `None` if it does not exist, or has no columns yet.
    pub fn view(&self, table: &str) -> Option<IngestTableView> {
        let mut state = self.shared.state.lock();
        state.tables.get_mut(&table_key(table)).filter(|known| known.name == table)?.view()
    }

    /// All tables at one moment, by name, with those of rejected rows.
    pub fn views(&self) -> Vec<IngestTableView> {
        self.shared.state.lock().tables.values_mut().filter_map(|table| table.view()).collect()
    }

    /// The tables that take and return no rows because a part of them is damaged, and why.
    pub fn closed_tables(&self) -> BTreeMap<String, String> {
        let state = self.shared.state.lock();
        let closed = state.tables.values().filter_map(|table| {
            let closure = table.closure.as_ref().filter(|_| table.dropped_at.is_none())?;
            Some((table.name.clone(), closure.reason.clone()))
        });
        closed.collect()
    }

    /// What is damaged and concerns no single table: one sentence each.
    pub fn damage(&self) -> Vec<String> {
        let state = self.shared.state.lock();
        let new_tables = state.new_tables_closure.as_ref();
        let new_tables = new_tables.map(|closure| format!("no table can be created: {}", closure.reason));
        new_tables.into_iter().chain(state.keys.loss().map(str::to_owned)).collect()
    }

    /// What an administrator should know of the folder and of tables that are not closed: one sentence each, with
    /// [`IngestFolder::damage`].
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.damage();
        notes.extend(self.shared.permission_problem.clone());
        let state = self.shared.state.lock();
        let open = state.tables.values().filter(|table| table.dropped_at.is_none() && table.closure.is_none());
        notes.extend(open.filter_map(TableState::refusal).map(|refusal| refusal.to_string()));
        notes
    }

    /// Whether the table has columns, or is closed.
    pub fn has_table(&self, table: &str) -> bool {
        let state = self.shared.state.lock();
        state.tables.get(&table_key(table)).is_some_and(|known| known.name == table && known.exists())
    }

    /// Changes whenever the rows of a table change.
    pub fn version(&self) -> u64 {
        self.shared.state.lock().version
    }

    /// Deletes the files of dropped tables that no view uses any more. Otherwise that happens within a minute.
    pub async fn delete_dropped_tables(&self) {
        self.shared.remove_dropped_tables().await;
    }

    /// Receives each new [`IngestFolder::version`]. Versions that follow each other quickly may be received as one.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.version.subscribe()
    }

    /// The state of each table with columns.
    pub fn status(&self) -> Vec<IngestStatus> {
        self.shared.status()
    }

    /// What happened since the folder was opened.
    pub fn counters(&self) -> &IngestCounters {
        &self.shared.counters
    }

    /// The bytes of the write-ahead log.
    pub fn log_bytes(&self) -> u64 {
        self.shared.log.bytes()
    }

    /// Moves the rows of a table that only the log has to its Delta table.
    ///
    /// # Errors
    /// `UnknownTable`, `TableClosed`, `TableUnwritable`, `Delta`. The rows remain in the log, and visible.
    pub async fn flush(&self, table: &str) -> Result<(), IngestError> {
        self.shared.flush_table(&table_key(table)).await
    }

    /// Joins small files of a table, and returns how many.
    ///
    /// # Errors
    /// `Delta`. The files remain as they are.
    pub async fn compact(&self, table: &str) -> Result<u64, IngestError> {
        self.shared.compact_table(&table_key(table)).await
    }

    /// Runs what the background task runs from time to time for all tables: retention, compaction, and the deletion of
    /// files that nobody needs. Errors are in the status of the table.
    pub async fn maintain(&self) {
        self.shared.maintain().await;
    }

    /// Reads the log and all data files of a table, and compares their checksums and rows with what was written.
    ///
    /// # Errors
    /// `UnknownTable`, `TableClosed`, and `Log` if a file of the log cannot be read at all.
    pub async fn verify(&self, table: &str) -> Result<TableVerification, IngestError> {
        self.shared.verify_table(&table_key(table)).await
    }

    /// Ends all writes, moves rows to their tables for some seconds, and closes the folder. Rows that were not moved remain
    /// in the log, and are moved after the next start. When it returns, the folder can be opened again.
    ///
    /// # Errors
    /// `Delta` if rows could not be moved. They remain in the log, and the folder is closed nevertheless.
    pub async fn close(&self) -> Result<(), IngestError> {
        self.shared.state.lock().is_closing = true;
        self.shared.stop.send_replace(true);
        self.shared.maintenance_stop.stop();
        let mut ending = pin!(self.end_work());
        let flushed = match timeout(FLUSH_AT_CLOSE, &mut ending).await {
            Ok(flushed) => flushed,
            Err(_) => {
                self.shared.flush_stop.stop();
                ending.await
            }
        };
        let waiting = self.shared.waiting_rows();
        if waiting > 0 {
            tracing::info!(database = %self.shared.name, rows = waiting, "rows remain in the log until the next start");
        }
        self.shared.log.close().await;
        self.shared.key_log.lock().await.close().await;
        self.shared.lock.release();
        flushed
    }

    async fn end_work(&self) -> Result<(), IngestError> {
        let background = self.background.lock().take();
        if let Some(background) = background
            && background.await.is_err()
        {
            tracing::error!(database = %self.shared.name, "the background task of a folder panicked");
        }
        // Admitted writes end first.
        drop(self.shared.commits.write().await);
        let flushed = self.shared.flush_all().await;
        self.shared.remove_dropped_tables().await;
        self.shared.release_log().await;
        flushed
    }
}

impl Drop for IngestFolder {
    fn drop(&mut self) {
        self.shared.stop.send_replace(true);
    }
}

impl FolderShared {
    /// The tables with columns, by name.
    pub(crate) fn status(&self) -> Vec<IngestStatus> {
        let state = self.state.lock();
        let of_database = state.keys.loss();
        let existing = state.tables.values().filter(|table| table.exists());
        let mut tables: Vec<IngestStatus> = existing.map(|table| table_status(table, of_database)).collect();
        tables.sort_by(|left, right| left.table.cmp(&right.table));
        tables
    }
}

/// `of_database`: what is wrong with the whole database.
fn table_status(table: &TableState, of_database: Option<&str>) -> IngestStatus {
    let waiting = || table.flushing.as_deref().into_iter().chain(table.pending.as_ref());
    let snapshot = table.snapshot.as_ref();
    IngestStatus {
        table: table.name.clone(),
        waiting_rows: waiting().map(|rows| rows.rows).sum(),
        waiting_bytes: waiting().map(|rows| rows.bytes).sum(),
        oldest_age: waiting().map(|rows| rows.since.elapsed()).max(),
        files: snapshot.map_or(0, |snapshot| snapshot.files.len() as u64),
        rows: snapshot.map_or(0, |snapshot| snapshot.rows()),
        bytes: snapshot.map_or(0, |snapshot| snapshot.bytes()),
        sequence: table.last_sequence(),
        flushed_sequence: table.flushed_sequence,
        flushes: table.flushes,
        compactions: table.compactions,
        last_error: table.problem().or(of_database).map(str::to_owned),
    }
}

#[async_trait]
impl IngestMaintenance for IngestFolder {
    fn database(&self) -> &str {
        &self.shared.name
    }

    fn status(&self) -> Vec<IngestStatus> {
        self.shared.status()
    }

    fn totals(&self) -> IngestTotals {
        let counters = self.counters();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let kept_rejects = read(&counters.rejected_rows);
        IngestTotals {
            written: WriteTotals {
                writes: read(&counters.writes),
                repeated_writes: read(&counters.repeated_writes),
                failed_writes: read(&counters.failed_writes),
                // The rows of a write are counted before those of them that were rejected.
                rows: read(&counters.rows).saturating_sub(kept_rejects),
                rejected_rows: kept_rejects + read(&counters.refused_rows),
                bytes: read(&counters.bytes),
            },
            flushes: read(&counters.flushes),
            failed_flushes: read(&counters.failed_flushes),
            compactions: read(&counters.compactions),
            compacted_files: read(&counters.compacted_files),
        }
    }

    fn log_bytes(&self) -> u64 {
        Self::log_bytes(self)
    }

    async fn flush(&self, table: &str) -> Result<(), Error> {
        self.with_table(table, |_| ())?;
        Self::flush(self, table).await.map_err(|error| error.for_caller(&self.shared.name))
    }

    async fn compact(&self, table: &str) -> Result<u64, Error> {
        if let Some(refusal) = self.with_table(table, TableState::refusal)? {
            return Err(refusal.for_caller(&self.shared.name));
        }
        Self::compact(self, table).await.map_err(|error| error.for_caller(&self.shared.name))
    }

    async fn verify(&self, table: &str) -> Result<IngestVerification, Error> {
        if let Some(closure) = self.with_table(table, |known| known.closure.clone())? {
            return Ok(IngestVerification { problems: vec![closure.reason], ..IngestVerification::default() });
        }
        let found = Self::verify(self, table).await.map_err(|error| error.for_caller(&self.shared.name))?;
        let problems = found.problems.into_iter().map(|(path, problem)| format!("{}: {problem}", path.display()));
        Ok(IngestVerification {
            file_rows: found.file_rows,
            files: found.files,
            log_rows: found.log_rows,
            problems: problems.collect(),
        })
    }
}

impl IngestFolder {
    /// Reads the state of a table. Fails if the table does not exist.
    fn with_table<T>(&self, table: &str, read: impl FnOnce(&TableState) -> T) -> Result<T, Error> {
        let state = self.shared.state.lock();
        let known = state.tables.get(&table_key(table)).filter(|known| known.name == table && known.exists());
        match known {
            Some(known) => Ok(read(known)),
            None => Err(IngestError::UnknownTable(table.to_owned()).for_caller(&self.shared.name)),
        }
    }
}
