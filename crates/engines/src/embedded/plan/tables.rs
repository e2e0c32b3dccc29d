//! The names that a statement may use for the tables of a snapshot.
//!
//! `table`, `public.table`, `database.table`, `database.public.table` and, for files of a folder, `folder.file` are
//! equivalent with and without quotes around the whole name. There is only one catalog, and no schema or table can be
//! added.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{Result, TableReference};
use tidegate_core::Error;
use tidegate_pgsql::{VisibleObjects, VisibleTable};
use tidegate_query::TableEntry;
use tidegate_sql::Statement;

use super::{StatementScope, SystemCatalogs};
use crate::embedded::files::{FileSnapshots, FileTable, Snapshot};
use crate::embedded::scan::FileTableProvider;
use crate::embedded::security_barrier::{PrincipalPolicies, RowPolicyTable};

/// The name of the only catalog.
pub(crate) const CATALOG: &str = "tidegate";
/// The schema in which clients of PostgreSQL expect tables.
const PUBLIC: &str = "public.";

/// The tables of one database at one moment.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotTables {
    pub(crate) database: Arc<str>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) files: Arc<FileSnapshots>,
    pub(crate) principal_policies: PrincipalPolicies,
    /// The system catalogs that the statement reads ([`SnapshotTables::with_catalogs`]).
    pub(crate) catalogs: SystemCatalogs,
}

impl SnapshotTables {
    /// Adds the system catalogs that `statement` reads, with the tables that the principal may see.
    ///
    /// # Errors
    /// `TooLarge` when they would be too large.
    pub(crate) fn with_catalogs(self, statement: &Statement) -> Result<Self, Error> {
        let catalogs = match SystemCatalogs::find_needs(statement) {
            Some(needs) => SystemCatalogs::new(&needs, self.visible_objects(), &self.database)?,
            None => SystemCatalogs::default(),
        };
        Ok(Self { catalogs, ..self })
    }

    /// The tables and columns that the principal may see, as the tools list them.
    fn visible_objects(&self) -> VisibleObjects {
        let seen = self.principal_policies.catalog(&self.snapshot);
        let columns = |entry: &TableEntry| {
            let (_, table) = self.snapshot.find(&entry.name)?;
            let table = table.as_ref().ok()?;
            let view = self.principal_policies.view(&self.snapshot, table).ok()?;
            Some(view.map_or_else(|| table.columns().clone(), |view| view.schema))
        };
        let table = |entry: &TableEntry| {
            let mut table = VisibleTable::new(tidegate_pgsql::PUBLIC_SCHEMA, &entry.name);
            table.rows = entry.rows;
            table.columns = columns(entry).map(|schema| schema.fields().to_vec()).unwrap_or_default();
            table
        };
        let tables = seen.tables.iter().map(table).collect();
        VisibleObjects::new(&*self.database, &self.principal_policies.principal.subject, tables)
    }

    /// The name that callers use for the table of `reference`.
    fn table_name(&self, reference: &TableReference) -> String {
        match reference.schema() {
            Some(schema) if *schema != *self.database => {
                self.without_public(&format!("{schema}.{}", reference.table()))
            }
            _ => reference.table().to_owned(),
        }
    }

    /// `name` without the schema `public`, unless a folder has that name.
    fn without_public(&self, name: &str) -> String {
        match name.strip_prefix(PUBLIC) {
            Some(bare) if self.snapshot.find(name).is_none() => bare.to_owned(),
            _ => name.to_owned(),
        }
    }

    /// The table that `reference` names.
    pub(crate) fn table(&self, reference: &TableReference) -> Result<Arc<FileTable>, Error> {
        if let Some(catalog) = reference.catalog()
            && catalog != CATALOG
            && *catalog != *self.database
        {
            let name = format!("{catalog}.{}.{}", reference.schema().unwrap_or_default(), reference.table());
            return self.principal_policies.table(&self.snapshot, &name, &self.database);
        }
        self.principal_policies.table(&self.snapshot, &self.table_name(reference), &self.database)
    }

    /// The only place that creates providers for tables. `None` if the table does not exist or may not be read.
    fn provider(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let bare = self.without_public(name);
        let Some((name, table)) = self.snapshot.find(&bare) else {
            let (schema, name) = name.split_once('.').map_or((None, name), |(schema, name)| (Some(schema), name));
            return self.catalogs.relation(schema, name);
        };
        let table = table.as_ref().ok()?.clone();
        let view = self.principal_policies.view(&self.snapshot, &table).ok()?;
        let whole = Arc::new(FileTableProvider::new(table, self.files.clone()));
        Some(match view {
            None => whole,
            Some(view) => Arc::new(RowPolicyTable::new(
                name.to_owned(),
                whole,
                view,
                self.principal_policies.policies.key().clone(),
            )),
        })
    }
}

impl StatementScope for SnapshotTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.snapshot.find(reference.table()).is_none()
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        let name = self.table_name(reference);
        if self.snapshot.find(&name).is_none() {
            let schema = reference.schema().filter(|schema| **schema != *self.database);
            if let Some(relation) = self.catalogs.relation(schema, reference.table()) {
                return Ok(relation.schema());
            }
        }
        let table = self.table(reference)?;
        let view = self.principal_policies.view(&self.snapshot, &table)?;
        Ok(view.map_or_else(|| table.columns().clone(), |view| view.schema))
    }
}

impl CatalogProviderList for SnapshotTables {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG || *name == *self.database).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for SnapshotTables {
    fn schema_names(&self) -> Vec<String> {
        vec![self.database.to_string()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let prefix = if *name == *self.database { String::new() } else { format!("{name}.") };
        Some(Arc::new(PrefixedTables { tables: self.clone(), prefix }))
    }
}

/// The tables whose names begin with `prefix`.
#[derive(Debug)]
struct PrefixedTables {
    tables: SnapshotTables,
    prefix: String,
}

#[async_trait]
impl SchemaProvider for PrefixedTables {
    fn table_names(&self) -> Vec<String> {
        let names = self.tables.snapshot.catalog().tables.iter().map(|table| &table.name);
        names.filter_map(|name| name.strip_prefix(&self.prefix)).map(str::to_owned).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.tables.provider(&format!("{}{name}", self.prefix)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.provider(&format!("{}{name}", self.prefix)).is_some()
    }
}
