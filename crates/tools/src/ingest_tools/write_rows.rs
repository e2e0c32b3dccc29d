//! `append_rows` adds rows to a table, `replace_rows` replaces all its rows, and `drop_table` removes a table with its
//! rows. The answer is JSON.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{Error, JsonSchema, WriteRows};
use tidegate_ingest_formats::{RejectedRow, RowPosition};
use tidegate_query::WriteMode;
use tidegate_runtime::{Answer, AnswerMeta, Job, RunningCall, Tool, ToolAnnotations, WriteSummary, handler_fn};

use super::IngestContext;
use super::row_arguments::{BODY_TYPES, BodyArguments, BodyPieces, check_exact_numbers, require_one_source};
use super::store_body::{StoreRequest, StoredRows, record_write, store_body};
use super::writable_table::WritableTable;
use crate::arguments::parse_arguments;
use crate::tool_definition::{InputSchemaBuilder, built_in_schema, built_in_tool, changing_hints, context_handler};

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
        "Replace all rows of a table, at once. The rows before are gone.",
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
    json!({
        "type": "array", "items": {"type": "object"}, "maxItems": ARGUMENT_ROWS_MAX,
        "description": format!("Up to {ARGUMENT_ROWS_MAX} rows"),
    })
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
    let writable_table = context.writable_table(&database, &table, call.principal()).await?;
    // A model may misspell a name; a program sends to the same address again and again.
    let creates = create.unwrap_or(rows.is_none());
    if !writable_table.exists && !creates {
        let absent = context.no_such_table(&database, &table, call.principal());
        return Err(absent.with_hint("create=true creates it."));
    }
    let request = StoreRequest { writable_table: &writable_table, mode, key: key.as_deref(), arguments: &body };
    store(&context, call.job(), request, rows).await
}

/// Stores one row, as a declared tool has it from its arguments.
pub(crate) async fn insert_row(
    context: &IngestContext,
    writable_table: &WritableTable,
    row: Map<String, Value>,
    job: &Arc<Job>,
) -> Result<Answer, Error> {
    let arguments = BodyArguments::default();
    let request = StoreRequest { writable_table, mode: WriteMode::Append, key: None, arguments: &arguments };
    store(context, job, request, Some(vec![Value::Object(row)])).await
}

/// Stores `rows`, or those of the body of the request.
async fn store(
    context: &IngestContext,
    job: &Arc<Job>,
    request: StoreRequest<'_>,
    rows: Option<Vec<Value>>,
) -> Result<Answer, Error> {
    let writable_table = request.writable_table;
    job.record_database(writable_table.target.database());
    let pieces = match (rows, job.take_request_body()) {
        (Some(rows), _) => {
            writable_table.table.schema.iter().try_for_each(|schema| check_exact_numbers(&rows, schema))?;
            BodyPieces::from_rows(&rows)
        }
        (None, Some(reader)) => BodyPieces::Request(Box::new(reader)),
        (None, None) => return Err(Error::internal("the body of the request was read before")),
    };
    let stored = store_body(context, job, request, pieces).await?;
    answer_stored(writable_table, &stored, job)
}

/// How many rejected rows an answer has, until it fits: all that are reported, some, none.
const REJECTIONS_MAX: [usize; 3] = [usize::MAX, 10, 0];

/// Answers with what was stored. This cannot fail because of the size or the content of the answer: the rows are stored.
fn answer_stored(writable_table: &WritableTable, stored: &StoredRows, job: &Job) -> Result<Answer, Error> {
    let rows = stored.receipt.rows.first().copied().unwrap_or_default();
    let is_created = !writable_table.exists && !stored.is_repeated;
    let budget = if job.format().is_some() { None } else { job.limits().inline.bytes };
    let texts = REJECTIONS_MAX.iter().map(|max| {
        let rejections = stored.rejections.iter().take(*max).map(rejection_json);
        json!({
            "database": writable_table.target.database(),
            "table": writable_table.table.name,
            "rows": rows,
            "rejected": stored.rejected,
            "rejections": rejections.collect::<Vec<_>>(),
            "sequence": stored.receipt.sequence,
            "created": is_created,
            "repeated": stored.is_repeated,
        })
        .to_string()
    });
    // The last one has neither rows nor reasons of the sender.
    let fitting = texts.filter(|text| budget.is_none_or(|max| text.len() <= max));
    let mut redacted = fitting.map(|text| job.protection().redact_json(text));
    let first = redacted.next();
    let text = match first {
        Some(Ok(text)) => text,
        Some(Err(error)) => redacted.next_back().unwrap_or(Err(error))?,
        None => format!("{rows} rows are stored"),
    };
    // A transformation may leave rows out.
    let is_comparable = stored.is_repeated && writable_table.table.schema.is_some();
    let repeated_rows = is_comparable.then_some(rows);
    let (rejected, sequence) = (stored.rejected, stored.receipt.sequence);
    let write = WriteSummary { rejected, sequence, is_created, repeated_rows };
    let meta = AnswerMeta { rows: Some(rows), write: Some(Box::new(write)), ..AnswerMeta::default() };
    Ok(Answer::data(text).with_meta(meta))
}

/// Answers that the table was dropped.
fn answer_dropped(writable_table: &WritableTable, job: &Job) -> Result<Answer, Error> {
    let answer = json!({
        "database": writable_table.target.database(),
        "table": writable_table.table.name,
        "dropped": true,
    });
    Ok(Answer::data(job.protection().redact_json(answer.to_string())?))
}

fn rejection_json(row: &RejectedRow) -> Value {
    let (position, number) = match row.position {
        RowPosition::Line(line) => ("line", line),
        RowPosition::Index(index) => ("row", index),
    };
    let mut members = Map::from_iter([(position.to_owned(), Value::from(number))]);
    if let Some(column) = &row.column {
        members.insert("column".to_owned(), column.as_str().into());
    }
    members.insert("reason".to_owned(), row.reason.as_str().into());
    if !row.text.is_empty() {
        members.insert("text".to_owned(), row.text.as_str().into());
    }
    Value::Object(members)
}

pub(super) fn drop_table_tool(context: &Arc<IngestContext>) -> Tool {
    built_in_tool(
        WriteRows::DropTable.name(),
        "Drop a table",
        "Remove a table that takes rows, with all its rows.",
        InputSchemaBuilder::new().with_database().with_required("table", json!({"type": "string"})),
        changing_hints(true, false),
        context_handler(context, handle_drop_table),
    )
}

#[derive(Deserialize)]
struct DropTableArguments {
    database: Option<String>,
    table: String,
}

async fn handle_drop_table(context: Arc<IngestContext>, call: RunningCall) -> Result<Answer, Error> {
    let DropTableArguments { database, table } = parse_arguments(&call)?;
    let (database, table) = context.resolve(database, table, call.principal())?;
    let writable_table = context.writable_table(&database, &table, call.principal()).await?;
    record_write(&call, &database, std::iter::once(writable_table.table.name.as_str()), None, None);
    let target = writable_table.target.clone();
    let name = writable_table.table.name.clone();
    // A removal that has begun ends, also when the client leaves meanwhile.
    let dropped = tokio::spawn(async move { target.drop_table(&name).await }).await;
    let dropped = dropped.unwrap_or_else(|error| Err(Error::internal(format!("dropping a table failed: {error}"))));
    dropped.map_err(|error| context.hide_names(error, &database, &table, call.principal()))?;
    answer_dropped(&writable_table, &call)
}
