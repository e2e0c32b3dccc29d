//! Rows of several partitions, collected and sorted, so that the rows of a partition are written together.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::interleave;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, SortField};
use tidegate_query::batch_bytes;

use super::DeltaError;

/// Rows of a batch that are written at once.
pub(super) const CHUNK_ROWS: usize = 8192;

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
