//! A live table, those of the machine, and the leaf of a plan that reads one on a blocking thread.
//!
//! Batches pass through a short channel: if the plan pauses, the reading pauses; if the plan ends, the reading ends. A
//! table that can find rows by simple conditions of the statement need not produce all others.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions,
    StringBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{BatchSender, batch_channel};
use tidegate_runtime::Job;
use tidegate_system::{
    ROWS_MAX_DEFAULT, ReadOptions, ReadSummary, SystemColumn, SystemColumnType, SystemError, SystemReader, SystemTable,
    SystemTableDescription, SystemValue,
};
use tokio::runtime::Handle;

use crate::embedded::{Engine, QueryCancellation};

/// Receives rows, and may stop the reading.
pub type RowCallback<'a> = &'a mut dyn FnMut(Vec<SystemValue>) -> ControlFlow<()>;

/// Who reads a table, and in which job.
#[derive(Debug, Clone)]
pub struct ReadContext {
    /// The caller.
    pub principal: Arc<Principal>,
    /// The job that needs the rows.
    pub job: Arc<Job>,
    /// The caller's runtime, for tables whose rows come over the network.
    pub runtime: Handle,
    /// Conditions that all needed rows fulfil. A table may produce other rows, too.
    pub conditions: Vec<ColumnCondition>,
}

/// A table whose rows are produced when it is read.
pub trait LiveTable: Send + Sync + 'static {
    /// The description.
    fn description(&self) -> &SystemTableDescription;

    /// Whether the table exists for `principal`, if that does not only depend on access names.
    fn is_visible_to(&self, _principal: &Principal) -> bool {
        true
    }

    /// The maximum number of rows of one reading. Statements that need more of them fail.
    fn rows_max(&self) -> usize {
        ROWS_MAX_DEFAULT
    }

    /// Notes for the administrator, such as files that cannot be read: one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The size of the rows on disk, if they are stored. Blocks the thread.
    fn stored_bytes(&self) -> Option<u64> {
        None
    }

    /// The columns by whose values rows are found without reading all others.
    fn indexed_columns(&self) -> Vec<String> {
        Vec::new()
    }

    /// For each column of the description, the positions of the others whose values can be read from it; empty if there
    /// are none. A row policy that masks one of them masks the column too.
    fn revealed_columns(&self) -> Vec<Vec<usize>> {
        Vec::new()
    }

    /// A number that changes when rows are added; `None` where that is expensive to detect. Blocks the thread.
    fn rows_version(&self) -> Option<u64> {
        None
    }

    /// Produces the rows and passes each to `on_row`: a value for each column of the description, in its order. Columns
    /// that `options` do not need are null. Sensitive columns are masked unless `options` grant them. Blocks the
    /// thread, which is not one of an asynchronous runtime.
    ///
    /// # Errors
    /// When the table cannot be read as a whole.
    fn read(&self, context: &ReadContext, options: &ReadOptions, on_row: RowCallback<'_>)
    -> Result<ReadSummary, Error>;
}

/// A table of the machine.
#[derive(Debug)]
pub struct MachineTable {
    table: SystemTable,
    reader: Arc<SystemReader>,
}

impl MachineTable {
    /// All tables of the machine. They share a reader, because CPU percentages compare with its earlier readings.
    pub fn all() -> Vec<Arc<dyn LiveTable>> {
        let reader = Arc::new(SystemReader::new());
        let table = |table: &SystemTable| Arc::new(Self { table: *table, reader: reader.clone() });
        SystemTable::ALL.iter().map(|name| table(name) as Arc<dyn LiveTable>).collect()
    }
}

impl LiveTable for MachineTable {
    fn description(&self) -> &SystemTableDescription {
        self.table.description()
    }

    fn read(&self, _: &ReadContext, options: &ReadOptions, on_row: RowCallback<'_>) -> Result<ReadSummary, Error> {
        self.reader.read(self.table, options, &mut |row| on_row(row)).map_err(|error| to_core_error(&error))
    }
}

fn to_core_error(error: &SystemError) -> Error {
    let kind = match error {
        SystemError::NotAvailable { .. } | SystemError::Unreadable { .. } => ErrorKind::Unavailable,
        SystemError::UnknownColumn { .. } | SystemError::InvalidParameter { .. } => ErrorKind::InvalidArguments,
    };
    Error::new(kind, error.to_string())
}

