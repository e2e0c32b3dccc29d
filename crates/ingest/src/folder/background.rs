//! The background task of a folder. It moves rows from the log to the Delta tables, joins small files, removes old rows, and
//! deletes files that nobody needs. It removes tables: first in the log, then on disk when no view uses the files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use arrow::datatypes::{DataType, SchemaRef};
use tidegate_core::private_file;
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use super::closed_tables::{LostRows, without_root};
use super::keys::now_ms;
use super::options::TableDeclaration;
use super::shared::{FolderShared, IngestCounters};
use super::state::PendingRows;
use super::storage::{FlushJob, TableStorage};
use super::write_record::{RecordDescription, encode_record};
use super::{IngestError, TIDEGATE_FOLDER, TRASH_FOLDER};
use crate::delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaError, DeltaSnapshot, DeltaTable, OPTIMIZE, PartitionBy, WriterOptions,
    expired_files, plan_compaction, read_file, unreferenced_files,
};

/// The wait after a failed move of rows.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Moves rows when they are many or old, and maintains the tables, until the folder is closed.
pub(crate) async fn run(shared: Arc<FolderShared>) {
    let mut stop = shared.stop.subscribe();
    let interval = shared.options.maintenance_interval.max(Duration::from_millis(1));
    let mut maintenance = tokio::time::interval_at(Instant::now() + interval, interval);
    maintenance.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // No row becomes old enough sooner, so a table that gets its first row needs no wake-up.
    let idle = shared.options.flush_age.max(Duration::from_millis(1));
    let mut retry_at = None;
    while !*stop.borrow_and_update() {
        let next = shared.next_flush().unwrap_or_else(|| Instant::now() + idle);
        let next = retry_at.map_or(next, |retry: Instant| retry.max(next));
        tokio::select! {
            // The folder was closed, or dropped.
            _ = stop.changed() => return,
            () = shared.flush_due.notified() => {}
            () = tokio::time::sleep_until(next) => {}
            _ = maintenance.tick() => {
                shared.maintain().await;
                continue;
            }
        }
        let is_waiting = retry_at.is_some_and(|retry| Instant::now() < retry);
        if is_waiting && shared.memory_waiters.load(Ordering::SeqCst) == 0 {
            continue;
        }
        // The error is in the log and in the status of the table.
        let flushed = shared.flush_due_tables().await;
        retry_at = flushed.is_err().then(|| Instant::now() + RETRY_AFTER);
    }
}

/// A move of the rows of one table.
struct FlushStep {
    storage: Arc<TableStorage>,
    incarnation: u64,
    partition_by: Vec<PartitionBy>,
}

impl FolderShared {
    /// Moves the rows of a table that are in the log to its Delta table.
    ///
    /// # Errors
    /// `UnknownTable`, `TableClosed`, `TableUnwritable`, `Delta`. The rows remain in the log, and visible.
    pub(crate) async fn flush_table(&self, key: &str) -> Result<(), IngestError> {
        let step = self.flush_step(key)?;
        let flushing = step.storage.flush.lock().await;
        // Rows of a failed move come first, then those since.
        while let Some((rows, is_retry)) = self.start_flush(key, step.incarnation) {
            let job = FlushJob {
                rows: rows.clone(),
                application: self.application.clone(),
                partition_by: step.partition_by.clone(),
                writer: self.writer_options(&self.flush_stop),
            };
            let result = step.storage.commit_rows(job).await;
            if let Some(damage) = result.as_ref().err().and_then(IngestError::damage) {
                let closed = self.close_unwritable(key, step.incarnation, damage).await;
                drop((rows, flushing));
                self.release_log().await;
                return Err(closed);
            }
            self.finish_flush(key, &step, &rows, result)?;
            if !is_retry {
                break;
            }
        }
        drop(flushing);
        self.release_log().await;
        Ok(())
    }

    fn flush_step(&self, key: &str) -> Result<FlushStep, IngestError> {
        let state = self.state.lock();
        let table = state.tables.get(key).filter(|table| table.dropped_at.is_none());
        let table = table.ok_or_else(|| IngestError::UnknownTable(key.to_owned()))?;
        if let Some(refusal) = table.refusal().filter(|_| !table.moves_rows()) {
            return Err(refusal);
        }
        Ok(FlushStep {
            storage: table.storage.clone(),
            incarnation: table.incarnation,
            partition_by: table.declaration.partition_by.clone(),
        })
    }

