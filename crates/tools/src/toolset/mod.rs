//! The built-in toolset `discover`: two tools in place of a list that is too long to read.

mod call_tool;
mod find_tool;

use std::sync::Arc;

use tidegate_core::{Access, Allowed, SnapshotBuilder, Tool, Toolset};

use crate::node::NodeView;

/// The toolset's name.
pub const DISCOVER: &str = "discover";

/// Adds the toolset and its tools, which are reached through no other door.
pub(crate) fn register(builder: SnapshotBuilder, node: &Arc<NodeView>) -> SnapshotBuilder {
    let tools = [find_tool::tool(node), call_tool::tool(node)];
    let entries = Allowed::matching(tools.iter().map(|tool| tool.name.clone()));
    let builder = builder.toolset(Toolset { name: DISCOVER.to_owned(), entries });
    tools.into_iter().map(only_here).fold(builder, SnapshotBuilder::tool)
}

fn only_here(tool: Tool) -> Tool {
    tool.with_access(Access { toolset: Some(DISCOVER.to_owned()), ..Access::default() })
}
