//! The leaf of a plan that runs a member query.
//!
//! A member query runs on the caller's runtime, in one task per leaf, and its batches pass through a short channel. If
//! the plan pauses, the member pauses; if the plan ends, the member query ends. It starts when the plan reaches the
//! leaf; the queries of nodes all start before the plan ([`MemberExec::start`]).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
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
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, MissingNodes, NodeDatabase, QueryRows, batch_channel};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tokio::sync::oneshot;

use super::column_conversion::{check_columns, convert_batch};
use super::member::{Member, MemberQuery, MemberQueryContext};

type Batches = BoxStream<'static, Result<RecordBatch, Error>>;

#[derive(Debug)]
pub(crate) struct MemberExec {
    query: MemberQuery,
    schema: SchemaRef,
    context: MemberQueryContext,
    properties: Arc<PlanProperties>,
    start: Mutex<Start>,
}

/// What happened to the query before the plan reached the leaf.
#[derive(Default)]
enum Start {
    /// Nothing.
    #[default]
    None,
    /// It runs.
    Running(Batches),
    /// It failed, and its rows are missing from the answer.
    LeftOut,
}

tidegate_core::impl_debug!(Start, "Start");

/// The outcome of the start of a query: the nodes whose rows its answer lacks, if the member is a network itself.
pub(crate) type StartOutcome = Result<Option<Arc<MissingNodes>>, Error>;

impl MemberExec {
    pub(super) fn new(query: MemberQuery, schema: SchemaRef, context: MemberQueryContext) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { query, schema, context, properties: Arc::new(properties), start: Mutex::default() }
    }

    /// The name of the member.
    pub(crate) fn member(&self) -> &str {
        self.query.member.name()
    }

    /// Starts the query before the plan reaches the leaf. The outcome arrives with its first rows.
    pub(crate) fn start(&self, job: &Arc<Job>) -> oneshot::Receiver<StartOutcome> {
        let (started, outcome) = oneshot::channel();
        *self.start.lock() = Start::Running(self.spawn(job, Some(started)));
        outcome
    }

    /// Leaves the rows of the query out of the answer.
    pub(crate) fn leave_out(&self) {
        *self.start.lock() = Start::LeftOut;
    }

    /// Runs the query in a task that sends its batches.
    fn spawn(&self, job: &Arc<Job>, started: Option<oneshot::Sender<StartOutcome>>) -> Batches {
        let (sender, batches) = batch_channel(job.cancellation(), ());
        let (query, context, schema, job) =
            (self.query.clone(), self.context.clone(), self.schema.clone(), job.clone());
        let sending = async move {
            let answered = tokio::select! {
                biased;
                () = sender.closed() => return,
                answered = send_rows(&query, &context, &schema, &job, started, &sender) => answered,
            };
            match answered {
                Ok(()) => sender.complete(),
                Err(error) => sender.fail(error).await,
            }
        };
        self.context.tasks.spawn_on(sending, &self.context.runtime);
        batches
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
    pub(crate) fn describe_query(&self) -> String {
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

    tidegate_pgsql::operator_methods!(leaf);

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
        let mut start = self.start.lock();
        let batches = match std::mem::take(&mut *start) {
            Start::Running(batches) => batches,
            Start::LeftOut => {
                *start = Start::LeftOut;
                futures::stream::empty().boxed()
            }
            Start::None => {
                let Some(job) = self.context.cancellation.job() else {
                    let message = "a member query was executed without a running job";
                    return Err(DataFusionError::Internal(message.to_owned()));
                };
                self.spawn(job, None)
            }
        };
        let batches = batches.map(|batch| batch.map_err(|error| DataFusionError::External(Box::new(error))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

async fn send_rows(
    query: &MemberQuery,
    context: &MemberQueryContext,
    schema: &SchemaRef,
    job: &Arc<Job>,
    started: Option<oneshot::Sender<StartOutcome>>,
    sender: &BatchSender,
) -> Result<(), Error> {
    job.report_step(QueryStep::MemberRunning { member: query.member.name() });
    let opened = open_rows(query, context, schema, job).await;
    let mut rows = match (opened, started) {
        (Ok(QueryRows { batches, missing, .. }), Some(started)) => {
            // The receiver is gone when the call is.
            let _ = started.send(Ok(missing));
            batches
        }
        (Err(error), Some(started)) => {
            let _ = started.send(Err(error));
            return Ok(());
        }
        (Ok(QueryRows { batches, missing: None, .. }), None) => batches,
        (Ok(QueryRows { missing: Some(missing), .. }), None) => {
            let message = format!("{} answers without the rows of its nodes {}", query.member.name(), missing.names());
            return Err(Error::new(ErrorKind::Unavailable, message)
                .with_hint("Query that database directly for a partial answer."));
        }
        (Err(error), None) => return Err(error),
    };
    while let Some(batch) = rows.next().await {
        let batch = convert_batch(&batch?, schema)?;
        let Some(slot) = sender.reserve().await else { return Ok(()) };
        slot.send(Ok(batch));
    }
    Ok(())
}

/// Runs the query. The one place where an answer of a member begins: from here on, its columns are read by position.
async fn open_rows(
    query: &MemberQuery,
    context: &MemberQueryContext,
    schema: &SchemaRef,
    job: &Arc<Job>,
) -> Result<QueryRows, Error> {
    let rows = match &query.member {
        Member::Database(database) => database.plan(&query.statement, &context.principal).await?.run(job).await?,
        Member::Node(node) => run_on_node(node, query, context, job).await?,
    };
    check_columns(&query.member, &rows.schema, schema)?;
    Ok(rows)
}

async fn run_on_node(
    node: &Arc<dyn NodeDatabase>,
    query: &MemberQuery,
    context: &MemberQueryContext,
    job: &Arc<Job>,
) -> Result<QueryRows, Error> {
    let running = node.run(&query.statement, &context.principal, job);
    let Some(within) = context.first_rows_within else { return running.await };
    tokio::time::timeout(within, running).await.unwrap_or_else(|_| {
        let message = format!("the node {} did not answer within {} ms", node.name(), within.as_millis());
        Err(Error::new(ErrorKind::TimedOut, message))
    })
}
