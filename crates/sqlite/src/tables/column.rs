//! The columns of one table.

use std::collections::HashMap;

use rusqlite::Connection;
use tidegate_query::{Column, Mask};

use super::{Kind, Table, tried};
use crate::answer::ValueKind;
use crate::failure::Failure;
use crate::session::Reading;
use crate::shown::Sight;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// Its name.
    pub(crate) name: String,
    declared: String,
    is_not_null: bool,
    /// Its place in the primary key, from 1; 0 when it is not in it.
    key_place: i64,
    /// Whether it is another name of the rowid, and so always an integer.
    is_rowid: bool,
    generated: Generated,
    references: Option<Reference>,
}

/// What a foreign key refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reference {
    table: String,
    /// None where it is the primary key.
    column: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generated {
    No,
    WhenRead,
    WhenWritten,
}

/// The columns of `table`, without those that a virtual table hides.
///
/// # Errors
/// What SQLite says.
pub(crate) fn columns(reading: &Reading<'_>, table: &Table) -> Result<Vec<TableColumn>, Failure> {
    Ok(reading.ours(|connection| columns_of(connection, table))?)
}

/// The columns of `table` as callers see them.
///
/// # Errors
/// What SQLite says, and why the table cannot be read.
pub(crate) fn shown_columns(reading: &Reading<'_>, table: &Table) -> Result<Vec<Column>, Failure> {
    if let Some(Sight::Barred(error)) = reading.sight(table) {
        return Err(Failure::Told(error.clone()));
    }
    if table.kind == Kind::View && reading.is_shown() {
        reading.stand_for(None)?;
        // What SQLite has of the columns of a view that reads past what is shown would tell of them.
        tried(reading, table)?;
        let (schema, name) = reading.place(table);
        let again = Table { schema, name, ..table.clone() };
        return Ok(columns(reading, &again)?.into_iter().map(|column| column.describe(table)).collect());
    }
    let mut shown = Vec::new();
    for mut column in columns(reading, table)? {
        let mask = reading.mask(table, &column.name);
        column.references = column.references.filter(|target| is_told(reading, table, target));
        let mut column = column.describe(table);
        match mask {
            None => {}
            Some(Mask::Deny) => continue,
            Some(Mask::Null) => column.nullable = true,
            Some(_) => "TEXT".clone_into(&mut column.type_name),
        }
        shown.push(column);
    }
    Ok(shown)
}

/// The columns of `table`, without those that a virtual table hides.
pub(crate) fn columns_of(connection: &Connection, table: &Table) -> rusqlite::Result<Vec<TableColumn>> {
    let mut references = references(connection, table)?;
    let mut statement = connection
        .prepare("SELECT name, type, \"notnull\", pk, hidden FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let name: String = row.get(0)?;
        Ok(TableColumn {
            references: references.remove(&name.to_lowercase()),
            name,
            declared: row.get(1)?,
            is_not_null: row.get(2)?,
            key_place: row.get(3)?,
            is_rowid: false,
            generated: match row.get::<_, i64>(4)? {
                2 => Generated::WhenRead,
                3 => Generated::WhenWritten,
                _ => Generated::No,
            },
        })
    })?;
    let mut columns = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    if table.kind == Kind::Table && !table.is_without_rowid && !has_key_index(connection, table)? {
        // A primary key that needs no index is the rowid itself.
        columns.iter_mut().for_each(|column| column.is_rowid = column.key_place > 0);
    }
    Ok(columns)
}

/// Whether callers are told that a column of `table` refers to `target`, which may be nothing that they see.
fn is_told(reading: &Reading<'_>, table: &Table, target: &Reference) -> bool {
    reading.shown().is_none_or(|shown| !shown.denies(&table.schema, &target.table, target.column.as_deref()))
}

/// What columns refer to, by their names in lower case.
fn references(connection: &Connection, table: &Table) -> rusqlite::Result<HashMap<String, Reference>> {
    let mut statement =
        connection.prepare("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1, ?2)")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let from: String = row.get(0)?;
        Ok((from.to_lowercase(), Reference { table: row.get(1)?, column: row.get(2)? }))
    })?;
    rows.collect()
}

/// Whether the primary key has an index of its own.
fn has_key_index(connection: &Connection, table: &Table) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_index_list(?1, ?2) WHERE origin = 'pk'";
    connection.query_row(sql, [&table.name, &table.schema], |row| row.get(0))
}

impl TableColumn {
    /// Whether it is computed from others.
    pub(crate) fn is_generated(&self) -> bool {
        self.generated != Generated::No
    }

    /// Its type, as it is declared.
    pub(crate) fn declared(&self) -> &str {
        &self.declared
    }

    /// The type of its values, if all of them have it.
    pub(crate) fn certain_kind(&self, table: &Table) -> Option<ValueKind> {
        if self.is_rowid {
            return Some(ValueKind::Integer);
        }
        // SQLite does not look at the type of what is computed on reading.
        if !table.is_strict || self.generated == Generated::WhenRead {
            return None;
        }
        match self.declared.to_uppercase().as_str() {
            "INT" | "INTEGER" => Some(ValueKind::Integer),
            "REAL" => Some(ValueKind::Real),
            "TEXT" => Some(ValueKind::Text),
            "BLOB" => Some(ValueKind::Blob),
            _ => None,
        }
    }

    /// The column as callers see it.
    pub(crate) fn describe(self, table: &Table) -> Column {
        // Elsewhere SQLite lets a primary key be null, by an old mistake.
        let is_key = self.key_place > 0 && (self.is_rowid || table.is_without_rowid || table.is_strict);
        let mut notes = Vec::new();
        if self.key_place > 0 {
            notes.push("primary key".to_owned());
        }
        if self.generated != Generated::No {
            notes.push("generated".to_owned());
        }
        notes.extend(self.references.map(|target| match target.column {
            Some(column) => format!("references {}({column})", target.table),
            None => format!("references {}", target.table),
        }));
        Column {
            nullable: !self.is_not_null && !is_key,
            type_name: if self.declared.is_empty() { "any".to_owned() } else { self.declared },
            comment: (!notes.is_empty()).then(|| notes.join(", ")),
            name: self.name,
        }
    }
}
