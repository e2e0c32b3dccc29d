//! The tables that the catalogs show to a caller.

use datafusion::arrow::datatypes::FieldRef;

/// The schema of tables that have no schema of their own.
pub const PUBLIC_SCHEMA: &str = "public";

/// The tables and columns of one database that one caller may see at one moment. The catalogs contain nothing else.
#[derive(Debug, Clone, Default)]
pub struct VisibleObjects {
    pub(super) database: String,
    pub(super) user: String,
    pub(super) tables: Vec<VisibleTable>,
}

/// A table that a caller may see.
#[derive(Debug, Clone)]
pub struct VisibleTable {
    /// The schema of the table.
    pub schema: String,
    /// The name of the table within its schema.
    pub name: String,
    /// The columns that the caller may see. Empty if the table cannot be read, or if the statement needs no columns.
    pub columns: Vec<FieldRef>,
}

impl VisibleObjects {
    /// Creates the view of the `tables` of `database` that `user` may see.
    pub fn new(database: impl Into<String>, user: impl Into<String>, mut tables: Vec<VisibleTable>) -> Self {
        tables.sort_by(|left, right| (&left.schema, &left.name).cmp(&(&right.schema, &right.name)));
        Self { database: database.into(), user: user.into(), tables }
    }

    /// Returns the number of columns of all tables.
    pub fn column_count(&self) -> usize {
        self.tables.iter().map(|table| table.columns.len()).sum()
    }
}
