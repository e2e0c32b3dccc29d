//! A table of a member database as the caller sees it, and the leaf of a plan that runs a query of a member.
//!
//! A member query runs on the caller's runtime, in one task per leaf, and its batches pass through a short channel. If
//! the plan pauses, the member pauses; if the plan ends, the member query ends. It starts when the plan reaches the
//! leaf; the queries of nodes all start before the plan ([`MemberExec::start`]).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
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
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    BatchSender, Database, DatabaseKind, MissingNodes, NodeDatabase, QueryRows, as_foreign_text, batch_channel,
    without_type_name,
};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tidegate_sql::{SqlDialect, Statement};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::column_conversion::{self, check_columns, convert_batch};
use super::push::{ComparisonSemantics, Translator, has_own_order, selected_type};
use crate::embedded::{COLLECTED_BYTES_MAX, Engine, QueryCancellation, cut_rows};

/// A database whose tables are those of a federated database, or a node whose tables are those of a network.
#[derive(Clone)]
pub(crate) enum Member {
    Database(Arc<dyn Database>),
    Node(Arc<dyn NodeDatabase>),
}

impl Deref for Member {
    type Target = dyn Database;

    fn deref(&self) -> &(dyn Database + 'static) {
        match self {
            Self::Database(database) => &**database,
            Self::Node(node) => &**node,
        }
    }
}

impl Member {
    /// Whether statements are planned by our engine, in this process or in a node. A Flight SQL server with the same
    /// dialect may be another program.
    pub(super) fn is_own_engine(&self) -> bool {
        self.dialect().is_embedded()
            && match self {
                Self::Database(database) => database.kind() != DatabaseKind::FlightSql,
                Self::Node(_) => true,
            }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Database(left), Self::Database(right)) => Arc::ptr_eq(left, right),
            (Self::Node(left), Self::Node(right)) => Arc::ptr_eq(left, right),
            _ => false,
        }
    }
}

#[derive(Clone)]
pub(crate) struct MemberTable {
    pub(crate) member: Member,
    /// The name in the member's own catalog.
    pub(crate) name: String,
    /// The columns with their types in the federated database.
    pub(crate) schema: SchemaRef,
    pub(crate) rows: Option<u64>,
    pub(crate) context: MemberQueryContext,
}

impl MemberTable {
    pub(crate) fn member_name(&self) -> &str {
        self.member.name()
    }

    pub(crate) fn table_schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for MemberTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.member.name(), self.name)
    }
}

pub(super) async fn load_schema(
    member: &Arc<dyn Database>,
    name: &str,
    principal: &Principal,
) -> Result<SchemaRef, Error> {
    let columns = member.columns(name, principal).await?;
    let dialect = member.dialect();
    // Not `*`, because the principal may have access to some columns only.
    let listed: Vec<String> = columns.iter().map(|column| dialect.quote_identifier(&column.name)).collect();
    if listed.is_empty() {
        let message = format!("the table {}.{name} has no readable columns", member.name());
        return Err(Error::new(ErrorKind::InvalidArguments, message));
    }
    let sql = format!("SELECT {} FROM {} LIMIT 0", listed.join(", "), dialect.quote_table(name));
    let described = member.describe(&Statement::parse(&sql, dialect)?, principal).await?;
    let fields = described.fields().iter().map(|field| plan_field(with_single_type(field), dialect));
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// `field`, whose values come from a database with `dialect`, in a plan.
pub(super) fn plan_field(field: Field, dialect: SqlDialect) -> Field {
    let column = without_needless_name(field, dialect);
    if has_own_order(&column, dialect) { as_foreign_text(column) } else { column }
}

/// `field` without the name of its type, unless queries depend on it. WITH RECURSIVE refuses columns that differ in
/// nothing but such names.
fn without_needless_name(field: Field, dialect: SqlDialect) -> Field {
    let unnamed = without_type_name(field.clone());
    let semantics = |field| (ComparisonSemantics::for_field(field, dialect), selected_type(field, dialect));
    if semantics(&unnamed) == semantics(&field) { unnamed } else { field }
}

/// A column of a member with a single type, even if its values have their own types.
fn with_single_type(field: &Field) -> Field {
    match field.data_type() {
        DataType::Union(..) => field.clone().with_data_type(column_conversion::type_from_declaration(field)),
        _ => field.clone(),
    }
}

/// The principal and the runtime of member queries.
#[derive(Debug, Clone)]
pub(crate) struct MemberQueryContext {
    pub(crate) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(crate) cancellation: QueryCancellation,
    /// The caller's runtime. Members use the network, which the engine's runtime does not support.
    pub(crate) runtime: Handle,
    pub(crate) tasks: TaskTracker,
    /// How long a node may take for its first rows.
    pub(crate) first_rows_within: Option<Duration>,
}

impl MemberQueryContext {
    /// For one statement of `principal`, in the runtime of the caller.
    pub(crate) fn new(principal: &Principal, engine: &Engine, tasks: &TaskTracker) -> Self {
        Self {
            principal: Arc::new(principal.clone()),
            cancellation: QueryCancellation::new(engine.shutdown_token()),
            runtime: Handle::current(),
            tasks: tasks.clone(),
            first_rows_within: None,
        }
    }
}

#[derive(Clone)]
pub(super) struct MemberQuery {
    pub(super) member: Member,
    pub(super) statement: Statement,
    pub(super) rows: Option<u64>,
}

impl fmt::Debug for MemberQuery {
    /// The database and the SQL of the query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.member.name(), self.statement.text())
    }
}

#[async_trait]
impl TableProvider for MemberTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match Translator::can_filter(self, filter) {
            Some(true) => TableProviderFilterPushDown::Exact,
            Some(false) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (query, schema) = Translator::build_scan(self, projection, filters, limit)?;
        Ok(Arc::new(MemberExec::new(query, schema, self.context.clone())))
    }
}

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
        // A server may send dictionaries, whose values are written out.
        for part in cut_rows(&batch?, COLLECTED_BYTES_MAX as u64) {
            let part = convert_batch(&part, schema)?;
            let Some(slot) = sender.reserve().await else { return Ok(()) };
            slot.send(Ok(part));
        }
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
