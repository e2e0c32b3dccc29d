//! The built-in tools, resources and prompts: discover, ask, look after the node.
//!
//! [`register`] adds them to a registry's snapshot; a host adds its own entries before or after.
//! Knows databases by their trait and no engine.

mod arguments;
mod ask;
mod definition;
mod discover;
mod instructions;
mod names;
mod node;
mod operate;
mod pattern;
mod prompts;
mod resources;
mod table;

use std::sync::Arc;

use tidegate_core::{Snapshot, SnapshotBuilder};

pub use instructions::INSTRUCTIONS;
pub use node::{Identity, NodeView};

/// Adds everything that is built in to `builder`.
#[must_use]
pub fn register(builder: SnapshotBuilder, node: &Arc<NodeView>) -> SnapshotBuilder {
    builder
        .tool(discover::list_databases::tool(node))
        .tool(discover::list_tables::tool(node))
        .tool(discover::get_schema::tool(node))
        .tool(ask::query::tool(node))
        .tool(ask::sql::tool(node))
        .tool(ask::explain::tool(node))
        .tool(operate::list_jobs::tool(node))
        .tool(operate::cancel_job::tool(node))
        .tool(operate::node_status::tool(node))
        .tool(operate::server_info::tool(node))
        .template(resources::database::template(node))
        .template(resources::table::template(node))
        .prompt(prompts::explore::prompt(node))
        .prompt(prompts::ask::prompt(node))
}

/// A snapshot of exactly what is built in.
pub fn snapshot(node: &Arc<NodeView>) -> Snapshot {
    register(SnapshotBuilder::new(), node).build()
}
