//! The tables, views and virtual tables of the files, and their columns.

mod column;

use std::collections::HashMap;

use rusqlite::{Connection, Row};
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::{Catalog, TableEntry, TableStatus};

use crate::policy_views::{TableVisibility, unreadable_under_policy_error};
use crate::session::ReadTransaction;
use crate::work_error::{WorkError, sqlite_message};
pub(crate) use column::{TableColumn, load_columns, read_columns, visible_columns};

/// The maximum number of tables that an error suggests.
const CHOICES_MAX: usize = 20;

/// A table as SQLite lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteTable {
    /// The schema, which stands for the file.
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) kind: TableKind,
    /// Whether it has no rowid.
    pub(crate) is_without_rowid: bool,
    /// Whether its columns enforce their types.
    pub(crate) is_strict: bool,
}

/// The kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// Rows of the file.
    Table,
    /// A query.
    View,
    /// Rows that a module produces, such as a full-text index.
    Virtual,
}

/// The tables of all files, without internal tables and without the shadow tables of virtual tables.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn list_tables(reading: &ReadTransaction<'_>) -> Result<Vec<SqliteTable>, WorkError> {
    let tables = reading.run_internal(list_all_tables)?;
    let is_of_a_file = |table: &SqliteTable| reading.files.files.iter().any(|file| file.schema == table.schema);
    Ok(tables.into_iter().filter(is_of_a_file).collect())
}

/// The tables of all schemas, including policy views.
pub(crate) fn list_all_tables(connection: &Connection) -> rusqlite::Result<Vec<SqliteTable>> {
    let mut statement = connection.prepare(
        "SELECT schema, name, type, wr, strict FROM pragma_table_list \
         WHERE type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let tables = statement.query_map([], table_from_row)?;
    tables.collect()
}

/// The schemas and names of shadow tables, in which virtual tables store their rows.
pub(crate) fn list_shadow_tables(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT schema, name FROM pragma_table_list WHERE type = 'shadow'")?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    names.collect()
}

/// The table `name` of `schema`, if callers can read it.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn lookup_table(
    reading: &ReadTransaction<'_>,
    schema: &str,
    name: &str,
) -> Result<Option<SqliteTable>, WorkError> {
    let tables = reading.run_internal(|connection| {
        let mut statement =
            connection.prepare("SELECT schema, name, type, wr, strict FROM pragma_table_list(?1) WHERE schema = ?2")?;
        let tables = statement.query_map([name, schema], table_from_row)?;
        tables.collect::<rusqlite::Result<Vec<_>>>()
    })?;
    Ok(tables.into_iter().next())
}

fn table_from_row(row: &Row<'_>) -> rusqlite::Result<SqliteTable> {
    let kind: String = row.get(2)?;
    let kind = match kind.as_str() {
        "view" => TableKind::View,
        "virtual" => TableKind::Virtual,
        _ => TableKind::Table,
    };
    let (is_without_rowid, is_strict) = (row.get(3)?, row.get(4)?);
    Ok(SqliteTable { schema: row.get(0)?, name: row.get(1)?, kind, is_without_rowid, is_strict })
}

/// The catalog for callers.
///
/// # Errors
/// Returns SQLite's error. A view that cannot be read is listed with the reason.
pub(crate) fn read_catalog(reading: &ReadTransaction<'_>) -> Result<Catalog, WorkError> {
    let mut counts = HashMap::new();
    for file in &reading.files.files {
        // If ANALYZE never ran, the table of counts does not exist.
        let counted = reading.run_internal(|connection| read_row_counts(connection, &file.schema)).unwrap_or_default();
        counts.extend(counted.into_iter().map(|(table, rows)| ((file.schema.clone(), table), rows)));
    }
    let listed = list_tables(reading)?;
    if listed.iter().any(|table| table.kind != TableKind::Table) {
        reading.create_views_for(None)?;
    }
    let mut tables: Vec<TableEntry> = listed
        .into_iter()
        .map(|table| TableEntry {
            name: reading.files.display_name(&table.schema, &table.name),
            // The count includes all rows, so it is not given where rows are hidden.
            rows: match reading.visibility(&table) {
                None => counts.get(&(table.schema.clone(), table.name.clone())).copied(),
                Some(_) => None,
            },
            comment: None,
            status: table_status(reading, &table),
        })
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Catalog::from_tables(tables))
}

