//! Completion of database and table names, for resource templates and prompts alike: those first that the caller asks
//! for lately and often.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Completer, Completion, CompletionRequest, Error, Job};

use crate::discover::listings;
use crate::node::NodeView;

/// Completes the arguments `database` and `table`; all others have no known values.
pub(crate) struct Names(pub(crate) Arc<NodeView>);

#[async_trait]
impl Completer for Names {
    async fn complete(&self, request: &CompletionRequest, job: Arc<Job>) -> Result<Completion, Error> {
        let uses = self.0.executor.uses();
        match request.argument.as_str() {
            "database" => {
                let names = self.0.databases.of(job.principal()).map(|database| database.name().to_owned());
                let mut names: Vec<String> = names.collect();
                uses.databases(job.caller()).order(&mut names);
                Ok(Completion::of(names, &request.value))
            }
            "table" => {
                let database = request.context.get("database").map(String::as_str);
                let mut names = self.tables(database, &job).await?;
                uses.tables(job.caller(), database).order(&mut names);
                Ok(Completion::of(names, &request.value))
            }
            _ => Ok(Completion::default()),
        }
    }
}

impl Names {
    /// The tables of the database, or of all while none is chosen; each name once.
    async fn tables(&self, database: Option<&str>, job: &Job) -> Result<Vec<String>, Error> {
        let found = listings(&self.0.databases, database, job.principal()).await?;
        let catalogs = found.iter().filter_map(|listing| listing.catalog.as_ref().ok());
        let mut names: Vec<String> =
            catalogs.flat_map(|catalog| catalog.tables.iter().map(|table| table.name.clone())).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }
}
