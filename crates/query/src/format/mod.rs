//! Text formats of answers, one per file.

mod columns;
mod csv;
mod extension_type;
mod json;
mod list;
mod markdown;
mod mcp;
mod ndjson;
mod row_writer;
mod table;
mod toon;
mod value;

use arrow::array::RecordBatch;
use tidegate_core::Format;
use tidegate_runtime::Job;

pub(crate) use columns::unique_names;
pub use columns::{field_type_name, type_name};
pub(crate) use csv::CsvWriter;
pub use extension_type::{
    ExtensionType, as_foreign_text, declared_type_name, is_foreign_text, with_type_name, without_type_name,
};
pub(crate) use json::JsonWriter;
pub(crate) use list::ListWriter;
pub(crate) use markdown::MarkdownWriter;
pub(crate) use mcp::{JsonRows, McpWriter};
pub(crate) use ndjson::NdjsonWriter;
pub(crate) use row_writer::{AnswerStatistics, RowWriter};
pub(crate) use table::TableWriter;
pub(crate) use toon::ToonWriter;
pub use value::ColumnFormatter;
pub(crate) use value::{BoxedCells, field_cells};

/// The metadata of columns whose nulls `mcp` leaves out.
pub(crate) const OMITS_NULLS_KEY: &str = "tidegate.omits_nulls";

/// The format of an answer: an argument other than the default takes precedence over the format of the call.
pub(crate) fn resolve_format(argument: Format, job: &Job) -> Format {
    job.format().filter(|_| argument == Format::default()).unwrap_or(argument)
}

pub(crate) fn batch_cells(batch: &RecordBatch) -> Vec<BoxedCells<'_>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(column, field)| field_cells(field, column.as_ref())).collect()
}
