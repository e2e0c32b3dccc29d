//! The tables, views and virtual tables of the files, and their columns.

mod column;

use std::collections::HashMap;

use rusqlite::{Connection, Row};
use tidegate_core::{Error, ErrorKind, nearest};
use tidegate_query::{Catalog, TableEntry, TableStatus};

use crate::failure::{Failure, words};
use crate::session::Reading;
use crate::shown::{Sight, not_over_what_is_shown};
pub(crate) use column::{TableColumn, columns, columns_of, shown_columns};

/// Tables that an error names at most.
const CHOICES_MAX: usize = 20;

/// A table as SQLite lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The file that it is in.
    pub(crate) schema: String,
    /// Its name there.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: Kind,
    /// Whether it has no rowid.
    pub(crate) is_without_rowid: bool,
    /// Whether its columns hold only what their types say.
    pub(crate) is_strict: bool,
}

/// What a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Rows of the file.
    Table,
    /// A query.
    View,
    /// Rows that a module makes, such as a full-text index.
    Virtual,
}

/// The tables of all files, without SQLite's own and without those that virtual tables keep their data in.
///
/// # Errors
/// What SQLite says.
pub(crate) fn list(reading: &Reading<'_>) -> Result<Vec<Table>, Failure> {
    let tables = reading.ours(all)?;
    let is_of_a_file = |table: &Table| reading.files.all.iter().any(|file| file.schema == table.schema);
    Ok(tables.into_iter().filter(is_of_a_file).collect())
}

/// The tables of all schemas, our own views among them.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Table>> {
    let mut statement = connection.prepare(
        "SELECT schema, name, type, wr, strict FROM pragma_table_list \
         WHERE type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let tables = statement.query_map([], table_of)?;
    tables.collect()
}

/// The schemas and names of the tables that modules keep the rows of virtual ones in.
pub(crate) fn kept_by_modules(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT schema, name FROM pragma_table_list WHERE type = 'shadow'")?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    names.collect()
}

/// The table `name` of `schema`, if it is one that a caller can read.
///
/// # Errors
/// What SQLite says.
pub(crate) fn lookup(reading: &Reading<'_>, schema: &str, name: &str) -> Result<Option<Table>, Failure> {
    let tables = reading.ours(|connection| {
        let mut statement =
            connection.prepare("SELECT schema, name, type, wr, strict FROM pragma_table_list(?1) WHERE schema = ?2")?;
        let tables = statement.query_map([name, schema], table_of)?;
        tables.collect::<rusqlite::Result<Vec<_>>>()
    })?;
    Ok(tables.into_iter().next())
}

fn table_of(row: &Row<'_>) -> rusqlite::Result<Table> {
    let kind: String = row.get(2)?;
    let kind = match kind.as_str() {
        "view" => Kind::View,
        "virtual" => Kind::Virtual,
        _ => Kind::Table,
    };
    let (is_without_rowid, is_strict) = (row.get(3)?, row.get(4)?);
    Ok(Table { schema: row.get(0)?, name: row.get(1)?, kind, is_without_rowid, is_strict })
}

/// The catalog as callers see it.
///
/// # Errors
/// What SQLite says; a single view that cannot be read is listed with its reason.
pub(crate) fn catalog(reading: &Reading<'_>) -> Result<Catalog, Failure> {
    let mut counts = HashMap::new();
    for file in &reading.files.all {
        // Nobody has ever counted the rows where the table of counts is missing.
        let counted = reading.ours(|connection| rows_counted(connection, &file.schema)).unwrap_or_default();
        counts.extend(counted.into_iter().map(|(table, rows)| ((file.schema.clone(), table), rows)));
    }
    let listed = list(reading)?;
    if listed.iter().any(|table| table.kind != Kind::Table) {
        reading.stand_for(None)?;
    }
    let mut tables: Vec<TableEntry> = listed
        .into_iter()
        .map(|table| TableEntry {
            name: reading.files.display(&table.schema, &table.name),
            // Counted were all of its rows.
            rows: match reading.sight(&table) {
                None => counts.get(&(table.schema.clone(), table.name.clone())).copied(),
                Some(_) => None,
            },
            comment: None,
            status: status(reading, &table),
        })
        .collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Catalog::of(tables))
}

