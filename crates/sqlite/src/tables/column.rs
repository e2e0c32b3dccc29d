//! The columns of one table.

use std::collections::HashMap;

use rusqlite::Connection;
use tidegate_query::{ColumnEntry, Mask};

use super::{SqliteTable, TableKind, check_readable};
use crate::answer::SqliteType;
use crate::policy_views::TableVisibility;
use crate::session::ReadTransaction;
use crate::work_error::WorkError;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    declared_type: String,
    is_not_null: bool,
    /// The position in the primary key, from 1; 0 if it is not part of it.
    key_position: i64,
    /// Whether it is an alias of the rowid, and so always an integer.
    is_rowid: bool,
    generated: GeneratedKind,
    references: Option<ForeignKey>,
}

/// The target of a foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ForeignKey {
    table: String,
    /// `None` for the primary key.
    column: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GeneratedKind {
    No,
    Virtual,
    Stored,
}

/// The columns of `table`, without the hidden columns of a virtual table.
///
/// # Errors
/// Returns SQLite's error.
pub(crate) fn read_columns(reading: &ReadTransaction<'_>, table: &SqliteTable) -> Result<Vec<TableColumn>, WorkError> {
    Ok(reading.run_internal(|connection| load_columns(connection, table))?)
}

/// The columns of `table` that are visible to the caller.
///
/// # Errors
/// SQLite's error, or the reason why the table cannot be read.
pub(crate) fn visible_columns(
    reading: &ReadTransaction<'_>,
    table: &SqliteTable,
) -> Result<Vec<ColumnEntry>, WorkError> {
    if let Some(TableVisibility::Denied(error)) = reading.visibility(table) {
        return Err(WorkError::ClientError(error.clone()));
    }
    if table.kind == TableKind::View && reading.has_policies() {
        reading.create_views_for(None)?;
        // SQLite's column list of a view that reads hidden tables could reveal them.
        check_readable(reading, table)?;
        let (schema, name) = reading.effective_name(table);
        let sqlite_table = SqliteTable { schema, name, ..table.clone() };
        return Ok(read_columns(reading, &sqlite_table)?.into_iter().map(|column| column.describe(table)).collect());
    }
    let mut column_entries = Vec::new();
    for mut column in read_columns(reading, table)? {
        let mask = reading.mask(table, &column.name);
        column.references = column.references.filter(|target| is_reference_visible(reading, table, target));
        let mut column = column.describe(table);
        match mask {
            None => {}
            Some(Mask::Deny) => continue,
            Some(Mask::Null) => column.nullable = true,
            Some(_) => "TEXT".clone_into(&mut column.type_name),
        }
        column_entries.push(column);
    }
    Ok(column_entries)
}

/// The columns of `table`, without the hidden columns of a virtual table.
pub(crate) fn load_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<TableColumn>> {
    let mut references = load_foreign_keys(connection, table)?;
    let mut statement = connection
        .prepare("SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let name: String = row.get(0)?;
        Ok(TableColumn {
            references: references.remove(&name.to_lowercase()),
            name,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            key_position: row.get(3)?,
            is_rowid: false,
            generated: match row.get::<_, i64>(4)? {
                2 => GeneratedKind::Virtual,
                3 => GeneratedKind::Stored,
                _ => GeneratedKind::No,
            },
        })
    })?;
    let mut columns = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    if table.kind == TableKind::Table && !table.is_without_rowid && !has_key_index(connection, table)? {
        // A primary key without an index is the rowid itself.
        columns.iter_mut().for_each(|column| column.is_rowid = column.key_position > 0);
    }
    Ok(columns)
}

/// Whether the reference from `table` to `target` is visible; the caller may not see its target.
fn is_reference_visible(reading: &ReadTransaction<'_>, table: &SqliteTable, target: &ForeignKey) -> bool {
    reading
        .policy_views()
        .is_none_or(|policy_views| !policy_views.denies(&table.schema, &target.table, target.column.as_deref()))
}

/// The targets of foreign keys, by column names in lower case.
fn load_foreign_keys(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<HashMap<String, ForeignKey>> {
    let mut statement =
        connection.prepare("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1, ?2)")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let from: String = row.get(0)?;
        Ok((from.to_lowercase(), ForeignKey { table: row.get(1)?, column: row.get(2)? }))
    })?;
    rows.collect()
}

/// Whether the primary key has an index of its own.
fn has_key_index(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_index_list(?1, ?2) WHERE origin = 'pk'";
    connection.query_row(sql, [&table.name, &table.schema], |row| row.get(0))
}

impl TableColumn {
    /// Whether it is computed from other columns.
    pub(crate) fn is_generated(&self) -> bool {
        self.generated != GeneratedKind::No
    }

    /// The declared type.
    pub(crate) fn declared_type(&self) -> &str {
        &self.declared_type
    }

    /// The type of all of its values, if it is certain.
    pub(crate) fn certain_type(&self, table: &SqliteTable) -> Option<SqliteType> {
        if self.is_rowid {
            return Some(SqliteType::Integer);
        }
        // SQLite does not check the type of a virtual generated column.
        if !table.is_strict || self.generated == GeneratedKind::Virtual {
            return None;
        }
        match self.declared_type.to_uppercase().as_str() {
            "INT" | "INTEGER" => Some(SqliteType::Integer),
            "REAL" => Some(SqliteType::Real),
            "TEXT" => Some(SqliteType::Text),
            "BLOB" => Some(SqliteType::Blob),
            _ => None,
        }
    }

    /// The column as listed for callers.
    pub(crate) fn describe(self, table: &SqliteTable) -> ColumnEntry {
        // In other tables, SQLite allows null in a primary key, because of an old bug.
        let is_key = self.key_position > 0 && (self.is_rowid || table.is_without_rowid || table.is_strict);
        let mut notes = Vec::new();
        if self.key_position > 0 {
            notes.push("primary key".to_owned());
        }
        if self.generated != GeneratedKind::No {
            notes.push("generated".to_owned());
        }
        notes.extend(self.references.map(|target| match target.column {
            Some(column) => format!("references {}({column})", target.table),
            None => format!("references {}", target.table),
        }));
        ColumnEntry {
            nullable: !self.is_not_null && !is_key,
            type_name: if self.declared_type.is_empty() { "any".to_owned() } else { self.declared_type },
            comment: (!notes.is_empty()).then(|| notes.join(", ")),
            name: self.name,
        }
    }
}
