//! `tidegate://databases/{database}/tables/{table}`: the columns of a table and its first rows.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{Error, Principal};
use tidegate_query::{ColumnEntry, OutputOptions, TableStatus};
use tidegate_runtime::{Answer, Resource, ResourceLister, ResourceTemplate, RunningCall};

use super::{TablesWatcher, json_template, resource_from_template};
use crate::catalog_tools::{list_catalogs, read_first_rows};
use crate::table_names::NameCompleter;
use crate::tool_context::ToolContext;
use crate::tool_definition::context_handler;

const TEMPLATE: &str = "tidegate://databases/{database}/tables/{table}";
const ROWS_LISTED_MAX: usize = 5;
/// Tables of all databases in the list at most; others are found by completion.
const TABLES_LISTED_MAX: usize = 1_000;
const TRUNCATION_HINT: &str = "The tool query selects columns and rows.";

pub(crate) fn template(node: &Arc<ToolContext>) -> ResourceTemplate {
    let mut template = base_template(node);
    template.completer = Some(Arc::new(NameCompleter(node.clone())));
    template.lister = Some(Arc::new(TableLister(node.clone())));
    template.watcher = Some(Arc::new(TablesWatcher(node.clone())));
    template
}

fn base_template(node: &Arc<ToolContext>) -> ResourceTemplate {
    json_template(
        TEMPLATE,
        "table",
        "Table",
        "The columns of a table, then its first rows, as JSON.",
        context_handler(node, read_table),
    )
}

/// Columns and rows are separate JSON, so that rows cut by the budget leave the columns valid.
async fn read_table(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let mut table = call.variable("table").unwrap_or_default().to_owned();
    let tables = std::iter::once(&mut table);
    let database = node.resolve_tables(call.variable("database"), tables, call.principal()).await?;
    let columns = database.columns(&table, call.principal()).await?;
    let rows = read_first_rows(&*database, &table, ROWS_LISTED_MAX, call.job()).await?;
    let columns: Vec<Value> = columns.iter().map(column_json).collect();
    let described = json!({"database": database.name(), "table": table, "columns": columns}).to_string();
    let output_options = OutputOptions { overflow_hint: TRUNCATION_HINT, ..OutputOptions::default() };
    let rows = node.executor.answer_rows(rows, output_options);
    Ok(Answer::written(move |reply| async move {
        reply.send_text(described).await?;
        reply.end_text().await?;
        rows.send(&reply).await
    }))
}

fn column_json(column: &ColumnEntry) -> Value {
    json!({
        "name": column.name, "type": column.type_name, "nullable": column.nullable, "comment": column.comment,
    })
}

struct TableLister(Arc<ToolContext>);

#[async_trait]
impl ResourceLister for TableLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_template(&self.0);
        let found = list_catalogs(&self.0.databases, None, principal).await?;
        let mut resources = Vec::new();
        for listing in &found {
            // An unavailable database lists nothing; its own resource reports the error.
            let Ok(catalog) = &listing.catalog else { continue };
            let database = listing.database.name();
            let readable = catalog.tables.iter().filter(|table| table.status == TableStatus::Readable);
            let room = TABLES_LISTED_MAX - resources.len();
            resources.extend(readable.take(room).map(|table| {
                resource_from_template(&template, &[database, &table.name], table.name.clone(), table.comment.clone())
            }));
        }
        Ok(resources)
    }
}
