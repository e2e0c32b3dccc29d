//! The tables that a statement may name, for DataFusion. No schema or table can be added.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{Result, TableReference};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::Error;

use super::system_catalogs::SystemCatalogs;

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
