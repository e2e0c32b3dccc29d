//! Collects rows into batches, column by column, and the rows that are rejected.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchOptions;
use tidegate_core::MemoryReservation;

use crate::column::{ColumnBuffer, NameIndex};
use crate::error::{BodyError, CellError, CellResult, REPORTED_ROWS_MAX, RejectedRow, RowPosition};
use crate::infer::infer_json_field;
use crate::json::{JsonCursor, JsonKind};
use crate::options::{BodyOptions, RejectMode, UnknownColumns};

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

/// Programs of Windows write it before UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Removes the byte order mark from the beginning of a body. False if `buffer` may be the beginning of one.
pub(crate) fn skip_byte_order_mark(buffer: &mut Vec<u8>) -> bool {
    if buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(buffer) {
        return false;
    }
    if buffer.starts_with(BYTE_ORDER_MARK) {
        buffer.drain(..BYTE_ORDER_MARK.len());
    }
    true
}

/// The text of a record, or the reason why it is none.
pub(crate) fn record_text(bytes: &[u8]) -> CellResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let reason = format!("the text is not UTF-8 at byte {} of the row", error.valid_up_to() + 1);
        Box::new(CellError { path: String::new(), reason, is_syntax: true })
    })
}

/// The columns of the table, and those that the body adds.
#[derive(Debug)]
pub(crate) struct TableColumns {
    options: Arc<BodyOptions>,
    names: NameIndex,
    fields: Vec<FieldRef>,
    buffers: Vec<ColumnBuffer>,
    schema: SchemaRef,
    /// How many columns the table has.
    declared: usize,
    /// The number of complete rows.
    rows: usize,
}

impl TableColumns {
    pub(crate) fn new(schema: &Schema, options: Arc<BodyOptions>) -> Result<Self, BodyError> {
        if schema.fields().len() > options.limits.columns_max {
            let (count, max) = (schema.fields().len(), options.limits.columns_max);
            return Err(BodyError::Options(format!("the table has {count} columns; at most {max} are allowed")));
        }
        let names = NameIndex::new(schema.fields().iter().map(|field| field.name().clone()));
        let buffers = schema.fields().iter().map(|field| ColumnBuffer::new(field, &options));
        let buffers = buffers.collect::<Result<Vec<_>, _>>().map_err(BodyError::Options)?;
        for name in options.epoch_units.keys() {
            let fields: NameIndex = names.clone().map_err(BodyError::Options)?;
            if fields.find(name, 0).is_none() && options.unknown_columns == UnknownColumns::Refuse {
                let reason = fields.unknown("column", name);
                return Err(BodyError::Options(format!("a unit of epochs is declared, but {reason}")));
            }
        }
        Ok(Self {
            names: names.map_err(BodyError::Options)?,
            fields: schema.fields().iter().cloned().collect(),
            buffers,
            schema: Arc::new(schema.clone()),
            declared: schema.fields().len(),
            rows: 0,
            options,
        })
    }

    pub(crate) fn names(&self) -> &NameIndex {
        &self.names
    }

    /// The columns with those that were added.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The columns that were added.
    pub(crate) fn added(&self) -> &[FieldRef] {
        self.fields.get(self.declared..).unwrap_or_default()
    }

    /// About how many bytes a row takes, without text.
    pub(crate) fn width(&self) -> usize {
        self.buffers.iter().map(ColumnBuffer::width).sum()
    }

    /// About how many bytes the items of the lists of all rows take.
    pub(crate) fn items_bytes(&self) -> usize {
        self.buffers.iter().map(ColumnBuffer::items_bytes).sum()
    }

