//! The names that a statement may use for the tables of a snapshot.
//!
//! `table`, `public.table`, `database.table`, `database.public.table` and, for files of a folder, `folder.file` are
//! equivalent with and without quotes around the whole name.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use tidegate_core::Error;
use tidegate_pgsql::{VisibleObjects, VisibleTable};
use tidegate_query::TableEntry;
use tidegate_sql::Statement;

use super::errors::to_core_error;
use super::find_tables;
use super::scope::{CATALOG, StatementScope};
use super::system_catalogs::SystemCatalogs;
use crate::embedded::files::{FileSnapshots, FileTable, FileTablesSnapshot};
use crate::embedded::scan::FileTableProvider;
use crate::embedded::security_barrier::{PrincipalPolicies, RowPolicyTable};

/// The schema in which clients of PostgreSQL expect tables.
const PUBLIC: &str = "public.";

#[derive(Debug, Clone)]
pub(crate) struct SnapshotTables {
    pub(crate) database: Arc<str>,
    pub(crate) snapshot: Arc<FileTablesSnapshot>,
    pub(crate) files: Arc<FileSnapshots>,
    pub(crate) footers: Arc<FileMetadataCache>,
    pub(crate) principal_policies: PrincipalPolicies,
    /// The system catalogs that the statement reads ([`SnapshotTables::with_catalogs`]).
    pub(crate) catalogs: SystemCatalogs,
}

impl SnapshotTables {
    /// Adds the system catalogs that `statement` reads, with the tables that the principal may see.
    pub(crate) fn with_catalogs(self, statement: &Statement) -> Result<Self, Error> {
        let catalogs = match SystemCatalogs::find_needs(statement) {
            Some(needs) => SystemCatalogs::new(&needs, self.visible_objects())
                .map_err(|error| to_core_error(&error, &self.database))?,
            None => SystemCatalogs::default(),
        };
        Ok(Self { catalogs, ..self })
    }

    /// The tables that `statement` names. `None` if one of them does not exist or cannot be read, or if the statement
    /// reads the system catalogs, which describe all tables.
    pub(crate) fn named_tables(&self, statement: &Statement, session: &SessionState) -> Option<Vec<Arc<FileTable>>> {
        if let Some(lookup) = statement.lookup() {
            let (_, table) = self.snapshot.find(lookup.table)?;
            return Some(vec![table.as_ref().ok()?.clone()]);
        }
        if SystemCatalogs::find_needs(statement).is_some() {
            return None;
        }
        let lacks = |reference: &TableReference| self.has_no_table(reference);
        let references = find_tables(statement, session, lacks, &self.database).ok()?;
        references.iter().map(|reference| self.table(reference).ok()).collect()
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
            let columns = columns(entry).map(|schema| schema.fields().to_vec()).unwrap_or_default();
            VisibleTable { schema: tidegate_pgsql::PUBLIC_SCHEMA.to_owned(), name: entry.name.clone(), columns }
        };
        let tables = seen.tables.iter().map(table).collect();
        VisibleObjects::new(&*self.database, &self.principal_policies.principal.subject, tables)
    }

    /// The name that callers use for the table of `reference`.
    fn table_name(&self, reference: &TableReference) -> String {
        match reference.schema() {
            Some(schema) if !self.is_own_name(schema, reference.table()) => {
                self.without_public(&format!("{schema}.{}", reference.table()))
            }
            _ => reference.table().to_owned(),
        }
    }

    /// Whether `schema` is the name of the database before `table`. Its case does not matter, unless a folder has that
    /// name.
    fn is_own_name(&self, schema: &str, table: &str) -> bool {
        *schema == *self.database
            || schema.eq_ignore_ascii_case(&self.database) && self.snapshot.find(&format!("{schema}.{table}")).is_none()
    }

    fn is_own_catalog(&self, catalog: &str) -> bool {
        catalog == CATALOG || catalog.eq_ignore_ascii_case(&self.database)
    }

    /// `name` without the schema `public`, unless a folder has that name.
    fn without_public(&self, name: &str) -> String {
        match name.strip_prefix(PUBLIC) {
            Some(bare) if self.snapshot.find(name).is_none() => bare.to_owned(),
            _ => name.to_owned(),
        }
    }

    /// The provider of all rows and columns of `table`.
    pub(crate) fn unrestricted_provider(&self, table: Arc<FileTable>) -> FileTableProvider {
        let store = Arc::new(self.snapshot.store.clone());
        FileTableProvider { table, files: self.files.clone(), store, footers: self.footers.clone() }
    }

    pub(crate) fn table(&self, reference: &TableReference) -> Result<Arc<FileTable>, Error> {
        if let Some(catalog) = reference.catalog()
            && !self.is_own_catalog(catalog)
        {
            let name = format!("{catalog}.{}.{}", reference.schema().unwrap_or_default(), reference.table());
            return self.principal_policies.table(&self.snapshot, &name, &self.database);
        }
        self.principal_policies.table(&self.snapshot, &self.table_name(reference), &self.database)
    }
}

impl StatementScope for SnapshotTables {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.schema().is_none() && self.snapshot.find(reference.table()).is_none()
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    /// The only place that creates providers for statements.
    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        if !self.is_own_catalog(catalog) {
            return None;
        }
        let is_own = self.is_own_name(schema, table);
        let name = if is_own { table.to_owned() } else { format!("{schema}.{table}") };
        let Some((name, table)) = self.snapshot.find(&self.without_public(&name)) else {
            let (schema, name) = name.split_once('.').map_or((None, &*name), |(schema, name)| (Some(schema), name));
            return self.catalogs.relation(schema, name);
        };
        let table = table.as_ref().ok()?.clone();
        let view = self.principal_policies.view(&self.snapshot, &table).ok()?;
        let whole = Arc::new(self.unrestricted_provider(table));
        let Some(view) = view else { return Some(whole) };
        let key = self.principal_policies.policies.key().clone();
        Some(Arc::new(RowPolicyTable::new(name.to_owned(), whole, view, key)))
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        let name = self.table_name(reference);
        if self.snapshot.find(&name).is_none() {
            let schema = reference.schema().filter(|schema| !self.is_own_name(schema, reference.table()));
            if let Some(relation) = self.catalogs.relation(schema, reference.table()) {
                return Ok(relation.schema());
            }
        }
        let table = self.table(reference)?;
        let view = self.principal_policies.view(&self.snapshot, &table)?;
        Ok(view.map_or_else(|| table.columns().clone(), |view| view.schema))
    }
}