    fn start_flush(&self, key: &str, incarnation: u64) -> Option<(Arc<PendingRows>, bool)> {
        let mut state = self.state.lock();
        let table = state.tables.get_mut(key).filter(|table| table.incarnation == incarnation)?;
        let is_retry = table.flushing.is_some();
        table.start_flush().map(|rows| (rows, is_retry))
    }

    fn finish_flush(
        &self,
        key: &str,
        step: &FlushStep,
        rows: &PendingRows,
        result: Result<Arc<crate::delta::DeltaSnapshot>, IngestError>,
    ) -> Result<(), IngestError> {
        let mut state = self.state.lock();
        match result {
            Ok(snapshot) => {
                if let Some(table) = state.current_table(key, step.incarnation) {
                    table.flushing = None;
                    table.flushed_sequence = rows.last_sequence;
                    // A step that added columns may have noted a newer version, which has these rows.
                    if table.snapshot.as_ref().is_none_or(|known| known.version < snapshot.version) {
                        table.set_snapshot(snapshot);
                    }
                    table.release_view();
                    table.flushes += 1;
                    table.last_error = None;
                }
                IngestCounters::add(&self.counters.flushes, 1);
                tracing::debug!(database = %self.name, table = key, rows = rows.rows, "rows are in the Delta table");
                Ok(())
            }
            // Nothing is wrong. The rows are moved after the next start.
            Err(error) if error.is_stop() => Err(error),
            Err(error) => {
                tracing::error!(database = %self.name, table = key, %error, "rows remain in the log");
                if let Some(table) = state.current_table(key, step.incarnation) {
                    table.last_error = Some(without_root(&self.path, &error.to_string()));
                }
                drop(state);
                IngestCounters::add(&self.counters.failed_flushes, 1);
                self.flush_failures.send_modify(|failures| *failures += 1);
                Err(error)
            }
        }
    }

    /// Moves the rows of all tables.
    ///
    /// # Errors
    /// The first error, after all tables were tried.
    pub(crate) async fn flush_all(&self) -> Result<(), IngestError> {
        let keys = self.keys_of_tables(|_| true);
        self.flush_tables(keys).await
    }

    /// Moves the rows of tables that have many or old ones, or of all tables if a write waits for memory.
    async fn flush_due_tables(&self) -> Result<(), IngestError> {
        let is_memory_short = self.memory_waiters.load(Ordering::SeqCst) > 0;
        let keys = self.keys_of_tables(|table| is_memory_short || table.is_flush_due(&self.options));
        self.flush_tables(keys).await
    }

