//! The databases that declared tools and resources use for their callers, whether or not the roles of these name them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_query::Database;

use super::authentication;
use super::types::Config;

/// The entries that are named for a database.
const ENTRIES_NAMED_MAX: usize = 5;

/// A declared entry that uses a database.
pub(crate) struct DeclaredUse<'a> {
    /// `tool` or `resource`, as in the registry.
    pub(crate) kind: &'static str,
    pub(crate) entry: &'a str,
    pub(crate) database: &'a str,
    /// The access names that a caller must hold.
    access: &'a [String],
}

/// The entries of `config` with a statement, or with a table that takes rows. `databases` are all names.
pub(crate) fn declared_uses<'a>(config: &'a Config, databases: &[&'a str]) -> Vec<DeclaredUse<'a>> {
    let only = match databases {
        [only] => Some(*only),
        _ => None,
    };
    let of_table = |table: &str| {
        let is_of = |name: &&&str| table.strip_prefix(**name).is_some_and(|rest| rest.starts_with('.'));
        databases.iter().filter(is_of).max_by_key(|name| name.len()).copied()
    };
    let tools = config.tools.iter().filter_map(|tool| {
        let database = match (&tool.insert_into, &tool.sql) {
            (Some(table), _) => of_table(table),
            (None, Some(_)) => tool.database.as_deref().or(only),
            (None, None) => None,
        };
        Some(DeclaredUse { kind: "tool", entry: &tool.name, database: database?, access: &tool.access })
    });
    let resources = config.resources.iter().filter(|resource| resource.sql.is_some()).filter_map(|resource| {
        let database = resource.database.as_deref().or(only)?;
        Some(DeclaredUse { kind: "resource", entry: &resource.name, database, access: &resource.access })
    });
    tools.chain(resources).collect()
}

/// A note for each role and each database that its callers reach by declared entries only.
pub(super) fn role_notes(config: &Config, databases: &[Arc<dyn Database>]) -> Vec<String> {
    let names: Vec<&str> = databases.iter().map(|database| database.name()).collect();
    let uses = declared_uses(config, &names);
    let mut notes = Vec::new();
    for role in authentication::roles(config) {
        let grants = &role.grants;
        let mut by_database: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for DeclaredUse { entry, database, access, .. } in &uses {
            let is_granted = grants.entries.includes(entry) && access.iter().all(|name| grants.access.includes(name));
            if is_granted && !grants.databases.includes(database) {
                by_database.entry(*database).or_default().push(*entry);
            }
        }
        notes.extend(by_database.into_iter().map(|(database, entries)| {
            let entries = name_entries(&entries);
            format!("role {}: uses the database {database} only by {entries}; its databases do not name it", role.name)
        }));
    }
    notes
}

/// The first of `entries`, and how many more there are.
pub(crate) fn name_entries(entries: &[&str]) -> String {
    let named = entries.iter().take(ENTRIES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match entries.len().saturating_sub(ENTRIES_NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
