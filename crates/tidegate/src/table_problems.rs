//! What the administrator should know of the tables of a database: those that cannot be read, and how files were read.

use tidegate_core::Principal;
use tidegate_query::{Catalog, Database, DatabaseKind, TableEntry, TableStatus};

/// Tables that are named where `doctor` names all of them.
const NAMED_MAX: usize = 5;
/// The kinds of databases whose tables are on this machine, so that to list them is no request to another one.
const LOCAL_KINDS: [DatabaseKind; 3] = [DatabaseKind::Files, DatabaseKind::Ingest, DatabaseKind::Sqlite];

/// A line for each table of `catalog` that cannot be read, with the reason.
pub(crate) fn unreadable_tables(database: &str, catalog: &Catalog) -> Vec<String> {
    let line = |table: &TableEntry| match &table.status {
        TableStatus::Unreadable(reason) => Some(format!("table {database}.{} cannot be read: {reason}", table.name)),
        TableStatus::Readable => None,
    };
    catalog.tables.iter().filter_map(line).collect()
}

/// As [`unreadable_tables`], with only the first ones and the number of the others. Empty for a database on another machine,
/// and for one that does not answer, which calls report.
pub(crate) async fn first_unreadable_tables(database: &dyn Database, principal: &Principal) -> Vec<String> {
    if !LOCAL_KINDS.contains(&database.kind()) {
        return Vec::new();
    }
    let Ok(catalog) = database.catalog(principal).await else { return Vec::new() };
    let mut lines = unreadable_tables(database.name(), &catalog);
    let more = lines.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        lines.truncate(NAMED_MAX);
        lines.push(format!("{more} more tables of {} cannot be read; tidegate doctor lists them", database.name()));
    }
    lines
}

/// A line for each note of `database`: which files were merged or skipped.
pub(crate) async fn database_notes(database: &dyn Database) -> Vec<String> {
    lines_of(database, database.notes().await.unwrap_or_default())
}

/// A line for each column whose type was decided by a value, with the value.
pub(crate) async fn column_notes(database: &dyn Database) -> Vec<String> {
    lines_of(database, database.column_notes().await.unwrap_or_default())
}

fn lines_of(database: &dyn Database, notes: Vec<String>) -> Vec<String> {
    notes.into_iter().map(|note| format!("database {}: {note}", database.name())).collect()
}
