//! Warnings about a valid configuration that probably does not do what its author expects.

use std::sync::{Arc, LazyLock};

use tidegate_core::{AllowedNames, NamePattern, misspelled_name, suggestion};
use tidegate_query::Database;
use tidegate_runtime::Snapshot;
use tidegate_tools::{STORED_RESULT_NAMES, entries_of_every_server};

use super::types::Config;
use super::{LoadedConfig, authentication, caller_claims, names};

pub(super) fn find_warnings(
    loaded: &LoadedConfig,
    built_in: &AllowedNames,
    databases: &[Arc<dyn Database>],
) -> Vec<String> {
    let names: Vec<&str> = databases.iter().map(|database| database.name()).collect();
    let mut warnings = role_warnings(&loaded.config, built_in, &names);
    warnings.extend(caller_claims::missing_claim_warnings(loaded));
    if loaded.has_no_keys() {
        let file = loaded.path().display();
        warnings.push(format!("{file} is empty: it declares neither databases nor tools"));
    }
    warnings
}

/// The built-in tools that read the databases of their caller. Every server has the same, so they are built once.
static TABLE_READERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let every_server = entries_of_every_server().build();
    let readers = every_server.entries().filter(|entry| entry.access.reads_caller_databases);
    readers.map(|entry| entry.name.to_owned()).collect()
});

/// Roles with built-in tools but without databases, and roles that name databases other than those in `databases`.
fn role_warnings(config: &Config, built_in: &AllowedNames, databases: &[&str]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, (entry, role)) in config.roles.iter().zip(authentication::roles(config)).enumerate() {
        let mut tools = TABLE_READERS.iter().filter(|tool| built_in.includes(tool));
        if let Some(tool) = tools.find(|tool| role.grants.entries.includes(tool))
            && entry.databases.is_empty()
            && !databases.is_empty()
        {
            warnings.push(format!(
                "roles[{index}]: the role {:?} has tools such as {tool}, but no databases, so they find no tables; add \
                 databases: ['*'], or their names",
                entry.name
            ));
        }
        for (position, name) in entry.databases.iter().enumerate() {
            let pattern = NamePattern::new(name);
            if name != "*" && !databases.iter().any(|database| pattern.matches(database)) {
                let advice = match misspelled_name(name, databases.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None if databases.is_empty() => "there are none".to_owned(),
                    None => format!("there are {}", databases.join(", ")),
                };
                warnings.push(format!("roles[{index}].databases[{position}]: there is no database {name:?}; {advice}"));
            }
        }
    }
    warnings
}

/// Entries of toolsets that match nothing in `snapshot`. What a database declares may be there later.
pub(super) fn toolset_warnings(config: &Config, snapshot: &Snapshot) -> Vec<String> {
    // Commands that check a configuration neither store results nor write rows, and so lack the entries for both.
    let elsewhere = STORED_RESULT_NAMES.into_iter().chain(names::row_tools(config));
    let names: Vec<&str> =
        elsewhere.map(|name| -> &str { name }).chain(snapshot.entries().map(|entry| entry.name)).collect();
    let mut warnings = Vec::new();
    for (toolset, entries) in &config.toolsets {
        for (position, entry) in entries.iter().enumerate() {
            let pattern = NamePattern::new(entry);
            if entry == "*" || names.iter().any(|name| pattern.matches(name)) {
                continue;
            }
            let nearest = if pattern.is_glob() { String::new() } else { suggestion(entry, names.iter().copied()) };
            warnings.push(format!(
                "toolsets.{toolset}[{position}]: {entry:?} matches no tool, resource or prompt{nearest}"
            ));
        }
    }
    warnings
}