/// The rows of each table, as the owner's last ANALYZE counted them.
fn rows_counted(connection: &Connection, schema: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql = format!("SELECT tbl, max(CAST(stat AS INTEGER)) FROM {}.sqlite_stat1 GROUP BY tbl", quoted(schema));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.raw_query();
    let mut counted = Vec::new();
    while let Some(row) = rows.next()? {
        // The file's owner may have written anything there.
        if let (Ok(table), Ok(count)) = (row.get::<_, String>(0), row.get::<_, i64>(1)) {
            counted.extend(u64::try_from(count).ok().map(|count| (table, count)));
        }
    }
    Ok(counted)
}

/// Whether a table can be read, so far as that is seen without reading it.
fn status(reading: &Reading<'_>, table: &Table) -> TableStatus {
    let is_barred = matches!(reading.sight(table), Some(Sight::Barred(_)));
    if table.kind == Kind::Table && !is_barred {
        return TableStatus::Readable;
    }
    match tried(reading, table) {
        Ok(()) => TableStatus::Readable,
        Err(Failure::Sqlite(error)) => TableStatus::Unreadable(words(&error)),
        Err(Failure::Told(error)) => {
            tracing::debug!(table = table.name, reason = error.detail(), "a table cannot be read");
            TableStatus::Unreadable(error.message().to_owned())
        }
        Err(failure) => TableStatus::Unreadable(failure.to_string()),
    }
}

/// Plans to read all of `table`, before which what stands for it stands.
///
/// # Errors
/// Why it cannot be read, in words that tell nothing of what is not shown.
pub(crate) fn tried(reading: &Reading<'_>, table: &Table) -> Result<(), Failure> {
    if let Some(Sight::Barred(error)) = reading.sight(table) {
        return Err(Failure::Told(error.clone()));
    }
    let (schema, name) = reading.place(table);
    let prepared = reading.prepare(&format!("SELECT * FROM {}.{}", quoted(&schema), quoted(&name)));
    prepared.map(drop).map_err(|failure| match reading.is_shown() && failure.is_in_their_words() {
        true => Failure::Told(not_over_what_is_shown(reading.files, table, &failure.to_string())),
        false => failure,
    })
}

/// The table that a caller means by `name`: as the catalog has it, or bare where only one file has such a table.
///
/// # Errors
/// `NotFound` with the nearest names, `InvalidArguments` when several files have it.
pub(crate) fn find(reading: &Reading<'_>, name: &str, database: &str) -> Result<Table, Failure> {
    let tables = list(reading)?;
    let display = |table: &Table| reading.files.display(&table.schema, &table.name);
    let is_meant = |table: &&Table| {
        display(table).eq_ignore_ascii_case(name)
            || format!("{}.{}", table.schema, table.name).eq_ignore_ascii_case(name)
    };
    let is_bare = |table: &&Table| table.name.eq_ignore_ascii_case(name);
    let mut meant: Vec<&Table> = tables.iter().filter(is_meant).collect();
    if meant.is_empty() {
        meant = tables.iter().filter(is_bare).collect();
    }
    match meant.as_slice() {
        [table] => Ok((*table).clone()),
        [] => {
            let names: Vec<String> = tables.iter().map(display).collect();
            let error = Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in {database:?}"));
            Err(Failure::Told(error.with_choices(choices(name, &names))))
        }
        several => {
            let error =
                Error::new(ErrorKind::InvalidArguments, format!("several files of {database:?} have a table {name:?}"));
            Err(Failure::Told(error.with_choices(several.iter().map(|table| display(table)))))
        }
    }
}

/// The names like `wanted`, or the first of all when none is.
pub(crate) fn choices(wanted: &str, names: &[String]) -> Vec<String> {
    let near = nearest(wanted, names.iter().map(String::as_str));
    if near.is_empty() { names.iter().take(CHOICES_MAX).cloned().collect() } else { near }
}

/// `name` as SQL has it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
