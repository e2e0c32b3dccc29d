//! What a format is to those who send answers.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::columns::unique_names;
use super::value::{BoxedCells, field_cells};
use super::{OutputFormat, csv, json, list, markdown, mcp, ndjson, table, toon};

/// What is known when an answer ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerStatistics {
    /// Rows written.
    pub(crate) rows: u64,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// Whether there are more rows than were written, or a failure ended them.
    pub(crate) truncated: bool,
}

/// One format of one answer. Each method appends to the text that has not been sent yet, so that a
/// row which does not fit can be taken back.
pub(crate) trait RowWriter: Send + Sync {
    /// Rows to look at before the first is written.
    fn lookahead_rows(&self) -> usize {
        0
    }

    /// Looks at the first rows.
    fn inspect_rows(&mut self, _cells: &[BoxedCells<'_>], _rows: usize) {}

    /// What stands before the first row.
    fn write_header(&self, out: &mut String);

    /// One row; `index` counts from 0 over the whole answer.
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String);

    /// Prepares `add_token`, which holds `rows` rows and stands after `rows_before` others, for leaving.
    fn finish_piece(&self, _before: u64, _rows: u64, _piece: &mut String) {}

    /// What stands after the last row.
    fn write_footer(&self, facts: AnswerStatistics, out: &mut String);

    /// What stands after the last row of a body that a failure ended, where the format has a place for it. Whatever is
    /// written here, the reader learns beside it that the body is not whole.
    fn write_failure(&self, _facts: AnswerStatistics, message: &str, out: &mut String) {
        self.write_note(message, out);
    }

    /// A line for people after the end of a body, where the format has a place for one.
    fn write_note(&self, _line: &str, _out: &mut String) {}

    /// The most bytes that [`RowWriter::finish_piece`] and [`RowWriter::write_footer`] add.
    fn closing_bytes_max(&self) -> usize;
}

/// The writer of `format` for rows of `schema`.
pub(crate) fn new_row_writer(format: OutputFormat, schema: &SchemaRef) -> Box<dyn RowWriter> {
    let names = unique_names(schema);
    match format {
        OutputFormat::Mcp => Box::new(mcp::McpWriter::new(&names)),
        OutputFormat::Json => Box::new(json::JsonWriter::new(&names, schema)),
        OutputFormat::Table => Box::new(table::TableWriter::new(names, schema)),
        OutputFormat::Csv => Box::new(csv::CsvWriter::new(names)),
        OutputFormat::Markdown => Box::new(markdown::MarkdownWriter::new(names, schema)),
        OutputFormat::Ndjson => Box::new(ndjson::NdjsonWriter::new(&names)),
        OutputFormat::Toon => Box::new(toon::ToonWriter::new(&names)),
    }
}

/// The writer of `format` for the values of one column, as a flat list where the format has one.
pub(crate) fn new_list_writer(format: OutputFormat, schema: &SchemaRef) -> Box<dyn RowWriter> {
    match format {
        OutputFormat::Mcp => Box::new(mcp::McpWriter::new_list()),
        OutputFormat::Json => Box::new(json::JsonWriter::new_list(&unique_names(schema), schema)),
        OutputFormat::Ndjson => Box::new(ndjson::NdjsonWriter::new_list()),
        OutputFormat::Toon => Box::new(toon::ToonWriter::new_list()),
        OutputFormat::Table | OutputFormat::Csv | OutputFormat::Markdown => Box::new(list::ListWriter::new(format)),
    }
}

/// The cells of `batch`, one for each column.
pub(crate) fn batch_cells(batch: &RecordBatch) -> Vec<BoxedCells<'_>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(column, field)| field_cells(field, column.as_ref())).collect()
}
