//! The existing tables of a database that are declared to take rows.

use std::sync::Arc;

use tidegate_core::{Error, ErrorKind, nearest_names};
use tidegate_sql::SqlDialect;

use super::{ColumnStamp, is_rejects_table};

/// An existing table that takes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredTable {
    /// The name as in the catalog.
    pub name: String,
    /// Columns that get their value from an attribute of the caller.
    pub stamps: Vec<ColumnStamp>,
}

/// The tables of a database that take rows, those of rejected rows among them.
#[derive(Debug, Clone)]
pub struct DeclaredTables {
    database: Arc<str>,
    dialect: SqlDialect,
    /// Sorted by name.
    tables: Vec<DeclaredTable>,
}

impl DeclaredTables {
    /// The declared `tables` of `database`, whose names are those of `dialect`.
    ///
    /// # Errors
    /// `InvalidArguments` if a table is declared twice.
    pub fn new(database: Arc<str>, dialect: SqlDialect, mut tables: Vec<DeclaredTable>) -> Result<Self, Error> {
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        for (position, table) in tables.iter().enumerate() {
            if tables.iter().skip(position + 1).any(|other| is_same_name(dialect, &table.name, &other.name)) {
                let message = format!("the table {:?} of the database {database:?} is declared twice", table.name);
                return Err(Error::new(ErrorKind::InvalidArguments, message));
            }
        }
        Ok(Self { database, dialect, tables })
    }

    /// The names of the tables, sorted, without those of rejected rows.
    pub fn names(&self) -> Vec<String> {
        let names = self.tables.iter().map(|table| table.name.clone());
        names.filter(|name| !is_rejects_table(name)).collect()
    }

    /// The declared table `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest names, and with how to declare a table.
    pub fn find(&self, name: &str) -> Result<&DeclaredTable, Error> {
        if let Some(table) = self.tables.iter().find(|table| is_same_name(self.dialect, &table.name, name)) {
            return Ok(table);
        }
        let message = format!("the database {:?} has no table {name:?} that takes rows", self.database);
        let names = self.names();
        let near = nearest_names(name, names.iter().map(String::as_str));
        Err(Error::new(ErrorKind::NotFound, message)
            .with_choices(if near.is_empty() { names } else { near })
            .with_hint(format!("The owner of the node adds an existing table under ingest: [{name}].")))
    }

    /// The error of dropping the table `name`, which belongs to the owner of the database.
    ///
    /// # Errors
    /// Always: as [`DeclaredTables::find`], and `InvalidArguments` for a table that is there.
    pub fn refuse_drop(&self, name: &str) -> Result<(), Error> {
        let table = self.find(name)?;
        let message = format!("existing tables, as those of the database {:?}, are not dropped here", self.database);
        Err(Error::new(ErrorKind::InvalidArguments, message)
            .with_hint(format!("Replace the rows of {} with none, or drop it with SQL of its owner.", table.name)))
    }
}

fn is_same_name(dialect: SqlDialect, one: &str, other: &str) -> bool {
    let is_same_part = |(one, other): (&String, &String)| {
        if dialect.ignores_case() { one.eq_ignore_ascii_case(other) } else { one == other }
    };
    let (one, other) = (dialect.table_parts(one), dialect.table_parts(other));
    one.len() == other.len() && one.iter().zip(&other).all(is_same_part)
}
