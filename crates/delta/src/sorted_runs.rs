//! Rows of partitions that have no open file, on disk.
//!
//! A run has rows in the order of their partitions. When all rows are there, the runs are merged, so that the rows of a
//! partition are read one after the other. A batch that begins in one partition and ends in another one is small, as it
//! stays in memory between them: one of each run.
//!
//! The runs are in a file without a name, which ends with the process, however that ends.

use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, UInt32Type};
use arrow::error::ArrowError;
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use tidegate_core::private_file;
use tidegate_query::batch_bytes;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::DeltaError;
use super::partitioned_rows::{PartitionBatch, SortedRows, WaitingRow};
use super::stop_flag::StopFlag;

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
