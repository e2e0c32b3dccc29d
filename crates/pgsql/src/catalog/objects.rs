//! The tables that the catalogs show to a caller.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::FieldRef;

use super::oid;

/// The schema of tables that have no schema of their own.
pub const PUBLIC_SCHEMA: &str = "public";

/// The name of the role that owns all objects.
pub(super) const OWNER_NAME: &str = "tidegate";

/// The tables and columns of one database that one caller may see at one moment. The catalogs contain nothing else.
#[derive(Debug, Clone, Default)]
pub struct VisibleObjects {
    pub(super) database: String,
    pub(super) user: String,
    pub(super) tables: Vec<VisibleTable>,
    pub(super) schemas: BTreeMap<String, i64>,
}

/// A table that a caller may see.
#[derive(Debug, Clone, Default)]
pub struct VisibleTable {
    /// The schema of the table.
    pub schema: String,
    /// The name of the table within its schema.
    pub name: String,
    /// The number of rows, if it is known and the caller may see it.
    pub rows: Option<u64>,
    /// The description of the table.
    pub comment: Option<String>,
    /// The columns that the caller may see. Empty if the table cannot be read, or if the statement needs no columns.
    pub columns: Vec<FieldRef>,
    pub(super) oid: i64,
}

impl VisibleObjects {
    /// Creates the view of the `tables` of `database` that `user` may see.
    pub fn new(database: impl Into<String>, user: impl Into<String>, mut tables: Vec<VisibleTable>) -> Self {
        tables.sort_by(|left, right| (&left.schema, &left.name).cmp(&(&right.schema, &right.name)));
        let mut used_oids = BTreeSet::new();
        for table in &mut tables {
            table.oid = oid::assign_oid(&[&table.schema, &table.name], &mut used_oids);
        }
        let own = tables.iter().map(|table| table.schema.as_str()).filter(|schema| !oid::is_builtin_schema(schema));
        let names: BTreeSet<&str> = own.collect();
        let mut schemas: BTreeMap<String, i64> =
            oid::SCHEMA_OIDS.iter().map(|(name, oid)| ((*name).to_owned(), *oid)).collect();
        schemas.extend(names.into_iter().map(|name| (name.to_owned(), oid::assign_oid(&[name], &mut used_oids))));
        Self { database: database.into(), user: user.into(), tables, schemas }
    }

    /// Returns the number of columns of all tables.
    pub fn column_count(&self) -> usize {
        self.tables.iter().map(|table| table.columns.len()).sum()
    }

    pub(super) fn schema_oid(&self, name: &str) -> i64 {
        self.schemas.get(name).copied().unwrap_or_default()
    }

    pub(super) fn by_oid(&self, oid: i64) -> Option<&VisibleTable> {
        self.tables.iter().find(|table| table.oid == oid)
    }

    /// Finds the table that `name` refers to, written as the text of a `regclass`.
    pub(super) fn by_name(&self, name: &str) -> Option<&VisibleTable> {
        let parts = oid::parse_identifiers(name)?;
        // A name may contain dots, like those of files in folders.
        let whole = parts.join(".");
        if let Some(table) = self.find(PUBLIC_SCHEMA, &whole) {
            return Some(table);
        }
        match parts.as_slice() {
            [schema, rest @ ..] if !rest.is_empty() => self.find(schema, &rest.join(".")),
            _ => None,
        }
    }

    /// Finds the table with this name, or else the only table whose name differs only in case.
    fn find(&self, schema: &str, name: &str) -> Option<&VisibleTable> {
        let in_schema = || self.tables.iter().filter(|table| table.schema == schema);
        if let Some(table) = in_schema().find(|table| table.name == name) {
            return Some(table);
        }
        let folded = name.to_lowercase();
        let mut alike = in_schema().filter(|table| table.name.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some(table), None) => Some(table),
            _ => None,
        }
    }
}

impl VisibleTable {
    /// Creates a table without rows, comment or columns.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into(), ..Self::default() }
    }

    /// Whether the table can be referred to without its schema.
    pub(super) fn is_visible(&self) -> bool {
        self.schema == PUBLIC_SCHEMA
    }

    /// Returns the name as a `regclass` prints it.
    pub(super) fn qualified_name(&self) -> String {
        let name = oid::quote_identifier(&self.name);
        if self.is_visible() { name } else { format!("{}.{name}", oid::quote_identifier(&self.schema)) }
    }
}
