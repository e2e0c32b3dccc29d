//! A write: its rows are collected, then stored in all tables at once. The rows of a large write go to data files while they
//! arrive, before a Delta table has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{RowWriter, WriteMode, WriteReceipt};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit};

use super::IngestError;
use super::columns::{check_new_columns, conform, convert_exactly, may_not_be_storable, merge_columns};
use super::keys::{StoredKey, now_ms};
use super::options::{SchemaEvolution, TableDeclaration, is_rejects, table_key};
use super::shared::{FolderShared, IngestCounters, memory_units};
use super::state::{AppliedRows, AppliedWrite};
use super::storage::{NewTable, TableStorage};
use super::write_record::{
    RecordDescription, TableDescription, WriteDescription, decode_stream, encode_record, encode_stream,
};
use crate::delta::{
    ColumnStatistics, DataFile, DataFileWriter, DeltaError, PartitionBy, StatisticsValue, WriterOptions,
};
use crate::write_ahead_log::WriteAheadLogError;

/// Guards of data files that no record has yet.
type FileGuards = Vec<OwnedRwLockReadGuard<()>>;

#[derive(Debug)]
pub(crate) struct FolderWriter {
    shared: Arc<FolderShared>,
    mode: WriteMode,
    key: Option<RunningKey>,
    tables: Vec<TablePart>,
    /// Bytes of all batches that are collected.
    collected_bytes: usize,
    /// Whether rows that were written are lost, so that nothing may be stored.
    has_failed: bool,
}

/// The rows of a write for one table.
#[derive(Debug)]
pub(crate) struct TablePart {
    pub(crate) name: String,
    pub(crate) incarnation: u64,
    pub(crate) declaration: Arc<TableDeclaration>,
    /// The columns of the rows. `None` until a transform returns its first rows.
    pub(crate) schema: Option<SchemaRef>,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) stager: Option<Stager>,
    /// Data files with the columns that the write had before a batch added some.
    pub(crate) finished: Vec<FinishedFiles>,
    pub(crate) rows: u64,
}

/// Complete data files that no record has yet.
#[derive(Debug)]
pub(crate) struct FinishedFiles {
    files: Vec<DataFile>,
    unkept: UnkeptFiles,
    guard: OwnedRwLockReadGuard<()>,
}

/// A key of a write that is running.
#[derive(Debug)]
pub(crate) struct RunningKey {
    pub(crate) shared: Arc<FolderShared>,
    pub(crate) key: Arc<str>,
}

impl Drop for RunningKey {
    fn drop(&mut self) {
        self.shared.state.lock().keys.finish(&self.key);
    }
}

/// A table that gets data files.
struct TableOfFiles {
    key: String,
    incarnation: u64,
    storage: Arc<TableStorage>,
    new_table: NewTable,
}

/// The parts of a record, and what becomes visible with it.
#[derive(Default)]
struct EncodedWrite {
    descriptions: Vec<TableDescription>,
    streams: Vec<Bytes>,
    applied: Vec<(String, AppliedRows)>,
    files: Vec<UnkeptFiles>,
    guards: FileGuards,
    bytes: u64,
}

impl FolderWriter {
    pub(crate) fn new(
        shared: Arc<FolderShared>,
        mode: WriteMode,
        key: Option<RunningKey>,
        tables: Vec<TablePart>,
    ) -> Self {
        Self { shared, mode, key, tables, collected_bytes: 0, has_failed: false }
    }

