//! `list_tables`: tables, including those that cannot be read.
//!
//! Models read this answer before they query, so it has to be short. A database that is the only one is omitted from
//! the rows, unless a format is set: a program may rely on the columns.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{AnswerFormat, Content, Error};
use tidegate_query::{QueryRows, TableEntry, TableStatus};
use tidegate_runtime::{Job, Metadata, ReplySender, Tool};

use super::{DatabaseListing, filter_tables, list_catalogs};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_builder::{TableBuilder, count_column, text_column};
use crate::table_names::{FEDERATED, strip_database};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, node_handler, read_only_tool};

/// The metadata of an answer for programs that lists one database: its name, and the key of its dialect.
const DATABASE: &str = "dev.tidegate/database";
const DIALECT: &str = "dev.tidegate/dialect";

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "list_tables",
        "List tables",
        "Tables of one database or of all, with row counts where known. Use before get_schema.",
        InputSchemaBuilder::new()
            .with_database()
            .with("pattern", json!({"type": "string", "description": "Part of the name, or a glob: ord*"}))
            .with_output_arguments(),
        node_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    pattern: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(node: Arc<ToolContext>, job: Arc<Job>, reply: ReplySender) -> Result<Metadata, Error> {
    let Arguments { database, pattern, shape } = parse_arguments(&job)?;
    let named = database.is_some();
    let mut found = list_catalogs(&node.databases, database.as_deref(), job.principal()).await?;
    if let (true, Some(DatabaseListing { catalog: Err(_), .. })) = (named, found.first()) {
        // A call for one database reports its error as an error.
        return found.remove(0).catalog.map(|_| Metadata::new());
    }
    let is_default_shape = shape.is_default();
    let is_terse = is_default_shape && found.len() == 1;
    let output_options = shape.output_options("Narrow the list with pattern or database.")?;
    let rows = rows(&found, pattern.as_deref(), is_terse)?;
    let mut metadata = node.executor.answer_rows(rows, output_options, &job, &reply).await?;
    // Other nodes need to know the dialect of the statements that they send.
    if let (Some(AnswerFormat::Arrow), [only]) = (job.format(), &found[..]) {
        metadata.insert(DATABASE.to_owned(), only.database.name().into());
        metadata.insert(DIALECT.to_owned(), only.database.dialect().key().into());
    }
    // Programs that set a format expect only rows.
    if pattern.is_none() && is_default_shape && job.format().is_none() {
        send_notes(&found, &job, &reply).await?;
    }
    Ok(metadata)
}

/// Appends notes on merged and skipped files. Names of files are data, as rows are.
async fn send_notes(found: &[DatabaseListing], job: &Job, reply: &ReplySender) -> Result<(), Error> {
    let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok());
    let notes: Vec<&str> = catalogs.flat_map(|catalog| catalog.notes.iter().map(String::as_str)).collect();
    if notes.is_empty() {
        return Ok(());
    }
    let notes = format!("Notes:\n- {}", notes.join("\n- "));
    let text = match job.fence() {
        Some(fence) => format!("{}{notes}{}", fence.opening(), fence.closing(true)),
        None => notes,
    };
    reply.end_text().await?;
    reply.send_block(Content::text(text)).await
}

struct ListedTable {
    database: String,
    name: Option<String>,
    rows: Option<u64>,
    comment: Option<String>,
}

fn rows(found: &[DatabaseListing], pattern: Option<&str>, is_terse: bool) -> Result<QueryRows, Error> {
    let mut tables = Vec::new();
    for listing in found {
        let database = || listing.database.name().to_owned();
        // A table of a federated database is listed once, in its own database, if that is listed.
        let is_federated = listing.database.kind() == FEDERATED;
        let is_listed = |table: &&TableEntry| {
            let is_own = |other: &DatabaseListing| strip_database(&table.name, other.database.name()).is_some();
            !(is_federated && found.iter().any(is_own))
        };
        match &listing.catalog {
            Ok(catalog) => tables.extend(filter_tables(catalog, pattern).filter(is_listed).map(|table| ListedTable {
                database: database(),
                name: Some(table.name.clone()),
                rows: table.rows,
                comment: comment(table),
            })),
            Err(error) => {
                let comment = Some(format!("the database cannot be read: {error}"));
                tables.push(ListedTable { database: database(), name: None, rows: None, comment });
            }
        }
    }
    let mut table = TableBuilder::new();
    if !is_terse {
        table = table.with_column("database", text_column(tables.iter().map(|table| Some(table.database.clone()))));
    }
    table
        .with_column("name", text_column(tables.iter().map(|table| table.name.clone())))
        .with_column("rows", count_column(tables.iter().map(|table| table.rows)))
        .with_column("comment", text_column(tables.iter().map(|table| table.comment.clone())))
        .into_rows()
}

fn comment(table: &TableEntry) -> Option<String> {
    match &table.status {
        TableStatus::Readable => table.comment.clone(),
        TableStatus::Unreadable(reason) => Some(format!("cannot be read: {reason}")),
    }
}
