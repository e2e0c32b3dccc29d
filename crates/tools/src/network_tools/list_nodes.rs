//! `list_nodes`: the nodes of the networks, each requested once.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tidegate_core::Error;
use tidegate_query::{NodeCheck, NodeDatabase, NodeObservation, QueryRows};
use tidegate_runtime::{Answer, RunningCall, Tool};

use super::{NetworkNode, chosen_networks, each_node, milliseconds, nodes_of, one_line, state_name, within};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, integer_column, text_column, time_column};

/// A node that takes longer is listed with what was observed of it before.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "list_nodes",
        "List nodes",
        "Nodes of a network database: state, version, latency, load.",
        InputSchemaBuilder::new().with_database().with_output_arguments(),
        context_handler(node, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    #[serde(flatten)]
    shape: OutputArguments,
}

struct NodeRow {
    check: Result<NodeCheck, Error>,
    observed: NodeObservation,
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, shape } = parse_arguments(&call)?;
    let networks = chosen_networks(&node.databases, database.as_deref(), call.principal())?;
    let nodes = nodes_of(&networks)?;
    let rows = each_node(&nodes, async |node: Arc<dyn NodeDatabase>| {
        let check = within(CHECK_TIMEOUT, node.check(call.principal())).await;
        NodeRow { check, observed: node.observed() }
    });
    let rows = rows.await;
    // One network is omitted from the rows, unless a program relies on the columns.
    let is_terse = shape.is_default() && networks.len() == 1;
    let output_options = shape.output_options("Name one network in database.")?;
    Ok(node.executor.answer_rows(table(&nodes, &rows, is_terse)?, output_options))
}

fn table(nodes: &[NetworkNode], rows: &[NodeRow], is_terse: bool) -> Result<QueryRows, Error> {
    let mut table = TableBuilder::new();
    if !is_terse {
        table = table.with_column("database", text_column(nodes.iter().map(|node| Some(node.network.clone()))));
    }
    let checks = || rows.iter().map(|row| row.check.as_ref().ok());
    let url = |(node, row): (&NetworkNode, &NodeRow)| match &row.check {
        Ok(check) => check.url.clone(),
        Err(_) => node.node.url(),
    };
    let version = |row: &NodeRow| match &row.check {
        Ok(check) => Some(check.version.clone()),
        Err(_) => row.observed.version.clone(),
    };
    let latency =
        |row: &NodeRow| milliseconds(row.check.as_ref().map_or(row.observed.latency, |check| Some(check.latency))?);
    table
        .with_column("node", text_column(nodes.iter().map(|node| Some(node.node.name().to_owned()))))
        .with_column("url", text_column(nodes.iter().zip(rows).map(|row| Some(url(row)))))
        .with_column("state", text_column(rows.iter().map(|row| Some(state_name(&row.check).to_owned()))))
        .with_column("version", text_column(rows.iter().map(version)))
        .with_column("latency_ms", count_column(rows.iter().map(latency)))
        .with_column("last_seen", time_column(rows.iter().map(|row| row.observed.last_seen)))
        .with_column("running_calls", count_column(checks().map(|check| check.map(|check| check.running_calls))))
        .with_column("clock_offset_ms", integer_column(checks().map(|check| check.map(|check| check.clock_offset_ms))))
        .with_column("failure", text_column(rows.iter().map(|row| row.check.as_ref().err().map(one_line))))
        .into_rows()
}
