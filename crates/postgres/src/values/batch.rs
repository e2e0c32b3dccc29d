//! Builds record batches from rows.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use tidegate_core::Error;
use tokio_postgres::Row;

use super::array::ArrayBuilder;
use super::column::{ColumnDecoder, arrow_schema};
use super::raw::RawBytes;

/// Builds the record batches of one result.
pub struct BatchBuilder {
    schema: SchemaRef,
    arrays: Vec<ArrayBuilder>,
    rows: usize,
}

impl BatchBuilder {
    /// Creates an empty batch for `columns`.
    pub fn new(columns: &[ColumnDecoder]) -> Self {
        let arrays = columns.iter().map(ArrayBuilder::new).collect();
        Self { schema: arrow_schema(columns), arrays, rows: 0 }
    }

    /// Appends a row. After an error, the builder contains part of a row and must not be used again.
    ///
    /// # Errors
    /// `InvalidArguments` with the column and what to select instead, if Arrow cannot represent a value; `TooLarge` if
    /// the batch exceeds 2 GiB.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        if row.len() != self.arrays.len() {
            let expected = self.arrays.len();
            return Err(Error::internal(format!("the server sent rows of {} columns, not of {expected}", row.len())));
        }
        for (index, array) in self.arrays.iter_mut().enumerate() {
            let RawBytes(value) = row
                .try_get(index)
                .map_err(|error| Error::internal(format!("column {index} of a row cannot be read: {error}")))?;
            array.append(value).map_err(|refusal| refusal.into_error(self.schema.field(index).name()))?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The number of rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The size of these rows in bytes. It may exceed what the server sent: a number of a few bytes may have a hundred
    /// thousand digits.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().map(ArrayBuilder::bytes).sum()
    }

    /// Takes the rows since the last batch as a batch. After an error, the builder must not be used again.
    ///
    /// # Errors
    /// `InvalidArguments` if the text of a column is not UTF-8.
    pub fn finish(&mut self) -> Result<RecordBatch, Error> {
        let mut columns = Vec::with_capacity(self.arrays.len());
        for (array, field) in self.arrays.iter_mut().zip(self.schema.fields()) {
            columns.push(array.finish().map_err(|refusal| refusal.into_error(field.name()))?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::internal(format!("the rows do not make a batch: {error}")))
    }
}
