//! Writes rows into data files, within limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tidegate_core::private_file;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::error::StopFlag;
use crate::log_files::sync_folder;
use crate::partition::PartitionBy;
use crate::partitioned_rows::{PartitionBatch, PartitionedRows, SortedRows, SortedRuns};
use crate::schema::TableSchema;
use crate::snapshot::DataFile;
use crate::statistics::StatisticsBuilder;
use crate::table::now_ms;
use crate::types::to_stored;
use crate::{DeltaError, partition};

/// The most rows of a row group, which is the unit that scans divide a file into.
const ROW_GROUP_ROWS_MAX: usize = 1_000_000;

/// With more partitions, the row group of a file ends when its rows are written, as each open one takes memory.
const OPEN_ROW_GROUPS_MAX: usize = 64;

/// Writes rows into new data files of a table, separated by partition. A commit adds the files to the table. Dropping it
/// before [`DataFileWriter::finish`] removes them.
///
/// Rows of several partitions wait until there are many; those of all but the first partitions wait until the end, on disk.
/// So each partition has one file, or as many as its bytes need, whatever the order of the rows.
#[derive(Debug)]
pub struct DataFileWriter {
    folder: PathBuf,
    schema: TableSchema,
    options: WriterOptions,
    waiting: PartitionedRows,
    runs: Option<SortedRuns>,
    /// The open files by the number of their partition, which is 0 in a table without partitions.
    open: BTreeMap<u32, OpenFile>,
    finished: Vec<DataFile>,
    /// All files of this writer.
    created: Vec<PathBuf>,
    /// Folders with new names in them.
    folders: BTreeSet<PathBuf>,
    has_failed: bool,
}

/// A file that takes rows.
#[derive(Debug)]
struct OpenFile {
    path: String,
    writer: ArrowWriter<ChecksumFile>,
    statistics: Vec<StatisticsBuilder>,
    rows: u64,
}

impl DataFileWriter {
    /// A writer of files for a table in `folder` with these columns.
    ///
    /// # Errors
    /// `UnsupportedType` and `InvalidSchema` if such a table cannot be.
    pub fn new(
        folder: &Path,
        schema: &Schema,
        partition_by: &[PartitionBy],
        options: WriterOptions,
    ) -> Result<Self, DeltaError> {
        Ok(Self {
            folder: folder.to_owned(),
            schema: TableSchema::new(schema, partition_by)?,
            options,
            waiting: PartitionedRows::default(),
            runs: None,
            open: BTreeMap::new(),
            finished: Vec::new(),
            created: Vec::new(),
            folders: BTreeSet::new(),
            has_failed: false,
        })
    }

    /// The memory of rows that are in no file yet.
    pub fn memory_bytes(&self) -> usize {
        self.waiting.bytes() + self.open_bytes()
    }

    fn open_bytes(&self) -> usize {
        self.open.values().map(|file| file.writer.memory_size()).sum()
    }

    /// Adds rows. Their columns are found by name; a nullable column may be missing, and is null.
    ///
    /// # Errors
    /// `InvalidRows` if they do not fit; `Io`, `Parquet` and `Stopped`. The writer is over: drop it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), DeltaError> {
        let written = self.write_batch(batch);
        self.has_failed |= written.is_err();
        written
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<(), DeltaError> {
        self.options.stop.check()?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = self.declared_columns(batch)?;
        let stored = self.stored_batch(&columns, batch.num_rows())?;
        if self.schema.partitions.is_empty() {
            return self.write_rows(0, &stored);
        }
        let partitions = self.partition_of_rows(&columns)?;
        let first = partitions.first().copied().unwrap_or_default();
        let is_written_now = self.waiting.bytes() == 0 && (first as usize) < self.options.open_files_max;
        if is_written_now && partitions.iter().all(|partition| *partition == first) {
            return self.write_rows(first, &stored);
        }
        self.waiting.push(stored, &partitions)?;
        if self.waiting.bytes() >= self.options.memory_bytes_max / 2 { self.write_waiting() } else { Ok(()) }
    }

