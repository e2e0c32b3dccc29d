//! Stored results as tables, by themselves or beside those of another database.
//!
//! The rows come from the blocks of the result, one after the other. The columns have the types of the answer. Where its
//! values had types of their own, as in SQLite, the column has the type that all of its values have.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, RecordBatch, UnionArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{
    BatchSender, ColumnEntry, Database, RESULTS_DATABASE, ResultTable, ResultTables, TableEntry, TableStatus,
    batch_channel, field_type_name,
};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use super::column_conversion::{ValueTypes, convert_batch};
use super::federated_database::{CLOSE_WITHIN, FederatedDatabase};
use super::member::{MemberQueryContext, plan_field};
use crate::embedded::{COLLECTED_BYTES_MAX, Engine, SessionFactory, cut_rows};

/// Rows of a batch at most. A block has more of them.
const BATCH_ROWS_MAX: usize = 8_192;

/// Makes databases of stored results.
pub struct ResultDatabases {
    engine: Engine,
    /// What their sessions have in common, once the first one is made.
    sessions: Mutex<Option<Arc<SessionFactory>>>,
    tasks: TaskTracker,
}

tidegate_core::impl_debug!(ResultDatabases, "ResultDatabases");

impl ResultDatabases {
    /// Makes databases whose statements run on `engine`.
    pub fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone(), sessions: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Waits for the tasks that read rows, some seconds at most. They end with the statements, which are cancelled before.
    pub async fn close(&self) {
        self.tasks.close();
        let _ = tokio::time::timeout(CLOSE_WITHIN, self.tasks.wait()).await;
    }

    fn sessions(&self) -> std::result::Result<Arc<SessionFactory>, Error> {
        let mut sessions = self.sessions.lock();
        if let Some(sessions) = &*sessions {
            return Ok(sessions.clone());
        }
        let created = SessionFactory::new(RESULTS_DATABASE, &self.engine);
        let created = Arc::new(created.map_err(|error| Error::internal(error.to_string()))?);
        *sessions = Some(created.clone());
        Ok(created)
    }
}

impl ResultTables for ResultDatabases {
    fn open(
        &self,
        tables: Vec<ResultTable>,
        joined: Option<&Arc<dyn Database>>,
    ) -> std::result::Result<Arc<dyn Database>, Error> {
        let members = joined.map_or_else(Vec::new, |database| {
            let members = database.members();
            if members.is_empty() { vec![database.clone()] } else { members }
        });
        let (sessions, tasks) = (self.sessions()?, self.tasks.clone());
        Ok(Arc::new(FederatedDatabase::with_results(members, tables, &self.engine, sessions, tasks)))
    }
}

/// A stored result, and its columns once they are known.
#[derive(Debug)]
pub(super) struct LoadedResult {
    table: ResultTable,
    schema: OnceCell<SchemaRef>,
}

impl LoadedResult {
    pub(super) fn new(table: ResultTable) -> Self {
        Self { table, schema: OnceCell::new() }
    }

    pub(super) fn name(&self) -> &str {
        self.table.name()
    }

    /// The line of the catalog, under the name `name`.
    pub(super) fn entry(&self, name: String) -> TableEntry {
        let status = match self.table.check_complete() {
            Ok(()) => TableStatus::Readable,
            Err(error) => TableStatus::Unreadable(error.message().to_owned()),
        };
        let comment = Some(self.table.comment());
        TableEntry { name, rows: self.table.row_count(), facts: comment.clone(), comment, status }
    }

    pub(super) async fn columns(&self) -> std::result::Result<Vec<ColumnEntry>, Error> {
        let column = |field: &Arc<Field>| ColumnEntry {
            name: field.name().clone(),
            type_name: field_type_name(field),
            nullable: field.is_nullable(),
            // What was masked is stored so, as any value.
            is_masked: Some(false),
            ..ColumnEntry::default()
        };
        Ok(self.schema().await?.fields().iter().map(column).collect())
    }

    /// The columns with their types here.
    ///
    /// # Errors
    /// `InvalidArguments` for a column with values of several types; those of the rows.
    pub(super) async fn schema(&self) -> std::result::Result<&SchemaRef, Error> {
        self.schema.get_or_try_init(|| self.load_schema()).await
    }

