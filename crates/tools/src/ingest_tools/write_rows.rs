//! `append_rows` adds rows to a table, `replace_rows` puts them into the place of all its rows.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, JsonSchema, WriteRows};
use tidegate_query::WriteMode;
use tidegate_runtime::{Answer, Job, RunningCall, Tool, ToolAnnotations, handler_fn};

use super::IngestContext;
use super::body_options::{BODY_TYPES, BodyArguments};
use super::destination::Destination;
use super::row_arguments::{BodyPieces, check_exact_numbers, require_one_source};
use super::store_body::{StoreRequest, store_body};
use super::write_answer::answer_stored;
use crate::arguments::parse_arguments;
use crate::tool_definition::{InputSchemaBuilder, built_in_schema, built_in_tool};

/// How many rows an argument has at most. More are sent over REST.
const ARGUMENT_ROWS_MAX: usize = 10_000;
const KEY_CHARACTERS_MAX: usize = 255;

pub(super) fn append_tool(context: &Arc<IngestContext>) -> Tool {
    write_tool(
        context,
        WriteMode::Append,
        WriteRows::AppendRows,
        "Append rows",
        "Add rows to a table that takes rows. All are stored, or none.",
        ToolAnnotations { read_only: Some(false), destructive: Some(false), ..annotations() },
    )
}

pub(super) fn replace_tool(context: &Arc<IngestContext>) -> Tool {
    write_tool(
        context,
        WriteMode::Replace,
        WriteRows::ReplaceRows,
        "Replace rows",
        "Put rows into the place of all rows of a table, at once. The rows before are gone.",
        ToolAnnotations { read_only: Some(false), destructive: Some(true), ..annotations() },
    )
}

fn annotations() -> ToolAnnotations {
    ToolAnnotations { idempotent: Some(false), open_world: Some(false), ..ToolAnnotations::default() }
}

fn write_tool(
    context: &Arc<IngestContext>,
    mode: WriteMode,
    entry: WriteRows,
    title: &str,
    description: &str,
    hints: ToolAnnotations,
) -> Tool {
    let context = context.clone();
    let handler = handler_fn(move |call| handle(context.clone(), mode, call));
    let mut tool = built_in_tool(entry.name(), title, description, listed_arguments(), hints, handler);
    // Rows are the body of a request instead, and the other arguments describe that body.
    tool.full_schema = Some(Arc::new(all_arguments()));
    tool.with_request_body(BODY_TYPES)
}

fn rows_schema() -> Value {
    json!({"type": "array", "items": {"type": "object"}, "maxItems": ARGUMENT_ROWS_MAX})
}

fn key_schema() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX,
        "description": "Makes a repeat safe: rows with the same key are stored once",
    })
}

fn listed_arguments() -> InputSchemaBuilder {
    InputSchemaBuilder::new()
        .with_database()
        .with_required("table", json!({"type": "string"}))
        .with_required("rows", rows_schema())
        .with("key", key_schema())
        .with("create", json!({"type": "boolean", "description": "Whether a table that does not exist is created"}))
}

fn all_arguments() -> JsonSchema {
    let arguments = InputSchemaBuilder::new()
        .with_database()
        .with_required("table", json!({"type": "string"}))
        .with("rows", rows_schema())
        .with("key", key_schema())
        .with("create", json!({"type": "boolean"}))
        .with("on_reject", json!({"type": "string", "enum": ["all", "row"]}))
        .with("delimiter", json!({"type": "string"}))
        .with("null", json!({"type": "string"}))
        .with("header", json!({"type": "boolean"}))
        .with("binary", json!({"type": "string", "enum": ["base64", "hex"]}));
    built_in_schema(arguments.into())
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: String,
    rows: Option<Vec<Value>>,
    key: Option<String>,
    create: Option<bool>,
    #[serde(flatten)]
    body: BodyArguments,
}

async fn handle(context: Arc<IngestContext>, mode: WriteMode, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, table, rows, key, create, body } = parse_arguments(&call)?;
    let rows = require_one_source(rows, call.request().request_body.is_some())?;
    let (database, table) = context.resolve(database, table, call.principal())?;
    let destination = context.destination(&database, &table, call.principal()).await?;
    // A model may misspell a name; a program sends to the same address again and again.
    let creates = create.unwrap_or(rows.is_none());
    if !destination.exists && !creates {
        let absent = context.no_such_table(&database, &table, call.principal());
        return Err(absent.with_hint("create=true creates it."));
    }
    let request = StoreRequest { destination: &destination, mode, key: key.as_deref(), arguments: &body };
    store(&context, call.job(), request, rows).await
}

/// Stores one row, as a declared tool has it from its arguments.
pub(crate) async fn insert_row(
    context: &IngestContext,
    destination: &Destination,
    row: Map<String, Value>,
    job: &Arc<Job>,
) -> Result<Answer, Error> {
    let arguments = BodyArguments::default();
    let request = StoreRequest { destination, mode: WriteMode::Append, key: None, arguments: &arguments };
    store(context, job, request, Some(vec![Value::Object(row)])).await
}

/// Stores `rows`, or those of the body of the request.
async fn store(
    context: &IngestContext,
    job: &Arc<Job>,
    request: StoreRequest<'_>,
    rows: Option<Vec<Value>>,
) -> Result<Answer, Error> {
    let destination = request.destination;
    job.record_database(destination.target.database());
    let pieces = match (rows, job.take_request_body()) {
        (Some(rows), _) => {
            destination.table.schema.iter().try_for_each(|schema| check_exact_numbers(&rows, schema))?;
            BodyPieces::from_rows(&rows)
        }
        (None, Some(reader)) => BodyPieces::Request(Box::new(reader)),
        (None, None) => return Err(Error::internal("the body of the request was read before")),
    };
    let stored = store_body(context, job, request, pieces).await?;
    answer_stored(destination, &stored, job)
}
