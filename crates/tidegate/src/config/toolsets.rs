//! From `toolsets:` to the doors that show a part of what is offered.

use crate::NodeState;
use tidegate_core::{AllowedNames, NamePattern, Toolset};
use tidegate_runtime::SnapshotBuilder;
use tidegate_tools::DISCOVER_TOOLSET;

use super::problem::ConfigProblem;
use super::types::Config;

/// Names under /mcp/ that are doors of their own.
const RESERVED_NAMES: [&str; 3] = ["sse", "ws", "messages"];

/// Adds the toolsets that the configuration names, and says which names cannot be.
pub(super) fn add_toolsets(state: NodeState, config: &Config, problems: &mut Vec<ConfigProblem>) -> NodeState {
    for name in config.toolsets.keys() {
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let complaint = match name.as_str() {
            DISCOVER_TOOLSET => Some("is built in; choose another name"),
            name if RESERVED_NAMES.contains(&name) => Some("is the address of another door; choose another name"),
            _ if !is_word => Some("must be letters, digits, _ and -, as it stands in an address"),
            _ => None,
        };
        problems.extend(complaint.map(|complaint| ConfigProblem::new(format!("toolsets.{name}"), complaint)));
    }
    state.entries(|entries| config.toolsets.iter().map(build_toolset).fold(entries, SnapshotBuilder::toolset))
}

fn build_toolset((name, patterns): (&String, &Vec<String>)) -> Toolset {
    let patterns = patterns.iter().map(NamePattern::new).collect();
    Toolset { name: name.clone(), entries: AllowedNames::Matching(patterns) }
}