    async fn load_schema(&self) -> std::result::Result<SchemaRef, Error> {
        let stored = self.table.schema();
        let mut types: Vec<Option<ValueTypes>> = stored
            .fields()
            .iter()
            .map(|field| matches!(field.data_type(), DataType::Union(..)).then(ValueTypes::default))
            .collect();
        if types.iter().any(Option::is_some) {
            let mut rows = self.table.unmasked_rows();
            while let Some(batch) = rows.next().await.transpose()? {
                for (column, types) in batch.columns().iter().zip(&mut types) {
                    if let (Some(types), Some(union)) = (types, column.as_any().downcast_ref::<UnionArray>()) {
                        types.add(union);
                    }
                }
            }
        }
        let fields = stored.fields().iter().zip(types).map(|(field, types)| {
            let field = field.as_ref().clone();
            let field = match types.map(ValueTypes::single_type) {
                None => field,
                Some(Ok(data_type)) => field.with_data_type(data_type),
                Some(Err(reason)) => {
                    let name = self.name();
                    let message = format!("the column {:?} of {RESULTS_DATABASE}.{name} {reason}", field.name());
                    return Err(Error::new(ErrorKind::InvalidArguments, message)
                        .with_hint("Cast it in the query that is stored, such as CAST(x AS TEXT) AS x."));
                }
            };
            Ok(plan_field(field, self.table.dialect()))
        });
        Ok(Arc::new(Schema::new(fields.collect::<std::result::Result<Vec<_>, Error>>()?)))
    }

    pub(super) async fn provider(
        &self,
        context: &MemberQueryContext,
    ) -> std::result::Result<Arc<dyn TableProvider>, Error> {
        let schema = self.schema().await?.clone();
        Ok(Arc::new(ResultTableProvider { table: self.table.clone(), schema, context: context.clone() }))
    }
}

/// A stored result in one statement.
#[derive(Clone)]
struct ResultTableProvider {
    table: ResultTable,
    schema: SchemaRef,
    context: MemberQueryContext,
}

impl fmt::Debug for ResultTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{RESULTS_DATABASE}.{}", self.table.name())
    }
}

#[async_trait]
impl TableProvider for ResultTableProvider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let positions = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        Ok(Arc::new(ResultTableExec::new(self.clone(), positions)?))
    }
}

#[derive(Debug)]
struct ResultTableExec {
    table: ResultTableProvider,
    /// The columns that are read, as positions in the table.
    positions: Vec<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl ResultTableExec {
    fn new(table: ResultTableProvider, positions: Vec<usize>) -> Result<Self> {
        let schema = Arc::new(table.schema.project(&positions)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { table, positions, schema, properties: Arc::new(properties) })
    }
}

impl DisplayAs for ResultTableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "{}: table={:?}, columns=[{}]", self.name(), self.table, columns.join(", "))
    }
}

impl ExecutionPlan for ResultTableExec {
    fn name(&self) -> &str {
        "ResultTableExec"
    }

    tidegate_pgsql::operator_methods!(leaf);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = self.table.table.row_count().and_then(|rows| usize::try_from(rows).ok());
        statistics.num_rows = rows.map_or(Precision::Absent, Precision::Inexact);
        Ok(Arc::new(statistics))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let context = &self.table.context;
        let Some(job) = context.cancellation.job() else {
            return Err(DataFusionError::Internal("a stored result was read without a running job".to_owned()));
        };
        let (sender, batches) = batch_channel(job.cancellation(), ());
        let (rows, positions, schema) = (self.table.table.rows(job), self.positions.clone(), self.schema.clone());
        let sending = async move {
            let sent = tokio::select! {
                biased;
                () = sender.closed() => return,
                sent = send_rows(rows, &positions, &schema, &sender) => sent,
            };
            match sent {
                Ok(()) => sender.complete(),
                Err(error) => sender.fail(error).await,
            }
        };
        // The blocks are read on threads of the caller's runtime, as the rows of members are.
        context.tasks.spawn_on(sending, &context.runtime);
        let batches = batches.map(|batch| batch.map_err(|error| DataFusionError::External(Box::new(error))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

async fn send_rows(
    mut rows: BoxStream<'static, std::result::Result<RecordBatch, Error>>,
    positions: &[usize],
    schema: &SchemaRef,
    sender: &BatchSender,
) -> std::result::Result<(), Error> {
    while let Some(batch) = rows.next().await {
        let batch = batch?.project(positions).map_err(|error| Error::internal(error.to_string()))?;
        for first in (0..batch.num_rows()).step_by(BATCH_ROWS_MAX) {
            let batch = batch.slice(first, BATCH_ROWS_MAX.min(batch.num_rows() - first));
            for part in cut_rows(&batch, COLLECTED_BYTES_MAX as u64) {
                let part = convert_batch(&part, schema)?;
                let Some(slot) = sender.reserve().await else { return Ok(()) };
                slot.send(Ok(part));
            }
        }
    }
    Ok(())
}