    async fn store(mut self) -> Result<WriteReceipt, Error> {
        let database = self.shared.name.clone();
        let for_caller = |error: IngestError| error.for_caller(&database);
        if self.has_failed {
            return Err(for_caller(IngestError::Closed));
        }
        let mut encoded = EncodedWrite::default();
        for (position, part) in self.tables.iter_mut().enumerate() {
            let mode = if position == 0 { self.mode } else { WriteMode::Append };
            encoded.add(part, mode, &self.shared).await.map_err(for_caller)?;
        }
        let units = encoded.applied.iter().map(|(_, rows)| memory_units(rows.bytes as usize)).sum();
        let memory = self.shared.reserve(units).await?;
        let shared = self.shared.clone();
        let _commit = shared.commits.read().await;
        self.admit()?;
        for table in self.tables_of_files(&encoded) {
            let snapshot = table.storage.ensure_columns(table.new_table).await.map_err(for_caller)?;
            shared.set_snapshot(&table.key, table.incarnation, snapshot, |_| {});
        }
        let rows: Vec<u64> = self.tables.iter().map(|part| part.rows).collect();
        let time_ms = now_ms();
        let key = self.key.as_ref().map(|key| key.key.clone());
        let description = WriteDescription {
            time_ms,
            key: key.as_deref().map(str::to_owned),
            rows: rows.clone(),
            tables: encoded.descriptions,
        };
        let payload = encode_record(&RecordDescription::Write(description), encoded.streams)
            .map_err(|error| for_caller(error.into()))?;
        let write = AppliedWrite {
            tables: split_memory(encoded.applied, memory),
            key: key.map(|key| StoredKey { key, sequence: 0, rows: rows.clone(), time_ms }),
        };
        let apply_to = shared.clone();
        let appended = shared.log.append_with(payload, move |sequence| apply_to.apply(sequence, write)).await;
        let is_unknown =
            matches!(appended, Ok(_) | Err(WriteAheadLogError::Failed { .. } | WriteAheadLogError::Closed));
        if is_unknown {
            encoded.files.into_iter().for_each(UnkeptFiles::keep);
        }
        let sequence = appended.map_err(|error| shared.refused_by_log(error))?;
        let counters = &self.shared.counters;
        IngestCounters::add(&counters.writes, 1);
        IngestCounters::add(&counters.rows, rows.iter().sum());
        let rejects = self.tables.iter().filter(|part| is_rejects(&part.name));
        IngestCounters::add(&counters.rejected_rows, rejects.map(|part| part.rows).sum());
        IngestCounters::add(&counters.bytes, encoded.bytes);
        Ok(WriteReceipt { sequence, rows })
    }

    /// Checks the columns again, as other writes may have changed the tables since this one began, and makes them those
    /// of the tables.
    fn admit(&self) -> Result<(), Error> {
        let mut state = self.shared.state.lock();
        if state.is_closing {
            return Err(IngestError::Closed.for_caller(&self.shared.name));
        }
        let mut admitted = Vec::new();
        for part in &self.tables {
            let table = state.table_mut(&part.name);
            if table.incarnation != part.incarnation || table.dropped_at.is_some() {
                let message = format!("table \"{}\" was dropped while rows were written to it", part.name);
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            if let Some(refusal) = table.refusal() {
                return Err(refusal.for_caller(&self.shared.name));
            }
            let Some(schema) = &part.schema else { continue };
            admitted.push((&part.name, part.merge_into(table.admitted_schema.as_ref(), schema)?));
        }
        for (name, schema) in admitted {
            state.table_mut(name).admitted_schema = Some(schema);
        }
        Ok(())
    }

    /// The Delta tables that need the columns of data files, so that the files can be read as soon as they are visible.
    fn tables_of_files(&self, encoded: &EncodedWrite) -> Vec<TableOfFiles> {
        let mut state = self.shared.state.lock();
        let applied = state.applied_sequence;
        let parts = self.tables.iter().filter(|part| part.schema.is_some()).zip(&encoded.applied);
        let with_files = parts.filter(|(_, (_, rows))| !rows.staged.is_empty());
        let tables = with_files.map(|(part, (_, rows))| {
            let table = state.table_mut(&part.name);
            let new_table = NewTable {
                columns: table.admitted_schema.clone().unwrap_or_else(|| rows.schema.clone()),
                partition_by: part.declaration.partition_by.clone(),
                application: self.shared.application.clone(),
                sequence_before: table.oldest_unflushed().map_or(applied, |oldest| oldest - 1),
            };
            let key = table_key(&part.name);
            TableOfFiles { key, incarnation: part.incarnation, storage: table.storage.clone(), new_table }
        });
        tables.collect()
    }

    /// Writes collected rows to data files, as they are too many for the log.
    async fn stage(&mut self) -> Result<(), Error> {
        for part in &mut self.tables {
            part.stage(&self.shared).await.map_err(|error| error.for_caller(&self.shared.name))?;
        }
        self.collected_bytes = 0;
        Ok(())
    }
}

impl TablePart {
    /// The columns of the table after this write.
    fn merge_into(&self, current: Option<&SchemaRef>, schema: &SchemaRef) -> Result<SchemaRef, Error> {
        match current {
            Some(current) => merge_columns(&self.name, current, schema, self.declaration.evolve),
            None => check_new_columns(&self.name, schema).map(|()| schema.clone()),
        }
    }

