//! A page of entries.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::compute::interleave;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;

use super::cursor::LogCursor;
use super::entry_order::{EntryKey, LogDirection};
use crate::logs::value::display_value;

/// Entries that follow each other in the total order.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The direction of the entries.
    pub direction: LogDirection,
    /// The entries, in the order of the direction.
    pub entries: Vec<LogEntry>,
    /// Where the next page begins, also if there is none yet. `None` if the page is empty and had no cursor.
    pub next: Option<LogCursor>,
    /// Whether the scan found entries that come after this page.
    pub has_more: bool,
    /// Where entries begin that were added after the scan. Only the first page backward has it; going forward, it is
    /// `next`.
    pub tail: Option<LogCursor>,
    /// What earlier pages returned of the time at which this page begins.
    start: Option<LogCursor>,
}

/// One entry: its place in the total order, and its row.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// The place in the total order.
    pub key: EntryKey,
    /// The number of the entry among those with the same key.
    pub ordinal: u64,
    /// A batch that contains the row, with the requested columns. Dictionaries are replaced by their values.
    pub batch: Arc<RecordBatch>,
    /// The row in the batch.
    pub row: usize,
}

impl LogPage {
    pub(super) fn new(
        direction: LogDirection,
        entries: Vec<LogEntry>,
        has_more: bool,
        start: Option<LogCursor>,
    ) -> Self {
        let mut page = Self { direction, entries, next: None, has_more, tail: None, start };
        page.next = page.cursor_after(page.entries.len());
        page
    }

    /// Where the next page begins if this one ends after its first `count` entries. `None` if it then has none and had no
    /// cursor.
    pub fn cursor_after(&self, count: usize) -> Option<LogCursor> {
        let entries = self.entries.get(..count).unwrap_or(&self.entries);
        let Some(last) = entries.last() else { return self.start.clone() };
        let continued = self.start.as_ref().filter(|start| start.time() == last.key.time);
        let mut cursor = continued.cloned().unwrap_or_else(|| LogCursor::at_time(self.direction, last.key.time));
        for entry in entries.iter().filter(|entry| entry.key.time == last.key.time) {
            cursor.add(entry.key.source, entry.key.tie, entry.ordinal);
        }
        Some(cursor)
    }

    /// The entries as one batch with the columns of all sources, in the order in which they occur. A column that a source
    /// lacks is null in its rows; one that has several types is text in its display form.
    ///
    /// # Errors
    /// If Arrow cannot combine the rows.
    pub fn to_batch(&self) -> Result<RecordBatch, ArrowError> {
        let mut batches: Vec<&Arc<RecordBatch>> = Vec::new();
        let mut place_of: HashMap<usize, usize> = HashMap::new();
        let mut places = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let place = *place_of.entry(Arc::as_ptr(&entry.batch).addr()).or_insert_with(|| {
                batches.push(&entry.batch);
                batches.len() - 1
            });
            places.push((place, entry.row));
        }
        let mut fields: Vec<(Field, bool)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        for field in batches.iter().flat_map(|batch| batch.schema_ref().fields()) {
            let place = *known.entry(field.name().clone()).or_insert_with(|| {
                fields.push((field.as_ref().clone(), true));
                fields.len() - 1
            });
            if let Some((first, is_uniform)) = fields.get_mut(place) {
                *is_uniform &= first.data_type() == field.data_type();
            }
        }
        let mut columns = Vec::with_capacity(fields.len());
        let mut schema = Vec::with_capacity(fields.len());
        for (field, is_uniform) in fields {
            let field = if is_uniform { field } else { Field::new(field.name(), DataType::Utf8, true) };
            let arrays: Vec<ArrayRef> = batches.iter().map(|batch| column(batch, &field)).collect();
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            columns.push(interleave(&arrays, &places)?);
            schema.push(field);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(places.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(schema)), columns, &options)
    }
}

/// The column `field` of `batch`, in the type of the field.
fn column(batch: &RecordBatch, field: &Field) -> ArrayRef {
    match batch.column_by_name(field.name()) {
        None => new_null_array(field.data_type(), batch.num_rows()),
        Some(array) if array.data_type() == field.data_type() => array.clone(),
        Some(array) => {
            let text = |row| array.is_valid(row).then(|| display_value(array.as_ref(), row));
            Arc::new((0..array.len()).map(text).collect::<StringArray>())
        }
    }
}
