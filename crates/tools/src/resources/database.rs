//! `tidegate://databases/{database}`: the tables of a database.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tidegate_core::{Error, Principal};
use tidegate_query::{TableEntry, TableStatus};
use tidegate_runtime::{Answer, Resource, ResourceLister, ResourceTemplate, RunningCall};

use super::{TablesWatcher, json_template, resource_from_template};
use crate::table_names::NameCompleter;
use crate::tool_context::ToolContext;
use crate::tool_definition::context_handler;

const TEMPLATE: &str = "tidegate://databases/{database}";
/// Tables in the answer at most; it also has the total number.
const TABLES_LISTED_MAX: usize = 1_000;

pub(crate) fn template(node: &Arc<ToolContext>) -> ResourceTemplate {
    let mut template = base_template(node);
    template.completer = Some(Arc::new(NameCompleter(node.clone())));
    template.lister = Some(Arc::new(DatabaseLister(node.clone())));
    template.watcher = Some(Arc::new(TablesWatcher(node.clone())));
    template
}

fn base_template(node: &Arc<ToolContext>) -> ResourceTemplate {
    json_template(
        TEMPLATE,
        "database",
        "Database",
        "The tables of a database, as JSON.",
        context_handler(node, read_database),
    )
}

async fn read_database(node: Arc<ToolContext>, call: RunningCall) -> Result<Answer, Error> {
    let database = node.databases.get(call.variable("database"), call.principal())?;
    let catalog = database.catalog(call.principal()).await?;
    let tables: Vec<Value> = catalog.tables.iter().take(TABLES_LISTED_MAX).map(table_json).collect();
    let answer = json!({
        "name": database.name(), "kind": database.kind().name(), "sql": database.dialect().name(),
        "tables_in_all": catalog.tables.len(), "tables": tables,
    });
    Ok(Answer::text(answer.to_string()))
}

fn table_json(table: &TableEntry) -> Value {
    let mut object = json!({"name": table.name, "rows": table.rows, "comment": table.comment});
    if let TableStatus::Unreadable(reason) = &table.status {
        object["error"] = json!(reason);
    }
    object
}

struct DatabaseLister(Arc<ToolContext>);

#[async_trait]
impl ResourceLister for DatabaseLister {
    async fn list(&self, principal: &Principal) -> Result<Vec<Resource>, Error> {
        let template = base_template(&self.0);
        let databases = self.0.databases.visible_to(principal);
        Ok(databases
            .map(|database| {
                let description = format!("Tables of the {} database {}.", database.kind().name(), database.name());
                resource_from_template(&template, &[database.name()], database.name().to_owned(), Some(description))
            })
            .collect())
    }
}
