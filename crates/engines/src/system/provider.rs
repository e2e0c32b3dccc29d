//! The table provider for a live table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::Principal;
use tidegate_system::SystemValue;
use tokio::runtime::Handle;

use super::conditions::simple_conditions;
use super::exec::LiveTableExec;
use super::live_table::LiveTable;
use crate::embedded::{Engine, QueryCancellation};

/// What the readings of one statement share.
#[derive(Debug, Clone)]
pub(super) struct ReadingStatement {
    pub(super) engine: Engine,
    pub(super) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(super) cancellation: QueryCancellation,
    pub(super) runtime: Handle,
    /// The parameters of the one table that a function reads; none for other statements.
    pub(super) parameters: Arc<BTreeMap<String, SystemValue>>,
}

/// A live table as the caller of one statement sees it.
#[derive(Clone)]
pub(super) struct LiveTableProvider {
    pub(super) table: Arc<dyn LiveTable>,
    pub(super) schema: SchemaRef,
    pub(super) grants_sensitive: bool,
    pub(super) statement: ReadingStatement,
}

impl fmt::Debug for LiveTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table.description().name)
    }
}

#[async_trait]
impl TableProvider for LiveTableProvider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let positions = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        Ok(Arc::new(LiveTableExec::new(self.clone(), positions, simple_conditions(filters), limit)?))
    }
}
