//! Rows of several partitions, collected so that each partition is written at once.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::interleave;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use tidegate_query::batch_bytes;

use super::DeltaError;

/// Rows of a batch that are written at once.
const CHUNK_ROWS: usize = 8192;

/// The values of the partition columns, as a commit has them.
pub(super) type PartitionValues = Vec<Option<String>>;

/// Rows that wait to be written. Their order within a partition is that in which they came.
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
struct WaitingRow {
    partition: u32,
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

    /// Passes on the rows that wait, partition after partition, in batches.
    pub(super) fn drain(
        &mut self,
        mut write: impl FnMut(PartitionValues, RecordBatch) -> Result<(), DeltaError>,
    ) -> Result<(), DeltaError> {
        let (mut rows, batches) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.batches));
        self.bytes = 0;
        rows.sort_unstable();
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(()) };
        for of_partition in rows.chunk_by(|left, right| left.partition == right.partition) {
            for chunk in of_partition.chunks(CHUNK_ROWS) {
                let Some(partition) = chunk.first().map(|row| row.partition) else { continue };
                write(self.values(partition), take_rows(&schema, &batches, chunk)?)?;
            }
        }
        Ok(())
    }
}

fn take_rows(schema: &SchemaRef, batches: &[RecordBatch], rows: &[WaitingRow]) -> Result<RecordBatch, DeltaError> {
    // Rows are in the order of their batches. Only these are passed on, as there may be many others.
    let (mut used, mut positions) = (Vec::<&RecordBatch>::new(), Vec::with_capacity(rows.len()));
    let mut last = None;
    for row in rows {
        if last.replace(row.batch) != Some(row.batch) {
            used.extend(batches.get(row.batch as usize));
        }
        positions.push((used.len() - 1, row.row as usize));
    }
    let column = |index: usize| -> Result<ArrayRef, DeltaError> {
        let arrays: Vec<&dyn Array> = used.iter().map(|batch| batch.column(index).as_ref()).collect();
        Ok(interleave(&arrays, &positions)?)
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_, _>>()?;
    // There may be no columns but those of the partitions.
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn as_index(position: usize) -> Result<u32, DeltaError> {
    u32::try_from(position).map_err(|_| DeltaError::InvalidRows("too many rows".to_owned()))
}
