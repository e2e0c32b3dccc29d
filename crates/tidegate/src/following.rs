//! Handlers that are followed: what a database says of them changes the running node.

use std::sync::Arc;

use futures::future::join_all;
use tidegate_postgres::handlers::HandlerChanges;
use tokio_util::sync::CancellationToken;

use crate::config::Assembly;

/// Follows the handlers of all databases of whatever configuration is in force, until `ended` fires.
pub(crate) fn follow(assembly: Arc<Assembly>, ended: CancellationToken) {
    tokio::spawn(async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = follow_all(&assembly) => {}
        }
    });
}

async fn follow_all(assembly: &Assembly) {
    let mut generations = assembly.generations();
    loop {
        let generation = *generations.borrow_and_update();
        let following = assembly.handler_changes().into_iter();
        let following = following.map(|(name, changes)| follow_one(assembly, generation, name, changes));
        tokio::select! {
            entered = generations.changed() => if entered.is_err() {
                return;
            },
            // They never end; without any the next configuration is waited for.
            _ = async { join_all(following).await; std::future::pending::<()>().await } => {}
        }
    }
}

async fn follow_one(assembly: &Assembly, generation: u64, name: String, mut changes: HandlerChanges) {
    loop {
        let catalog = changes.changed().await;
        assembly.refresh_handlers(generation, &name, catalog);
    }
}