    /// Makes room in memory: rows of the first partitions get into their files, which stay open, all others into a run.
    fn write_waiting(&mut self) -> Result<(), DeltaError> {
        let bytes = self.waiting.bytes();
        let [first, others] = self.waiting.take(self.options.open_files_max);
        self.write_batches(first.into_batches(), Self::end_row_group)?;
        if others.is_empty() {
            return Ok(());
        }
        let Some(room) = self.options.reserve_room(bytes) else { return self.complete_files(others) };
        let mut runs = match self.runs.take() {
            Some(runs) => runs,
            None => {
                let folder = self.options.spill_folder.as_ref().unwrap_or(&self.folder);
                SortedRuns::create(folder, &self.schema.stored)?
            }
        };
        runs.add(&others, Some(room), &self.options.stop)?;
        self.runs = Some(runs);
        Ok(())
    }

    /// Completes all open files, then those of the rows that wait on disk and of `others`, one file after the other.
    fn complete_files(&mut self, others: SortedRows) -> Result<(), DeltaError> {
        while let Some(partition) = self.open.keys().next().copied() {
            self.close_file(partition)?;
        }
        match self.runs.take() {
            Some(mut runs) => {
                runs.add(&others, None, &self.options.stop)?;
                drop(others);
                self.write_batches(runs.merge()?, Self::close_file)
            }
            None => self.write_batches(others.into_batches(), Self::close_file),
        }
    }

    /// Writes rows that are sorted by partition, and calls `end` after those of each one.
    fn write_batches(
        &mut self,
        batches: impl Iterator<Item = Result<PartitionBatch, DeltaError>>,
        end: fn(&mut Self, u32) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        let mut last = None;
        for batch in batches {
            let (partition, rows) = batch?;
            if let Some(before) = last.replace(partition).filter(|before| *before != partition) {
                end(self, before)?;
            }
            self.write_rows(partition, &rows)?;
        }
        last.map_or(Ok(()), |partition| end(self, partition))
    }

    /// Ends the row group of a file, unless there are few partitions.
    fn end_row_group(&mut self, partition: u32) -> Result<(), DeltaError> {
        let Some(file) = self.open.get_mut(&partition) else { return Ok(()) };
        if self.waiting.partitions() <= OPEN_ROW_GROUPS_MAX {
            return Ok(());
        }
        file.writer.flush().map_err(DeltaError::parquet(Path::new(&file.path)))
    }

    /// The columns of a batch in the order of the table.
    fn declared_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>, DeltaError> {
        let declared = &self.schema.declared;
        let batch_schema = batch.schema_ref();
        if let Some(field) = batch_schema.fields().iter().find(|field| declared.index_of(field.name()).is_err()) {
            return Err(DeltaError::InvalidRows(format!("the table has no column \"{}\"", field.name())));
        }
        let column = |field: &arrow::datatypes::FieldRef| {
            let name = field.name();
            let array = match batch.column_by_name(name) {
                Some(array) => Arc::clone(array),
                None => new_null_array(field.data_type(), batch.num_rows()),
            };
            if array.data_type() != field.data_type() {
                return Err(DeltaError::InvalidRows(format!(
                    "column \"{name}\" has type {}, but the table has {}",
                    array.data_type(),
                    field.data_type()
                )));
            }
            if !field.is_nullable() && array.null_count() > 0 {
                return Err(DeltaError::InvalidRows(format!("column \"{name}\" has a null, but is not nullable")));
            }
            Ok(array)
        };
        declared.fields().iter().map(column).collect()
    }