    async fn flush_tables(&self, keys: Vec<String>) -> Result<(), IngestError> {
        let mut result = Ok(());
        for key in keys {
            if self.flush_stop.is_stopped() {
                break;
            }
            match self.flush_table(&key).await {
                // It was dropped meanwhile.
                Ok(()) | Err(IngestError::UnknownTable(_)) => {}
                Err(error) if error.is_stop() => break,
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// The tables with rows that can be moved.
    fn keys_of_tables(&self, condition: impl Fn(&super::state::TableState) -> bool) -> Vec<String> {
        let state = self.state.lock();
        let tables = state.tables.iter().filter(|(_, table)| table.moves_rows());
        let with_rows = tables.filter(|(_, table)| table.pending.is_some() || table.flushing.is_some());
        with_rows.filter(|(_, table)| condition(table)).map(|(key, _)| key.clone()).collect()
    }

    /// The number of rows that only the log has.
    pub(crate) fn waiting_rows(&self) -> u64 {
        let state = self.state.lock();
        state.tables.values().flat_map(super::state::TableState::logged_rows).map(|logged| logged.rows).sum()
    }

    /// When the oldest row of any table is old enough to be moved.
    fn next_flush(&self) -> Option<Instant> {
        let state = self.state.lock();
        let tables = state.tables.values().filter(|table| table.moves_rows());
        let oldest = tables.filter_map(|table| table.pending.as_ref()).map(|rows| rows.since).min();
        oldest.map(|since| Instant::from_std(since) + self.options.flush_age.max(Duration::from_millis(1)))
    }
}

/// Rows of a batch while files are joined.
const COMPACTION_BATCH_ROWS: usize = 8192;
/// The column by which a table without a partition by time keeps rows.
const TIME_COLUMN: &str = "time";

/// A table as a step of maintenance uses it.
struct MaintainedTable {
    key: String,
    incarnation: u64,
    storage: Arc<TableStorage>,
    declaration: Arc<TableDeclaration>,
    snapshot: Arc<DeltaSnapshot>,
}

impl FolderShared {
    /// Runs all steps for all tables. Errors are noted at the table.
    pub(crate) async fn maintain(&self) {
        self.remove_dropped_tables().await;
        let keys: Vec<String> = self.state.lock().tables.keys().cloned().collect();
        for key in keys {
            if self.maintenance_stop.is_stopped() {
                return;
            }
            let result = self.maintain_table(&key).await;
            if let Err(error) = result
                && !error.is_stop()
            {
                tracing::warn!(database = %self.name, table = %key, %error, "maintenance of a table failed");
                if let Some(table) = self.state.lock().tables.get_mut(&key) {
                    table.last_error = Some(without_root(&self.path, &error.to_string()));
                }
            }
        }
        self.release_log().await;
    }

    async fn maintain_table(&self, key: &str) -> Result<(), IngestError> {
        self.remove_old_rows(key).await?;
        self.compact_table(key).await?;
        self.delete_unused_files(key).await
    }

    /// `None` for a table that takes no rows, too: files that seem to be unused may be those of its lost rows.
    fn maintained_table(&self, key: &str) -> Option<MaintainedTable> {
        let state = self.state.lock();
        let table = state.tables.get(key).filter(|table| table.dropped_at.is_none() && table.refusal().is_none())?;
        Some(MaintainedTable {
            key: key.to_owned(),
            incarnation: table.incarnation,
            storage: table.storage.clone(),
            declaration: table.declaration.clone(),
            snapshot: table.snapshot.clone()?,
        })
    }

    /// Joins small files of a table, and returns how many.
    pub(crate) async fn compact_table(&self, key: &str) -> Result<u64, IngestError> {
        let Some(table) = self.maintained_table(key) else { return Ok(0) };
        let (mut joined, mut groups) = (0, 0);
        for group in plan_compaction(&table.snapshot, self.options.compaction) {
            if self.maintenance_stop.is_stopped() {
                break;
            }
            let count = group.len() as u64;
            if self.join_files(&table, group).await? {
                joined += count;
                groups += 1;
            }
        }
        IngestCounters::add(&self.counters.compactions, groups);
        IngestCounters::add(&self.counters.compacted_files, joined);
        Ok(joined)
    }

    async fn join_files(&self, table: &MaintainedTable, group: Vec<Arc<DataFile>>) -> Result<bool, IngestError> {
        let files_guard = table.storage.unlisted_files.clone().read_owned().await;
        let (snapshot, folder) = (table.snapshot.clone(), table.storage.folder.clone());
        let partition_by = table.declaration.partition_by.clone();
        let inputs = group.clone();
        let file_bytes_max = self.options.compaction.target_bytes.saturating_mul(2);
        let options = WriterOptions { file_bytes_max, ..self.writer_options(&self.maintenance_stop) };
        let join = move || join_files(&folder, &snapshot, &inputs, &partition_by, options);
        let step = tokio::task::spawn_blocking(join);
        let joined =
            step.await.map_err(|_| IngestError::Panicked)?.map_err(IngestError::delta(&table.storage.table))?;
        // Rows may have been moved or removed meanwhile. The files are joined only if all of them are still there.
        let commit = move |delta: &mut Option<DeltaTable>, folder: &Path| {
            let mut unused = super::writer::UnkeptFiles::default();
            unused.extend(folder, &joined);
            let open = open_table(delta, folder)?;
            let Some(delta) = open else { return Ok(None) };
            let known: HashSet<String> = delta.snapshot().files.iter().map(|file| file.path.clone()).collect();
            if !group.iter().all(|file| known.contains(&file.path)) {
                return Ok(None);
            }
            let commit = DeltaCommit { add: joined, remove: group, operation: OPTIMIZE, ..DeltaCommit::default() };
            let result = delta.commit(commit);
            if matches!(result, Ok(_) | Err(DeltaError::Unconfirmed { .. })) {
                unused.keep();
            }
            result.map(|_| Some(delta.snapshot()))
        };
        let committed = table.storage.with_delta(commit).await?;
        drop(files_guard);
        let Some(snapshot) = committed else { return Ok(false) };
        self.set_snapshot(&table.key, table.incarnation, snapshot, |table| table.compactions += 1);
        Ok(true)
    }

    /// Removes the files whose rows are all older than the table keeps them.
    async fn remove_old_rows(&self, key: &str) -> Result<(), IngestError> {
        let Some(table) = self.maintained_table(key) else { return Ok(()) };
        let Some(retention) = table.declaration.retention else { return Ok(()) };
        let Some(column) = retention_column(&table.declaration, &table.snapshot.schema) else { return Ok(()) };
        let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let cutoff = now_ms().saturating_sub(retention_ms).saturating_mul(1000);
        // A move of rows must not begin from a version that is not known here.
        let _flush = table.storage.flush.lock().await;
        let remove = move |delta: &mut Option<DeltaTable>, folder: &Path| {
            let Some(delta) = open_table(delta, folder)? else { return Ok(None) };
            let expired = expired_files(&delta.snapshot(), &column, cutoff)?;
            if expired.is_empty() {
                return Ok(None);
            }
            delta.commit(DeltaCommit { remove: expired, operation: "DELETE", ..DeltaCommit::default() })?;
            Ok(Some(delta.snapshot()))
        };
        if let Some(snapshot) = table.storage.with_delta(remove).await? {
            self.set_snapshot(key, table.incarnation, snapshot, |_| {});
            let mut state = self.state.lock();
            state.version += 1;
            let version = state.version;
            if let Some(current) = state.tables.get_mut(key) {
                current.version = version;
                current.release_view();
            }
            self.version.send_replace(version);
        }
        Ok(())
    }

    /// Deletes the files that neither the newest version, nor the log, nor a view needs, and that are old enough.
    async fn delete_unused_files(&self, key: &str) -> Result<(), IngestError> {
        let Some(table) = self.maintained_table(key) else { return Ok(()) };
        // While a write makes files, nothing is deleted; the next round is soon.
        let Ok(files_guard) = table.storage.unlisted_files.clone().try_write_owned() else { return Ok(()) };
        // The folder may be that of a later table of the same name. While the guard is held, no table leaves its folder.
        if self.maintained_table(key).is_none_or(|current| current.incarnation != table.incarnation) {
            return Ok(());
        }
        let age = self.options.vacuum_age.max(Duration::from_millis(1));
        let Some(older_than) = SystemTime::now().checked_sub(age) else { return Ok(()) };
        // After a failure of the log, files may belong to a record that only the next start finds.
        if self.log.has_failed() {
            return Ok(());
        }
        // The version is that of the Delta table itself, as a move of rows may not be noted in the state yet.
        let find = move |delta: &mut Option<DeltaTable>, folder: &Path| match open_table(delta, folder)? {
            Some(delta) => unreferenced_files(folder, &delta.snapshot(), older_than),
            None => Ok(Vec::new()),
        };
        let found = table.storage.with_delta(find).await?;
        // The list of needed files comes after that of the found ones: a file that was added to the table since then is
        // needed.
        let needed = self.needed_files(&table);
        let unused: Vec<PathBuf> = found.into_iter().filter(|path| !needed.contains(path)).collect();
        let count = unused.len() as u64;
        let delete = move |_: &mut Option<DeltaTable>, _: &Path| {
            unused.iter().try_for_each(|path| {
                std::fs::remove_file(path).map_err(|source| DeltaError::Io { path: path.clone(), source })
            })
        };
        table.storage.with_delta(delete).await?;
        drop(files_guard);
        IngestCounters::add(&self.counters.deleted_files, count);
        Ok(())
    }

    fn needed_files(&self, table: &MaintainedTable) -> HashSet<PathBuf> {
        let mut state = self.state.lock();
        let mut needed = HashSet::new();
        let Some(current) = state.tables.get_mut(&table.key) else { return needed };
        let folder = &table.storage.folder;
        let mut add = |files: &[Arc<DataFile>]| needed.extend(files.iter().map(|file| folder.join(&file.path)));
        current.snapshot.iter().for_each(|snapshot| add(&snapshot.files));
        current.flushing.iter().for_each(|rows| add(&rows.staged));
        current.pending.iter().for_each(|rows| add(&rows.staged));
        current.live_views().iter().for_each(|view| add(&view.files));
        needed
    }
}

/// The Delta table, opened if it is not. `None` if it does not exist.
fn open_table<'a>(delta: &'a mut Option<DeltaTable>, folder: &Path) -> Result<Option<&'a mut DeltaTable>, DeltaError> {
    if delta.is_none() {
        *delta = DeltaTable::open(folder)?;
    }
    Ok(delta.as_mut())
}

fn join_files(
    folder: &Path,
    snapshot: &DeltaSnapshot,
    inputs: &[Arc<DataFile>],
    partition_by: &[PartitionBy],
    options: WriterOptions,
) -> Result<Vec<DataFile>, DeltaError> {
    let mut writer = DataFileWriter::new(folder, &snapshot.schema, partition_by, options)?;
    for file in inputs {
        for batch in read_file(folder, snapshot, file, COMPACTION_BATCH_ROWS)? {
            writer.write(&batch?)?;
        }
    }
    writer.finish()
}

/// The column whose time decides how long rows are kept: that of the partition by time, else `time`.
pub(crate) fn retention_column(declaration: &TableDeclaration, schema: &SchemaRef) -> Option<String> {
    let of_partition = declaration.partition_by.iter().find_map(|partition| match partition {
        PartitionBy::Day(column) | PartitionBy::Month(column) | PartitionBy::Hour(column) => Some(column.clone()),
        PartitionBy::Column(_) => None,
    });
    let is_time =
        |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64);
    let of_schema = schema.column_with_name(TIME_COLUMN).filter(|(_, field)| is_time(field.data_type()));
    of_partition.or_else(|| of_schema.map(|(_, field)| field.name().clone()))
}

