//! Rows of several partitions, collected and sorted, so that the rows of a partition are written together. Those of
//! partitions that have no open file are on disk.
//!
//! A run has rows in the order of their partitions. When all rows are there, the runs are merged, so that the rows of a
//! partition are read one after the other. A batch that begins in one partition and ends in another one is small, as it
//! stays in memory between them: one of each run.
//!
//! The runs are in a file without a name, which ends with the process, however that ends.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, UInt32Type};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use tidegate_core::private_file;
use tidegate_query::batch_bytes;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::DeltaError;
use crate::error::StopFlag;

/// Rows of a batch that are written at once.
const CHUNK_ROWS: usize = 8192;

/// The values of the partition columns, as a commit has them.
pub(super) type PartitionValues = Vec<Option<String>>;

/// Rows of one partition, with its number.
pub(super) type PartitionBatch = (u32, RecordBatch);

/// Rows that wait to be written. Partitions have numbers in the order in which their first rows came.
#[derive(Debug, Default)]
pub(super) struct PartitionedRows {
    keys: Option<RowConverter>,
    partitions: HashMap<Box<[u8]>, u32>,
    values: Vec<PartitionValues>,
    batches: Vec<RecordBatch>,
    rows: Vec<WaitingRow>,
    bytes: usize,
}

/// The partition comes first, as rows are sorted by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitingRow {
    pub(super) partition: u32,
    batch: u32,
    row: u32,
}

impl PartitionedRows {
    /// The bytes of the rows that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of partitions so far, also of rows that were taken.
    pub(super) fn partitions(&self) -> usize {
        self.values.len()
    }

    /// The partition of each row, by its number. `format` gives the values of a row with a new one.
    pub(super) fn partition_of_rows(
        &mut self,
        keys: &[ArrayRef],
        format: impl Fn(usize) -> Result<PartitionValues, DeltaError>,
    ) -> Result<Vec<u32>, DeltaError> {
        let converter = match self.keys.take() {
            Some(converter) => converter,
            None => RowConverter::new(keys.iter().map(|key| SortField::new(key.data_type().clone())).collect())?,
        };
        let encoded = self.keys.insert(converter).convert_columns(keys)?;
        let mut found = Vec::with_capacity(encoded.num_rows());
        for (row, key) in encoded.iter().enumerate() {
            let partition = match self.partitions.get(key.data()) {
                Some(partition) => *partition,
                None => {
                    let partition = as_index(self.values.len())?;
                    self.values.push(format(row)?);
                    self.partitions.insert(key.data().into(), partition);
                    partition
                }
            };
            found.push(partition);
        }
        Ok(found)
    }

    /// The values of a partition.
    pub(super) fn values(&self, partition: u32) -> PartitionValues {
        self.values.get(partition as usize).cloned().unwrap_or_default()
    }

    /// Adds the rows of a batch, each with its partition.
    pub(super) fn push(&mut self, batch: RecordBatch, partitions: &[u32]) -> Result<(), DeltaError> {
        let index = as_index(self.batches.len())?;
        for (row, partition) in partitions.iter().enumerate() {
            self.rows.push(WaitingRow { partition: *partition, batch: index, row: as_index(row)? });
        }
        self.bytes += batch_bytes(&batch) + partitions.len() * size_of::<WaitingRow>();
        self.batches.push(batch);
        Ok(())
    }

    /// Takes the rows that wait: those of the first `partitions`, and all others.
    pub(super) fn take(&mut self, partitions: usize) -> [SortedRows; 2] {
        let (mut rows, batches) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.batches));
        let row_bytes = std::mem::take(&mut self.bytes) / rows.len().max(1);
        rows.sort_unstable();
        let others = rows.split_off(rows.partition_point(|row| (row.partition as usize) < partitions));
        [rows, others].map(|rows| SortedRows { batches: batches.clone(), rows, row_bytes })
    }
}

/// Rows, sorted by partition. Their order within a partition is that in which they came.
#[derive(Debug)]
pub(super) struct SortedRows {
    batches: Vec<RecordBatch>,
    rows: Vec<WaitingRow>,
    /// The average bytes of a row.
    row_bytes: usize,
}

impl SortedRows {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows in parts of about `bytes` bytes.
    pub(super) fn parts(&self, bytes: usize) -> impl Iterator<Item = &[WaitingRow]> {
        self.rows.chunks((bytes / self.row_bytes.max(1)).clamp(1, CHUNK_ROWS))
    }

