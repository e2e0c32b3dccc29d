//! What a caller may see: the tables that the catalogs tell of.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::FieldRef;

use super::oid;

/// The schema of tables that have none of their own.
pub const PUBLIC_SCHEMA: &str = "public";

/// The name of the role that owns everything.
pub(super) const OWNER_NAME: &str = "tidegate";

/// The tables and columns that one caller may see, of one database at one moment. Nothing else is in the catalogs.
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
    /// The schema that it is in.
    pub schema: String,
    /// Its name in it.
    pub name: String,
    /// Its rows, as far as they are known and may be shown.
    pub rows: Option<u64>,
    /// What its owner says about it.
    pub comment: Option<String>,
    /// The columns that the caller may see. None where the table cannot be read, or where no column was asked for.
    pub columns: Vec<FieldRef>,
    pub(super) oid: i64,
}

impl VisibleObjects {
    /// The `tables` of `database` that `user` may see.
    pub fn new(database: impl Into<String>, user: impl Into<String>, mut tables: Vec<VisibleTable>) -> Self {
        tables.sort_by(|left, right| (&left.schema, &left.name).cmp(&(&right.schema, &right.name)));
        let mut taken = BTreeSet::new();
        for table in &mut tables {
            table.oid = oid::assign_oid(&[&table.schema, &table.name], &mut taken);
        }
        let own = tables.iter().map(|table| table.schema.as_str()).filter(|schema| !oid::is_builtin_schema(schema));
        let names: BTreeSet<&str> = own.collect();
        let mut schemas: BTreeMap<String, i64> =
            oid::SCHEMA_OIDS.iter().map(|(name, oid)| ((*name).to_owned(), *oid)).collect();
        schemas.extend(names.into_iter().map(|name| (name.to_owned(), oid::assign_oid(&[name], &mut taken))));
        Self { database: database.into(), user: user.into(), tables, schemas }
    }

    /// How many columns there are.
    pub fn column_count(&self) -> usize {
        self.tables.iter().map(|table| table.columns.len()).sum()
    }

    pub(super) fn schema_oid(&self, name: &str) -> i64 {
        self.schemas.get(name).copied().unwrap_or_default()
    }

    pub(super) fn by_oid(&self, oid: i64) -> Option<&VisibleTable> {
        self.tables.iter().find(|table| table.oid == oid)
    }

    /// The table that `name` means, as the text of a `regclass` names it.
    pub(super) fn by_name(&self, name: &str) -> Option<&VisibleTable> {
        let parts = oid::parse_identifiers(name)?;
        // The name may have dots in it, as those of files in folders do.
        let whole = parts.join(".");
        if let Some(table) = self.find(PUBLIC_SCHEMA, &whole) {
            return Some(table);
        }
        match parts.as_slice() {
            [schema, rest @ ..] if !rest.is_empty() => self.find(schema, &rest.join(".")),
            _ => None,
        }
    }

    /// The table of that name, or else the only one that is called so but for upper and lower case.
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
    /// The table called `name` in `schema`, of which nothing else is known.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into(), ..Self::default() }
    }

    /// Whether its name alone means it.
    pub(super) fn is_visible(&self) -> bool {
        self.schema == PUBLIC_SCHEMA
    }

    /// Its name as a `regclass` is written.
    pub(super) fn qualified_name(&self) -> String {
        let name = oid::quote_identifier(&self.name);
        if self.is_visible() { name } else { format!("{}.{name}", oid::quote_identifier(&self.schema)) }
    }
}
