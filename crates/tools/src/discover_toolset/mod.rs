//! The built-in toolset `discover`: two tools instead of a long list.

mod call_tool;
mod find_tool;

use std::sync::Arc;

use tidegate_core::{Access, AllowedNames, Toolset};
use tidegate_runtime::{SnapshotBuilder, Tool};

use crate::tool_context::ToolContext;

/// The name of the toolset.
pub const DISCOVER_TOOLSET: &str = "discover";

/// Adds the toolset and its tools, which no other toolset contains.
pub(crate) fn register(builder: SnapshotBuilder, node: &Arc<ToolContext>) -> SnapshotBuilder {
    let tools = [find_tool::tool(node), call_tool::tool(node)];
    let entries = AllowedNames::matching(tools.iter().map(|tool| tool.name.clone()));
    let builder = builder.toolset(Toolset { name: DISCOVER_TOOLSET.to_owned(), entries });
    tools.into_iter().map(restrict_to_discover).fold(builder, SnapshotBuilder::tool)
}

fn restrict_to_discover(tool: Tool) -> Tool {
    tool.with_access(Access { toolset: Some(DISCOVER_TOOLSET.to_owned()), ..Access::default() })
}
