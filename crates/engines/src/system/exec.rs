//! The leaf of a plan that reads a live table on a blocking thread.
//!
//! Batches pass through a short channel: if the plan pauses, the reading pauses; if the plan ends, the reading ends.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, batch_channel};
use tidegate_system::{ReadOptions, SystemValue};

use super::columns::RowBatchBuilder;
use super::conditions::ColumnCondition;
use super::live_table::ReadContext;
use super::provider::LiveTableProvider;

/// Rows of a batch at most: most tables fit into the channel, so that a slow reader does not occupy their thread.
const BATCH_ROWS_MAX: usize = 8_192;
/// Bytes of text after which a batch is sent.
const BATCH_TEXT_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct LiveTableExec {
    table: LiveTableProvider,
    /// The columns of the answer, as positions in the table.
    positions: Vec<usize>,
    limit: Option<usize>,
    conditions: Vec<ColumnCondition>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl LiveTableExec {
    pub(super) fn new(
        table: LiveTableProvider,
        positions: Vec<usize>,
        conditions: Vec<ColumnCondition>,
        limit: Option<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(table.schema.project(&positions)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { table, positions, limit, conditions, schema, properties: Arc::new(properties) })
    }

    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

impl DisplayAs for LiveTableExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: table={:?}, columns=[{}]", self.name(), self.table, self.column_names().join(", "))?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for LiveTableExec {
    fn name(&self) -> &str {
        "LiveTableExec"
    }

    tidegate_pgsql::operator_methods!(leaf);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let statement = &self.table.statement;
        let Some(job) = statement.cancellation.job().cloned() else {
            return Err(DataFusionError::Internal("a live table was read without a running job".to_owned()));
        };
        let (sender, batches) = batch_channel(job.cancellation(), ());
        let reading = Reading {
            table: self.table.clone(),
            positions: self.positions.clone(),
            limit: self.limit,
            columns: self.column_names(),
            builder: RowBatchBuilder::new(self.schema.clone()),
        };
        let (principal, runtime) = (statement.principal.clone(), statement.runtime.clone());
        let context = ReadContext { principal, job, runtime, conditions: self.conditions.clone() };
        statement.engine.spawn_blocking(move || reading.run(&context, &sender));
        let batches = batches.map(|batch| batch.map_err(|error| DataFusionError::External(Box::new(error))));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }
}

/// One reading of a table.
struct Reading {
    table: LiveTableProvider,
    positions: Vec<usize>,
    limit: Option<usize>,
    columns: Vec<String>,
    builder: RowBatchBuilder,
}

impl Reading {
    fn run(mut self, context: &ReadContext, sender: &BatchSender) {
        let outcome = self.read(context, sender);
        match outcome {
            Ok(()) => sender.complete(),
            Err(error) => futures::executor::block_on(sender.fail(error)),
        }
    }

    fn read(&mut self, context: &ReadContext, sender: &BatchSender) -> Result<(), Error> {
        let table_max = self.table.table.rows_max();
        let rows_max = self.limit.unwrap_or(table_max).min(table_max);
        let options = ReadOptions {
            columns: Some(std::mem::take(&mut self.columns)),
            grants_sensitive: self.table.grants_sensitive,
            rows_max,
            parameters: (*self.table.statement.parameters).clone(),
        };
        let Self { table, positions, builder, .. } = self;
        let mut failure = None;
        let mut on_row = |row: Vec<SystemValue>| {
            builder.push(positions.iter().map(|position| row.get(*position).unwrap_or(&SystemValue::Null)));
            if builder.rows() < BATCH_ROWS_MAX && builder.text_bytes() < BATCH_TEXT_BYTES {
                return ControlFlow::Continue(());
            }
            match send_batch(builder, sender) {
                Ok(flow) => flow,
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let summary = table.table.read(context, &options, &mut on_row)?;
        if let Some(error) = failure {
            return Err(error);
        }
        if summary.is_truncated && self.limit.is_none_or(|limit| limit > table_max) {
            let name = &self.table.table.description().name;
            let message = format!("table {name:?} has more than {table_max} rows");
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_hint("Use the tool sql with LIMIT, without ORDER BY or WHERE."));
        }
        if self.builder.rows() > 0 {
            send_batch(&mut self.builder, sender).map(|_| ())?;
        }
        Ok(())
    }
}

/// Sends the rows of `builder` when there is capacity; stops the reading if the reader is gone.
fn send_batch(builder: &mut RowBatchBuilder, sender: &BatchSender) -> Result<ControlFlow<()>, Error> {
    let batch = builder.finish().map_err(|error| Error::internal(error.to_string()))?;
    let Some(slot) = futures::executor::block_on(sender.reserve()) else { return Ok(ControlFlow::Break(())) };
    slot.send(Ok(batch));
    Ok(ControlFlow::Continue(()))
}
