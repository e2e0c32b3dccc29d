//! Built-in tools, resources and prompts: discovery, queries and operations; and declared ones.
//!
//! [`register`] adds them to a registry's snapshot; a host adds its own entries before or after. Databases are used
//! through their trait, without any engine.

mod arguments;
pub mod declared;
mod discover;
mod instructions;
mod name_completer;
mod node_view;
mod operations;
mod paging;
mod prompts;
mod query_tools;
mod resources;
mod table_builder;
mod table_name_pattern;
mod text_preview;
mod tool_definition;
mod toolset;

use std::sync::Arc;

pub use instructions::{FENCE_INSTRUCTIONS, INSTRUCTIONS};
pub use node_view::{NodeIdentity, NodeView};
use tidegate_core::AllowedNames;
use tidegate_runtime::{Snapshot, SnapshotBuilder};
pub use toolset::DISCOVER_TOOLSET;

/// Adds all built-in entries to `builder`.
#[must_use]
pub fn register(builder: SnapshotBuilder, node: &Arc<NodeView>) -> SnapshotBuilder {
    register_allowed(builder, node, &AllowedNames::Everything)
}

/// Adds the built-in entries whose names `allowed` includes to `builder`.
#[must_use]
pub fn register_allowed(builder: SnapshotBuilder, node: &Arc<NodeView>, allowed: &AllowedNames) -> SnapshotBuilder {
    let tools = [
        discover::list_databases::tool(node),
        discover::list_tables::tool(node),
        discover::get_schema::tool(node),
        query_tools::query::tool(node),
        query_tools::sql::tool(node),
        query_tools::explain::tool(node),
        operations::list_jobs::tool(node),
        operations::cancel_job::tool(node),
        operations::node_status::tool(node),
        operations::server_info::tool(node),
    ];
    let own = [resources::database::template(node), resources::table::template(node), resources::job::template(node)];
    let templates = own.into_iter().chain(resources::result::templates(node));
    let prompts = [
        prompts::explore::prompt(node),
        prompts::ask::prompt(node),
        prompts::explain_slow_query::prompt(node),
        prompts::summarise_table::prompt(node),
    ];
    let builder = toolset::register(builder, node);
    let builder = tools.into_iter().filter(|tool| allowed.includes(&tool.name)).fold(builder, SnapshotBuilder::tool);
    let templates = templates.into_iter().filter(|template| allowed.includes(&template.name));
    let builder = templates.fold(builder, SnapshotBuilder::template);
    prompts.into_iter().filter(|prompt| allowed.includes(&prompt.name)).fold(builder, SnapshotBuilder::prompt)
}

/// A snapshot with only the built-in entries.
pub fn snapshot(node: &Arc<NodeView>) -> Snapshot {
    register(SnapshotBuilder::new(), node).build()
}
