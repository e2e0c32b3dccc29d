//! The rows of a JSON file as batches. A value is in a column only if the column holds it exactly.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{FieldRef, Fields, SchemaRef};
use datafusion::arrow::error::ArrowError;
use tidegate_ingest_formats::{JsonCursor, JsonSyntaxError, NameIndex};

use super::json_column::{CellDefect, ITEMS_BYTES_MAX, JsonColumn};
use super::row_batches::{BATCH_BYTES_MAX, batch_of, batches_until_error};
use crate::embedded::files::{
    FileTable, JsonColumns, JsonDefect, JsonError, JsonRecord, JsonRecords, TextTableOptions,
};

/// The size of the objects that are searched for further changes of the columns, after one that the table does not hold.
const SEARCHED_BYTES_MAX: usize = 64 << 20;

/// Why the rows of a JSON file cannot be read.
pub(super) enum JsonRowsError {
    Json(JsonError),
    Misfit(JsonMisfit),
    Batch(ArrowError),
}

/// A key that the table does not have, or a value that its column does not hold.
pub(super) struct JsonMisfit {
    /// The name of the column.
    pub(super) column: String,
    /// The value, as it is written.
    pub(super) value: String,
    /// The line in which its object begins, from 1.
    pub(super) line: u64,
    /// The columns that hold the values of this object and of those behind it, where they differ from those of the table, with
    /// their notes.
    pub(super) changes: Vec<(FieldRef, Option<String>)>,
    /// The number of all columns that the table has then.
    pub(super) columns: usize,
}

impl From<JsonError> for JsonRowsError {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

/// The batches of a file.
pub(super) struct JsonRows<R> {
    records: JsonRecords<R>,
    reader: ObjectReader,
    /// The columns of the table.
    known_types: Fields,
    options: Arc<TextTableOptions>,
    location: String,
    schema: SchemaRef,
    batch_rows: usize,
}

impl<R: Read> JsonRows<R> {
    /// The rows of `records`, which are those of the file at `location`, with the columns of `table` at `positions`, whose
    /// fields are those of `schema`.
    pub(super) fn new(
        records: JsonRecords<R>,
        table: &FileTable,
        options: Arc<TextTableOptions>,
        positions: &[usize],
        schema: SchemaRef,
        location: &str,
        batch_rows: usize,
    ) -> Self {
        let reader = ObjectReader::new(&table.known_types, &options, positions);
        let width = reader.values.iter().map(JsonColumn::width).sum::<usize>();
        Self {
            records,
            known_types: table.known_types.clone(),
            options,
            location: location.to_owned(),
            schema,
            batch_rows: batch_rows.min(BATCH_BYTES_MAX / width.max(1)).max(1),
            reader,
        }
    }

