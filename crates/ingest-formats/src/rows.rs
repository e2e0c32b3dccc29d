//! Collects rows into batches, and the rows that are rejected.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use tidegate_core::MemoryReservation;

use crate::columns::TableColumns;
use crate::error::{BodyError, CellError, CellResult, REPORTED_ROWS_MAX, RejectedRow, RowPosition};
use crate::options::{BodyOptions, RejectMode};

/// So many rejected rows end a batch, so that they do not collect in memory.
const BATCH_REJECTED_ROWS_MAX: usize = 500;
/// About what a rejected row takes, with its text and its reason.
const REJECTED_ROW_BYTES: usize = 2 << 10;

/// Rows that fit their table, and those before the end of the batch that do not.
#[derive(Debug, Clone)]
pub struct DecodedRows {
    /// The rows. The schema is that of the table, with the columns that were added so far.
    pub batch: RecordBatch,
    /// Where each row of the batch is in the body.
    pub positions: Vec<RowPosition>,
    /// The rows that do not fit, since the last batch. Always empty with [`RejectMode::All`].
    pub rejected: Vec<RejectedRow>,
}

/// How many rows a body had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCounts {
    /// The rows that fit.
    pub accepted: u64,
    /// The rows that do not.
    pub rejected: u64,
}

/// Receives the records of a text format.
pub(crate) trait RecordSink {
    /// Reads the text of one object.
    fn append_object(&mut self, text: &str) -> CellResult<()>;
    /// Whether there is a column of this name.
    fn has_column(&self, name: &str) -> bool;
    /// The position of the column of each field, by the names in the first line.
    fn named_columns(&mut self, line: u64, names: &[&str]) -> Result<Vec<usize>, BodyError>;
    /// The same where the first record has this number of fields, and there are no names.
    fn unnamed_columns(&mut self, fields: usize) -> Vec<usize>;
    /// Reads fields, each with the position of its column. A field without text is null.
    fn append_fields<'a>(&mut self, fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>) -> CellResult<()>;
    /// Records what became of the row with this text.
    fn record(&mut self, position: RowPosition, text: &[u8], appended: CellResult<()>) -> Result<(), BodyError>;
    /// Rejects a row that was not read.
    fn reject(&mut self, row: RejectedRow) -> Result<(), BodyError>;
}

/// Collects rows into batches.
#[derive(Debug)]
pub(crate) struct RowCollector {
    columns: TableColumns,
    options: Arc<BodyOptions>,
    positions: Vec<RowPosition>,
    /// About how many bytes the rows of the batch have.
    batch_bytes: usize,
    width: usize,
    rejected: Vec<RejectedRow>,
    counts: RowCounts,
    /// Each with its bytes.
    ready: VecDeque<(DecodedRows, usize)>,
    memory: Option<Box<dyn MemoryReservation>>,
    /// What the body takes beside its rows.
    input_bytes: usize,
}

impl RowCollector {
    pub(crate) fn new(schema: &Schema, options: Arc<BodyOptions>) -> Result<Self, BodyError> {
        let columns = TableColumns::new(schema, options.clone())?;
        let width = columns.width();
        Ok(Self {
            columns,
            options,
            positions: Vec::new(),
            batch_bytes: 0,
            width,
            rejected: Vec::new(),
            counts: RowCounts::default(),
            ready: VecDeque::new(),
            memory: None,
            input_bytes: 0,
        })
    }

    /// Draws on `memory` from now on.
    pub(crate) fn set_memory(&mut self, memory: Box<dyn MemoryReservation>) {
        self.memory = Some(memory);
    }

    /// Sets what the body takes beside its rows, for the next reservation.
    pub(crate) fn set_input_bytes(&mut self, bytes: usize) {
        self.input_bytes = bytes;
    }

