//! The security barrier in a plan: a leaf that shows the name of its table and nothing of the plan below it.
//!
//! Its number of partitions does not depend on the files. It has no statistics, order, metrics or children, so that
//! nothing is pushed through it and no plan depends on hidden rows. It forms new batches.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;

use super::policy_view::unavailable_error;
use super::rebatch::RebatchExec;

#[derive(Debug)]
pub(super) struct SecurityBarrierExec {
    table: Arc<str>,
    inner: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl SecurityBarrierExec {
    pub(super) fn new(table: &str, inner: Arc<dyn ExecutionPlan>, schema: SchemaRef, parts: usize) -> Result<Self> {
        let before = inner.output_partitioning().partition_count();
        let gathered = match parts == 1 && before > 1 {
            true => Arc::new(CoalescePartitionsExec::new(inner)),
            false => inner,
        };
        // The rows are rebatched before they are distributed, so that the partition of a row does not depend on hidden
        // rows either.
        let cut: Arc<dyn ExecutionPlan> = Arc::new(RebatchExec::new(gathered));
        let inner = match cut.output_partitioning().partition_count() == parts {
            true => cut,
            false => Arc::new(RepartitionExec::try_new(cut, Partitioning::RoundRobinBatch(parts))?),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(parts),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { table: table.into(), inner, schema, properties: Arc::new(properties) })
    }
}

impl DisplayAs for SecurityBarrierExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "{}: table={}, columns=[{}]", self.name(), self.table, columns.join(", "))
    }
}

impl ExecutionPlan for SecurityBarrierExec {
    fn name(&self) -> &str {
        "SecurityBarrierExec"
    }

    tidegate_pgsql::operator_methods!(leaf);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// If a query restarts this operator, the plan below restarts too.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = reset_plan_states(self.inner.clone())?;
        let (table, schema, properties) = (self.table.clone(), self.schema.clone(), self.properties.clone());
        Ok(Arc::new(Self { table, inner, schema, properties }))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (table, schema) = (self.table.clone(), self.schema.clone());
        let inner = self.inner.execute(partition, context).map_err(|error| redact_error(&error, &table))?;
        // Only the visible columns, with their names and types above the barrier.
        let project_visible = move |batch: RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns()[..schema.fields().len()].to_vec();
            Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
        };
        let batches =
            inner.map(move |batch| batch.and_then(&project_visible).map_err(|error| redact_error(&error, &table)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

/// Removes everything about rows from `error`. Errors about exhausted memory are kept, since they reveal no row.
fn redact_error(error: &DataFusionError, table: &str) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(reason) => DataFusionError::ResourcesExhausted(reason.clone()),
        _ => DataFusionError::External(Box::new(unavailable_error(table, &error.to_string()))),
    }
}
