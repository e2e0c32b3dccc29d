//! The handle of an open folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_query::IngestStatus;
use tokio::sync::{Notify, RwLock, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::names::table_key;
use super::options::IngestOptions;
use super::recovery::{OpenedFolder, open_folder};
use super::shared::{FolderShared, IngestCounters, memory_semaphore};
use super::verify::TableVerification;
use super::view::IngestTableView;
use super::{IngestError, background};
use crate::delta::StopFlag;

/// How long rows are moved while a folder is closed. A service manager kills what does not end in ten seconds or more.
const FLUSH_AT_CLOSE: Duration = Duration::from_secs(4);

/// A folder of Delta tables that take rows. Implements [`IngestTarget`](tidegate_query::IngestTarget).
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
        let OpenedFolder { state, log, key_log, application, lock } =
            open.await.map_err(|_| IngestError::Panicked)??;
        let shared = Arc::new(FolderShared {
            name: name.to_owned(),
            path,
            memory: memory_semaphore(options.waiting_bytes_max),
            options,
            application,
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
    /// `UnknownTable`, `TableClosed`, `Delta`. The rows remain in the log, and visible.
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
