//! The Delta table of a table, and the steps that block on its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use tokio::sync::{Mutex, RwLock};

use super::IngestError;
use super::columns::{pad, union};
use super::options::{check_table_name, table_key};
use super::state::PendingRows;
use crate::delta::{
    DataFile, DataFileWriter, DeltaCommit, DeltaError, DeltaSnapshot, DeltaTable, PartitionBy, WriterOptions,
};

/// How often a commit is tried again after another program committed first.
const CONFLICTS_MAX: u32 = 5;

/// The name of a table of a folder, and the table or the reason why it cannot be opened.
pub type OpenedTable = (String, Result<DeltaTable, DeltaError>);

/// Opens the tables of the folder `root`, which may not exist: each has a name, and a Delta table or the reason why that
/// cannot be opened. A folder without a Delta log is no table. What has the name of a table, and is no folder, has taken the
/// place of one.
///
/// # Errors
/// `Io` if the folder cannot be listed.
pub fn open_tables(root: &Path) -> Result<Vec<OpenedTable>, IngestError> {
    let entries = match std::fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IngestError::io("list", root)(error)),
    };
    let (mut tables, mut others) = (Vec::new(), Vec::new());
    for entry in entries {
        let path = entry.map_err(IngestError::io("list", root))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if check_table_name(&name).is_err() {
            continue;
        }
        if path.is_dir() {
            tables.extend(DeltaTable::open(&path).transpose().map(|opened| (name, opened)));
        } else {
            let reason = "it is not a folder, and each table is one".to_owned();
            others.push((name, Err(DeltaError::Corrupt { path, reason })));
        }
    }
    // A name that differs only in case is not that of a lost table.
    others.retain(|(name, _)| tables.iter().all(|(known, _)| table_key(known) != table_key(name)));
    tables.append(&mut others);
    Ok(tables)
}

#[derive(Debug)]
pub(crate) struct TableStorage {
    pub(crate) table: String,
    pub(crate) folder: PathBuf,
    /// `None` if the table does not exist, or must be opened again after an error.
    delta: Arc<Mutex<Option<DeltaTable>>>,
    /// Held while the rows of the table are moved, so that one move runs at a time.
    pub(crate) flush: Mutex<()>,
    /// Held for reading by those who write data files that no record or version has yet, for writing while files are
    /// deleted.
    pub(crate) unlisted_files: Arc<RwLock<()>>,
}

/// A move of rows from the log to the Delta table.
#[derive(Debug, Clone)]
pub(crate) struct FlushJob {
    pub(crate) rows: Arc<PendingRows>,
    /// The id of the log, under which the Delta table keeps the sequence number.
    pub(crate) application: String,
    pub(crate) partition_by: Vec<PartitionBy>,
    pub(crate) writer: WriterOptions,
}

/// A Delta table that may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct NewTable {
    pub(crate) columns: SchemaRef,
    pub(crate) partition_by: Vec<PartitionBy>,
    pub(crate) application: String,
    /// A sequence number before that of all rows of the table. Records up to it, such as the removal of an earlier table
    /// of the same name, do not apply to the table.
    pub(crate) sequence_before: u64,
}

impl TableStorage {
    pub(crate) fn new(table: String, folder: PathBuf, delta: Option<DeltaTable>) -> Self {
        Self {
            table,
            folder,
            delta: Arc::new(Mutex::new(delta)),
            flush: Mutex::default(),
            unlisted_files: Arc::default(),
        }
    }