    /// The batches, until there are no more or one cannot be read.
    pub(super) fn batches(mut self) -> impl Iterator<Item = Result<RecordBatch, JsonRowsError>> {
        batches_until_error(move || self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>, JsonRowsError> {
        let (mut rows, mut text_bytes) = (0_usize, 0_usize);
        while rows < self.batch_rows && text_bytes.max(self.reader.items_bytes()) < BATCH_BYTES_MAX {
            let Some(record) = self.records.next()? else { break };
            let Err(defect) = self.reader.append(record.text) else {
                (rows, text_bytes) = (rows + 1, text_bytes + record.text.len());
                continue;
            };
            let column = match defect {
                RowDefect::Json(defect) => return Err(record.error(defect).into()),
                RowDefect::Misfit(column) => column,
            };
            let (value, line) = (written_value(&record, &column), record.line);
            let mut learned = JsonColumns::new(&self.known_types, self.options.clone(), &self.location);
            learned.learn(&record)?;
            search_changes(&mut self.records, &mut learned);
            let (changes, columns) = (learned.changes(&self.known_types), learned.count());
            return Err(JsonRowsError::Misfit(JsonMisfit { column, value, line, changes, columns }));
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.reader.finish().map_err(JsonRowsError::Batch)?;
        batch_of(&self.schema, columns, rows).map(Some).map_err(JsonRowsError::Batch)
    }
}

/// The value of a member, as it is written.
fn written_value(record: &JsonRecord<'_>, name: &str) -> String {
    let mut cursor = JsonCursor::new(record.text);
    let mut is_first = true;
    while let Ok(Some(found)) = cursor.next_name(&mut is_first) {
        let is_found = found == name;
        match cursor.raw_value() {
            Ok(value) if is_found => return value.to_owned(),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    String::new()
}

/// Adds what further objects change, so that a statement need not begin again for each of them. Their errors are found when
/// they are read as rows.
fn search_changes<R: Read>(records: &mut JsonRecords<R>, learned: &mut JsonColumns) {
    let mut bytes = 0;
    while bytes < SEARCHED_BYTES_MAX
        && let Ok(Some(record)) = records.next()
        && learned.learn(&record).is_ok()
    {
        bytes += record.text.len();
    }
}

/// Why an object is no row.
enum RowDefect {
    Json(JsonDefect),
    /// The value of this key has no column that holds it.
    Misfit(String),
}

impl From<JsonDefect> for RowDefect {
    fn from(defect: JsonDefect) -> Self {
        Self::Json(defect)
    }
}

impl From<JsonSyntaxError> for RowDefect {
    fn from(error: JsonSyntaxError) -> Self {
        Self::Json(error.into())
    }
}

/// Appends objects to columns.
struct ObjectReader {
    /// The names of all columns of the table's files.
    names: NameIndex,
    /// What is known of each of them.
    keys: Vec<Key>,
    /// The columns that are read.
    values: Vec<JsonColumn>,
    /// The number of objects that were begun.
    objects: u64,
    /// The number of rows of the columns.
    rows: usize,
    has_lists: bool,
}

/// A key of objects.
#[derive(Clone, Copy, Default)]
struct Key {
    /// The position among the columns that are read.
    column: Option<usize>,
    /// The number of the last object that has it.
    last_object: u64,
}

impl ObjectReader {
    fn new(known_types: &Fields, options: &TextTableOptions, positions: &[usize]) -> Self {
        let mut keys: Vec<Key> = vec![Key::default(); known_types.len()];
        let mut values = Vec::with_capacity(positions.len());
        for position in positions {
            if let (Some(key), Some(field)) = (keys.get_mut(*position), known_types.get(*position)) {
                key.column = Some(values.len());
                values.push(JsonColumn::new(field, options.columns.get(field.name())));
            }
        }
        Self {
            // The names of columns differ.
            names: NameIndex::new(known_types.iter().map(|field| field.name().clone())).unwrap_or_default(),
            keys,
            has_lists: values.iter().any(JsonColumn::has_lists),
            values,
            objects: 0,
            rows: 0,
        }
    }

    fn append(&mut self, object: &str) -> Result<(), RowDefect> {
        self.objects += 1;
        let mut cursor = JsonCursor::new(object);
        let (mut is_first, mut expected, mut found, mut room) = (true, 0, 0, ITEMS_BYTES_MAX);
        while let Some(name) = cursor.next_name(&mut is_first)? {
            let Some(position) = self.names.find(name, expected) else {
                return Err(RowDefect::Misfit(name.to_owned()));
            };
            expected = position + 1;
            let Some(key) = self.keys.get_mut(position) else { continue };
            if std::mem::replace(&mut key.last_object, self.objects) == self.objects {
                return Err(JsonDefect::KeyTwice(self.names.name(position).to_owned()).into());
            }
            let Some(column) = key.column.and_then(|column| self.values.get_mut(column)) else {
                cursor.raw_value()?;
                continue;
            };
            match column.append(&mut cursor, &mut room) {
                Ok(()) => found += 1,
                Err(CellDefect::Json(defect)) => return Err(defect.into()),
                Err(CellDefect::Misfit) => return Err(RowDefect::Misfit(self.names.name(position).to_owned())),
            }
        }
        cursor.expect_end()?;
        if found < self.values.len() {
            let rows = self.rows;
            self.values.iter_mut().filter(|column| column.len() == rows).for_each(JsonColumn::append_null);
        }
        self.rows += 1;
        Ok(())
    }

    /// The approximate memory of the items of lists without texts.
    fn items_bytes(&self) -> usize {
        if self.has_lists { self.values.iter().map(JsonColumn::items_bytes).sum() } else { 0 }
    }

    /// The values of all rows. The columns are empty then.
    fn finish(&mut self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.rows = 0;
        self.values.iter_mut().map(JsonColumn::finish).collect()
    }
}