    /// `rows` with the columns of this write, which the first rows of a transform determine.
    fn conform(&mut self, rows: &RecordBatch, shared: &FolderShared) -> Result<RecordBatch, Error> {
        let schema = match &self.schema {
            Some(schema) => schema.clone(),
            None => {
                let current = shared.state.lock().admitted_schema(&self.name);
                let merged = self.merge_into(current.as_ref(), rows.schema_ref())?;
                shared.check_storable(&self.name, &merged, &self.declaration)?;
                merged
            }
        };
        self.schema = Some(schema.clone());
        conform(&self.name, rows, &schema)
    }

    /// The rows that a transform computed, with the types of the table.
    fn convert_computed(&self, rows: Vec<RecordBatch>, shared: &FolderShared) -> Result<Vec<RecordBatch>, Error> {
        let known = self.schema.clone().or_else(|| shared.state.lock().admitted_schema(&self.name));
        match known {
            Some(schema) => rows.iter().map(|batch| convert_exactly(&self.name, batch, &schema)).collect(),
            None => Ok(rows),
        }
    }

    /// Adds the columns of `rows` that the write does not have yet, if the table adds columns.
    async fn widen(&mut self, rows: &SchemaRef, shared: &FolderShared) -> Result<(), Error> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let is_new = |field: &FieldRef| schema.column_with_name(field.name()).is_none();
        if self.declaration.evolve == SchemaEvolution::Strict || !rows.fields().iter().any(is_new) {
            return Ok(());
        }
        let widened = self.merge_into(Some(schema), rows)?;
        shared.check_storable(&self.name, &widened, &self.declaration)?;
        // A data file has the same columns in all of its rows.
        if self.stager.is_some() {
            self.stage(shared).await.map_err(|error| error.for_caller(&shared.name))?;
        }
        self.finish_files().await.map_err(|error| error.for_caller(&shared.name))?;
        for batch in &mut self.batches {
            *batch = conform(&self.name, batch, &widened)?;
        }
        self.schema = Some(widened);
        Ok(())
    }

    /// Completes the data files that are being written.
    async fn finish_files(&mut self) -> Result<(), IngestError> {
        let Some(stager) = self.stager.take() else { return Ok(()) };
        let (folder, files, guard) = stager.finish().await?;
        let mut unkept = UnkeptFiles::default();
        unkept.extend(&folder, &files);
        self.finished.push(FinishedFiles { files, unkept, guard });
        Ok(())
    }

    async fn stage(&mut self, shared: &FolderShared) -> Result<(), IngestError> {
        let Some(schema) = self.schema.clone().filter(|_| !self.batches.is_empty()) else { return Ok(()) };
        let mut stager = match self.stager.take() {
            Some(stager) => stager,
            None => {
                let storage = shared.state.lock().table_mut(&self.name).storage.clone();
                // A write that is not admitted before the folder closes is refused.
                let options = shared.writer_options(&shared.maintenance_stop);
                Stager::new(storage, schema, self.declaration.partition_by.clone(), options).await?
            }
        };
        stager.write(std::mem::take(&mut self.batches)).await?;
        self.stager = Some(stager);
        Ok(())
    }
}

impl EncodedWrite {
    /// Adds the rows of a table. Rows remain in memory only if none of the write's are in data files.
    async fn add(&mut self, part: &mut TablePart, mode: WriteMode, shared: &FolderShared) -> Result<(), IngestError> {
        if part.stager.is_some() || !part.finished.is_empty() {
            part.stage(shared).await?;
        }
        part.finish_files().await?;
        let Some(schema) = part.schema.clone() else { return Ok(()) };
        let mut staged = Vec::new();
        for FinishedFiles { files, unkept, guard } in part.finished.drain(..) {
            self.files.push(unkept);
            self.guards.push(guard);
            self.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
            staged.extend(files);
        }
        let stream = encode_stream(&schema, &std::mem::take(&mut part.batches))?;
        // The rows in memory are those of the log, without the memory of larger batches that they may be a part of.
        let (schema, batches) = decode_stream(stream.clone())?;
        let bytes = if batches.is_empty() { 0 } else { stream.len() as u64 };
        self.bytes += bytes;
        let descriptions: Vec<StagedFile> = staged.iter().map(StagedFile::from).collect();
        self.descriptions.push(TableDescription::new(&part.name, mode, &stream, descriptions));
        self.streams.push(stream);
        let replaces = mode == WriteMode::Replace;
        let staged = staged.into_iter().map(Arc::new).collect();
        self.applied.push((part.name.clone(), AppliedRows { schema, batches, staged, replaces, bytes }));
        Ok(())
    }
}

