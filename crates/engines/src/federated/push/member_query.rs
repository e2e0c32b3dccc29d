//! The result of a member query as a table of a plan.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScanBuilder};
use datafusion::physical_plan::ExecutionPlan;

use super::query_builder::MemberQueryBuilder;
use crate::federated::exec::MemberExec;
use crate::federated::member::{MemberQuery, MemberQueryContext};

impl MemberQuery {
    /// The plan that runs the query, in place of one with the columns of `schema`, which are at `positions` of the query.
    pub(super) fn into_plan(
        self,
        schema: &DFSchema,
        positions: &[usize],
        context: &MemberQueryContext,
    ) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.member.name());
        debug_assert_eq!(schema.fields().len(), positions.len());
        let mut fields: Vec<Field> = Vec::new();
        for (field, position) in schema.fields().iter().zip(positions) {
            // A repeated column is at the position of the first.
            if *position == fields.len() {
                fields.push(field.as_ref().clone().with_name(MemberQueryBuilder::column_name(*position)));
            }
        }
        let table = MemberQueryTable { query: self, schema: Arc::new(Schema::new(fields)), context: context.clone() };
        let scan = TableScanBuilder::new(name.clone(), provider_as_source(Arc::new(table))).build()?;
        let named = schema.iter().zip(positions).map(|((qualifier, field), position)| {
            let column = Expr::Column(Column::new(Some(name.clone()), MemberQueryBuilder::column_name(*position)));
            column.alias_qualified(qualifier.cloned(), field.name())
        });
        Projection::try_new(named.collect(), Arc::new(LogicalPlan::TableScan(scan))).map(LogicalPlan::Projection)
    }
}

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