    /// The columns of a data file.
    fn stored_batch(&self, declared: &[ArrayRef], rows: usize) -> Result<RecordBatch, DeltaError> {
        let stored = &self.schema.stored;
        let mut columns = Vec::with_capacity(stored.fields().len());
        for field in stored.fields() {
            let position = self.schema.declared.index_of(field.name())?;
            // There is a column for each declared field.
            columns.push(to_stored(field.name(), &declared[position], field.data_type())?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(stored), columns, &options)?)
    }

    /// The partition of each row.
    fn partition_of_rows(&mut self, declared: &[ArrayRef]) -> Result<Vec<u32>, DeltaError> {
        let columns = &self.schema.partitions;
        let mut keys = Vec::with_capacity(columns.len());
        for column in columns.iter() {
            let position = self.schema.declared.index_of(column.partition_by.kind_and_source().1)?;
            keys.push(column.stored_values(&declared[position])?);
        }
        let format = |row: usize| columns.iter().zip(&keys).map(|(column, key)| column.format(key, row)).collect();
        self.waiting.partition_of_rows(&keys, format)
    }

    fn write_rows(&mut self, partition: u32, stored: &RecordBatch) -> Result<(), DeltaError> {
        self.options.stop.check()?;
        if !self.open.contains_key(&partition) {
            self.open_file(partition)?;
        }
        let Some(file) = self.open.get_mut(&partition) else { return Ok(()) };
        file.writer.write(stored).map_err(DeltaError::parquet(Path::new(&file.path)))?;
        for (statistics, column) in file.statistics.iter_mut().zip(stored.columns()) {
            statistics.add(column);
        }
        file.rows += stored.num_rows() as u64;
        let bytes = file.writer.bytes_written() + file.writer.in_progress_size();
        if bytes as u64 >= self.options.file_bytes_max {
            self.close_file(partition)?;
        }
        self.limit_memory()
    }

    /// Ends row groups, the largest first, until the waiting rows take less than half of the memory.
    fn limit_memory(&mut self) -> Result<(), DeltaError> {
        let mut memory = self.open_bytes();
        if memory <= self.options.memory_bytes_max {
            return Ok(());
        }
        let mut files: Vec<_> = self.open.values_mut().collect();
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.writer.memory_size()));
        for file in files {
            if memory <= self.options.memory_bytes_max / 2 {
                break;
            }
            memory = memory.saturating_sub(file.writer.memory_size());
            file.writer.flush().map_err(DeltaError::parquet(Path::new(&file.path)))?;
        }
        Ok(())
    }

    fn open_file(&mut self, partition: u32) -> Result<(), DeltaError> {
        let name = format!("part-{}.zstd.parquet", Uuid::new_v4());
        let folder = partition::folder(&self.schema.partitions, &self.waiting.values(partition));
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        let full_path = self.folder.join(&path);
        self.create_folders(&full_path)?;
        let file = private_file::create_new(&full_path).map_err(DeltaError::io(&full_path))?;
        self.created.push(full_path.clone());
        let options = ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
        let file = ChecksumFile { file, hasher: crc32fast::Hasher::new(), bytes: 0 };
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&self.schema.stored), options)
            .map_err(DeltaError::parquet(&full_path))?;
        let statistics = self.schema.stored.fields().iter().map(|field| StatisticsBuilder::new(field.name())).collect();
        self.open.insert(partition, OpenFile { path, writer, statistics, rows: 0 });
        Ok(())
    }

    /// Creates the folders of a file below that of the table, and notes which folders have new names.
    fn create_folders(&mut self, file: &Path) -> Result<(), DeltaError> {
        let Some(parent) = file.parent() else { return Ok(()) };
        private_file::create_folder(parent).map_err(DeltaError::io(parent))?;
        let up_to_table = parent.ancestors().take_while(|folder| folder.starts_with(&self.folder));
        self.folders.extend(up_to_table.map(Path::to_owned));
        Ok(())
    }

    /// Completes a file, and waits until it is on disk.
    fn close_file(&mut self, partition: u32) -> Result<(), DeltaError> {
        self.options.stop.check()?;
        let Some(OpenFile { path, mut writer, statistics, rows }) = self.open.remove(&partition) else {
            return Ok(());
        };
        let full_path = self.folder.join(&path);
        writer.finish().map_err(DeltaError::parquet(&full_path))?;
        let output = writer.inner();
        output.file.sync_all().map_err(DeltaError::io(&full_path))?;
        let fields = self.schema.stored.fields().iter();
        let statistics = statistics.into_iter().zip(fields).map(|(builder, field)| builder.finish(field.data_type()));
        self.finished.push(DataFile {
            path,
            rows,
            bytes: output.bytes,
            partition_values: self.waiting.values(partition),
            statistics: statistics.collect(),
            modified_ms: now_ms(),
            checksum: Some(output.hasher.clone().finalize()),
        });
        Ok(())
    }

    /// Completes all files, and returns them when they are on disk.
    ///
    /// # Errors
    /// `Io`, `Parquet` and `Stopped`; no file remains. `InvalidRows` if a write failed before.
    pub fn finish(mut self) -> Result<Vec<DataFile>, DeltaError> {
        if self.has_failed {
            return Err(DeltaError::InvalidRows("a write failed before".to_owned()));
        }
        let [first, others] = self.waiting.take(self.options.open_files_max);
        self.write_batches(first.into_batches(), Self::close_file)?;
        self.complete_files(others)?;
        for folder in &self.folders {
            sync_folder(folder)?;
        }
        self.created.clear();
        let mut files = std::mem::take(&mut self.finished);
        // Those of a partition stay in the order of their rows.
        files.sort_by(|left, right| left.partition_values.cmp(&right.partition_values));
        Ok(files)
    }
}