/// Gives each table the memory of its rows.
fn split_memory(
    tables: Vec<(String, AppliedRows)>,
    mut memory: Option<OwnedSemaphorePermit>,
) -> Vec<(String, AppliedRows, Option<OwnedSemaphorePermit>)> {
    let with_memory = tables.into_iter().map(|(name, rows)| {
        let permit = memory.as_mut().and_then(|memory| {
            let units = memory_units(rows.bytes as usize).min(memory.num_permits());
            memory.split(units)
        });
        (name, rows, permit)
    });
    with_memory.collect()
}

#[async_trait]
impl RowWriter for FolderWriter {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        let part =
            self.tables.get_mut(table).ok_or_else(|| Error::internal("a write to a table that it has not begun"))?;
        let batches = match part.declaration.transform.clone() {
            Some(transform) => {
                let computed = transform.transform(rows).await?;
                part.convert_computed(computed, &self.shared)?
            }
            None => vec![rows],
        };
        let mut conforming = Vec::with_capacity(batches.len());
        for batch in batches {
            part.widen(batch.schema_ref(), &self.shared).await?;
            conforming.push(part.conform(&batch, &self.shared)?);
        }
        for batch in conforming.into_iter().filter(|batch| batch.num_rows() > 0) {
            part.rows += batch.num_rows() as u64;
            self.collected_bytes += tidegate_query::batch_bytes(&batch);
            part.batches.push(batch);
        }
        let is_unsure = part.schema.as_ref().is_some_and(|schema| may_not_be_storable(schema, &part.declaration));
        if is_unsure || self.collected_bytes > self.shared.options.inline_bytes_max {
            self.has_failed = true;
            self.stage().await?;
            self.has_failed = false;
        }
        Ok(())
    }

    /// The rows of a transform are computed one by one.
    fn takes_parts(&self, table: usize) -> bool {
        !self.has_failed && self.tables.get(table).is_some_and(|part| part.declaration.transform.is_some())
    }

    fn memory_bytes(&self) -> usize {
        let stagers = self.tables.iter().filter_map(|part| part.stager.as_ref());
        self.collected_bytes + stagers.map(Stager::memory_bytes).sum::<usize>()
    }

    async fn commit(self: Box<Self>) -> Result<WriteReceipt, Error> {
        let shared = self.shared.clone();
        // A caller that goes away does not stop the write halfway.
        let stored = tokio::spawn(self.store()).await.map_err(|_| IngestError::Panicked.for_caller(&shared.name))?;
        if stored.is_err() {
            IngestCounters::add(&shared.counters.failed_writes, 1);
        }
        stored
    }
}

/// Data files that a write produces. Dropping it deletes them.
#[derive(Debug)]
pub(crate) struct Stager {
    storage: Arc<TableStorage>,
    /// `None` after an error.
    writer: Option<DataFileWriter>,
    guard: OwnedRwLockReadGuard<()>,
}

impl Stager {
    pub(crate) async fn new(
        storage: Arc<TableStorage>,
        schema: SchemaRef,
        partition_by: Vec<PartitionBy>,
        options: WriterOptions,
    ) -> Result<Self, IngestError> {
        let guard = storage.unlisted_files.clone().read_owned().await;
        let folder = storage.folder.clone();
        let open = move || DataFileWriter::new(&folder, &schema, &partition_by, options);
        let writer = blocking(&storage.table, open).await?;
        Ok(Self { storage, writer: Some(writer), guard })
    }

    fn memory_bytes(&self) -> usize {
        self.writer.as_ref().map_or(0, DataFileWriter::memory_bytes)
    }

