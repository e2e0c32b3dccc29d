//! A version of a table: its columns and its data files, whose rows are read as the table declares them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::log_files::{Add, Remove};
use crate::partition::{PartitionColumn, decode_path, encode_path};
use crate::schema::TableSchema;
use crate::statistics::ColumnStatistics;
use crate::types::convert;
use crate::{DeltaError, statistics};

/// The tag of a file with the CRC-32 of its bytes. Only this writer sets it.
const CHECKSUM_TAG: &str = "tidegate.crc32";
/// The tag with the partition columns whose value is empty text, as a JSON array. The protocol takes it for null.
const EMPTY_TEXT_TAG: &str = "tidegate.empty_text";

/// A data file of a table. It never changes.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// Where it is, below the folder of the table, with `/` between names.
    pub path: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The value of each partition column, in their order, as [`PartitionColumn::parse`] reads it; `None` is null.
    pub partition_values: Vec<Option<String>>,
    /// What is known of the values of its columns. A column that is missing has unknown values.
    pub statistics: Vec<ColumnStatistics>,
    /// When it was written, in milliseconds since 1970-01-01 UTC.
    pub modified_ms: i64,
    /// The CRC-32 of its bytes, if this writer wrote it.
    pub checksum: Option<u32>,
}

impl DataFile {
    /// The statistics of a column.
    #[must_use]
    pub fn column_statistics(&self, column: &str) -> Option<&ColumnStatistics> {
        self.statistics.iter().find(|statistics| statistics.column == column)
    }

    /// The file that an action adds.
    pub(super) fn from_add(folder: &Path, add: Add, schema: &TableSchema) -> Result<Self, DeltaError> {
        if add.deletion_vector.is_some() {
            return Err(DeltaError::UnsupportedFeature("deletionVectors".to_owned()));
        }
        let path = path_below_table(&add.path)?;
        let checksum = tag(&add, CHECKSUM_TAG).and_then(|text| u32::from_str_radix(text, 16).ok());
        let partition_values = partition_texts(&add, schema.partitions.iter().map(|column| column.name.as_str()));
        let (rows, statistics) = add
            .stats
            .as_deref()
            .map_or((None, Vec::new()), |stats| statistics::from_json(stats, &schema.declared, checksum.is_some()));
        let rows = match rows {
            Some(rows) => rows,
            None => count_rows(&folder.join(&path))?,
        };
        Ok(Self {
            path,
            rows,
            bytes: add.size,
            partition_values,
            statistics,
            modified_ms: add.modification_time,
            checksum,
        })
    }

    /// The action that adds the file. `data_change`: whether the table has rows that it did not have before.
    pub(super) fn to_add(&self, schema: &TableSchema, data_change: bool) -> Result<Add, DeltaError> {
        let stats = statistics::to_json(self.rows, &self.statistics, &schema.declared)
            .map_err(|error| DeltaError::InvalidCommit(format!("the statistics of \"{}\": {error}", self.path)))?;
        let mut tags = std::collections::BTreeMap::new();
        if let Some(checksum) = self.checksum {
            tags.insert(CHECKSUM_TAG.to_owned(), Some(format!("{checksum:08x}")));
        }
        let values = schema.partitions.iter().zip(&self.partition_values);
        let empty: Vec<_> =
            values.filter(|(_, value)| value.as_deref() == Some("")).map(|(column, _)| column.name.as_str()).collect();
        if !empty.is_empty() {
            tags.insert(EMPTY_TEXT_TAG.to_owned(), Some(serde_json::json!(empty).to_string()));
        }
        Ok(Add {
            path: encode_path(&self.path),
            partition_values: self.named_partition_values(schema),
            size: self.bytes,
            modification_time: self.modified_ms,
            data_change,
            stats: Some(stats),
            tags: (!tags.is_empty()).then_some(tags),
            deletion_vector: None,
        })
    }

    /// The action that removes the file.
    pub(super) fn to_remove(&self, schema: &TableSchema, now_ms: i64, data_change: bool) -> Remove {
        Remove {
            path: encode_path(&self.path),
            deletion_timestamp: Some(now_ms),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(self.named_partition_values(schema)),
            size: Some(self.bytes),
            deletion_vector: None,
        }
    }

    fn named_partition_values(&self, schema: &TableSchema) -> std::collections::BTreeMap<String, Option<String>> {
        let values = schema.partitions.iter().zip(&self.partition_values);
        // An empty text is null for all readers of the protocol; writing null makes that explicit.
        values.map(|(column, value)| (column.name.clone(), value.clone().filter(|value| !value.is_empty()))).collect()
    }
}

fn tag<'a>(add: &'a Add, key: &str) -> Option<&'a str> {
    add.tags.as_ref()?.get(key)?.as_deref()
}

