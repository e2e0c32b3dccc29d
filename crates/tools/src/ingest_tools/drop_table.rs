//! `drop_table` removes a table with its rows.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Error, WriteRows};
use tidegate_runtime::{Answer, RunningCall, Tool};

use super::IngestContext;
use super::store_body::record_write;
use super::write_answer::answer_dropped;
use crate::arguments::parse_arguments;
use crate::tool_definition::{InputSchemaBuilder, built_in_tool, changing_hints, context_handler};

pub(super) fn tool(context: &Arc<IngestContext>) -> Tool {
    built_in_tool(
        WriteRows::DropTable.name(),
        "Drop a table",
        "Remove a table that takes rows, with all its rows.",
        InputSchemaBuilder::new().with_database().with_required("table", json!({"type": "string"})),
        changing_hints(true, false),
        context_handler(context, handle),
    )
}

#[derive(Deserialize)]
struct Arguments {
    database: Option<String>,
    table: String,
}

async fn handle(context: Arc<IngestContext>, call: RunningCall) -> Result<Answer, Error> {
    let Arguments { database, table } = parse_arguments(&call)?;
    let (database, table) = context.resolve(database, table, call.principal())?;
    let destination = context.destination(&database, &table, call.principal()).await?;
    record_write(&call, &database, std::iter::once(destination.table.name.as_str()), None, None);
    let target = destination.target.clone();
    let name = destination.table.name.clone();
    // A removal that has begun ends, also when the client leaves meanwhile.
    let dropped = tokio::spawn(async move { target.drop_table(&name).await }).await;
    let dropped = dropped.unwrap_or_else(|error| Err(Error::internal(format!("dropping a table failed: {error}"))));
    dropped.map_err(|error| context.hide_names(error, &database, &table, call.principal()))?;
    answer_dropped(&destination, &call)
}