    /// The rows in batches of one partition each.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Result<PartitionBatch, DeltaError>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let rest = self.rows.get(start..)?;
            let partition = rest.first()?.partition;
            let count = rest.iter().take(CHUNK_ROWS).take_while(|row| row.partition == partition).count();
            start += count;
            Some(self.batch(&rest[..count]).map(|batch| (partition, batch)))
        })
    }

    /// A batch of some of the rows.
    pub(super) fn batch(&self, rows: &[WaitingRow]) -> Result<RecordBatch, DeltaError> {
        // Only the batches of these rows are passed on, as there may be many others.
        let (mut used, mut indexes) = (Vec::<&RecordBatch>::new(), HashMap::new());
        let position = |row: &WaitingRow| {
            let index = indexes.entry(row.batch).or_insert_with(|| {
                used.extend(self.batches.get(row.batch as usize));
                used.len() - 1
            });
            (*index, row.row as usize)
        };
        let positions: Vec<(usize, usize)> = rows.iter().map(position).collect();
        let schema = used.first().map_or_else(|| Arc::new(Schema::empty()), |batch| batch.schema());
        let column = |index: usize| -> Result<ArrayRef, DeltaError> {
            let arrays: Vec<&dyn Array> = used.iter().map(|batch| batch.column(index).as_ref()).collect();
            Ok(interleave(&arrays, &positions)?)
        };
        let columns = (0..schema.fields().len()).map(column).collect::<Result<_, _>>()?;
        // There may be no columns but those of the partitions.
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }
}

fn as_index(position: usize) -> Result<u32, DeltaError> {
    u32::try_from(position).map_err(|_| DeltaError::InvalidRows("too many rows".to_owned()))
}

/// The bytes of a batch with rows of several partitions.
const MIXED_BATCH_BYTES_MAX: usize = 256 << 10;

/// Runs that are being written.
pub(super) struct SortedRuns {
    folder: PathBuf,
    /// The rows, each with its partition as the last column.
    writer: FileWriter<BufWriter<File>>,
    /// The batches of each run.
    runs: Vec<Range<usize>>,
    /// The partition of the first row of each batch.
    first_partitions: Vec<u32>,
    room: Vec<OwnedSemaphorePermit>,
}

tidegate_core::impl_debug!(SortedRuns { runs });

impl SortedRuns {
    /// Creates the file for rows with the columns `stored`, in `folder`.
    pub(super) fn create(folder: &Path, stored: &Schema) -> Result<Self, DeltaError> {
        private_file::create_folder(folder).map_err(DeltaError::io(folder))?;
        let path = folder.join(format!("{}.rows", Uuid::new_v4()));
        let file = private_file::create_new(&path).map_err(DeltaError::io(&path))?;
        std::fs::remove_file(&path).map_err(DeltaError::io(&path))?;
        let partition: FieldRef = Arc::new(Field::new("partition", DataType::UInt32, false));
        let fields: Vec<FieldRef> = stored.fields().iter().cloned().chain([partition]).collect();
        let writer = FileWriter::try_new_buffered(file, &Schema::new(fields)).map_err(file_error(folder))?;
        let folder = folder.to_owned();
        Ok(Self { folder, writer, runs: Vec::new(), first_partitions: Vec::new(), room: Vec::new() })
    }

    /// Adds a run, for which `room` was reserved.
    pub(super) fn add(
        &mut self,
        rows: &SortedRows,
        room: Option<OwnedSemaphorePermit>,
        stop: &StopFlag,
    ) -> Result<(), DeltaError> {
        let start = self.first_partitions.len();
        for part in rows.parts(MIXED_BATCH_BYTES_MAX / 2) {
            stop.check()?;
            self.write(rows, part)?;
        }
        if self.first_partitions.len() > start {
            self.runs.push(start..self.first_partitions.len());
        }
        self.room.extend(room);
        Ok(())
    }

