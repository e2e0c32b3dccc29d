//! `list_tables`: tables, including those that cannot be read.
//!
//! Models read this answer before they query, so it has to be short: without the database where there is only one, without
//! members that are null, and with one line for each family of tables. A program that sets a format may rely on every
//! column and every table.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Content, Error, Format, Principal};
use tidegate_query::{DatabaseKind, QueryRows, TableEntry, TableStatus};
use tidegate_runtime::{AdapterDetail, Answer, AnswerMeta, ReplySender, RunningCall, Tool};
use tokio::time::Instant;

use super::table_families::group_families;
use super::table_search::{COLUMNS_READ_TIME, FoundTable, TablePattern, UnsearchedTables, find_tables};
use super::{DatabaseListing, list_catalogs, report_errors};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_names::strip_database;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "list_tables",
        "List tables",
        "Tables of one database or of all, with row counts where known. Use before get_schema.",
        InputSchemaBuilder::new()
            .with_database()
            .with(
                "pattern",
                json!({"type": "string", "description": "Words of name, comment or columns; or a glob: ord*"}),
            )
            .with_output_arguments(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    pattern: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, pattern, shape } = parse_arguments(&call)?;
    let named = database.is_some();
    let found = list_catalogs(&node.databases, database.as_deref(), call.principal()).await?;
    if let (true, Some(DatabaseListing { catalog: Err(error), .. })) = (named, found.first()) {
        // A call for one database reports its error as an error.
        return Err(error.clone());
    }
    report_errors(&found, &call);
    // Programs that set a format expect only rows, all of them.
    let is_default_shape = shape.is_default();
    let is_for_model = is_default_shape && call.format().is_none();
    let output_options = shape.output_options("Narrow the list with pattern or database.")?;
    let pattern = pattern.as_deref().map(TablePattern::parse);
    let (mut tables, unsearched) = requested_tables(&found, pattern.as_ref(), call.principal()).await;
    if is_for_model && pattern.is_none() {
        tables = group_families(tables);
    }
    let with_database = !(is_default_shape && found.len() == 1);
    let rows = match is_for_model {
        true => into_rows(&tables, with_database, true)?.without_nulls(),
        false => into_rows(&tables, with_database, false)?,
    };
    let answer = node.executor.answer_rows(rows, output_options);
    let notes = if is_for_model { notes(&found, pattern.is_some(), unsearched) } else { Vec::new() };
    // Other nodes need to know the dialect of the statements that they send.
    let is_for_node = call.format() == Some(Format::Arrow) && found.len() == 1;
    let adapter = found.first().filter(|_| is_for_node).map(|only| {
        let (name, dialect) = (only.database.name().to_owned(), only.database.dialect().key());
        Box::new(AdapterDetail::Database { name, dialect })
    });
    Ok(answer.followed_by(|reply, meta| async move {
        send_notes(&notes, &reply).await?;
        Ok(AnswerMeta { adapter, ..meta })
    }))
}

/// Notes on merged and skipped files, unless the call searches; then on what was not searched.
fn notes(found: &[DatabaseListing], is_search: bool, unsearched: UnsearchedTables) -> Vec<String> {
    let UnsearchedTables { further, unread } = unsearched;
    let too_many = (further > 0).then(|| {
        let searched = "only their names and comments, because there are too many";
        format!("The columns of {further} more tables were not searched, {searched}.")
    });
    let too_slow = (unread > 0).then(|| {
        let seconds = COLUMNS_READ_TIME.as_secs();
        format!(
            "The columns of {unread} tables were not read within {seconds} seconds, and only their names and comments were \
             searched. What was read of files is kept: repeat the call, or use a glob of the name."
        )
    });
    if too_many.is_some() || too_slow.is_some() {
        return too_many.into_iter().chain(too_slow).collect();
    }
    let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok()).filter(|_| !is_search);
    catalogs.flat_map(|catalog| catalog.notes.iter().cloned()).collect()
}

/// Appends notes. Names of files are data, as rows are.
async fn send_notes(notes: &[String], reply: &ReplySender) -> Result<(), Error> {
    if notes.is_empty() {
        return Ok(());
    }
    let notes = format!("Notes:\n- {}", notes.join("\n- "));
    reply.end_text().await?;
    reply.send_block(Content::text(reply.job().protection().fence_data(notes))).await
}

/// A line of the answer.
pub(super) struct ListedTable {
    pub(super) database: String,
    pub(super) name: Option<String>,
    pub(super) rows: Option<u64>,
    pub(super) comment: Option<String>,
    /// The columns that the pattern found.
    pub(super) columns: Option<String>,
}

/// The tables that `pattern` finds, and how many tables were not searched entirely. A database that cannot be read is
/// listed with the reason.
async fn requested_tables(
    found: &[DatabaseListing],
    pattern: Option<&TablePattern>,
    principal: &Principal,
) -> (Vec<ListedTable>, UnsearchedTables) {
    let (mut listed, mut unsearched) = (Vec::new(), UnsearchedTables::default());
    let deadline = Instant::now() + COLUMNS_READ_TIME;
    for listing in found {
        let database = listing.database.name();
        if let Err(error) = &listing.catalog {
            let comment = Some(format!("the database cannot be read: {error}"));
            listed.push(ListedTable { database: database.to_owned(), name: None, rows: None, comment, columns: None });
            continue;
        }
        let found_tables = find_tables(listing, pattern, principal, deadline).await;
        unsearched.further += found_tables.unsearched.further;
        unsearched.unread += found_tables.unsearched.unread;
        // A table of a federated database is listed once, in its own database, if that is listed.
        let is_federated = listing.database.kind() == DatabaseKind::Federated;
        let is_listed = |found_table: &FoundTable<'_>| {
            let name = &found_table.table.name;
            let is_own = |other: &DatabaseListing| strip_database(name, other.database.name()).is_some();
            !(is_federated && found.iter().any(is_own))
        };
        listed.extend(found_tables.tables.into_iter().filter(is_listed).map(|FoundTable { table, columns }| {
            ListedTable {
                database: database.to_owned(),
                name: Some(table.name.clone()),
                rows: table.rows,
                comment: comment(table),
                columns,
            }
        }));
    }
    (listed, unsearched)
}

fn into_rows(tables: &[ListedTable], with_database: bool, with_found_columns: bool) -> Result<QueryRows, Error> {
    let mut table = TableBuilder::new();
    if with_database {
        table = table.with_column("database", text_column(tables.iter().map(|table| Some(table.database.clone()))));
    }
    table = table
        .with_column("name", text_column(tables.iter().map(|table| table.name.clone())))
        .with_column("rows", count_column(tables.iter().map(|table| table.rows)))
        .with_column("comment", text_column(tables.iter().map(|table| table.comment.clone())));
    if with_found_columns && tables.iter().any(|table| table.columns.is_some()) {
        table = table.with_column("columns", text_column(tables.iter().map(|table| table.columns.clone())));
    }
    table.into_rows()
}

fn comment(table: &TableEntry) -> Option<String> {
    match &table.status {
        TableStatus::Readable => table.comment.clone(),
        TableStatus::Unreadable(reason) => Some(format!("cannot be read: {reason}")),
    }
}
