//! From `toolsets:` to the doors that show a part of what is offered.

use tidegate::State;
use tidegate_core::{Allowed, NamePattern, SnapshotBuilder, Toolset};
use tidegate_tools::DISCOVER;

use super::problem::Problem;
use super::types::Config;

/// Names under /mcp/ that are doors of their own.
const RESERVED: [&str; 3] = ["sse", "ws", "messages"];

/// Adds the toolsets that the configuration names, and says which names cannot be.
pub(super) fn enter(state: State, config: &Config, problems: &mut Vec<Problem>) -> State {
    for name in config.toolsets.keys() {
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let complaint = match name.as_str() {
            DISCOVER => Some("is built in; choose another name"),
            name if RESERVED.contains(&name) => Some("is the address of another door; choose another name"),
            _ if !is_word => Some("must be letters, digits, _ and -, as it stands in an address"),
            _ => None,
        };
        problems.extend(complaint.map(|complaint| Problem::new(format!("toolsets.{name}"), complaint)));
    }
    state.entries(|entries| config.toolsets.iter().map(toolset).fold(entries, SnapshotBuilder::toolset))
}

fn toolset((name, patterns): (&String, &Vec<String>)) -> Toolset {
    let patterns = patterns.iter().map(NamePattern::new).collect();
    Toolset { name: name.clone(), entries: Allowed::Matching(patterns) }
}
