//! The tables and columns that a caller sees.

use std::collections::HashMap;

use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_query::{Catalog, ColumnEntry, Mask, TableEntry, TableStatus};

use crate::policy_views::{PolicyViews, TableVisibility, unreadable_under_policy_error};
use crate::session::ReadTransaction;
use crate::tables::{
    ForeignKey, SqliteTable, TableColumn, TableKind, list_all_tables, load_columns, quote_identifier, table_from_row,
};
use crate::work_error::{WorkError, sqlite_message};

const CHOICES_MAX: usize = 20;

/// The tables of all files, without internal tables and without the shadow tables of virtual tables.
pub(crate) fn list_tables(reading: &ReadTransaction<'_>) -> Result<Vec<SqliteTable>, WorkError> {
    let tables = reading.run_internal(list_all_tables)?;
    let is_of_a_file = |table: &SqliteTable| reading.files.files.iter().any(|file| file.schema == table.schema);
    Ok(tables.into_iter().filter(is_of_a_file).collect())
}

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

pub(crate) fn read_catalog(reading: &ReadTransaction<'_>) -> Result<Catalog, WorkError> {
    let mut counts = HashMap::new();
    for file in &reading.files.files {
        // If ANALYZE never ran, the table of counts does not exist.
        let row_counts =
            reading.run_internal(|connection| read_row_counts(connection, &file.schema)).unwrap_or_default();
        counts.extend(row_counts.into_iter().map(|(table, rows)| ((file.schema.clone(), table), rows)));
    }
    let tables = list_tables(reading)?;
    if tables.iter().any(|table| table.kind != TableKind::Table) {
        reading.create_views_for(None)?;
    }
    let mut entries: Vec<TableEntry> = tables
        .into_iter()
        .map(|table| TableEntry {
            name: reading.files.display_name(&table.schema, &table.name),
            // The count includes all rows, so it is not given where rows are hidden.
            rows: match reading.visibility(&table) {
                None => counts.get(&(table.schema.clone(), table.name.clone())).copied(),
                Some(_) => None,
            },
            comment: None,
            facts: None,
            status: table_status(reading, &table),
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Catalog::from_tables(entries))
}

fn read_row_counts(connection: &Connection, schema: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql =
        format!("SELECT tbl, max(CAST(stat AS INTEGER)) FROM {}.sqlite_stat1 GROUP BY tbl", quote_identifier(schema));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.raw_query();
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        // The file may contain anything there.
        if let (Ok(table), Ok(count)) = (row.get::<_, String>(0), row.get::<_, i64>(1)) {
            counts.extend(u64::try_from(count).ok().map(|count| (table, count)));
        }
    }
    Ok(counts)
}

/// Whether a table can be read, as far as can be determined without reading rows.
fn table_status(reading: &ReadTransaction<'_>, table: &SqliteTable) -> TableStatus {
    let is_denied = matches!(reading.visibility(table), Some(TableVisibility::Denied(_)));
    if table.kind == TableKind::Table && !is_denied {
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

/// Plans to read all of `table`, through its policy view if there is one. The error reveals nothing that is hidden.
pub(crate) fn check_readable(reading: &ReadTransaction<'_>, table: &SqliteTable) -> Result<(), WorkError> {
    if let Some(TableVisibility::Denied(error)) = reading.visibility(table) {
        return Err(error.clone().into());
    }
    let (schema, name) = reading.effective_name(table);
    let prepared = reading.prepare(&format!("SELECT * FROM {}.{}", quote_identifier(&schema), quote_identifier(&name)));
    prepared.map(drop).map_err(|failure| match reading.has_policies() && failure.is_about_statement() {
        true => unreadable_under_policy_error(reading.files, table, &failure.to_string()).into(),
        false => failure,
    })
}

/// As in the catalog, or unqualified if only one file has such a table. The error suggests similar or full names.
pub(crate) fn find_table(reading: &ReadTransaction<'_>, name: &str, database: &str) -> Result<SqliteTable, WorkError> {
    let tables = list_tables(reading)?;
    let display = |table: &SqliteTable| reading.files.display_name(&table.schema, &table.name);
    let has_full_name = |table: &&SqliteTable| {
        display(table).eq_ignore_ascii_case(name)
            || format!("{}.{}", table.schema, table.name).eq_ignore_ascii_case(name)
    };
    let has_bare_name = |table: &&SqliteTable| table.name.eq_ignore_ascii_case(name);
    let mut matches: Vec<&SqliteTable> = tables.iter().filter(has_full_name).collect();
    if matches.is_empty() {
        matches = tables.iter().filter(has_bare_name).collect();
    }
    match matches.as_slice() {
        [table] => Ok((*table).clone()),
        [] => {
            let names: Vec<String> = tables.iter().map(display).collect();
            let message = format!("there is no table {name:?} in {database:?}");
            Err(Error::new(ErrorKind::NotFound, message).with_choices(suggest_names(name, &names)).into())
        }
        several => {
            let message = format!("several files of {database:?} have a table {name:?}");
            let choices = several.iter().map(|table| display(table));
            Err(Error::new(ErrorKind::InvalidArguments, message).with_choices(choices).into())
        }
    }
}

/// The names similar to `expected`, or the first names if none is similar.
pub(crate) fn suggest_names(expected: &str, names: &[String]) -> Vec<String> {
    let near = nearest_names(expected, names.iter().map(String::as_str));
    if near.is_empty() { names.iter().take(CHOICES_MAX).cloned().collect() } else { near }
}

pub(crate) fn read_columns(reading: &ReadTransaction<'_>, table: &SqliteTable) -> Result<Vec<TableColumn>, WorkError> {
    Ok(reading.run_internal(|connection| load_columns(connection, table))?)
}

pub(crate) fn visible_columns(
    reading: &ReadTransaction<'_>,
    table: &SqliteTable,
) -> Result<Vec<ColumnEntry>, WorkError> {
    if let Some(TableVisibility::Denied(error)) = reading.visibility(table) {
        return Err(error.clone().into());
    }
    if table.kind == TableKind::View && reading.has_policies() {
        reading.create_views_for(None)?;
        // SQLite's column list of a view that reads hidden tables could reveal them.
        check_readable(reading, table)?;
        let (schema, name) = reading.effective_name(table);
        let effective = SqliteTable { schema, name, ..table.clone() };
        // A view may show a masked column.
        let describe = |column: TableColumn| ColumnEntry { is_masked: Some(true), ..column.describe(table) };
        return Ok(read_columns(reading, &effective)?.into_iter().map(describe).collect());
    }
    let mut entries = Vec::new();
    for mut column in read_columns(reading, table)? {
        let mask = reading.mask(table, &column.name);
        column.references = column.references.filter(|target| is_reference_visible(reading, table, target));
        let mut column = ColumnEntry { is_masked: Some(mask.is_some()), ..column.describe(table) };
        match mask {
            None => {}
            Some(Mask::Deny) => continue,
            Some(Mask::Null) => column.nullable = true,
            Some(_) => "TEXT".clone_into(&mut column.type_name),
        }
        entries.push(column);
    }
    Ok(entries)
}

/// Whether the reference from `table` to `target` is visible; the caller may not see its target.
fn is_reference_visible(reading: &ReadTransaction<'_>, table: &SqliteTable, target: &ForeignKey) -> bool {
    let is_denied = |views: &PolicyViews| views.denies(&table.schema, &target.table, target.column.as_deref());
    !reading.policy_views().is_some_and(is_denied)
}
