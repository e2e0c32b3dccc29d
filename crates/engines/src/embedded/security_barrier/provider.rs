//! The table provider for a restricted table. It plans the part below the security barrier separately.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DataFusionError, Result};
use datafusion::datasource::TableType;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, TableProviderFilterPushDown, lit};
use datafusion::physical_plan::ExecutionPlan;
use tidegate_query::HashKey;

use super::exec::SecurityBarrierExec;
use super::policy_view::{RestrictedView, unavailable_error};
use super::{conditions, mask};

/// A table that a row policy restricts for its principal.
#[derive(Debug)]
pub(crate) struct RowPolicyTable {
    name: String,
    unrestricted: Arc<dyn TableProvider>,
    view: RestrictedView,
    key: HashKey,
}

impl RowPolicyTable {
    pub(crate) fn new(name: String, unrestricted: Arc<dyn TableProvider>, view: RestrictedView, key: HashKey) -> Self {
        Self { name, unrestricted, view, key }
    }

    /// The plan that reads, filters and masks. `positions` are those of visible columns.
    ///
    /// The caller's `filters` that cannot fail are evaluated on the masked values. So the rows that pass the barrier
    /// are the same whether a column is masked here or really contains the masked values.
    async fn plan_inner(
        &self,
        state: &dyn Session,
        positions: &[usize],
        filters: &[Expr],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.unrestricted.schema();
        let filters: Vec<&Expr> =
            filters.iter().filter(|filter| conditions::cannot_fail(filter, &|column| self.type_of(column))).collect();
        let requested: HashSet<&str> =
            filters.iter().flat_map(|filter| filter.column_refs()).map(|column| column.name()).collect();
        let seen = self.view.schema.fields();
        let needed = (0..seen.len())
            .filter(|position| positions.contains(position) || requested.contains(seen[*position].name().as_str()));
        let mut exprs = needed
            .map(|position| {
                let own = self.view.positions[position];
                mask::build_masked_column(self.view.table.masks[own], own, &schema, &self.key)
            })
            .collect::<Result<Vec<Expr>>>()?;
        // Only the rows are counted, but a plan needs at least one column.
        let row = || lit(true).alias("row");
        if exprs.is_empty() {
            exprs.push(row());
        }
        let mut plan = LogicalPlanBuilder::scan("t", provider_as_source(self.unrestricted.clone()), None)?
            .filter(conditions::build_policy_filter(&self.view.table.rows, &schema))?
            .project(exprs)?;
        for filter in filters {
            plan = plan.filter(unqualified(filter)?)?;
        }
        let mut expected: Vec<Expr> =
            positions.iter().map(|position| conditions::unqualified_column(seen[*position].name())).collect();
        if expected.is_empty() {
            expected.push(row());
        }
        state.create_physical_plan(&plan.project(expected)?.build()?).await
    }

    fn type_of(&self, column: &Column) -> Option<&DataType> {
        self.view.schema.field_with_name(column.name()).ok().map(Field::data_type)
    }
}

fn unqualified(filter: &Expr) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
    let bare = |expr: Expr| match expr {
        Expr::Column(column) => Ok(Transformed::yes(conditions::unqualified_column(&column.name))),
        other => Ok(Transformed::no(other)),
    };
    filter.clone().transform(bare).data()
}

#[async_trait]
impl TableProvider for RowPolicyTable {
    fn schema(&self) -> SchemaRef {
        self.view.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// The result does not depend on masks, so that plans do not reveal them. All filters are evaluated again above
    /// the barrier.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match conditions::cannot_fail(filter, &|column| self.type_of(column)) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let seen = self.schema();
        let positions = projection.cloned().unwrap_or_else(|| (0..seen.fields().len()).collect());
        let parts = state.config().target_partitions().max(1);
        let security_barrier = match self.plan_inner(state, &positions, filters).await {
            Ok(inner) => SecurityBarrierExec::new(&self.name, inner, Arc::new(seen.project(&positions)?), parts),
            Err(error) => Err(error),
        };
        // An error of the plan below may reveal information about files.
        let closed = |error: DataFusionError| {
            DataFusionError::External(Box::new(unavailable_error(&self.name, &error.to_string())))
        };
        Ok(Arc::new(security_barrier.map_err(closed)?))
    }
}
