//! PostgreSQL's system catalogs for one statement of one caller.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::{CatalogNeeds, VisibleObjects, catalog_functions, catalog_name, catalog_rows, find_catalog_needs};
use tidegate_sql::Statement;

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
