//! The columns of a table while the rows of a batch are read.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatchOptions;

use crate::column::{ColumnBuffer, NameIndex};
use crate::error::{BodyError, CellError, CellResult};
use crate::infer::infer_json_field;
use crate::json::cursor::{JsonCursor, JsonKind};
use crate::options::{BodyOptions, UnknownColumns};

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
    pub(crate) fn remove_last_row(&mut self) {
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
