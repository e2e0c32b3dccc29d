//! Writes rows into data files.

use std::collections::{BTreeSet, HashMap};
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
use uuid::Uuid;

use super::DeltaError;
use super::log_files::sync_folder;
use super::partition::{self, PartitionBy};
use super::partitioned_rows::{PartitionValues, PartitionedRows};
use super::schema::TableSchema;
use super::snapshot::DataFile;
use super::statistics::StatisticsBuilder;
use super::stop_flag::StopFlag;
use super::table::now_ms;
use super::types::to_stored;

/// The most rows of a row group, which is the unit that scans divide a file into.
const ROW_GROUP_ROWS_MAX: usize = 1_000_000;

/// With more partitions, the row group of a file ends when its rows are written, as each open one takes memory.
const OPEN_ROW_GROUPS_MAX: usize = 64;

/// Limits of a [`DataFileWriter`].
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The most files that are open at the same time. One more partition closes the least recently used file; further rows
    /// of its partition get into another one.
    pub open_files_max: usize,
    /// The most bytes of rows that wait to be written, half of them sorted by partition first. More than that ends a row
    /// group early.
    pub memory_bytes_max: usize,
    /// A file that reaches this size is closed; further rows get into another one.
    pub file_bytes_max: u64,
    /// Ends the work of the writer with an error.
    pub stop: StopFlag,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { open_files_max: 128, memory_bytes_max: 128 << 20, file_bytes_max: 256 << 20, stop: StopFlag::default() }
    }
}

/// Writes rows into new data files of a table, separated by partition. A commit adds the files to the table. Dropping it
/// before [`DataFileWriter::finish`] removes them.
///
/// Rows of several partitions wait until there are many, so that a partition has one file and not one for each batch. Rows
/// that fit into half of the memory get into one file for each partition.
#[derive(Debug)]
pub struct DataFileWriter {
    folder: PathBuf,
    schema: TableSchema,
    options: WriterOptions,
    waiting: PartitionedRows,
    open: HashMap<PartitionValues, OpenFile>,
    finished: Vec<DataFile>,
    /// All files of this writer.
    created: Vec<PathBuf>,
    /// Folders with new names in them.
    folders: BTreeSet<PathBuf>,
    /// The number of writes to files, which orders their use.
    writes: u64,
    has_failed: bool,
}

/// A file that takes rows.
#[derive(Debug)]
struct OpenFile {
    path: String,
    writer: ArrowWriter<ChecksumFile>,
    statistics: Vec<StatisticsBuilder>,
    rows: u64,
    last_write: u64,
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
            open: HashMap::new(),
            finished: Vec::new(),
            created: Vec::new(),
            folders: BTreeSet::new(),
            writes: 0,
            has_failed: false,
        })
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
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = self.declared_columns(batch)?;
        let stored = self.stored_batch(&columns, batch.num_rows())?;
        if self.schema.partitions.is_empty() {
            return self.write_rows(Vec::new(), &stored);
        }
        let partitions = self.partition_of_rows(&columns)?;
        let first = partitions.first().copied().unwrap_or_default();
        if self.waiting.bytes() == 0 && partitions.iter().all(|partition| *partition == first) {
            return self.write_rows(self.waiting.values(first), &stored);
        }
        self.waiting.push(stored, &partitions)?;
        if self.waiting.bytes() >= self.options.memory_bytes_max / 2 { self.write_waiting() } else { Ok(()) }
    }

    /// Writes the rows that wait, one partition after the other.
    fn write_waiting(&mut self) -> Result<(), DeltaError> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let has_many = waiting.partitions() > OPEN_ROW_GROUPS_MAX;
        let mut last: Option<PartitionValues> = None;
        let written = waiting.drain(|values, rows| {
            if let Some(before) = last.replace(values.clone()).filter(|before| has_many && *before != values) {
                self.end_row_group(&before)?;
            }
            self.write_rows(values, &rows)
        });
        self.waiting = waiting;
        written?;
        match last.filter(|_| has_many) {
            Some(values) => self.end_row_group(&values),
            None => Ok(()),
        }
    }

    fn end_row_group(&mut self, values: &PartitionValues) -> Result<(), DeltaError> {
        let Some(file) = self.open.get_mut(values) else { return Ok(()) };
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

    fn write_rows(&mut self, values: PartitionValues, stored: &RecordBatch) -> Result<(), DeltaError> {
        self.options.stop.check()?;
        if !self.open.contains_key(&values) {
            self.open_file(&values)?;
        }
        self.writes += 1;
        let Some(file) = self.open.get_mut(&values) else { return Ok(()) };
        file.writer.write(stored).map_err(DeltaError::parquet(Path::new(&file.path)))?;
        for (statistics, column) in file.statistics.iter_mut().zip(stored.columns()) {
            statistics.add(column);
        }
        file.rows += stored.num_rows() as u64;
        file.last_write = self.writes;
        let bytes = file.writer.bytes_written() + file.writer.in_progress_size();
        if bytes as u64 >= self.options.file_bytes_max {
            self.close_file(&values)?;
        }
        self.limit_memory()
    }

    /// Ends row groups, the largest first, until the waiting rows take less than half of the memory.
    fn limit_memory(&mut self) -> Result<(), DeltaError> {
        let mut memory: usize = self.open.values().map(|file| file.writer.memory_size()).sum();
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

    fn open_file(&mut self, values: &[Option<String>]) -> Result<(), DeltaError> {
        while self.open.len() >= self.options.open_files_max.max(1) {
            let oldest = self.open.iter().min_by_key(|(_, file)| file.last_write).map(|(values, _)| values.clone());
            let Some(oldest) = oldest else { break };
            self.close_file(&oldest)?;
        }
        let name = format!("part-{}.zstd.parquet", Uuid::new_v4());
        let folder = partition::folder(&self.schema.partitions, values);
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
        self.open.insert(values.to_vec(), OpenFile { path, writer, statistics, rows: 0, last_write: self.writes });
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
    fn close_file(&mut self, values: &[Option<String>]) -> Result<(), DeltaError> {
        self.options.stop.check()?;
        let Some(OpenFile { path, mut writer, statistics, rows, .. }) = self.open.remove(values) else {
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
            partition_values: values.to_vec(),
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
        self.write_waiting()?;
        let mut open: Vec<_> = self.open.keys().cloned().collect();
        open.sort_unstable();
        for values in open {
            self.close_file(&values)?;
        }
        for folder in &self.folders {
            sync_folder(folder)?;
        }
        self.created.clear();
        Ok(std::mem::take(&mut self.finished))
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

impl std::fmt::Debug for ChecksumFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ChecksumFile").field("file", &self.file).finish_non_exhaustive()
    }
}

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
