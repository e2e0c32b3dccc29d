//! Handlers that are followed: what a database says of them changes the running node.

use std::sync::Arc;

use futures::future::join_all;
use tidegate_postgres_handlers::HandlerWatcher;
use tokio_util::sync::CancellationToken;

use crate::config::NodeAssembler;

/// Follows the handlers of all databases of whatever configuration is in force, until `ended` fires.
pub(crate) fn watch_handlers(assembly: Arc<NodeAssembler>, ended: CancellationToken) {
    tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = watch_all(&assembly) => {}
        }
    });
}

async fn watch_all(assembly: &NodeAssembler) {
    let mut generations = assembly.generations();
    loop {
        let generation = *generations.borrow_and_update();
        let following = assembly.handler_changes().into_iter();
        let following = following.map(|(name, changes)| watch_one(assembly, generation, name, changes));
        tokio::select! {
            entered = generations.changed() => if entered.is_err() {
                return;
            },
            // They never end; without any the next configuration is waited for.
            _ = async { join_all(following).await; std::future::pending::<()>().await } => {}
        }
    }
}

async fn watch_one(assembly: &NodeAssembler, generation: u64, name: String, mut changes: HandlerWatcher) {
    loop {
        let catalog = changes.next_change().await;
        assembly.refresh_handlers(generation, &name, catalog);
    }
}