impl Drop for DataFileWriter {
    fn drop(&mut self) {
        self.open.clear();
        for path in &self.created {
            // A file that stays is in no commit, and is found as unreferenced later.
            let _ = fs::remove_file(path);
        }
    }
}

/// How data files are compressed and divided. A million rows of a time, three texts and a number took 20 MB with zstd of
/// level 1 and 30 MB with snappy, in the same time; level 3 took longer and was no smaller.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS_MAX))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_created_by(concat!("tidegate ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

/// A file with the checksum of what was written.
struct ChecksumFile {
    file: File,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

tidegate_core::impl_debug!(ChecksumFile { file });

impl Write for ChecksumFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The unit of [`WriterOptions::spill_room`].
const SPILL_UNIT_BYTES: usize = 1 << 10;

/// Limits of a [`DataFileWriter`].
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The number of partitions whose files are open while rows arrive. Rows of further partitions wait.
    pub open_files_max: usize,
    /// The most bytes of rows in memory: half of them wait, the others are in row groups. More waiting rows get on disk,
    /// sorted by partition; more in row groups end one early.
    pub memory_bytes_max: usize,
    /// A file that reaches this size is closed; further rows get into another one.
    pub file_bytes_max: u64,
    /// The folder of a file without a name, in which rows wait. That of the table if it is `None`.
    pub spill_folder: Option<PathBuf>,
    /// The room for rows that wait on disk, in KiB. All writers with clones of these options share it. If there is none,
    /// all files are completed early, and further rows get into others.
    pub spill_room: Arc<Semaphore>,
    /// Ends the work of the writer with an error.
    pub stop: StopFlag,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            open_files_max: 128,
            memory_bytes_max: 128 << 20,
            file_bytes_max: 256 << 20,
            spill_folder: None,
            // 10 GiB.
            spill_room: Arc::new(Semaphore::new(10 << 20)),
            stop: StopFlag::default(),
        }
    }
}

impl WriterOptions {
    /// Reserves room on disk for rows of so many bytes in memory.
    fn reserve_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(SPILL_UNIT_BYTES)).ok()?;
        self.spill_room.clone().try_acquire_many_owned(units).ok()
    }
}