/// What the readings of one statement share.
#[derive(Debug, Clone)]
pub(super) struct ReadingStatement {
    pub(super) engine: Engine,
    pub(super) principal: Arc<Principal>,
    /// Knows the job once the plan runs.
    pub(super) cancellation: QueryCancellation,
    pub(super) runtime: Handle,
    /// The parameters of the one table that a function reads; none for other statements.
    pub(super) parameters: Arc<BTreeMap<String, SystemValue>>,
}

/// A live table as the caller of one statement sees it.
#[derive(Clone)]
pub(super) struct LiveTableProvider {
    pub(super) table: Arc<dyn LiveTable>,
    pub(super) schema: SchemaRef,
    pub(super) grants_sensitive: bool,
    pub(super) statement: ReadingStatement,
}

impl fmt::Debug for LiveTableProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table.description().name)
    }
}

#[async_trait]
impl TableProvider for LiveTableProvider {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let positions = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        Ok(Arc::new(LiveTableExec::new(self.clone(), positions, simple_conditions(filters), limit)?))
    }
}

/// Rows of a batch at most: most tables fit into the channel, so that a slow reader does not occupy their thread.
const BATCH_ROWS_MAX: usize = 8_192;
/// Bytes of text after which a batch is sent.
const BATCH_TEXT_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct LiveTableExec {
    table: LiveTableProvider,
    /// The columns of the answer, as positions in the table.
    positions: Vec<usize>,
    limit: Option<usize>,
    conditions: Vec<ColumnCondition>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl LiveTableExec {
    fn new(
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

/// The time zone of timestamps.
const TIME_ZONE: &str = "UTC";

/// The schema of all columns of a table.
pub(super) fn table_schema(table: &SystemTableDescription) -> SchemaRef {
    let field = |column: &SystemColumn| Field::new(column.name.as_ref(), data_type(column.column_type), true);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// Unsigned numbers are `bigint`, as in PostgreSQL, so that they join with keys of other tables without a conversion.
fn data_type(column_type: SystemColumnType) -> DataType {
    match column_type {
        SystemColumnType::Text => DataType::Utf8,
        SystemColumnType::Integer | SystemColumnType::Unsigned => DataType::Int64,
        SystemColumnType::Float | SystemColumnType::Duration => DataType::Float64,
        SystemColumnType::Boolean => DataType::Boolean,
        SystemColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(TIME_ZONE.into())),
    }
}

/// The unit and the meaning of a column, as `get_schema` shows them.
pub(super) fn column_comment(column: &SystemColumn, is_masked: bool) -> String {
    let mask = if is_masked { " Masked for you." } else { "" };
    match column.unit.as_deref() {
        // The name ends in this unit.
        Some(unit) if column.name.ends_with(&unit.replace(' ', "_")) => format!("{}{mask}", column.description),
        Some(unit) => format!("{} In {unit}.{mask}", column.description),
        None => format!("{}{mask}", column.description),
    }
}

enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ColumnBuilder {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Timestamp(..) => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(TIME_ZONE)),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Appends `value`; null if it is of another type or too large for the column.
    fn append(&mut self, value: &SystemValue) {
        match self {
            Self::Text(builder) => builder.append_option(value.as_text()),
            Self::Integer(builder) => builder.append_option(match *value {
                SystemValue::Integer(number) => Some(number),
                SystemValue::Unsigned(number) => i64::try_from(number).ok(),
                _ => None,
            }),
            Self::Float(builder) => builder.append_option(match *value {
                SystemValue::Float(number) => Some(number),
                _ => None,
            }),
            Self::Boolean(builder) => builder.append_option(value.as_boolean()),
            Self::Timestamp(builder) => builder.append_option(match *value {
                SystemValue::Timestamp(microseconds) => Some(microseconds),
                _ => None,
            }),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Self::Text(builder) => builder,
            Self::Integer(builder) => builder,
            Self::Float(builder) => builder,
            Self::Boolean(builder) => builder,
            Self::Timestamp(builder) => builder,
        };
        builder.finish()
    }
}

/// Collects rows to batches.
struct RowBatchBuilder {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    text_bytes: usize,
}

impl RowBatchBuilder {
    fn new(schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| ColumnBuilder::new(field.data_type())).collect();
        Self { schema, columns, rows: 0, text_bytes: 0 }
    }

    /// Adds a row with the values of the columns, in their order.
    fn push<'a>(&mut self, values: impl IntoIterator<Item = &'a SystemValue>) {
        for (column, value) in self.columns.iter_mut().zip(values) {
            self.text_bytes += value.as_text().map_or(0, str::len);
            column.append(value);
        }
        self.rows += 1;
    }

    fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of text in the rows.
    fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// The rows so far; the builder is empty afterwards.
    fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.text_bytes) = (0, 0);
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

