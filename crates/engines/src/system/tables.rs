//! The names that a statement may use for live tables: `table`, `public.table`, `database.table` and
//! `database.public.table`.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use tidegate_core::{Error, ErrorKind, nearest_names};

use crate::embedded::{CATALOG, StatementScope, SystemCatalogs};

/// The schema in which clients of PostgreSQL expect tables.
const PUBLIC: &str = "public";

/// A table, or the reason why it cannot be read.
pub(super) type LoadedTable = Result<Arc<dyn TableProvider>, Error>;

/// The tables that the caller of a statement may read.
#[derive(Debug, Clone)]
pub(super) struct LiveTables {
    pub(super) database: Arc<str>,
    pub(super) tables: Arc<BTreeMap<String, LoadedTable>>,
    pub(super) catalogs: SystemCatalogs,
}

impl LiveTables {
    /// The table that these parts of a name mean.
    fn find(
        &self,
        catalog: Option<&str>,
        schema: Option<&str>,
        table: &str,
    ) -> Option<&Result<Arc<dyn TableProvider>, Error>> {
        let is_own_catalog = catalog.is_none_or(|name| name == CATALOG || *name == *self.database);
        let is_own_schema = schema.is_none_or(|name| name == PUBLIC || *name == *self.database);
        let table = match schema {
            // A quoted name as a whole: "system.processes".
            None => table.strip_prefix(&format!("{}.", self.database)).unwrap_or(table),
            Some(_) => table,
        };
        if is_own_catalog && is_own_schema { self.tables.get(table) } else { None }
    }

    fn find_reference(&self, reference: &TableReference) -> Option<&Result<Arc<dyn TableProvider>, Error>> {
        self.find(reference.catalog(), reference.schema(), reference.table())
    }
}

/// The error for a table that does not exist or is hidden from the caller. `names` are those that the caller may read.
pub(super) fn no_such_table<'a>(name: &str, database: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    let near = nearest_names(name, names.clone());
    let choices = if near.is_empty() { names.map(str::to_owned).collect() } else { near };
    Error::new(ErrorKind::NotFound, format!("there is no table {name:?} in database {database:?}"))
        .with_choices(choices)
}

impl StatementScope for LiveTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.find_reference(reference).is_none()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        match self.find_reference(reference) {
            Some(Ok(table)) => Ok(table.schema()),
            Some(Err(error)) => Err(error.clone()),
            None => {
                let schema = reference.schema().filter(|schema| **schema != *self.database);
                let relation = self.catalogs.relation(schema, reference.table());
                let names = self.tables.keys().map(String::as_str);
                let missing = || no_such_table(reference.table(), &self.database, names);
                relation.map(|relation| relation.schema()).ok_or_else(missing)
            }
        }
    }

    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        // DataFusion completes names by the schema of the database.
        let named = if *schema == *self.database { None } else { Some(schema) };
        match self.find(Some(catalog), named, table) {
            Some(table) => table.as_ref().ok().cloned(),
            None => self.catalogs.relation(named, table),
        }
    }
}
