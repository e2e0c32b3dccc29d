//! Whether a database, a table or a stored result has changed, for those who listen.

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_core::{Caller, Error, ErrorKind, ResourceWatcher, TemplateVariables};

use crate::node_view::NodeView;

/// Watches the table that the variables name, or all tables of a database where they name none. What is told of depends
/// on the database, which is asked for no more than it finds out cheaply.
pub(super) struct TablesWatcher(pub(super) Arc<NodeView>);

#[async_trait]
impl ResourceWatcher for TablesWatcher {
    async fn stamp(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let variable = |name: &str| variables.get(name).map(String::as_str);
        match self.0.databases.get(variable("database"), &caller.principal) {
            Ok(database) => database.stamp(variable("table"), &caller.principal).await,
            // Hidden, or absent.
            Err(_) => Ok(None),
        }
    }
}

/// Watches a stored result: its blocks, and its end.
pub(super) struct ResultWatcher(pub(super) Arc<NodeView>);

#[async_trait]
impl ResourceWatcher for ResultWatcher {
    async fn stamp(&self, variables: &TemplateVariables, caller: &Caller) -> Result<Option<String>, Error> {
        let Some(store) = self.0.executor.store() else { return Ok(None) };
        let Some(Ok(id)) = variables.get("id").map(|id| id.parse()) else { return Ok(None) };
        let found = store.get(id, caller).and_then(|result| self.0.authorize_read(&result, caller).map(|()| result));
        match found {
            Ok(result) => {
                let stage = result.progress();
                Ok(Some(format!("{} {}", stage.blocks.len(), stage.status())))
            }
            // Not the caller's, never there, or gone.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