/// A condition on one column that all needed rows fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnCondition {
    /// The column.
    pub column: String,
    /// What its value must be.
    pub test: ColumnTest,
}

/// What the value of a column must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnTest {
    /// One of these values, as text.
    OneOf(Vec<String>),
    /// This time or a later one, in microseconds since 1970-01-01 UTC.
    AtLeast(i64),
    /// This time or an earlier one, in microseconds since 1970-01-01 UTC.
    AtMost(i64),
}

/// The conditions among `filters` that are simple enough. Rows must still be checked.
fn simple_conditions(filters: &[Expr]) -> Vec<ColumnCondition> {
    filters.iter().flat_map(split_conjunction).filter_map(simple_condition).collect()
}

fn simple_condition(filter: &Expr) -> Option<ColumnCondition> {
    let (column, test) = match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Column(column), Expr::Literal(value, _)) => (column, comparison(*op, value)?),
            (Expr::Literal(value, _), Expr::Column(column)) => (column, comparison(op.swap()?, value)?),
            _ => return None,
        },
        Expr::InList(list) if !list.negated => {
            let Expr::Column(column) = &*list.expr else { return None };
            let value = |item: &Expr| match item {
                Expr::Literal(value, _) => text(value),
                _ => None,
            };
            (column, ColumnTest::OneOf(list.list.iter().map(value).collect::<Option<Vec<_>>>()?))
        }
        _ => return None,
    };
    Some(ColumnCondition { column: column.name.clone(), test })
}

fn comparison(operator: Operator, value: &ScalarValue) -> Option<ColumnTest> {
    match operator {
        Operator::Eq => text(value).map(|text| ColumnTest::OneOf(vec![text])),
        Operator::Gt | Operator::GtEq => microseconds(value).map(ColumnTest::AtLeast),
        // A finer time is rounded up, so that no row is lost.
        Operator::Lt | Operator::LtEq => microseconds(value).map(|time| ColumnTest::AtMost(time.saturating_add(1))),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => {
            Some(text.clone())
        }
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        _ => None,
    }
}

fn microseconds(value: &ScalarValue) -> Option<i64> {
    let DataType::Timestamp(_, zone) = value.data_type() else { return None };
    match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()? {
        ScalarValue::TimestampMicrosecond(time, _) => time,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn only_simple_conditions_are_passed_on() {
        let time = |nanos: i64| lit(ScalarValue::TimestampNanosecond(Some(nanos), Some("UTC".into())));
        let filters = [
            col("unit").eq(lit("ssh")).and(col("time").gt_eq(time(5_500))),
            time(9_000).gt(col("time")),
            col("priority").in_list(vec![lit(1_i64), lit(2_i64)], false),
            col("unit").not_eq(lit("cron")),
            col("a").eq(col("b")),
            col("unit").in_list(vec![lit("x")], true),
        ];
        let one_of = |values: &[&str]| ColumnTest::OneOf(values.iter().map(|text| (*text).to_owned()).collect());
        let expected = [
            ("unit", one_of(&["ssh"])),
            ("time", ColumnTest::AtLeast(5)),
            ("time", ColumnTest::AtMost(10)),
            ("priority", one_of(&["1", "2"])),
        ];
        let expected = expected.map(|(column, test)| ColumnCondition { column: column.to_owned(), test });
        assert_eq!(simple_conditions(&filters), expected);
    }
}