    pub(crate) async fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), IngestError> {
        let Some(mut writer) = self.writer.take() else { return Err(IngestError::Closed) };
        let write = move || {
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            Ok(writer)
        };
        self.writer = Some(blocking(&self.storage.table, write).await?);
        Ok(())
    }

    /// Completes the files. Returns the folder that their paths are relative to, and the guard that protects them until
    /// a record has them.
    pub(crate) async fn finish(self) -> Result<(PathBuf, Vec<DataFile>, OwnedRwLockReadGuard<()>), IngestError> {
        let Some(writer) = self.writer else { return Err(IngestError::Closed) };
        let files = blocking(&self.storage.table, move || writer.finish()).await?;
        Ok((self.storage.folder.clone(), files, self.guard))
    }
}

async fn blocking<T: Send + 'static>(
    table: &str,
    work: impl FnOnce() -> Result<T, DeltaError> + Send + 'static,
) -> Result<T, IngestError> {
    let step = tokio::task::spawn_blocking(work);
    step.await.map_err(|_| IngestError::Panicked)?.map_err(IngestError::delta(table))
}

/// A data file in a record of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StagedFile {
    path: String,
    pub(crate) rows: u64,
    bytes: u64,
    partition_values: Vec<Option<String>>,
    modified_ms: i64,
    checksum: Option<u32>,
    statistics: Vec<StagedStatistics>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StagedStatistics {
    column: String,
    minimum: Option<StagedValue>,
    maximum: Option<StagedValue>,
    is_exact: bool,
    null_count: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StagedValue {
    /// As text, as JSON has no numbers of 128 bits.
    Integer(String),
    /// The bits of the number.
    Float(u64),
    Text(Box<str>),
}

impl From<&DataFile> for StagedFile {
    fn from(file: &DataFile) -> Self {
        let statistics = file.statistics.iter().map(|column| StagedStatistics {
            column: column.column.clone(),
            minimum: column.minimum.as_ref().map(StagedValue::from),
            maximum: column.maximum.as_ref().map(StagedValue::from),
            is_exact: column.is_exact,
            null_count: column.null_count,
        });
        Self {
            path: file.path.clone(),
            rows: file.rows,
            bytes: file.bytes,
            partition_values: file.partition_values.clone(),
            modified_ms: file.modified_ms,
            checksum: file.checksum,
            statistics: statistics.collect(),
        }
    }
}

impl StagedFile {
    /// The data file. `None` if a number is none.
    pub(crate) fn into_data_file(self) -> Option<DataFile> {
        let statistics = self.statistics.into_iter().map(|column| {
            Some(ColumnStatistics {
                column: column.column,
                minimum: column.minimum.map(StagedValue::into_value).transpose().ok()?,
                maximum: column.maximum.map(StagedValue::into_value).transpose().ok()?,
                is_exact: column.is_exact,
                null_count: column.null_count,
            })
        });
        Some(DataFile {
            path: self.path,
            rows: self.rows,
            bytes: self.bytes,
            partition_values: self.partition_values,
            statistics: statistics.collect::<Option<_>>()?,
            modified_ms: self.modified_ms,
            checksum: self.checksum,
        })
    }
}

impl From<&StatisticsValue> for StagedValue {
    fn from(value: &StatisticsValue) -> Self {
        match value {
            StatisticsValue::Integer(number) => Self::Integer(number.to_string()),
            StatisticsValue::Float(number) => Self::Float(number.to_bits()),
            StatisticsValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

impl StagedValue {
    fn into_value(self) -> Result<StatisticsValue, std::num::ParseIntError> {
        Ok(match self {
            Self::Integer(text) => StatisticsValue::Integer(text.parse()?),
            Self::Float(bits) => StatisticsValue::Float(f64::from_bits(bits)),
            Self::Text(text) => StatisticsValue::Text(text),
        })
    }
}

/// Data files that are deleted when this is dropped, unless they were kept.
#[derive(Debug, Default)]
pub(crate) struct UnkeptFiles(Vec<PathBuf>);

impl UnkeptFiles {
    pub(crate) fn extend(&mut self, folder: &Path, files: &[DataFile]) {
        self.0.extend(files.iter().map(|file| folder.join(&file.path)));
    }

    /// Keeps the files: a record of the log has them, or may have them.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for UnkeptFiles {
    fn drop(&mut self) {
        for path in &self.0 {
            // The folder may be gone with the table. A file that stays is deleted with the unused files later.
            if let Err(error) = std::fs::remove_file(path) {
                tracing::debug!(path = %path.display(), %error, "a file of an abandoned write could not be deleted");
            }
        }
    }
}