/// The values of the partition columns with these names in the log. `None` is null, as is empty text without the tag of
/// this writer.
pub(super) fn partition_texts<'a>(add: &Add, names: impl Iterator<Item = &'a str>) -> Vec<Option<String>> {
    let empty = tag(add, EMPTY_TEXT_TAG).and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let empty = empty.unwrap_or_default();
    let text = |name: &str| {
        let text = add.partition_values.get(name).cloned().flatten().filter(|text| !text.is_empty());
        text.or_else(|| empty.iter().any(|empty| empty == name).then(String::new))
    };
    names.map(text).collect()
}

/// The path of a file of the log, below the folder of the table.
pub(super) fn path_below_table(encoded: &str) -> Result<String, DeltaError> {
    let path = decode_path(encoded).filter(|path| is_below_table(path));
    path.ok_or_else(|| DeltaError::OutsideOfTable(encoded.to_owned()))
}

/// Whether a path of the log is a relative one that stays below the table.
fn is_below_table(path: &str) -> bool {
    let is_plain = |name: &str| !name.is_empty() && name != "." && name != "..";
    // A scheme such as `s3:` is before the first slash. Names of folders have their colons escaped.
    let has_scheme = path.split('/').next().is_some_and(|first| first.ends_with(':'));
    !has_scheme && !path.contains('\\') && path.split('/').all(is_plain)
}

/// A version of a table. Readers keep it as long as they read.
#[derive(Debug, Clone)]
pub struct DeltaSnapshot {
    /// The version.
    pub version: u64,
    /// The columns as declared. Columns that are computed for partitions are not among them.
    pub schema: SchemaRef,
    /// The columns that the files are separated by.
    pub partition_columns: Arc<[PartitionColumn]>,
    /// The data files.
    pub files: Vec<Arc<DataFile>>,
    /// The columns of the data files and their types in them.
    pub stored_schema: SchemaRef,
    /// The Delta feature that writers of the table need and this one lacks, if there is one: nothing can be committed.
    pub unsupported_writer_feature: Option<String>,
    /// Whether rows may only be added, or put into other files.
    pub is_append_only: bool,
    /// Files that commits removed, with the time in milliseconds since 1970-01-01 UTC. Entries older than
    /// [`super::TOMBSTONE_RETENTION_MS`] may be missing.
    pub(super) removed: Arc<std::collections::HashMap<String, i64>>,
}

impl DeltaSnapshot {
    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// The bytes of all data files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The paths of all data files in the folder of the table.
    pub fn paths<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        self.files.iter().map(move |file| folder.join(&file.path))
    }
}

/// Bytes of a file that are read at once for its checksum.
const CHECKSUM_BUFFER_BYTES: usize = 1 << 20;

/// The batches of a data file.
pub struct DataFileReader {
    path: PathBuf,
    schema: SchemaRef,
    columns: Vec<ColumnOrigin>,
    reader: ParquetRecordBatchReader,
    rows_expected: u64,
    rows: u64,
    is_done: bool,
}

tidegate_core::impl_debug!(DataFileReader { path });

/// Where the values of a column come from.
enum ColumnOrigin {
    /// The column at this position of the file, with this stored type.
    File(usize, DataType),
    /// One value for all rows.
    Constant(ArrayRef),
    /// The file was written before the table had the column.
    Null,
}

/// Reads a file of the table in `folder` in batches of at most `batch_rows` rows, with the columns of the snapshot.
///
/// # Errors
/// `Io`, `Parquet`, and `Corrupt` if the file does not have the columns that the table declares. The iterator returns
/// them too, and `Corrupt` at the end if the number of rows is not that of the log.
pub fn read_file(
    folder: &Path,
    snapshot: &DeltaSnapshot,
    file: &DataFile,
    batch_rows: usize,
) -> Result<DataFileReader, DeltaError> {
    let path = folder.join(&file.path);
    let input = File::open(&path).map_err(DeltaError::io(&path))?;
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder =
        ParquetRecordBatchReaderBuilder::try_new_with_options(input, options).map_err(DeltaError::parquet(&path))?;
    let columns = column_sources(&path, snapshot, file, builder.schema())?;
    let reader = builder.with_batch_size(batch_rows.max(1)).build().map_err(DeltaError::parquet(&path))?;
    Ok(DataFileReader {
        path,
        schema: Arc::clone(&snapshot.schema),
        columns,
        reader,
        rows_expected: file.rows,
        rows: 0,
        is_done: false,
    })
}

