//! Reads the rows of a data file as the table declares them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::DeltaError;
use crate::partition::PartitionColumn;
use crate::schema::convert;
use crate::snapshot::{DataFile, DeltaSnapshot};

/// Bytes of a file that are read at once for its checksum.
const CHECKSUM_BUFFER_BYTES: usize = 1 << 20;

/// The batches of a data file.
pub struct DataFileReader {
    path: PathBuf,
    schema: SchemaRef,
    columns: Vec<ColumnSource>,
    reader: ParquetRecordBatchReader,
    rows_expected: u64,
    rows: u64,
    is_done: bool,
}

tidegate_core::impl_debug!(DataFileReader { path });

/// Where the values of a column come from.
enum ColumnSource {
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
) -> Result<Vec<ColumnSource>, DeltaError> {
    let mut sources = Vec::with_capacity(snapshot.schema.fields().len());
    for field in snapshot.schema.fields() {
        let is_partition = |column: &PartitionColumn| !column.is_derived() && column.name == *field.name();
        if let Some(position) = snapshot.partition_columns.iter().position(is_partition) {
            let column = &snapshot.partition_columns[position];
            let value = file.partition_values.get(position).and_then(Option::as_deref);
            sources.push(ColumnSource::Constant(column.parse(value)?));
            continue;
        }
        let stored = snapshot.stored_schema.field_with_name(field.name())?.data_type().clone();
        match file_schema.column_with_name(field.name()) {
            Some((position, found)) if is_readable_as(found.data_type(), &stored) => {
                sources.push(ColumnSource::File(position, stored));
            }
            Some((_, found)) => {
                let reason = format!("column \"{}\" has type {}, not {stored}", field.name(), found.data_type());
                return Err(DeltaError::corrupt(path, reason));
            }
            None if field.is_nullable() => sources.push(ColumnSource::Null),
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
                ColumnSource::File(position, stored) => {
                    convert(&convert(batch.column(*position), stored)?, field.data_type())?
                }
                ColumnSource::Constant(value) => take(value, &UInt32Array::from(vec![0; rows]), None)?,
                ColumnSource::Null => new_null_array(field.data_type(), rows),
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
