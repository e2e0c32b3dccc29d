//! Rows of a table that are in the log, and not in the Delta table yet.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use tokio::sync::OwnedSemaphorePermit;

use super::columns::union;
use crate::delta::DataFile;

/// So many small batches become one, so that scans do not read a batch of a few rows for each write.
const MERGED_BATCHES: usize = 32;
/// A batch with fewer rows is small. Batches are merged once to this size, and once more to the next.
const SMALL_BATCH_ROWS: [usize; 2] = [1024, 8 * 1024];

/// Rows of a table that were acknowledged, in the order of the log.
#[derive(Debug)]
pub(crate) struct PendingRows {
    /// The columns of the table with these rows.
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    /// Data files in the folder of the table.
    pub(crate) staged: Vec<Arc<DataFile>>,
    /// Whether the rows take the place of those in the Delta table.
    pub(crate) replaces: bool,
    pub(crate) first_sequence: u64,
    pub(crate) last_sequence: u64,
    pub(crate) since: Instant,
    pub(crate) rows: u64,
    /// Bytes in memory.
    pub(crate) bytes: u64,
    /// The room in memory. Freed with the rows.
    reservation: Option<OwnedSemaphorePermit>,
}

/// The rows of one write for one table.
#[derive(Debug)]
pub(crate) struct AppliedRows {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) staged: Vec<Arc<DataFile>>,
    pub(crate) replaces: bool,
    /// Bytes in memory.
    pub(crate) bytes: u64,
}

impl AppliedRows {
    pub(crate) fn rows(&self) -> u64 {
        let in_memory = self.batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        in_memory + self.staged.iter().map(|file| file.rows).sum::<u64>()
    }
}

impl PendingRows {
    /// No rows yet; the write with this sequence number adds the first.
    pub(crate) fn new(schema: SchemaRef, first_sequence: u64) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            staged: Vec::new(),
            replaces: false,
            first_sequence,
            last_sequence: first_sequence,
            since: Instant::now(),
            rows: 0,
            bytes: 0,
            reservation: None,
        }
    }

    /// Adds the rows of a write.
    pub(crate) fn apply(&mut self, sequence: u64, added: AppliedRows, reservation: Option<OwnedSemaphorePermit>) {
        if added.replaces {
            self.batches.clear();
            self.staged.clear();
            self.rows = 0;
            self.bytes = 0;
            self.reservation = None;
            self.replaces = true;
        }
        self.last_sequence = sequence;
        self.rows += added.rows();
        self.bytes += added.bytes;
        self.schema = union(&self.schema, &added.schema);
        self.staged.extend(added.staged);
        for batch in added.batches {
            self.batches.push(batch);
            SMALL_BATCH_ROWS.iter().for_each(|rows| self.merge_small_batches(*rows));
        }
        match (&mut self.reservation, reservation) {
            // Both come from the semaphore of the folder, so they can be merged.
            (Some(all), Some(new)) => all.merge(new),
            (all @ None, new) => *all = new,
            (Some(_), None) => {}
        }
    }

    fn merge_small_batches(&mut self, rows_max: usize) {
        let small = self.batches.iter().rev().take(MERGED_BATCHES);
        let schema = self.batches.last().map(RecordBatch::schema);
        let is_small = |batch: &&RecordBatch| batch.num_rows() < rows_max && Some(batch.schema()) == schema;
        if small.take_while(is_small).count() < MERGED_BATCHES {
            return;
        }
        let Some(schema) = schema else { return };
        let start = self.batches.len() - MERGED_BATCHES;
        // Without the merge, the rows are the same in more batches.
        if let Some(tail) = self.batches.get(start..)
            && let Ok(merged) = concat_batches(&schema, tail)
        {
            self.batches.truncate(start);
            self.batches.push(merged);
        }
    }
}
