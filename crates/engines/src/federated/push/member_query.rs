//! A query of a member as part of a plan.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_core::Principal;
use tidegate_query::Database;
use tidegate_sql::Statement;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::query_builder::MemberQueryBuilder;
use crate::embedded::QueryCancellation;
use crate::federated::exec::MemberExec;

/// The principal and the runtime of member queries.
#[derive(Debug, Clone)]
pub(crate) struct MemberQueryContext {
    pub(crate) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(crate) cancellation: QueryCancellation,
    /// The caller's runtime. Members use the network, which the engine's runtime does not support.
    pub(crate) runtime: Handle,
    pub(crate) tasks: TaskTracker,
}

/// A statement for a member.
#[derive(Clone)]
pub(crate) struct MemberQuery {
    pub(crate) member: Arc<dyn Database>,
    pub(crate) statement: Statement,
    /// The expected number of rows.
    pub(crate) rows: Option<u64>,
}

impl std::fmt::Debug for MemberQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("member", &self.member.name()).field("statement", &self.statement).finish()
    }
}

impl MemberQuery {
    pub(super) fn new(member: Arc<dyn Database>, statement: Statement) -> Self {
        Self { member, statement, rows: None }
    }

    pub(super) fn with_rows(self, rows: Option<u64>) -> Self {
        Self { rows, ..self }
    }

    /// The plan that runs the query, in place of one with the columns of `schema`.
    pub(super) fn into_plan(
        self,
        schema: &DFSchema,
        part: &MemberQueryBuilder,
        context: &MemberQueryContext,
    ) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.member.name());
        let columns = schema.fields().iter().enumerate();
        let fields: Vec<Field> = columns
            .map(|(position, field)| field.as_ref().clone().with_name(MemberQueryBuilder::column_name(position)))
            .collect();
        debug_assert_eq!(fields.len(), part.columns.len());
        let table = MemberQueryTable { query: self, schema: Arc::new(Schema::new(fields)), context: context.clone() };
        let scan = TableScanBuilder::new(name.clone(), provider_as_source(Arc::new(table))).build()?;
        let named = schema.iter().enumerate().map(|(position, (qualifier, field))| {
            let column = Expr::Column(Column::new(Some(name.clone()), MemberQueryBuilder::column_name(position)));
            column.alias_qualified(qualifier.cloned(), field.name())
        });
        Projection::try_new(named.collect(), Arc::new(LogicalPlan::TableScan(scan))).map(LogicalPlan::Projection)
    }
}

/// The result of a member query as a table.
#[derive(Debug)]
struct MemberQueryTable {
    query: MemberQuery,
    schema: SchemaRef,
    context: MemberQueryContext,
}

#[async_trait]
impl TableProvider for MemberQueryTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let exec = MemberExec::new(self.query.clone(), self.schema.clone(), self.context.clone());
        exec.projected(projection)
    }
}
