//! The rows of a CSV file as batches. A value is in a column only if the column holds it exactly.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::arrow::error::ArrowError;

use super::row_batches::{BATCH_BYTES_MAX, batch_of, batches_until_error};
use crate::embedded::files::{
    ColumnValues, CsvDialect, CsvError, CsvRecord, CsvRecords, FileTable, TextReading, TextTableOptions,
    field_count_error, is_null_marker,
};

/// Why the rows of a CSV file cannot be read.
pub(super) enum CsvRowsError {
    Csv(CsvError),
    Misfit(Misfit),
    Batch(ArrowError),
}

/// A value that its column does not hold.
pub(super) struct Misfit {
    /// The position of the column in the file.
    pub(super) column: usize,
    pub(super) value: String,
    /// The line in which its row begins, from 1.
    pub(super) line: u64,
}

impl From<CsvError> for CsvRowsError {
    fn from(error: CsvError) -> Self {
        Self::Csv(error)
    }
}

/// The batches of a file.
pub(super) struct CsvRows<R> {
    records: CsvRecords<R>,
    dialect: CsvDialect,
    /// The number of columns of the file.
    width: usize,
    columns: Vec<CsvColumn>,
    schema: SchemaRef,
    batch_rows: usize,
    needs_header: bool,
}

impl<R: Read> CsvRows<R> {
    /// The rows of `records` with the columns of `table` at `positions`, whose fields are those of `schema`.
    pub(super) fn new(
        records: CsvRecords<R>,
        dialect: &CsvDialect,
        table: &FileTable,
        options: &TextTableOptions,
        positions: &[usize],
        schema: SchemaRef,
        batch_rows: usize,
    ) -> Self {
        let column = |(position, field): (&usize, &Arc<Field>)| CsvColumn {
            position: *position,
            values: ColumnValues::new(field.data_type()),
            reading: TextReading::new(options.columns.get(field.name()), field.data_type(), dialect.numbers),
            nulls: match (&dialect.nulls, field.data_type()) {
                (Some(nulls), _) => NullTexts::Declared(nulls.clone()),
                (None, DataType::Utf8) => NullTexts::Empty,
                (None, _) => NullTexts::of_typed(field.name(), &table.null_marker_columns),
            },
        };
        Self {
            records,
            dialect: dialect.clone(),
            width: table.schema.file_schema().fields().len(),
            columns: positions.iter().zip(schema.fields()).map(column).collect(),
            schema,
            batch_rows: batch_rows.max(1),
            needs_header: dialect.has_header,
        }
    }

    /// The batches, until there are no more or one cannot be read.
    pub(super) fn batches(mut self) -> impl Iterator<Item = Result<RecordBatch, CsvRowsError>> {
        batches_until_error(move || self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<RecordBatch>, CsvRowsError> {
        if std::mem::take(&mut self.needs_header) {
            self.records.next()?;
        }
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.batch_rows && bytes < BATCH_BYTES_MAX {
            let Some(record) = self.records.next()? else { break };
            bytes += record.bytes();
            if !self.dialect.takes_fields(record.len(), self.width) {
                return Err(field_count_error(&record, self.width, &[]).into());
            }
            for column in &mut self.columns {
                column.append(&record)?;
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.columns.iter_mut().map(|column| column.values.finish()).collect();
        batch_of(&self.schema, columns, rows).map(Some).map_err(CsvRowsError::Batch)
    }
}

/// A column that is read.
struct CsvColumn {
    /// The position in the file.
    position: usize,
    values: ColumnValues,
    reading: TextReading,
    nulls: NullTexts,
}

/// The texts that mean null beside the empty one.
enum NullTexts {
    Empty,
    Markers,
    Declared(Arc<[String]>),
}

impl NullTexts {
    fn of_typed(name: &str, null_marker_columns: &BTreeSet<String>) -> Self {
        if null_marker_columns.contains(name) { Self::Markers } else { Self::Empty }
    }

    fn contains(&self, text: &str) -> bool {
        text.is_empty()
            || match self {
                Self::Empty => false,
                Self::Markers => is_null_marker(text),
                Self::Declared(nulls) => nulls.iter().any(|null| null == text),
            }
    }
}

impl CsvColumn {
    #[inline]
    fn append(&mut self, record: &CsvRecord<'_>) -> Result<(), CsvRowsError> {
        let Some(text) = record.field(self.position).filter(|text| !self.nulls.contains(text)) else {
            self.values.append_null();
            return Ok(());
        };
        self.values.append(&text, &self.reading).ok_or_else(|| {
            let (column, line) = (self.position, record.line);
            CsvRowsError::Misfit(Misfit { column, value: text.into_owned(), line })
        })
    }
}
