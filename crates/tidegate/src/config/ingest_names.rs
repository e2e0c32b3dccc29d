//! The names of tables that take rows, without opening a database.

use super::types::Config;

/// A database that takes rows, and its tables as far as the configuration names them.
pub(crate) struct IngestNames<'a> {
    pub(crate) database: &'a str,
    pub(crate) tables: Vec<String>,
    /// Whether it is a folder, in which tables can be created.
    pub(crate) is_folder: bool,
}

/// The databases that take rows.
pub(crate) fn ingest_names(config: &Config) -> Vec<IngestNames<'_>> {
    let named = config.databases.iter().filter_map(|entry| {
        let tables = entry.kind.ingest_tables()?;
        Some(IngestNames { database: &entry.name, tables, is_folder: entry.kind.folder().is_some() })
    });
    named.collect()
}
