//! Names and URIs that stand twice, of which the last would silently take the place of the others.

use std::collections::BTreeSet;

use tidegate_runtime::Snapshot;

use super::problem::ConfigProblem;
use super::types::Config;

/// Adds what stands twice, in the file or in it and among what is `built_in`, and tools whose names are none.
pub(super) fn check_duplicates(config: &Config, built_in: &Snapshot, problems: &mut Vec<ConfigProblem>) {
    for (index, tool) in config.tools.iter().enumerate().filter(|(_, tool)| !is_tool_name(&tool.name)) {
        let message = format!("{:?} is no name of a tool: 1 to 128 of letters, digits, _, - and .", tool.name);
        problems.push(ConfigProblem::new(format!("tools[{index}].name"), message));
    }
    let taken = |kind: &str| -> BTreeSet<String> {
        built_in.entries().filter(|entry| entry.kind == kind).map(|entry| entry.name.to_owned()).collect()
    };
    check_unique("tools", "name", config.tools.iter().map(|tool| &tool.name), &taken("tool"), problems);
    check_unique("prompts", "name", config.prompts.iter().map(|prompt| &prompt.name), &taken("prompt"), problems);
    check_unique("resources", "uri", config.resources.iter().map(|resource| &resource.uri), &BTreeSet::new(), problems);
}

fn check_unique<'a>(
    list: &str,
    member: &str,
    names: impl Iterator<Item = &'a String>,
    taken: &BTreeSet<String>,
    problems: &mut Vec<ConfigProblem>,
) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        let message = if taken.contains(name) {
            format!("{name} is the name of a built-in one; choose another, or keep that one out with built_in")
        } else if !seen.insert(name) {
            format!("{name} is the {} of another", if member == "uri" { "URI" } else { member })
        } else {
            continue;
        };
        problems.push(ConfigProblem::new(format!("{list}[{index}].{member}"), message));
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}
