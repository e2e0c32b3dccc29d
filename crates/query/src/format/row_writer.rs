//! The interface of a text format.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::columns::unique_names;
use super::value::{BoxedCells, field_cells};
use super::{OutputFormat, csv, json, list, markdown, mcp, ndjson, table, toon};

/// The statistics of a finished answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerStatistics {
    /// The number of rows.
    pub(crate) rows: u64,
    /// The duration of the answer.
    pub(crate) elapsed: Duration,
    /// Whether rows are missing, because of a limit or a failure.
    pub(crate) truncated: bool,
}

/// Writes one answer in one format. Each method appends to text that was not sent yet, so that a row that does not fit
/// can be removed.
pub(crate) trait RowWriter: Send + Sync {
    /// The number of rows to inspect before the first is written.
    fn lookahead_rows(&self) -> usize {
        0
    }

    /// Inspects the first rows.
    fn inspect_rows(&mut self, _cells: &[BoxedCells<'_>], _rows: usize) {}

    /// Writes the text before the first row.
    fn write_header(&self, out: &mut String);

    /// Writes one row; `index` counts from 0 over the whole answer.
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String);

    /// Completes `piece`, which contains `rows` rows and follows `before` rows, so that it can be sent.
    fn finish_piece(&self, _before: u64, _rows: u64, _piece: &mut String) {}

    /// Writes the text after the last row.
    fn write_footer(&self, facts: AnswerStatistics, out: &mut String);

    /// Writes the text after the last row of a body that failed, where the format has a place for it. The transport
    /// also reports that the body is incomplete.
    fn write_failure(&self, _facts: AnswerStatistics, message: &str, out: &mut String) {
        self.write_note(message, out);
    }

    /// Writes a note for people after the end of a body, where the format has a place for one.
    fn write_note(&self, _line: &str, _out: &mut String) {}

    /// The maximum number of bytes that [`RowWriter::finish_piece`] and [`RowWriter::write_footer`] add.
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
