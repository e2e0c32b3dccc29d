//! A table that takes rows, as its file describes it.

use rusqlite::Connection;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::TargetColumn;

use super::column::{ValueForm, target_column};
use super::session::write_error;
use crate::files::MAIN_SCHEMA;
use crate::tables::{SqliteTable, TableKind, has_key_index, list_all_tables, quote_identifier};

const COLUMNS_SQL: &str = "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk FROM pragma_table_xinfo(?1, ?2) \
                           WHERE hidden = 0";

/// A table that takes rows.
#[derive(Debug)]
pub(super) struct TargetTable {
    /// The name for SQL.
    pub(super) sql_name: String,
    pub(super) columns: Vec<TargetColumn<ValueForm>>,
}

/// A column as its file declares it.
struct DeclaredColumn {
    name: String,
    declared_type: String,
    is_not_null: bool,
    has_default: bool,
    is_key: bool,
}

impl TargetTable {
    /// The table `table`, which is declared as `name`.
    pub(super) fn look_up(connection: &Connection, name: &str, table: &str, database: &str) -> Result<Self, Error> {
        let failed = |error| write_error(error, database);
        let tables = list_all_tables(connection).map_err(failed)?;
        let is_named = |found: &&SqliteTable| found.schema == MAIN_SCHEMA && found.name.eq_ignore_ascii_case(table);
        let Some(found) = tables.iter().find(is_named) else {
            return Err(missing_table_error(name, database));
        };
        let kind = match found.kind {
            TableKind::Table => None,
            TableKind::View => Some("a view"),
            TableKind::Virtual => Some("a virtual table"),
        };
        if let Some(kind) = kind {
            let message = format!("the table {name:?} of the database {database:?} takes no rows: it is {kind}");
            return Err(Error::new(ErrorKind::InvalidArguments, message));
        }
        let columns = load_columns(connection, found).map_err(failed)?;
        let sql_name = format!("{}.{}", quote_identifier(MAIN_SCHEMA), quote_identifier(&found.name));
        Ok(Self { sql_name, columns })
    }
}

pub(super) fn missing_table_error(name: &str, database: &str) -> Error {
    let message = format!("the table {name:?} is declared, but the database {database:?} has none");
    Error::new(ErrorKind::NotFound, message).with_hint("The owner of the node corrects the name.")
}

fn load_columns(connection: &Connection, table: &SqliteTable) -> rusqlite::Result<Vec<TargetColumn<ValueForm>>> {
    let mut statement = connection.prepare(COLUMNS_SQL)?;
    let declared = statement.query_map([&table.name, &table.schema], |row| {
        Ok(DeclaredColumn {
            name: row.get(0)?,
            declared_type: row.get(1)?,
            is_not_null: row.get(2)?,
            has_default: row.get(3)?,
            is_key: row.get::<_, i64>(4)? > 0,
        })
    })?;
    let declared = declared.collect::<rusqlite::Result<Vec<_>>>()?;
    // A primary key without an index is the rowid itself, which SQLite chooses for null.
    let has_rowid_key = !table.is_without_rowid && !has_key_index(connection, table)?;
    let columns = declared.into_iter().map(|column| {
        let is_rowid = column.is_key && has_rowid_key;
        // In other tables, SQLite allows null in a primary key, because of an old bug.
        let is_strict_key = column.is_key && (table.is_without_rowid || table.is_strict);
        let takes_nulls = is_rowid || !(column.is_not_null || is_strict_key);
        target_column(&column.name, &column.declared_type, table.is_strict, column.has_default, takes_nulls)
    });
    Ok(columns.collect())
}