    /// Writes a part of the rows as one batch, or as several that are smaller.
    fn write(&mut self, rows: &SortedRows, part: &[WaitingRow]) -> Result<(), DeltaError> {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { return Ok(()) };
        let batch = rows.batch(part)?;
        if first.partition != last.partition && batch_bytes(&batch) > MIXED_BATCH_BYTES_MAX {
            drop(batch);
            let (left, right) = part.split_at(part.len() / 2);
            self.write(rows, left)?;
            return self.write(rows, right);
        }
        let partitions: ArrayRef = Arc::new(UInt32Array::from_iter_values(part.iter().map(|row| row.partition)));
        let columns = batch.columns().iter().cloned().chain([partitions]).collect();
        let batch = RecordBatch::try_new(Arc::clone(self.writer.schema()), columns)?;
        self.writer.write(&batch).map_err(file_error(&self.folder))?;
        self.first_partitions.push(first.partition);
        Ok(())
    }

    /// The rows of all runs.
    pub(super) fn merge(self) -> Result<MergedRuns, DeltaError> {
        let Self { folder, writer, runs, first_partitions, room } = self;
        let file = writer.into_inner().map_err(file_error(&folder))?.into_inner();
        let file = file.map_err(|error| DeltaError::Io { path: folder.clone(), source: error.into_error() })?;
        let reader = FileReader::try_new(file, None).map_err(file_error(&folder))?;
        let cursor = |batches: Range<usize>| {
            let partition = *first_partitions.get(batches.start)?;
            Some(RunCursor { partition, rest: None, batches })
        };
        let cursors = runs.into_iter().filter_map(cursor).collect();
        Ok(MergedRuns { folder, reader, first_partitions, cursors, _room: room })
    }
}

/// The rows of runs, partition after partition, and those of a partition in the order of the runs.
#[derive(Debug)]
pub(super) struct MergedRuns {
    folder: PathBuf,
    reader: FileReader<File>,
    first_partitions: Vec<u32>,
    /// The runs with rows that were not returned yet, in their order.
    cursors: Vec<RunCursor>,
    _room: Vec<OwnedSemaphorePermit>,
}

/// A position in a run.
#[derive(Debug)]
struct RunCursor {
    /// The partition of the next row.
    partition: u32,
    /// The rows of the current batch that were not returned yet.
    rest: Option<RecordBatch>,
    /// The batches after it.
    batches: Range<usize>,
}

impl MergedRuns {
    /// The next rows of the run at `index`.
    fn next_of_run(&mut self, index: usize) -> Result<PartitionBatch, DeltaError> {
        let cursor = &mut self.cursors[index];
        let batch = match cursor.rest.take() {
            Some(rest) => rest,
            None => {
                let batch = read_batch(&mut self.reader, cursor.batches.start, &self.folder)?;
                cursor.batches.start += 1;
                batch
            }
        };
        let partition = cursor.partition;
        let values = batch.num_columns() - 1;
        let partitions = batch.column(values).as_primitive::<UInt32Type>().values();
        let count = partitions.partition_point(|found| *found <= partition);
        let next_in_batch = partitions.get(count).copied();
        cursor.rest = next_in_batch.map(|_| batch.slice(count, batch.num_rows() - count));
        let first_of_others = self.first_partitions.get(cursor.batches.clone()).unwrap_or_default();
        match next_in_batch.or_else(|| first_of_others.first().copied()) {
            Some(next) => cursor.partition = next,
            None => drop(self.cursors.remove(index)),
        }
        let rows = batch.slice(0, count).project(&(0..values).collect::<Vec<usize>>())?;
        Ok((partition, rows))
    }
}

impl Iterator for MergedRuns {
    type Item = Result<PartitionBatch, DeltaError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Of several with the same partition, that is the first.
        let (index, _) = self.cursors.iter().enumerate().min_by_key(|(_, cursor)| cursor.partition)?;
        Some(self.next_of_run(index))
    }
}

fn read_batch(reader: &mut FileReader<File>, index: usize, folder: &Path) -> Result<RecordBatch, DeltaError> {
    reader.set_index(index).map_err(file_error(folder))?;
    let batch = reader.next().transpose().map_err(file_error(folder))?;
    batch.ok_or_else(|| DeltaError::io(folder)(ErrorKind::UnexpectedEof.into()))
}

/// A function that distinguishes an error of the file from one of the rows.
fn file_error(folder: &Path) -> impl FnOnce(ArrowError) -> DeltaError + '_ {
    move |error| match error {
        ArrowError::IoError(_, source) => DeltaError::Io { path: folder.to_owned(), source },
        other => DeltaError::Arrow(other),
    }
}
