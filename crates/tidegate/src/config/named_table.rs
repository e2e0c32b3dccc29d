//! A table that takes rows, as receivers and tools of the configuration name it: `plant.sensors`.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{ErrorKind, Principal};
use tidegate_query::{IngestTable, REJECTS_SUFFIX, WriteTarget};

use super::databases::{DatabaseConfig, FolderConfig, OpenDatabases, OpenedDatabase};
use super::ingest::declared_table;
use super::types::Config;

/// A table that takes rows.
pub(super) struct NamedTable {
    /// `None` if another process writes to it, or if this one takes no rows.
    pub(super) target: Option<Arc<dyn WriteTarget>>,
    /// The name in its database.
    pub(super) name: String,
    /// `None` if the table cannot be read now, or is not known before its first rows.
    pub(super) known: Option<IngestTable>,
}

impl NamedTable {
    /// Finds the table `name`, by the declaration of its database if another process writes to it.
    ///
    /// # Errors
    /// What is wrong with the name, and what would be right.
    pub(super) async fn find(name: &str, config: &Config, open: &OpenDatabases) -> Result<Self, String> {
        let (entry, table) = split_name(name, config)?;
        let found = |target, known| Ok(Self { target, name: table.to_owned(), known });
        // A database that could not be opened is a problem of its own.
        let Some(opened) = open.by_name.get(&entry.name) else { return found(None, None) };
        let Some(target) = opened.target() else {
            let Some(folder) = entry.used_keys().folder else { return found(None, None) };
            let declared = declared_table(folder, table);
            if declared.is_none() && !folder.creates_tables() {
                require_stored_table(folder, opened, table).await?;
            }
            return found(None, declared);
        };
        match target.table(table).await {
            Ok(known) => found(Some(target), Some(known)),
            Err(error) if error.kind() == ErrorKind::Unavailable => found(Some(target), None),
            Err(error) => Err(with_names(error.message().to_owned(), error.choices().iter().map(String::as_str))),
        }
    }
}

/// The database that takes rows, and the name of the table in it. Names of databases may contain dots.
fn split_name<'a>(name: &'a str, config: &'a Config) -> Result<(&'a DatabaseConfig, &'a str), String> {
    let taking = config.databases.iter().filter(|entry| takes_rows(entry));
    let tables = taking.filter_map(|entry| Some((entry, name.strip_prefix(entry.name.as_str())?.strip_prefix('.')?)));
    let found = tables.filter(|(_, table)| !table.is_empty()).max_by_key(|(entry, _)| entry.name.len());
    found.ok_or_else(|| match name.split_once('.') {
        Some((database, _)) => no_rows_taken(config, database),
        None => "needs the database and the table: plant.sensors".to_owned(),
    })
}

fn takes_rows(entry: &DatabaseConfig) -> bool {
    entry.used_keys().ingest_tables.is_some()
}

/// Checks that a table exists that its folder neither declares nor creates.
async fn require_stored_table(folder: &FolderConfig, opened: &OpenedDatabase, table: &str) -> Result<(), String> {
    let catalog = opened.database.catalog(&Principal::process_user()).await.map_err(|error| error.to_string())?;
    let stored = catalog.tables.iter().map(|stored| stored.name.as_str());
    if stored.clone().any(|name| name == table) {
        return Ok(());
    }
    let names = stored.chain(folder.tables.keys().map(String::as_str)).filter(|name| !name.ends_with(REJECTS_SUFFIX));
    let names: BTreeSet<&str> = names.collect();
    Err(with_names(format!("database {:?} has no table {table:?} that takes rows", opened.database.name()), names))
}

fn no_rows_taken(config: &Config, database: &str) -> String {
    let lead = match config.databases.iter().any(|entry| entry.name == database) {
        true => format!("database {database:?} takes no rows, as it has no key ingest"),
        false => format!("there is no database {database:?}"),
    };
    let taking = config.databases.iter().filter(|entry| takes_rows(entry)).map(|entry| entry.name.as_str());
    let taking: BTreeSet<&str> = taking.collect();
    if taking.is_empty() {
        return format!("{lead}; declare one under databases: {{name: {database}, ingest: ./{database}}}");
    }
    with_names(lead, taking)
}

fn with_names<'a>(lead: String, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { lead } else { format!("{lead}; there are {}", names.join(", ")) }
}