    /// The memory of all rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.buffers.iter().map(ColumnBuffer::memory_bytes).sum()
    }

    /// Adds a column that is null in all rows so far.
    pub(crate) fn add(&mut self, field: Field) -> Result<(), String> {
        let max = self.options.limits.columns_max;
        if self.names.len() >= max {
            return Err(format!("the column \"{}\" is one too many; at most {max} are allowed", field.name()));
        }
        self.names.check_new(field.name())?;
        let mut buffer = ColumnBuffer::new(&field, &self.options)?;
        for _ in 0..self.rows {
            buffer.append_null().map_err(|error| error.reason)?;
        }
        self.names.push(field.name().clone())?;
        self.buffers.push(buffer);
        self.fields.push(Arc::new(field));
        self.update_schema();
        Ok(())
    }

    fn update_schema(&mut self) {
        let metadata = self.schema.metadata().clone();
        self.schema = Arc::new(Schema::new_with_metadata(self.fields.clone(), metadata));
    }

    /// Completes the row: columns without a value of it are null.
    fn complete_row(&mut self) -> CellResult<()> {
        let rows = self.rows;
        for (position, buffer) in self.buffers.iter_mut().enumerate().filter(|(_, buffer)| buffer.len() == rows) {
            buffer.append_missing().map_err(|error| error.in_member(self.names.name(position)))?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Removes the values of the incomplete row.
    fn undo_row(&mut self, columns: usize) {
        if self.buffers.len() > columns {
            self.buffers.truncate(columns);
            self.fields.truncate(columns);
            self.names.truncate(columns);
            self.update_schema();
        }
        let rows = self.rows;
        self.buffers.iter_mut().for_each(|buffer| buffer.truncate(rows));
    }

    /// Removes the last row.
    fn remove_last_row(&mut self) {
        self.rows = self.rows.saturating_sub(1);
        self.undo_row(self.buffers.len());
    }

    /// Appends a row from the text of one object. If it does not fit, no column has any of it.
    pub(crate) fn append_object(&mut self, text: &str) -> CellResult<()> {
        let columns = self.buffers.len();
        let appended = self.read_object(text).and_then(|()| self.complete_row());
        if appended.is_err() {
            self.undo_row(columns);
        }
        appended
    }

    fn read_object(&mut self, text: &str) -> CellResult<()> {
        let mut cursor = JsonCursor::new(text);
        if cursor.kind()? != JsonKind::Object {
            // Broken JSON is reported as such, whatever its kind.
            let mut cursor = JsonCursor::new(text);
            cursor.raw_value()?;
            cursor.expect_end()?;
            return Err(CellError::new("a row is an object with the names of the columns"));
        }
        let (mut is_first, mut expected) = (true, 0);
        let mut refused: Vec<String> = Vec::new();
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let Some(position) = self.names.find(name, expected) else {
                let name = name.to_owned();
                let value = cursor.raw_value()?;
                if self.options.unknown_columns == UnknownColumns::Refuse {
                    refused.push(name);
                    continue;
                }
                self.append_unknown(&name, value)?;
                continue;
            };
            expected = position + 1;
            let Some(buffer) = self.buffers.get_mut(position) else { continue };
            if buffer.len() > self.rows {
                return Err(CellError::new("it occurs twice").in_member(self.names.name(position)));
            }
            buffer.append_json(&mut cursor).map_err(|error| error.in_member(self.names.name(position)))?;
        }
        cursor.expect_end()?;
        match (refused.first(), self.names.unknown_columns(refused.iter().map(String::as_str))) {
            (Some(name), Some(reason)) => Err(CellError::new(reason).in_member(name)),
            _ => Ok(()),
        }
    }

    /// Adds a column for a member that the table does not have. A null has no type, so that it adds nothing.
    fn append_unknown(&mut self, name: &str, value: &str) -> CellResult<()> {
        let Some(field) = infer_json_field(name, value) else { return Ok(()) };
        self.add(field).map_err(|reason| CellError::new(reason).in_member(name))?;
        let Some(buffer) = self.buffers.last_mut() else { return Ok(()) };
        buffer.append_json(&mut JsonCursor::new(value)).map_err(|error| error.in_member(name))
    }

    /// Appends a row of fields, each with the position of its column. A field without text is null.
    pub(crate) fn append_fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>,
    ) -> CellResult<()> {
        let columns = self.buffers.len();
        let appended = self.read_fields(fields).and_then(|()| self.complete_row());
        if appended.is_err() {
            self.undo_row(columns);
        }
        appended
    }

    fn read_fields<'a>(&mut self, fields: impl Iterator<Item = (usize, Option<Cow<'a, str>>)>) -> CellResult<()> {
        for (position, text) in fields {
            let Some(buffer) = self.buffers.get_mut(position) else { continue };
            let appended = match text {
                Some(text) => buffer.append_text(&text),
                None => buffer.append_null(),
            };
            appended.map_err(|error| error.in_member(self.names.name(position)))?;
        }
        Ok(())
    }

    /// The batch of all rows; there are none afterwards.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let arrays = self.buffers.iter_mut().map(ColumnBuffer::finish).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }
}
