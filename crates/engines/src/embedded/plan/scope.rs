//! The tables that a statement may name, for DataFusion: those of a snapshot, and PostgreSQL's system catalogs. No
//! schema or table can be added.
//!
//! `table`, `public.table`, `database.table`, `database.public.table` and, for files of a folder, `folder.file` are
//! equivalent with and without quotes around the whole name.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, MemTable, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::{
    CatalogNeeds, VisibleObjects, VisibleTable, catalog_functions, catalog_name, catalog_rows, find_catalog_needs,
};
use tidegate_query::TableEntry;
use tidegate_sql::Statement;

use super::errors::to_core_error;
use super::find_tables;
use crate::embedded::files::{FileSnapshots, FileTable, FileTablesSnapshot};
use crate::embedded::scan::FileTableProvider;
use crate::embedded::security_barrier::{PrincipalPolicies, RowPolicyTable};

pub(crate) const CATALOG: &str = "tidegate";

pub(crate) trait StatementScope: Debug + Send + Sync {
    fn database(&self) -> &Arc<str>;

    fn catalogs(&self) -> &SystemCatalogs;

    /// Whether there is no table for `reference`, which is a bare name.
    fn has_no_table(&self, reference: &TableReference) -> bool;

    /// The columns of the table that `reference` names.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; the reason why the table is unreadable.
    fn columns(&self, reference: &TableReference) -> std::result::Result<SchemaRef, Error>;

    /// The table with this name. DataFusion completes names by [`CATALOG`] and the name of the database. `None` if the
    /// table does not exist or may not be read.
    fn provider(&self, catalog: &str, schema: &str, table: &str) -> Option<Arc<dyn TableProvider>>;

    /// The queries that `plan` sends to other databases, one per line.
    fn member_queries(&self, _plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        Vec::new()
    }
}

/// The names of a scope that begin with `catalog` and `schema`.
#[derive(Debug, Clone)]
pub(super) struct ScopeNames {
    scope: Arc<dyn StatementScope>,
    catalog: String,
    schema: String,
}

impl ScopeNames {
    pub(super) fn new(scope: Arc<dyn StatementScope>) -> Self {
        Self { scope, catalog: String::new(), schema: String::new() }
    }
}

impl CatalogProviderList for ScopeNames {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        Some(Arc::new(Self { catalog: name.to_owned(), ..self.clone() }))
    }
}

impl CatalogProvider for ScopeNames {
    fn schema_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(Arc::new(Self { schema: name.to_owned(), ..self.clone() }))
    }
}

#[async_trait]
impl SchemaProvider for ScopeNames {
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.scope.provider(&self.catalog, &self.schema, name))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.scope.provider(&self.catalog, &self.schema, name).is_some()
    }
}

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

/// Maximum number of columns in the catalogs, which are in memory while the statement runs.
const COLUMNS_MAX: usize = 100_000;

/// The system catalogs that a statement reads, and the functions that use them. Empty for most statements.
#[derive(Debug, Clone, Default)]
pub(crate) struct SystemCatalogs {
    relations: Arc<HashMap<&'static str, Arc<dyn TableProvider>>>,
    functions: Arc<[Arc<ScalarUDF>]>,
}

impl SystemCatalogs {
    /// The catalogs that `statement` needs. `None` if it needs none.
    pub(crate) fn find_needs(statement: &Statement) -> Option<CatalogNeeds> {
        statement.ast().and_then(find_catalog_needs)
    }

    pub(crate) fn new(needs: &CatalogNeeds, objects: VisibleObjects) -> Result<Self> {
        let columns = objects.column_count();
        if columns > COLUMNS_MAX {
            let message = format!("the catalogs would have {columns} columns; the limit is {COLUMNS_MAX}");
            let error = Error::new(ErrorKind::TooLarge, message)
                .with_hint("Use the tools list_tables and get_schema, which describe one table at a time.");
            return Err(DataFusionError::External(Box::new(error)));
        }
        let relation = |name: &&'static str| {
            let batch = catalog_rows(name, &objects)?;
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
            Ok((*name, Arc::new(table) as Arc<dyn TableProvider>))
        };
        let relations = needs.relations.iter().map(relation).collect::<Result<HashMap<_, _>>>()?;
        let functions = catalog_functions(&Arc::new(objects)).into_iter().map(Arc::new).collect();
        Ok(Self { relations: Arc::new(relations), functions })
    }

    pub(crate) fn relation(&self, schema: Option<&str>, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.relations.get(catalog_name(schema, name)?).cloned()
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = Arc<ScalarUDF>> {
        self.functions.iter().cloned()
    }
}
