//! `node_status`: the health of the server.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_process_memory::anonymous_bytes;
use tidegate_query::TableStatus;
use tidegate_runtime::{Answer, RunningCall, Tool};

use crate::arguments::{OutputArguments, parse_arguments};
use crate::catalog_tools::{DatabaseListing, list_catalogs};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

/// The maximum number of unreadable tables, and of notes.
const LINES_MAX: usize = 20;

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "node_status",
        "Server status",
        "Server health: reachable databases, open calls, memory, uptime.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(node, handle),
    )
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let found = list_catalogs(&node.databases, None, call.principal()).await?;
    let reachable = found.iter().filter(|listing| listing.catalog.is_ok()).count();
    let unreadable = describe_catalogs(&found, unreadable_tables);
    let notes = describe_catalogs(&found, |listing| {
        let notes = listing.catalog.iter().flat_map(|catalog| &catalog.notes);
        notes.map(|note| format!("{}: {note}", listing.database.name())).collect()
    });
    let status = match (reachable == found.len(), &unreadable) {
        (false, _) => "degraded; see list_databases",
        (true, Some(_)) => "degraded; see unreadable_tables",
        (true, None) => "ok",
    };
    let open_calls = node.jobs()?.open_count_for(call.caller());
    let transports = node.registry()?.transport_switches().describe();
    let one = |value: Option<u64>| count_column([value].into_iter());
    let answer = TableBuilder::new()
        .with_column("status", text_column([Some(status.to_owned())].into_iter()))
        .with_column("databases", one(Some(found.len() as u64)))
        .with_column("databases_reachable", one(Some(reachable as u64)))
        .with_column("unreadable_tables", text_column([unreadable].into_iter()))
        .with_column("notes", text_column([notes].into_iter()))
        .with_column("transports", text_column([transports].into_iter()))
        .with_column("open_calls", one(Some(open_calls as u64)))
        .with_column("memory_bytes", one(anonymous_bytes().map(|bytes| bytes as u64)))
        .with_column("uptime_seconds", one(Some(node.uptime_seconds())));
    Ok(node.executor.answer_rows(answer.into_rows()?, shape.output_options("")?))
}

/// The first lines about all databases as one text; `None` if there are none.
fn describe_catalogs(found: &[DatabaseListing], lines: impl Fn(&DatabaseListing) -> Vec<String>) -> Option<String> {
    let lines: Vec<String> = found.iter().flat_map(lines).take(LINES_MAX).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn unreadable_tables(listing: &DatabaseListing) -> Vec<String> {
    let tables = listing.catalog.iter().flat_map(|catalog| &catalog.tables);
    let unreadable = tables.filter_map(|table| match &table.status {
        TableStatus::Unreadable(reason) => Some(format!("{}.{}: {reason}", listing.database.name(), table.name)),
        TableStatus::Readable => None,
    });
    unreadable.collect()
}
