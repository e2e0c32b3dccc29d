//! `get_schema`: the columns of one table, optionally with example values.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::Error;
use tidegate_query::ColumnEntry;
use tidegate_runtime::{Job, Metadata, ReplySender, Tool};

use super::samples::{SAMPLES_MAX, sample_column};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_builder::{TableBuilder, boolean_column, text_column};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, node_handler, read_only_tool};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    let samples = json!({
        "type": "integer", "minimum": 0, "maximum": SAMPLES_MAX, "description": "Example values per column",
    });
    read_only_tool(
        "get_schema",
        "Get a table's columns",
        "Columns of one table: name, type, nullable, comment. Use before query and sql; find the table with list_tables.",
        InputSchemaBuilder::new()
            .with_database()
            .with_required("table", json!({"type": "string"}))
            .with("samples", samples)
            .with_output_arguments(),
        node_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: String,
    #[serde(default)]
    samples: usize,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(node: Arc<ToolContext>, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
    let Arguments { database, table, samples: expected, shape } = parse_arguments(&job)?;
    let output_options = shape.output_options("Use extract=name for the names alone.")?;
    let database = node.databases.get(database.as_deref(), job.principal())?;
    let columns = database.columns(&table, job.principal()).await?;
    let mut answer = describe_columns(&columns);
    if expected > 0 {
        answer = answer.with_column("samples", sample_column(&**database, &table, &columns, expected, &job).await?);
    }
    node.executor.answer_rows(answer.into_rows()?, output_options, &job, &reply).await
}

fn describe_columns(columns: &[ColumnEntry]) -> TableBuilder {
    TableBuilder::new()
        .with_column("name", text_column(columns.iter().map(|column| Some(column.name.clone()))))
        .with_column("type", text_column(columns.iter().map(|column| Some(column.type_name.clone()))))
        .with_column("nullable", boolean_column(columns.iter().map(|column| column.nullable)))
        .with_column("comment", text_column(columns.iter().map(|column| column.comment.clone())))
}
