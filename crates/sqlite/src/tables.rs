//! The tables, views and virtual tables of the files, and their columns, as SQLite lists them.

use std::collections::HashMap;

use rusqlite::{Connection, Row};
use tidegate_query::{ColumnEntry, PolicyColumn, ValueKind};
use tidegate_sql::SqlDialect;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqliteTable {
    /// The schema, which identifies the file.
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) kind: TableKind,
    pub(crate) is_without_rowid: bool,
    pub(crate) is_strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    Table,
    View,
    /// Rows that a module produces, such as a full-text index.
    Virtual,
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

/// The schemas and names of the tables of a type in SQLite's table list.
pub(crate) fn list_names(connection: &Connection, table_type: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare("SELECT schema, name FROM pragma_table_list WHERE type = ?1")?;
    let names = statement.query_map([table_type], |row| Ok((row.get(0)?, row.get(1)?)))?;
    names.collect()
}

pub(crate) fn table_from_row(row: &Row<'_>) -> rusqlite::Result<SqliteTable> {
    let kind: String = row.get(2)?;
    let kind = match kind.as_str() {
        "view" => TableKind::View,
        "virtual" => TableKind::Virtual,
        _ => TableKind::Table,
    };
    let (is_without_rowid, is_strict) = (row.get(3)?, row.get(4)?);
    Ok(SqliteTable { schema: row.get(0)?, name: row.get(1)?, kind, is_without_rowid, is_strict })
}

pub(crate) fn read_definition(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<String> {
    let schema = quote_identifier(&table.schema);
    let sql = format!("SELECT sql FROM {schema}.sqlite_schema WHERE type = ?1 AND name = ?2");
    let kind = if table.kind == TableKind::View { "view" } else { "table" };
    connection.query_row(&sql, [kind, &table.name], |row| row.get(0))
}

pub(crate) fn quote_identifier(name: &str) -> String {
    SqlDialect::Sqlite.quote_identifier(name)
}

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
    pub(crate) references: Option<ForeignKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    pub(crate) table: String,
    /// `None` for the primary key.
    pub(crate) column: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GeneratedKind {
    No,
    Virtual,
    Stored,
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

fn load_foreign_keys(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<HashMap<String, ForeignKey>> {
    let mut statement =
        connection.prepare("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1, ?2)")?;
    let rows = statement.query_map([&table.name, &table.schema], |row| {
        let from: String = row.get(0)?;
        Ok((from.to_lowercase(), ForeignKey { table: row.get(1)?, column: row.get(2)? }))
    })?;
    rows.collect()
}

/// The columns by whose values SQLite finds rows: the rowid, and the first column of each index that covers all rows.
pub(crate) fn load_indexed_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<String>> {
    let columns = load_columns(connection, table)?;
    let mut indexed: Vec<String> =
        columns.into_iter().filter(|column| column.is_rowid).map(|column| column.name).collect();
    let mut statement = connection.prepare(
        "SELECT DISTINCT i.name FROM pragma_index_list(?1, ?2) l, pragma_index_info(l.name, ?2) i \
         WHERE l.partial = 0 AND i.seqno = 0 AND i.name IS NOT NULL",
    )?;
    let names = statement.query_map([&table.name, &table.schema], |row| row.get(0))?;
    for name in names {
        indexed.push(name?);
    }
    Ok(indexed)
}

pub(crate) fn has_key_index(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM pragma_index_list(?1, ?2) WHERE origin = 'pk'";
    connection.query_row(sql, [&table.name, &table.schema], |row| row.get(0))
}

impl TableColumn {
    pub(crate) fn is_generated(&self) -> bool {
        self.generated != GeneratedKind::No
    }

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SqliteType {
    Integer,
    Real,
    Text,
    Blob,
    /// Each value has its own type.
    Any,
}

/// The columns for policies; `sources` are the columns that each of them is computed from.
pub(crate) fn policy_columns<'a>(columns: &'a [TableColumn], sources: &'a [Vec<usize>]) -> Vec<PolicyColumn<'a>> {
    let policy_column = |(column, sources): (&'a TableColumn, &'a Vec<usize>)| PolicyColumn {
        name: &column.name,
        kind: declared_value_kind(&column.declared_type),
        reveals: sources,
    };
    columns.iter().zip(sources).map(policy_column).collect()
}

/// SQLite does not enforce the declared type, except that it converts texts to numbers.
fn declared_value_kind(declared: &str) -> ValueKind {
    let declared = declared.to_uppercase();
    let has = |part: &str| declared.contains(part);
    // The order is SQLite's own.
    match () {
        () if has("INT") => ValueKind::Integer,
        () if has("CHAR") || has("CLOB") || has("TEXT") => ValueKind::Text,
        () if has("BLOB") || declared.is_empty() => ValueKind::Any,
        () if has("REAL") || has("FLOA") || has("DOUB") => ValueKind::Number,
        () if has("BOOL") => ValueKind::Boolean,
        () => ValueKind::Any,
    }
}
