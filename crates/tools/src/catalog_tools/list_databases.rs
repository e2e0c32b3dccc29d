//! `list_databases`: the databases of this node.

use std::sync::Arc;

use tidegate_core::Error;
use tidegate_query::{QueryRows, TableStatus};
use tidegate_runtime::{Answer, RunningCall, Tool};

use super::{DatabaseListing, list_catalogs, report_errors};
use crate::arguments::{OutputArguments, parse_arguments};
use crate::tool_context::ToolContext;
use crate::tool_definition::{InputSchemaBuilder, context_handler, read_only_tool};
use crate::typed_rows::{TableBuilder, count_column, text_column};

pub(crate) fn tool(node: &Arc<ToolContext>) -> Tool {
    read_only_tool(
        "list_databases",
        "List databases",
        "Databases of this server with kind, SQL dialect, number of tables and status. Start here.",
        InputSchemaBuilder::new().with_output_arguments(),
        context_handler(node, handle),
    )
}

async fn handle(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let shape: OutputArguments = parse_arguments(&call)?;
    let found = list_catalogs(&node.databases, None, call.principal()).await?;
    report_errors(&found, &call);
    let output_options = shape.output_options("Call list_tables with one database.")?;
    Ok(node.executor.answer_rows(rows(&found)?, output_options))
}

fn rows(found: &[DatabaseListing]) -> Result<QueryRows, Error> {
    let tables = |listing: &DatabaseListing| listing.catalog.as_ref().ok().map(|catalog| catalog.tables.len() as u64);
    TableBuilder::new()
        .with_column("name", text_column(found.iter().map(|listing| Some(listing.database.name().to_owned()))))
        .with_column("kind", text_column(found.iter().map(|listing| Some(listing.database.kind().name().to_owned()))))
        .with_column(
            "dialect",
            text_column(found.iter().map(|listing| Some(listing.database.dialect().name().to_owned()))),
        )
        .with_column("tables", count_column(found.iter().map(tables)))
        .with_column("status", text_column(found.iter().map(|listing| Some(status(listing)))))
        .into_rows()
}

fn status(listing: &DatabaseListing) -> String {
    match &listing.catalog {
        Err(error) => error.to_string(),
        Ok(catalog) => {
            let unreadable = catalog.tables.iter().filter(|table| table.status != TableStatus::Readable).count();
            match unreadable {
                0 => "ok".to_owned(),
                1 => "1 table cannot be read; see list_tables".to_owned(),
                n => format!("{n} tables cannot be read; see list_tables"),
            }
        }
    }
}
