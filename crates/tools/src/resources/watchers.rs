//! Change detection for databases, tables and stored results, for subscriptions.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Caller, Error, ErrorKind, TemplateVariables};
use tidegate_runtime::ResourceWatcher;

use crate::node_view::NodeView;

/// Watches one table, or all tables of a database. Which changes are detected depends on the database; only cheap
/// checks are used.
pub(super) struct TablesWatcher(pub(super) Arc<NodeView>);

#[async_trait]
impl ResourceWatcher for TablesWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let variable = |name: &str| variables.get(name).map(String::as_str);
        match self.0.databases.get(variable("database"), &caller.principal) {
            Ok(database) => database.version_tag(variable("table"), &caller.principal).await,
            // Hidden or absent.
            Err(_) => Ok(None),
        }
    }
}

/// Watches a stored result: its blocks and its end.
pub(super) struct ResultWatcher(pub(super) Arc<NodeView>);

#[async_trait]
impl ResourceWatcher for ResultWatcher {
    async fn version_tag(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let Some(store) = self.0.executor.store() else { return Ok(None) };
        let Some(Ok(id)) = variables.get("id").map(|id| id.parse()) else { return Ok(None) };
        let found = store.get(id, caller).and_then(|result| self.0.authorize_read(&result, caller).map(|()| result));
        match found {
            Ok(result) => {
                let stage = result.progress();
                Ok(Some(format!("{} {}", stage.blocks.len(), stage.status())))
            }
            // Not the caller's, never existed, or gone.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
