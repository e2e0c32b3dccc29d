//! The leaf of a plan that runs a member query.
//!
//! A member query runs on the caller's runtime, in one task per leaf, and its batches pass through a short channel. If
//! the plan pauses, the member pauses; if the plan ends, the member query ends.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use tidegate_core::Error;
use tidegate_query::{BatchSender, batch_channel};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;

use super::column_conversion;
use super::member::{MemberQuery, MemberQueryContext};
use crate::embedded::delegation::operator_methods;

#[derive(Debug)]
pub(super) struct MemberExec {
    query: MemberQuery,
    schema: SchemaRef,
    context: MemberQueryContext,
    properties: Arc<PlanProperties>,
}

impl MemberExec {
    pub(super) fn new(query: MemberQuery, schema: SchemaRef, context: MemberQueryContext) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { query, schema, context, properties: Arc::new(properties) }
    }

    pub(super) fn projected(self, positions: Option<&Vec<usize>>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(positions) = positions else { return Ok(Arc::new(self)) };
        if positions.iter().copied().eq(0..self.schema.fields().len()) {
            return Ok(Arc::new(self));
        }
        let schema = self.schema.clone();
        let columns = positions.iter().map(|position| {
            let name = schema.field(*position).name().clone();
            (Arc::new(Column::new(&name, *position)) as Arc<dyn PhysicalExpr>, name)
        });
        let columns: Vec<_> = columns.collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, Arc::new(self))?))
    }

    /// The database and the SQL of the query, for `explain`.
    pub(super) fn describe_query(&self) -> String {
        format!("{:?}", self.query)
    }
}

impl DisplayAs for MemberExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.describe_query())
    }
}

impl ExecutionPlan for MemberExec {
    fn name(&self) -> &str {
        "MemberExec"
    }

    operator_methods!(leaf);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = self.query.rows.and_then(|rows| usize::try_from(rows).ok());
        statistics.num_rows = rows.map_or(Precision::Absent, Precision::Inexact);
        Ok(Arc::new(statistics))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(job) = self.context.cancellation.job().cloned() else {
            return Err(DataFusionError::Internal("a member query was executed without a running job".to_owned()));
        };
        let (sender, batches) = batch_channel(job.cancellation(), ());
        let (query, member_context, schema) = (self.query.clone(), self.context.clone(), self.schema.clone());
        let sending = async move {
            let answered = tokio::select! {
                biased;
                () = sender.closed() => return,
                answered = send_rows(&query, &member_context, &schema, &job, &sender) => answered,
            };
            match answered {
                Ok(()) => sender.complete(),
                Err(error) => sender.fail(error).await,
            }
        };
        self.context.tasks.spawn_on(sending, &self.context.runtime);
        let batches = batches.map(|batch| batch.map_err(|error| DataFusionError::External(Box::new(error))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

async fn send_rows(
    query: &MemberQuery,
    member_context: &MemberQueryContext,
    schema: &SchemaRef,
    job: &Arc<Job>,
    sender: &BatchSender,
) -> Result<(), Error> {
    job.report_step(QueryStep::MemberRunning { member: query.member.name() });
    let plan = query.member.plan(&query.statement, &member_context.principal).await?;
    let mut rows = plan.run(job).await?.batches;
    while let Some(batch) = rows.next().await {
        let batch = column_conversion::convert_batch(&batch?, schema)?;
        let Some(slot) = sender.reserve().await else { return Ok(()) };
        slot.send(Ok(batch));
    }
    Ok(())
}
