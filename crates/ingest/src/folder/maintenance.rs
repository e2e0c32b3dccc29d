//! Joins small files, removes old rows, and deletes files that nobody needs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::datatypes::{DataType, SchemaRef};

use super::IngestError;
use super::closed_tables::without_root;
use super::keys::now_ms;
use super::options::TableDeclaration;
use super::shared::{FolderShared, IngestCounters};
use super::storage::TableStorage;
use crate::delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaError, DeltaSnapshot, DeltaTable, OPTIMIZE, PartitionBy, WriterOptions,
    expired_files, plan_compaction, read_file, unreferenced_files,
};

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

    /// `None` for a closed table, too: files that seem to be unused may be those of its lost rows.
    fn maintained_table(&self, key: &str) -> Option<MaintainedTable> {
        let state = self.state.lock();
        let table = state.tables.get(key).filter(|table| table.dropped_at.is_none() && table.closure.is_none())?;
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
            let mut unused = super::staged_file::UnkeptFiles::default();
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
