//! A question to a member within a plan of ours.

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
use tidegate_query::{Database, Statement};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::part::Part;
use crate::embedded::Wanted;
use crate::federated::exec::MemberExec;

/// For whom members are asked, and where that is done.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(crate) wanted: Wanted,
    /// The runtime that calls come from: members talk to the network, which the engine's cannot.
    pub(crate) runtime: Handle,
    pub(crate) tasks: TaskTracker,
}

/// A statement to a member.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) member: Arc<dyn Database>,
    pub(crate) statement: Statement,
    /// The rows that it is expected to have.
    pub(crate) rows: Option<u64>,
}

impl std::fmt::Debug for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("member", &self.member.name()).field("statement", &self.statement).finish()
    }
}

impl Question {
    pub(super) fn new(member: Arc<dyn Database>, statement: Statement) -> Self {
        Self { member, statement, rows: None }
    }

    pub(super) fn with_rows(self, rows: Option<u64>) -> Self {
        Self { rows, ..self }
    }

    /// The plan that asks it in the place of one with the columns of `schema`.
    pub(super) fn plan(self, schema: &DFSchema, part: &Part, asking: &Asking) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.member.name());
        let columns = schema.fields().iter().enumerate();
        let fields: Vec<Field> =
            columns.map(|(position, field)| field.as_ref().clone().with_name(Part::column_name(position))).collect();
        debug_assert_eq!(fields.len(), part.columns.len());
        let table = PushedTable { question: self, schema: Arc::new(Schema::new(fields)), asking: asking.clone() };
        let scan = TableScanBuilder::new(name.clone(), provider_as_source(Arc::new(table))).build()?;
        let named = schema.iter().enumerate().map(|(position, (qualifier, field))| {
            let column = Expr::Column(Column::new(Some(name.clone()), Part::column_name(position)));
            column.alias_qualified(qualifier.cloned(), field.name())
        });
        Projection::try_new(named.collect(), Arc::new(LogicalPlan::TableScan(scan))).map(LogicalPlan::Projection)
    }
}

/// The answer to a question as a table.
#[derive(Debug)]
struct PushedTable {
    question: Question,
    schema: SchemaRef,
    asking: Asking,
}

#[async_trait]
impl TableProvider for PushedTable {
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
        let exec = MemberExec::new(self.question.clone(), self.schema.clone(), self.asking.clone());
        exec.projected(projection)
    }
}
