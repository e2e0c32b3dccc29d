//! `locate`: which nodes hold which part of a table.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{Database, PartRange, QueryRows, TablePart};
use tidegate_runtime::{Answer, RunningCall, Tool};

use super::{chosen_networks, network_names, network_of, networks};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::table_names::strip_database;
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, number_column, text_column, time_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "locate",
        "Locate a table",
        "Which nodes of a network hold which part of a table: rows, share, size, ranges, conditions.",
        InputSchemaBuilder::new()
            .with_database()
            .with_required("table", json!({"type": "string"}))
            .with_output_arguments(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: String,
    #[serde(flatten)]
    shape: OutputArguments,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, table, shape } = parse_arguments(&call)?;
    let output_options = shape.output_options("")?;
    let database = find_network(&node, database.as_deref(), &table, call.principal())?;
    let network = network_of(&database)?;
    let located = match (network.locate(&table, call.job()).await, strip_database(&table, database.name())) {
        // The name of the network is before the table.
        (Err(error), Some(table)) if error.kind() == ErrorKind::NotFound => network.locate(table, call.job()).await,
        (located, _) => located,
    };
    Ok(node.executor.answer_rows(table_of(&located?)?, output_options))
}

/// The network that is named, in `database` or before `table`, or the only one.
fn find_network(
    node: &ToolContext,
    database: Option<&str>,
    table: &str,
    principal: &Principal,
) -> Result<Arc<dyn Database>, Error> {
    let chosen = chosen_networks(&node.databases, database, principal)?;
    if let [only] = &chosen[..] {
        return Ok(only.clone());
    }
    let named = networks(&node.databases, principal).filter(|network| strip_database(table, network.name()).is_some());
    // Two names may differ only in case.
    let named = named.max_by_key(|network| (network.name().len(), table.starts_with(network.name())));
    named.cloned().ok_or_else(|| {
        let message = "name the network in the argument \"database\", or before the table: database.table";
        Error::new(ErrorKind::InvalidArguments, message).with_choices(network_names(&node.databases, principal))
    })
}

fn table_of(parts: &[TablePart]) -> Result<QueryRows, Error> {
    let total = parts.iter().map(|part| part.rows).sum::<Option<u64>>().filter(|total| *total > 0);
    let share = |part: &TablePart| {
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = part.rows? as f64 / total? as f64;
        Some((share * 10_000.0).round() / 10_000.0)
    };
    let notes = |part: &TablePart| Some(part.notes.join("; ")).filter(|notes| !notes.is_empty());
    let range = |range: &PartRange| format!("{}: {} to {}", range.column, range.smallest, range.largest);
    let ranges = |part: &TablePart| {
        let ranges: Vec<String> = part.ranges.iter().map(range).collect();
        (!ranges.is_empty()).then(|| ranges.join("; "))
    };
    TableBuilder::new()
        .with_column("node", text_column(parts.iter().map(|part| Some(part.node.clone()))))
        .with_column("rows", count_column(parts.iter().map(|part| part.rows)))
        .with_column("share", number_column(parts.iter().map(share)))
        .with_column("bytes", count_column(parts.iter().map(|part| part.bytes)))
        .with_column("ranges", text_column(parts.iter().map(ranges)))
        .with_column("known_since", time_column(parts.iter().map(|part| part.known_since)))
        .with_column("holds", text_column(parts.iter().map(|part| part.holds.clone())))
        .with_column("notes", text_column(parts.iter().map(notes)))
        .into_rows()
}