    /// Runs `work` with the Delta table on a thread that may block. After an error, the table is opened again by the
    /// next step.
    pub(crate) async fn with_delta<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<DeltaTable>, &Path) -> Result<T, DeltaError> + Send + 'static,
    ) -> Result<T, IngestError> {
        let mut delta = self.delta.clone().lock_owned().await;
        let folder = self.folder.clone();
        let step = tokio::task::spawn_blocking(move || {
            let result = work(&mut delta, &folder);
            if result.is_err() {
                *delta = None;
            }
            result
        });
        step.await.map_err(|_| IngestError::Panicked)?.map_err(IngestError::delta(&self.table))
    }

    /// Creates the table if it does not exist, and adds columns that it lacks. Returns the version that has them.
    pub(crate) async fn ensure_columns(&self, table: NewTable) -> Result<Arc<DeltaSnapshot>, IngestError> {
        self.with_delta(move |delta, folder| {
            let current = match delta.take() {
                Some(current) => Some(current),
                None => DeltaTable::open(folder)?,
            };
            let mut current = match current {
                Some(current) => current,
                None => table.create(folder)?,
            };
            let known = current.snapshot().schema.clone();
            let columns = union(&known, &table.columns);
            if columns != known {
                let schema = Some(Schema::clone(&columns));
                current.commit(DeltaCommit { schema, operation: "ADD COLUMNS", ..DeltaCommit::default() })?;
            }
            let snapshot = current.snapshot();
            *delta = Some(current);
            Ok(snapshot)
        })
        .await
    }

    /// Moves rows to the Delta table, each exactly once, and returns the version that has them.
    pub(crate) async fn commit_rows(&self, job: FlushJob) -> Result<Arc<DeltaSnapshot>, IngestError> {
        let files_guard = self.unlisted_files.clone().read_owned().await;
        self.with_delta(move |delta, folder| {
            let result = commit_rows(delta, folder, &job);
            drop(files_guard);
            result
        })
        .await
    }
}

fn commit_rows(
    delta: &mut Option<DeltaTable>,
    folder: &Path,
    job: &FlushJob,
) -> Result<Arc<DeltaSnapshot>, DeltaError> {
    let mut conflicts = 0;
    loop {
        let mut table = match delta.take() {
            Some(table) => table,
            None => open_or_create(folder, job)?,
        };
        if contains(&table, job) {
            let snapshot = table.snapshot();
            *delta = Some(table);
            return Ok(snapshot);
        }
        let result = write_rows(&mut table, folder, job);
        match result {
            Ok(()) => {
                let snapshot = table.snapshot();
                *delta = Some(table);
                return Ok(snapshot);
            }
            // Another program wrote to the table, or it is unknown whether the commit is there: what the table has now
            // decides.
            Err(DeltaError::Conflict(_) | DeltaError::Unconfirmed { .. }) if conflicts < CONFLICTS_MAX => {
                conflicts += 1
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the rows are in the Delta table already.
fn contains(table: &DeltaTable, job: &FlushJob) -> bool {
    flushed_sequence(table, &job.application).is_some_and(|flushed| flushed >= job.rows.last_sequence)
}

/// The sequence number up to which the Delta table has the rows of the log.
pub(crate) fn flushed_sequence(table: &DeltaTable, application: &str) -> Option<u64> {
    table.transaction_version(application).and_then(|version| u64::try_from(version).ok())
}

fn open_or_create(folder: &Path, job: &FlushJob) -> Result<DeltaTable, DeltaError> {
    match DeltaTable::open(folder)? {
        Some(table) => Ok(table),
        None => NewTable {
            columns: job.rows.schema.clone(),
            partition_by: job.partition_by.clone(),
            application: job.application.clone(),
            sequence_before: job.rows.first_sequence - 1,
        }
        .create(folder),
    }
}

impl NewTable {
    fn create(&self, folder: &Path) -> Result<DeltaTable, DeltaError> {
        let mut table = DeltaTable::create(folder, &self.columns, &self.partition_by)?;
        let transaction = Some((self.application.clone(), self.sequence_before.cast_signed()));
        table.commit(DeltaCommit { transaction, operation: "WRITE", ..DeltaCommit::default() })?;
        Ok(table)
    }
}

fn write_rows(table: &mut DeltaTable, folder: &Path, job: &FlushJob) -> Result<(), DeltaError> {
    let rows = &job.rows;
    let snapshot = table.snapshot();
    let mut add: Vec<DataFile> = rows.staged.iter().map(|file| file.as_ref().clone()).collect();
    if !rows.batches.is_empty() {
        let mut writer = DataFileWriter::new(folder, &rows.schema, &job.partition_by, job.writer.clone())?;
        for batch in &rows.batches {
            writer.write(&pad(batch, &rows.schema)?)?;
        }
        add.extend(writer.finish()?);
    }
    let remove = if rows.replaces { snapshot.files.clone() } else { Vec::new() };
    let columns = union(&snapshot.schema, &rows.schema);
    let schema = (columns != snapshot.schema).then(|| Schema::clone(&columns));
    let transaction = Some((job.application.clone(), rows.last_sequence.cast_signed()));
    table.commit(DeltaCommit { add, remove, schema, transaction, operation: "WRITE" })?;
    Ok(())
}
