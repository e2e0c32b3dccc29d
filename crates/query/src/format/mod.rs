//! Text formats of answers, one per file.

mod columns;
mod csv;
mod extension_type;
mod json;
mod list;
mod markdown;
mod mcp;
mod ndjson;
mod output_format;
mod row_writer;
mod table;
mod toon;
mod value;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub(crate) use columns::unique_names;
pub use columns::{field_type_name, type_name};
pub use extension_type::{
    ExtensionType, as_foreign_text, declared_type_name, is_foreign_text, with_type_name, without_type_name,
};
pub(crate) use mcp::JsonRows;
pub use output_format::OutputFormat;
pub(crate) use output_format::{AnswerEncoding, BinaryFormat};
pub(crate) use row_writer::{AnswerStatistics, RowWriter};
pub use value::ColumnFormatter;
pub(crate) use value::{BoxedCells, field_cells};

/// The metadata of columns whose nulls `mcp` leaves out.
pub(crate) const OMITS_NULLS_KEY: &str = "tidegate.omits_nulls";

pub(crate) fn new_row_writer(format: OutputFormat, schema: &SchemaRef) -> Box<dyn RowWriter> {
    let names = unique_names(schema);
    match format {
        OutputFormat::Mcp => Box::new(mcp::McpWriter(mcp_rows(&names, schema))),
        OutputFormat::Json => Box::new(json::JsonWriter::new(JsonRows::new(&names), &names, schema)),
        OutputFormat::Table => Box::new(table::TableWriter::new(names, schema)),
        OutputFormat::Csv => Box::new(csv::CsvWriter(names)),
        OutputFormat::Markdown => Box::new(markdown::MarkdownWriter::new(names, schema)),
        OutputFormat::Ndjson => Box::new(ndjson::NdjsonWriter(JsonRows::new(&names))),
        OutputFormat::Toon => Box::new(toon::ToonWriter::new(&names)),
    }
}

fn mcp_rows(names: &[String], schema: &SchemaRef) -> JsonRows {
    let rows = JsonRows::new(names);
    if schema.metadata().contains_key(OMITS_NULLS_KEY) { rows.without_nulls() } else { rows }
}

/// The writer of `format` for the values of one column, as a flat list where the format has one.
pub(crate) fn new_list_writer(format: OutputFormat, schema: &SchemaRef) -> Box<dyn RowWriter> {
    match format {
        OutputFormat::Mcp => Box::new(mcp::McpWriter(JsonRows::new_list())),
        OutputFormat::Json => Box::new(json::JsonWriter::new(JsonRows::new_list(), &unique_names(schema), schema)),
        OutputFormat::Ndjson => Box::new(ndjson::NdjsonWriter(JsonRows::new_list())),
        OutputFormat::Toon => Box::new(toon::ToonWriter { columns: None }),
        OutputFormat::Table | OutputFormat::Csv | OutputFormat::Markdown => Box::new(list::ListWriter(format)),
    }
}

pub(crate) fn batch_cells(batch: &RecordBatch) -> Vec<BoxedCells<'_>> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields());
    columns.map(|(column, field)| field_cells(field, column.as_ref())).collect()
}