impl FolderShared {
    /// Removes a table. It is invisible when this returns; its files are deleted when no view uses them.
    pub(crate) async fn drop_table(self: &std::sync::Arc<Self>, key: &str) -> Result<(), IngestError> {
        // Waits for admitted writes, so that their records come before.
        let commits = self.commits.write().await;
        let unknown = || IngestError::UnknownTable(key.to_owned());
        let name = {
            let state = self.state.lock();
            if state.is_closing {
                return Err(IngestError::Closed);
            }
            let table = state.tables.get(key).filter(|table| table.dropped_at.is_none()).ok_or_else(unknown)?;
            table.name.clone()
        };
        let payload = encode_record(&RecordDescription::DropTable { table: name.clone() }, Vec::new())?;
        let shared = self.clone();
        self.log
            .append_with(payload, move |sequence| {
                let mut state = shared.state.lock();
                state.drop_table(sequence, &name);
                shared.version.send_replace(state.version);
            })
            .await?;
        drop(commits);
        self.remove_dropped_tables().await;
        Ok(())
    }

    /// Deletes the files of dropped tables that no view uses.
    pub(crate) async fn remove_dropped_tables(&self) {
        let dropped: Vec<_> = {
            let mut state = self.state.lock();
            let tables = state.tables.values_mut();
            let unused = tables.filter_map(|table| {
                let is_unused = table.dropped_at.is_some() && table.live_views().is_empty();
                is_unused.then(|| (table.name.clone(), table.storage.clone()))
            });
            unused.collect()
        };
        let any = !dropped.is_empty();
        for (name, storage) in dropped {
            match self.remove_files(&storage).await {
                Ok(true) => self.state.lock().forget_table(&name),
                // A write that began before the removal still has files open. They are deleted later.
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(table = %name, %error, "a dropped table could not be deleted; it is tried again")
                }
            }
        }
        if any {
            self.release_log().await;
        }
    }

    async fn remove_files(&self, storage: &TableStorage) -> Result<bool, IngestError> {
        let _flush = storage.flush.lock().await;
        let Ok(_files) = storage.unlisted_files.try_write() else { return Ok(false) };
        let (root, name) = (self.path.clone(), storage.table.clone());
        let remove = move |delta: &mut Option<crate::delta::DeltaTable>, folder: &Path| {
            *delta = None;
            let removed = discard_folder(&root, folder).and_then(|()| LostRows::delete(&root, &name));
            removed.map_err(|source| DeltaError::Io { path: folder.to_owned(), source })
        };
        storage.with_delta(remove).await.map(|()| true)
    }
}

/// Deletes a folder below `root`. A crash leaves it whole, or out of the way.
pub(crate) fn discard_folder(root: &Path, folder: &Path) -> std::io::Result<()> {
    if !folder.try_exists()? {
        return Ok(());
    }
    let trash = root.join(TIDEGATE_FOLDER).join(TRASH_FOLDER);
    private_file::create_folder(&trash)?;
    let discarded = trash.join(Uuid::new_v4().to_string());
    std::fs::rename(folder, &discarded)?;
    std::fs::File::open(folder.parent().unwrap_or(root))?.sync_all()?;
    std::fs::remove_dir_all(&discarded)
}