/// The row count of each table, from the last ANALYZE.
fn read_row_counts(connection: &Connection, schema: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql =
        format!("SELECT tbl, max(CAST(stat AS INTEGER)) FROM {}.sqlite_stat1 GROUP BY tbl", quote_identifier(schema));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.raw_query();
    let mut counted = Vec::new();
    while let Some(row) = rows.next()? {
        // The file may contain anything there.
        if let (Ok(table), Ok(count)) = (row.get::<_, String>(0), row.get::<_, i64>(1)) {
            counted.extend(u64::try_from(count).ok().map(|count| (table, count)));
        }
    }
    Ok(counted)
}

/// Whether a table can be read, as far as can be determined without reading rows.
fn table_status(reading: &ReadTransaction<'_>, table: &SqliteTable) -> TableStatus {
    let is_barred = matches!(reading.visibility(table), Some(TableVisibility::Denied(_)));
    if table.kind == TableKind::Table && !is_barred {
        return TableStatus::Readable;
    }
    match check_readable(reading, table) {
        Ok(()) => TableStatus::Readable,
        Err(WorkError::Sqlite(error)) => TableStatus::Unreadable(sqlite_message(&error)),
        Err(WorkError::ClientError(error)) => {
            tracing::debug!(table = table.name, reason = error.detail(), "a table cannot be read");
            TableStatus::Unreadable(error.message().to_owned())
        }
        Err(failure) => TableStatus::Unreadable(failure.to_string()),
    }
}

/// Plans to read all of `table`, through its policy view if there is one.
///
/// # Errors
/// The reason why it cannot be read. It reveals nothing that is hidden.
pub(crate) fn check_readable(reading: &ReadTransaction<'_>, table: &SqliteTable) -> Result<(), WorkError> {
    if let Some(TableVisibility::Denied(error)) = reading.visibility(table) {
        return Err(WorkError::ClientError(error.clone()));
    }
    let (schema, name) = reading.effective_name(table);
    let prepared = reading.prepare(&format!("SELECT * FROM {}.{}", quote_identifier(&schema), quote_identifier(&name)));
    prepared.map(drop).map_err(|failure| match reading.has_policies() && failure.is_about_statement() {
        true => WorkError::ClientError(unreadable_under_policy_error(reading.files, table, &failure.to_string())),
        false => failure,
    })
}

/// Finds the table `name`: as in the catalog, or unqualified if only one file has such a table.
///
/// # Errors
/// `NotFound` with similar names; `InvalidArguments` if several files have it.
pub(crate) fn find_table(reading: &ReadTransaction<'_>, name: &str, database: &str) -> Result<SqliteTable, WorkError> {
    let tables = list_tables(reading)?;
    let display = |table: &SqliteTable| reading.files.display_name(&table.schema, &table.name);
    let is_meant = |table: &&SqliteTable| {
        display(table).eq_ignore_ascii_case(name)
            || format!("{}.{}", table.schema, table.name).eq_ignore_ascii_case(name)
    };
    let is_bare = |table: &&SqliteTable| table.name.eq_ignore_ascii_case(name);
    let mut meant: Vec<&SqliteTable> = tables.iter().filter(is_meant).collect();
    if meant.is_empty() {
        meant = tables.iter().filter(is_bare).collect();
    }
    match meant.as_slice() {
        [table] => Ok((*table).clone()),
        [] => {
            let names: Vec<String> = tables.iter().map(display).collect();
            let error = Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in {database:?}"));
            Err(WorkError::ClientError(error.with_choices(suggest_names(name, &names))))
        }
        several => {
            let error =
                Error::new(ErrorKind::InvalidArguments, format!("several files of {database:?} have a table {name:?}"));
            Err(WorkError::ClientError(error.with_choices(several.iter().map(|table| display(table)))))
        }
    }
}

/// The names similar to `expected`, or the first names if none is similar.
pub(crate) fn suggest_names(expected: &str, names: &[String]) -> Vec<String> {
    let near = nearest_names(expected, names.iter().map(String::as_str));
    if near.is_empty() { names.iter().take(CHOICES_MAX).cloned().collect() } else { near }
}

/// `name` as a quoted SQL identifier.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
