//! What a format is to those who send answers.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::columns::unique_names;
use super::value::{BoxedCell, field_cell};
use super::{Format, csv, flat, json, markdown, mcp, ndjson, table, toon};

/// What is known when an answer ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Rows written.
    pub(crate) rows: u64,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// Whether there are more rows than were written, or a failure ended them.
    pub(crate) truncated: bool,
}

/// One format of one answer. Each method appends to the text that has not been sent yet, so that a
/// row which does not fit can be taken back.
pub(crate) trait Writer: Send + Sync {
    /// Rows to look at before the first is written.
    fn lookahead_rows(&self) -> usize {
        0
    }

    /// Looks at the first rows.
    fn look_at(&mut self, _cells: &[BoxedCell<'_>], _rows: usize) {}

    /// What stands before the first row.
    fn open(&self, out: &mut String);

    /// One row; `index` counts from 0 over the whole answer.
    fn row(&self, cells: &[BoxedCell<'_>], row: usize, index: u64, out: &mut String);

    /// Prepares `piece`, which holds `rows` rows and stands after `before` others, for leaving.
    fn seal(&self, _before: u64, _rows: u64, _piece: &mut String) {}

    /// What stands after the last row.
    fn close(&self, facts: Facts, out: &mut String);

    /// What stands after the last row of a body that a failure ended, where the format has a place for it. Whatever is
    /// written here, the reader learns beside it that the body is not whole.
    fn fail(&self, _facts: Facts, message: &str, out: &mut String) {
        self.note(message, out);
    }

    /// A line for people after the end of a body, where the format has a place for one.
    fn note(&self, _line: &str, _out: &mut String) {}

    /// The most bytes that [`Writer::seal`] and [`Writer::close`] add.
    fn closing_bytes_max(&self) -> usize;
}

/// The writer of `format` for rows of `schema`.
pub(crate) fn writer(format: Format, schema: &SchemaRef) -> Box<dyn Writer> {
    let names = unique_names(schema);
    match format {
        Format::Mcp => Box::new(mcp::Mcp::new(&names)),
        Format::Json => Box::new(json::Json::new(&names, schema)),
        Format::Table => Box::new(table::Table::new(names, schema)),
        Format::Csv => Box::new(csv::Csv::new(names)),
        Format::Markdown => Box::new(markdown::Markdown::new(names, schema)),
        Format::Ndjson => Box::new(ndjson::Ndjson::new(&names)),
        Format::Toon => Box::new(toon::Toon::new(&names)),
    }
}

/// The writer of `format` for the values of one column, as a flat list where the format has one.
pub(crate) fn list_writer(format: Format, schema: &SchemaRef) -> Box<dyn Writer> {
    match format {
        Format::Mcp => Box::new(mcp::Mcp::flat()),
        Format::Json => Box::new(json::Json::flat(&unique_names(schema), schema)),
        Format::Ndjson => Box::new(ndjson::Ndjson::flat()),
        Format::Toon => Box::new(toon::Toon::flat()),
        Format::Table | Format::Csv | Format::Markdown => Box::new(flat::Lines::new(format)),
    }
}

/// The cells of `batch`, one for each column.
pub(crate) fn cells(batch: &RecordBatch) -> Vec<BoxedCell<'_>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(column, field)| field_cell(field, column.as_ref())).collect()
}