    /// Reserves what the body and its rows take, and `more` bytes that are about to be made.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), BodyError> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let ready = self.ready.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let rows = self.columns.memory_bytes()
            + self.positions.capacity() * size_of::<RowPosition>()
            + self.rejected.len() * REJECTED_ROW_BYTES;
        let bytes = [self.input_bytes, ready, rows, more].into_iter().fold(0, usize::saturating_add);
        memory.resize(bytes).map_err(BodyError::Memory)
    }

    /// Returns the memory of a body that was decoded as a whole.
    pub(crate) fn release_memory(&mut self) {
        self.memory = None;
    }

    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Whether a row was rejected and therefore the body is refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.options.reject_mode == RejectMode::All && self.counts.rejected > 0
    }

    /// The next rows. From here on, the caller counts their memory.
    pub(crate) fn next_ready(&mut self) -> Result<Option<DecodedRows>, BodyError> {
        let Some((rows, _)) = self.ready.pop_front() else { return Ok(None) };
        self.reserve(0)?;
        Ok(Some(rows))
    }

    pub(crate) fn columns_mut(&mut self) -> &mut TableColumns {
        &mut self.columns
    }

    pub(crate) fn columns(&self) -> &TableColumns {
        &self.columns
    }

    /// Records a row that is rejected. It is passed on with the next batch.
    pub(crate) fn keep_rejected(&mut self, row: RejectedRow) {
        self.counts.rejected += 1;
        if self.options.reject_mode == RejectMode::Row || self.rejected.len() < REPORTED_ROWS_MAX {
            self.rejected.push(row);
        }
    }

    /// Passes on rows that are already a batch, whose values have so many bytes.
    pub(crate) fn push_batch(&mut self, batch: RecordBatch, positions: Vec<RowPosition>, bytes: usize) {
        if self.is_refused() || (batch.num_rows() == 0 && self.rejected.is_empty()) {
            return;
        }
        self.counts.accepted += batch.num_rows() as u64;
        self.push_ready(batch, positions, bytes);
    }

    fn push_ready(&mut self, batch: RecordBatch, positions: Vec<RowPosition>, bytes: usize) {
        let rejected = std::mem::take(&mut self.rejected);
        let bytes = bytes + positions.len() * size_of::<RowPosition>() + rejected.len() * REJECTED_ROW_BYTES;
        self.ready.push_back((DecodedRows { batch, positions, rejected }, bytes));
    }

    /// Makes a batch of the rows so far, if there are any.
    pub(crate) fn end_batch(&mut self) -> Result<(), BodyError> {
        if self.is_refused() || (self.positions.is_empty() && self.rejected.is_empty()) {
            return Ok(());
        }
        // A column may be copied, to have its type.
        let copied_bytes = self.columns.memory_bytes();
        self.reserve(copied_bytes)?;
        let batch = self.columns.finish().map_err(|error| BodyError::Malformed(error.to_string()))?;
        self.batch_bytes = 0;
        self.width = self.columns.width();
        let positions = std::mem::take(&mut self.positions);
        let bytes = batch.columns().iter().map(Array::get_array_memory_size).sum();
        self.push_ready(batch, positions, bytes);
        Ok(())
    }

    /// The error of a body that has rejected rows, where these refuse it.
    pub(crate) fn refusal(&self) -> Result<(), BodyError> {
        if !self.is_refused() {
            return Ok(());
        }
        Err(BodyError::Rejected { rows: self.rejected.clone(), count: self.counts.rejected })
    }
}

impl RecordSink for RowCollector {
    fn append_object(&mut self, text: &str) -> CellResult<()> {
        self.columns.append_object(text)
    }

    fn has_column(&self, name: &str) -> bool {
        self.columns.names().find(name, 0).is_some()
    }

    fn named_columns(&mut self, line: u64, names: &[&str]) -> Result<Vec<usize>, BodyError> {
        let columns = self.columns.names();
        let positions: Vec<_> = names.iter().enumerate().map(|(index, name)| columns.find(name, index)).collect();
        let unknown = names.iter().zip(&positions).filter(|(_, position)| position.is_none()).map(|(name, _)| *name);
        match columns.unknown_columns(unknown) {
            Some(reason) => Err(BodyError::Columns(format!("line {line}: {reason}"))),
            None => Ok(positions.into_iter().flatten().collect()),
        }
    }

    fn unnamed_columns(&mut self, _fields: usize) -> Vec<usize> {
        (0..self.columns.names().len()).collect()
    }

    fn append_fields<'a>(&mut self, fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>) -> CellResult<()> {
        self.columns.append_fields(fields)
    }

    fn record(&mut self, position: RowPosition, text: &[u8], appended: CellResult<()>) -> Result<(), BodyError> {
        if let Err(error) = appended {
            return self.reject(RejectedRow::new(position, *error, text));
        }
        if self.is_refused() {
            self.columns.remove_last_row();
            return Ok(());
        }
        self.counts.accepted += 1;
        self.positions.push(position);
        self.batch_bytes = self.batch_bytes.saturating_add(text.len().max(self.width));
        let limits = &self.options.limits;
        let bytes = self.batch_bytes.max(self.columns.items_bytes());
        if self.positions.len() >= limits.batch_rows_max || bytes >= limits.batch_bytes {
            self.end_batch()?;
        }
        Ok(())
    }

    fn reject(&mut self, row: RejectedRow) -> Result<(), BodyError> {
        self.keep_rejected(row);
        if self.options.reject_mode == RejectMode::Row && self.rejected.len() >= BATCH_REJECTED_ROWS_MAX {
            self.end_batch()?;
        }
        Ok(())
    }
}

/// The text of a record, or the reason why it is none.
pub(crate) fn record_text(bytes: &[u8]) -> CellResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let reason = format!("the text is not UTF-8 at byte {} of the row", error.valid_up_to() + 1);
        Box::new(CellError { path: String::new(), reason, is_syntax: true })
    })
}
