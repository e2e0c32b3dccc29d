//! Names that the configuration gives: of tools, resources, prompts and toolsets.

use std::collections::BTreeMap;

use tidegate_core::{AllowedNames, NamePattern, Toolset};
use tidegate_runtime::SnapshotBuilder;
use tidegate_tools::{DISCOVER_TOOLSET, FOLDER_TOOLS, OTLP_TOOLS, TABLE_TOOLS};
use tidegate_transport::http::is_reserved_toolset_name;

use super::databases::UsedKeys;
use super::problems::Problems;
use super::types::Config;
use crate::node::ServedState;

/// The [tools for rows](row_tools) that only read.
pub(super) const READING_ROW_TOOLS: [&str; 2] = ["ingest_status", "get_trace"];

pub(super) fn add_toolsets(state: ServedState, config: &Config, problems: &Problems) -> ServedState {
    for name in config.toolsets.keys() {
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        let message = match name.as_str() {
            DISCOVER_TOOLSET => Some("is built in; choose another name"),
            name if is_reserved_toolset_name(name) => Some("is the address of another transport; choose another name"),
            _ if !is_word => Some("must be letters, digits, _ and -, because it is part of a URL"),
            _ => None,
        };
        if let Some(message) = message {
            problems.add(format_args!("toolsets.{name}"), message);
        }
    }
    state.entries(|entries| config.toolsets.iter().map(build_toolset).fold(entries, SnapshotBuilder::toolset))
}

fn build_toolset((name, patterns): (&String, &Vec<String>)) -> Toolset {
    let patterns = patterns.iter().map(NamePattern::new).collect();
    Toolset { name: name.clone(), entries: AllowedNames::Matching(patterns) }
}

/// Checks the names of declared entries against each other, against `built_in`, the entries that the node has without
/// them, and against those of the tools for rows.
pub(super) fn check_duplicates(config: &Config, built_in: &SnapshotBuilder, problems: &Problems) {
    for (index, tool) in config.tools.iter().enumerate().filter(|(_, tool)| !is_tool_name(&tool.name)) {
        let message = format!("{:?} is no name of a tool: 1 to 128 of letters, digits, _, - and .", tool.name);
        problems.add(format_args!("tools[{index}].name"), message);
    }
    let (tools, prompts) =
        (config.tools.iter().map(|tool| &tool.name), config.prompts.iter().map(|prompt| &prompt.name));
    let row_tools: Vec<&str> = row_tools(config).collect();
    check_unique("tools", "name", tools, |name| built_in.has_tool(name) || row_tools.contains(&name), problems);
    check_unique("prompts", "name", prompts, |name| built_in.has_prompt(name), problems);
    check_unique("resources", "uri", config.resources.iter().map(|resource| &resource.uri), |_| false, problems);
}

/// The built-in entries that a server with this configuration may have.
pub(super) fn allowed_built_in(config: &Config) -> AllowedNames {
    config.built_in.as_ref().map_or(AllowedNames::Everything, |names| AllowedNames::matching(names.clone()))
}

/// The tools for rows of a server with this configuration. Commands that write no rows lack these tools.
pub(super) fn row_tools(config: &Config) -> impl Iterator<Item = &'static str> {
    let allowed = allowed_built_in(config);
    let receivers = &config.receivers;
    let has = |is_known: fn(&UsedKeys<'_>) -> bool| config.databases.iter().any(|entry| is_known(&entry.used_keys()));
    let groups: [(bool, &[&str]); 5] = [
        (has(|keys| keys.ingest_tables.is_some()), &TABLE_TOOLS),
        (has(|keys| keys.folder.is_some()), &FOLDER_TOOLS),
        (receivers.otlp.is_some(), &OTLP_TOOLS),
        (receivers.prometheus.is_some(), &["receive_prometheus"]),
        (receivers.bulk.is_some(), &["receive_bulk"]),
    ];
    let names = groups.into_iter().filter(|(exists, _)| *exists).flat_map(|(_, names)| names.iter().copied());
    names.filter(move |name| allowed.includes(name))
}

fn check_unique<'a>(
    list: &str,
    member: &str,
    names: impl Iterator<Item = &'a String>,
    is_built_in: impl Fn(&str) -> bool,
    problems: &Problems,
) {
    let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
    for (index, name) in names.enumerate() {
        let path = format!("{list}[{index}].{member}");
        if is_built_in(name) {
            let message =
                format!("{name} is the name of a built-in one; choose another, or keep that one out with built_in");
            problems.add(path, message);
        } else if let Some(first) = seen.get(name) {
            let message = format!("{name} is the {} of another", if member == "uri" { "URI" } else { member });
            problems.add_related(path, format_args!("{list}[{first}].{member}"), message);
        } else {
            seen.insert(name, index);
        }
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}
