//! Text formats of answers, and their interface.

mod columns;
mod json;
mod table;
mod value;

use std::time::Duration;

use arrow::array::RecordBatch;
use tidegate_core::Format;
use tidegate_runtime::Job;

pub use self::columns::{
    ExtensionType, MISSING_NODES_KEY, ROWS_ON_ALL_NODES_KEY, as_foreign_text, declared_type_name, field_type_name,
    is_foreign_text, missing_nodes_of_schema, type_name, with_type_name, without_type_name,
};
pub(crate) use self::columns::{json_members_of_schema, mark_schema, unique_names};
pub(crate) use self::json::{JsonRows, JsonWriter, McpWriter, NdjsonWriter};
pub(crate) use self::table::{CsvWriter, ListWriter, MarkdownWriter, TableWriter, ToonWriter};
pub use self::value::ColumnFormatter;
pub(crate) use self::value::{BoxedCells, field_cells};

/// The metadata of columns whose nulls `mcp` leaves out.
pub(crate) const OMITS_NULLS_KEY: &str = "tidegate.omits_nulls";

/// The format of an answer: the argument takes precedence over the format of the call.
pub(crate) fn resolve_format(argument: Option<Format>, job: &Job) -> Format {
    argument.or_else(|| job.format()).unwrap_or_default()
}

pub(crate) fn batch_cells(batch: &RecordBatch) -> Vec<BoxedCells<'_>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(column, field)| field_cells(field, column.as_ref())).collect()
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerStatistics {
    pub(crate) rows: u64,
    pub(crate) elapsed: Duration,
    /// Whether rows are missing, because of a limit or a failure.
    pub(crate) truncated: bool,
}

/// Writes one answer in one format. Each method appends to text that was not sent yet, so that a row that does not fit
/// can be removed.
pub(crate) trait FormatWriter: Send + Sync {
    /// The number of rows to inspect before the first is written.
    fn lookahead_rows(&self) -> usize {
        0
    }

    fn inspect_rows(&mut self, _cells: &[BoxedCells<'_>], _rows: usize) {}

    fn write_header(&self, _out: &mut String) {}

    /// Writes one row; `index` counts from 0 over the whole answer.
    fn write_row(&self, cells: &[BoxedCells<'_>], row: usize, index: u64, out: &mut String);

    /// Completes `piece`, which contains `rows` rows and follows `before` rows, so that it can be sent.
    fn finish_piece(&self, _before: u64, _rows: u64, _piece: &mut String) {}

    fn write_footer(&self, _statistics: AnswerStatistics, _out: &mut String) {}

    /// Writes the text after the last row of a body that failed, where the format has a place for it. The transport
    /// also reports that the body is incomplete.
    fn write_failure(&self, _statistics: AnswerStatistics, message: &str, out: &mut String) {
        self.write_note(message, out);
    }

    /// Writes a note for people after the end of a body, where the format has a place for one.
    fn write_note(&self, _line: &str, _out: &mut String) {}

    /// The maximum number of bytes that [`FormatWriter::finish_piece`] and [`FormatWriter::write_footer`] add.
    fn closing_bytes_max(&self) -> usize {
        0
    }
}
