//! Completion of database and table names in resource templates and prompts. Names that the caller used recently and
//! often come first.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Completion, CompletionRequest, Error};
use tidegate_runtime::{Completer, Job};

use crate::catalog_tools::list_catalogs;
use crate::tool_context::ToolContext;

/// Completes the arguments `database` and `table`; other arguments have no completions.
pub(crate) struct NameCompleter(pub(crate) Arc<ToolContext>);

#[async_trait]
impl Completer for NameCompleter {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        let usage_tracker = self.0.executor.usage();
        match request.argument.as_str() {
            "database" => {
                let names = self.0.databases.visible_to(job.principal()).map(|database| database.name().to_owned());
                let mut names: Vec<String> = names.collect();
                usage_tracker.rank_databases(job.caller()).sort(&mut names);
                Ok(Completion::matching(names, &request.value))
            }
            "table" => {
                let database = request.context.get("database").map(String::as_str);
                let mut names = self.table_names(database, &job).await?;
                usage_tracker.rank_tables(job.caller(), database).sort(&mut names);
                Ok(Completion::matching(names, &request.value))
            }
            _ => Ok(Completion::default()),
        }
    }
}

impl NameCompleter {
    async fn table_names(&self, database: Option<&str>, job: &Job) -> Result<Vec<String>, Error> {
        let found = list_catalogs(&self.0.databases, database, job.principal()).await?;
        let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok());
        let mut names: Vec<String> =
            catalogs.flat_map(|catalog| catalog.tables.iter().map(|table| table.name.clone())).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}