fn column_sources(
    path: &Path,
    snapshot: &DeltaSnapshot,
    file: &DataFile,
    file_schema: &SchemaRef,
) -> Result<Vec<ColumnOrigin>, DeltaError> {
    let mut sources = Vec::with_capacity(snapshot.schema.fields().len());
    for field in snapshot.schema.fields() {
        let is_partition = |column: &PartitionColumn| !column.is_derived() && column.name == *field.name();
        if let Some(position) = snapshot.partition_columns.iter().position(is_partition) {
            let column = &snapshot.partition_columns[position];
            let value = file.partition_values.get(position).and_then(Option::as_deref);
            sources.push(ColumnOrigin::Constant(column.parse(value)?));
            continue;
        }
        let stored = snapshot.stored_schema.field_with_name(field.name())?.data_type().clone();
        match file_schema.column_with_name(field.name()) {
            Some((position, found)) if is_readable_as(found.data_type(), &stored) => {
                sources.push(ColumnOrigin::File(position, stored));
            }
            Some((_, found)) => {
                let reason = format!("column \"{}\" has type {}, not {stored}", field.name(), found.data_type());
                return Err(DeltaError::corrupt(path, reason));
            }
            None if field.is_nullable() => sources.push(ColumnOrigin::Null),
            None => return Err(DeltaError::corrupt(path, format!("it has no column \"{}\"", field.name()))),
        }
    }
    Ok(sources)
}

/// Whether all values of a type in a file are values of the stored type.
fn is_readable_as(found: &DataType, stored: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, FixedSizeBinary, LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Timestamp, Utf8,
        Utf8View,
    };
    let fields = |found: &Field, stored: &Field| is_readable_as(found.data_type(), stored.data_type());
    match (found, stored) {
        (Utf8 | LargeUtf8 | Utf8View, Utf8) => true,
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), Binary) => true,
        // Nanoseconds come from the old timestamps of 96 bits, in which other writers put microseconds.
        (Timestamp(unit, zone), Timestamp(_, stored_zone)) => {
            let is_instant = stored_zone.is_some();
            matches!(unit, TimeUnit::Microsecond | TimeUnit::Millisecond) && zone.is_some() == is_instant
                || *unit == TimeUnit::Nanosecond
        }
        (List(found) | LargeList(found), List(stored)) | (Map(found, _), Map(stored, _)) => fields(found, stored),
        (Struct(found), Struct(stored)) => {
            found.len() == stored.len()
                && found.iter().zip(stored).all(|(found, stored)| {
                    // The names of the fields of a map's entries differ between writers.
                    fields(found, stored)
                })
        }
        _ => found == stored,
    }
}

impl DataFileReader {
    fn to_declared(&self, batch: &RecordBatch) -> Result<RecordBatch, DeltaError> {
        let rows = batch.num_rows();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (source, field) in self.columns.iter().zip(self.schema.fields()) {
            columns.push(match source {
                ColumnOrigin::File(position, stored) => {
                    convert(&convert(batch.column(*position), stored)?, field.data_type())?
                }
                ColumnOrigin::Constant(value) => take(value, &UInt32Array::from(vec![0; rows]), None)?,
                ColumnOrigin::Null => new_null_array(field.data_type(), rows),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, DeltaError> {
        let Some(batch) = self.reader.next() else {
            if self.rows != self.rows_expected {
                let reason = format!("it has {} rows, but the log has {}", self.rows, self.rows_expected);
                return Err(DeltaError::corrupt(&self.path, reason));
            }
            return Ok(None);
        };
        let batch = batch.map_err(|error| DeltaError::corrupt(&self.path, error))?;
        self.rows += batch.num_rows() as u64;
        self.to_declared(&batch).map(Some)
    }
}

impl Iterator for DataFileReader {
    type Item = Result<RecordBatch, DeltaError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let batch = self.next_batch().transpose();
        self.is_done = !matches!(batch, Some(Ok(_)));
        batch
    }
}

/// The rows that the footer of a file has.
pub(super) fn count_rows(path: &Path) -> Result<u64, DeltaError> {
    let input = File::open(path).map_err(DeltaError::io(path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(input).map_err(DeltaError::parquet(path))?;
    u64::try_from(builder.metadata().file_metadata().num_rows()).map_err(|error| DeltaError::corrupt(path, error))
}

/// Compares the bytes of a file with its size and, if it has one, its checksum.
///
/// # Errors
/// `Corrupt` if they differ; `Io`.
pub fn verify_file(folder: &Path, file: &DataFile) -> Result<(), DeltaError> {
    let path = folder.join(&file.path);
    let mut input = File::open(&path).map_err(DeltaError::io(&path))?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; CHECKSUM_BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        let read = input.read(&mut buffer).map_err(DeltaError::io(&path))?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
    if bytes != file.bytes {
        return Err(DeltaError::corrupt(&path, format!("it has {bytes} bytes, but the log has {}", file.bytes)));
    }
    if file.checksum.is_some_and(|checksum| checksum != hasher.finalize()) {
        return Err(DeltaError::corrupt(&path, "its checksum is not that of the log"));
    }
    Ok(())
}
