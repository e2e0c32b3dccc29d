//! Row policies: a principal sees a table with filtered rows and masked columns, behind a security barrier.
//!
//! The caller's expressions run above the barrier and receive only rows that the caller may see. So no error, plan or
//! count reveals hidden rows. Below the barrier runs a separate plan that is never displayed, with the policy's filter
//! and those conditions of the caller that cannot fail.
//!
//! In a plan, the barrier is a leaf that shows the name of its table and nothing of the plan below it. Its number of
//! partitions does not depend on the files. It has no statistics, order, metrics or children, so that nothing is
//! pushed through it and no plan depends on hidden rows.
//!
//! It forms new batches, whose boundaries depend only on visible rows. The plan below forms its batches from all rows
//! that it reads. The plan above can reveal the end of a batch: by the row whose error is reported first, or by the
//! order of groups.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringBuilder};
use datafusion::arrow::compute::{BatchCoalescer, cast as cast_array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DataFusionError, Result, ScalarValue, Statistics};
use datafusion::datasource::TableType;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::expr::{InList, Like, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlanBuilder, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TableProviderFilterPushDown, Volatility, binary_expr, cast, lit,
};
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
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::{
    Catalog, HashKey, Mask, PolicyColumn, PolicyProblem, PolicyTable, RowFilter, RowPolicies, RowValue, TableEntry,
    TableStatus, TableView, ValueKind,
};
use tidegate_sql::Comparator;

use super::files::{FileTable, FileTablesSnapshot};
use super::plan::bound_batches;
use super::row_bytes::measure_rows;

/// A principal, and the policies that may restrict it.
#[derive(Debug, Clone)]
pub(crate) struct PrincipalPolicies {
    pub(crate) policies: RowPolicies,
    pub(crate) principal: Arc<Principal>,
}

/// The visible part of a table that a policy restricts.
#[derive(Debug)]
pub(crate) struct RestrictedView {
    /// The policy's view of the table. Its positions are those of the table's own columns.
    table: TableView,
    /// The visible columns, with their types after masking.
    pub(crate) schema: SchemaRef,
    /// For each visible column, its position in the table.
    pub(crate) positions: Vec<usize>,
}

/// The columns of a table, as policies need them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicyTableColumns<'a> {
    pub(crate) schema: &'a SchemaRef,
    /// For each of the first columns, the positions of the others whose values can be read from it.
    pub(crate) revealed: &'a [Vec<usize>],
}

impl<'a> From<&'a FileTable> for PolicyTableColumns<'a> {
    fn from(table: &'a FileTable) -> Self {
        Self { schema: table.columns(), revealed: table.revealed_columns() }
    }
}

impl<'a> PolicyTableColumns<'a> {
    fn for_policies(self) -> Vec<PolicyColumn<'a>> {
        let fields = self.schema.fields().iter().enumerate();
        let column = |(position, field): (usize, &'a FieldRef)| PolicyColumn {
            name: field.name(),
            kind: value_kind(field.data_type()),
            reveals: self.revealed.get(position).map(Vec::as_slice).unwrap_or_default(),
        };
        fields.map(column).collect()
    }
}

impl RestrictedView {
    /// Whether the column called `name` is visible with its own values.
    pub(crate) fn is_unmasked(&self, name: &str) -> bool {
        let mut columns = self.schema.fields().iter().zip(&self.positions);
        columns.any(|(field, position)| field.name() == name && self.table.masks[*position].is_none())
    }
}

impl PrincipalPolicies {
    /// The view of `table`, or `None` if the principal may see all of it.
    pub(crate) fn view(
        &self,
        snapshot: &FileTablesSnapshot,
        table: &FileTable,
    ) -> Result<Option<RestrictedView>, Error> {
        self.view_of_columns(&snapshot.possible_names(&table.name), table.into())
    }

    /// The view of the table that has or may have one of `names`, with `columns`, or `None` if the principal may see
    /// all of it.
    pub(crate) fn view_of_columns(
        &self,
        names: &[&str],
        columns: PolicyTableColumns<'_>,
    ) -> Result<Option<RestrictedView>, Error> {
        if self.policies.is_empty() {
            return Ok(None);
        }
        let Some(view) = self.policies.view(names, &columns.for_policies(), &self.principal)? else {
            return Ok(None);
        };
        let schema = columns.schema;
        let fields = schema.fields();
        let positions: Vec<usize> = view.visible_columns().collect();
        let seen = positions.iter().map(|position| {
            let field = fields[*position].as_ref();
            match view.masks[*position] {
                None => field.clone(),
                Some(mask) if mask.makes_text() => Field::new(field.name(), text_type(schema), true),
                Some(_) => Field::new(field.name(), field.data_type().clone(), true),
            }
        });
        let schema = Arc::new(Schema::new(seen.collect::<Vec<Field>>()));
        Ok(Some(RestrictedView { table: view, schema, positions }))
    }

    pub(crate) fn is_restricted(&self, snapshot: &FileTablesSnapshot, name: &str) -> bool {
        !self.policies.is_empty() && self.policies.applies(&snapshot.possible_names(name), &self.principal)
    }

    pub(crate) fn table(
        &self,
        snapshot: &FileTablesSnapshot,
        name: &str,
        database: &str,
    ) -> Result<Arc<FileTable>, Error> {
        match snapshot.find(name) {
            Some((name, Err(reason))) if self.is_restricted(snapshot, name) => Err(unavailable_error(name, reason)),
            _ => snapshot.table(name, database),
        }
    }

    pub(crate) fn catalog(&self, snapshot: &FileTablesSnapshot) -> Arc<Catalog> {
        if self.policies.is_empty() {
            return snapshot.catalog.clone();
        }
        let seen = |entry: &TableEntry| {
            if !self.is_restricted(snapshot, &entry.name) {
                return entry.clone();
            }
            let status = match (&entry.status, snapshot.find(&entry.name)) {
                (TableStatus::Readable, Some((_, Ok(table)))) => match self.view(snapshot, table) {
                    Ok(_) => TableStatus::Readable,
                    Err(error) => TableStatus::Unreadable(error.message().to_owned()),
                },
                _ => TableStatus::Unreadable(UNREADABLE_NOW.to_owned()),
            };
            let comment = Some("restricted by a row policy".to_owned());
            TableEntry { name: entry.name.clone(), rows: None, facts: comment.clone(), comment, status }
        };
        // Notes contain the names of files and tables, which the principal may not be allowed to see.
        Arc::new(Catalog::from_tables(snapshot.catalog.tables.iter().map(seen).collect()))
    }
}

const UNREADABLE_NOW: &str = "it cannot be read now";

fn unavailable_error(name: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the table {name:?} cannot be read now"))
        .with_hint("Retry. If the error persists, the server log has the reason.")
        .with_detail(format!("the table {name:?} under a row policy cannot be read: {reason}"))
}

pub(crate) fn check_policies(policies: &RowPolicies, snapshot: &FileTablesSnapshot) -> Vec<PolicyProblem> {
    let entries = snapshot.catalog.tables.iter();
    let tables: Vec<(Vec<&str>, Option<Vec<PolicyColumn<'_>>>)> = entries
        .map(|entry| {
            let table = snapshot.find(&entry.name).and_then(|(_, table)| table.as_deref().ok());
            let columns = table.map(|table| PolicyTableColumns::from(table).for_policies());
            (snapshot.stable_names(&entry.name), columns)
        })
        .collect();
    let tables: Vec<PolicyTable<'_>> =
        tables.iter().map(|(names, columns)| PolicyTable { names, columns: columns.as_deref() }).collect();
    policies.find_problems(&tables)
}

/// Returns the policies that do not fit `tables`, which have a name and columns each.
pub(crate) fn check_table_policies(
    policies: &RowPolicies,
    tables: &[(&str, PolicyTableColumns<'_>)],
) -> Vec<PolicyProblem> {
    let tables: Vec<([&str; 1], Vec<PolicyColumn<'_>>)> =
        tables.iter().map(|(name, columns)| ([*name], columns.for_policies())).collect();
    let tables: Vec<PolicyTable<'_>> =
        tables.iter().map(|(names, columns)| PolicyTable { names, columns: Some(columns) }).collect();
    policies.find_problems(&tables)
}

fn value_kind(data_type: &DataType) -> ValueKind {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ValueKind::Text,
        DataType::Dictionary(_, values) => value_kind(values),
        DataType::Boolean => ValueKind::Boolean,
        DataType::Date32 => ValueKind::Date,
        DataType::Timestamp(..) => ValueKind::Timestamp,
        // A column with only NULL so far.
        DataType::Null => ValueKind::Any,
        other if other.is_integer() => ValueKind::Integer,
        other if other.is_numeric() => ValueKind::Number,
        _ => ValueKind::Other,
    }
}

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
            filters.iter().filter(|filter| cannot_fail(filter, &|column| self.type_of(column))).collect();
        let requested: HashSet<&str> =
            filters.iter().flat_map(|filter| filter.column_refs()).map(|column| column.name()).collect();
        let seen = self.view.schema.fields();
        let needed = (0..seen.len())
            .filter(|position| positions.contains(position) || requested.contains(seen[*position].name().as_str()));
        let mut exprs = needed
            .map(|position| {
                let own = self.view.positions[position];
                build_masked_column(self.view.table.masks[own], own, &schema, &self.key)
            })
            .collect::<Result<Vec<Expr>>>()?;
        // Only the rows are counted, but a plan needs at least one column.
        let row = || lit(true).alias("row");
        if exprs.is_empty() {
            exprs.push(row());
        }
        let mut plan = LogicalPlanBuilder::scan("t", provider_as_source(self.unrestricted.clone()), None)?
            .filter(build_policy_filter(&self.view.table.rows, &schema))?
            .project(exprs)?;
        for filter in filters {
            plan = plan.filter(unqualified(filter)?)?;
        }
        let mut expected: Vec<Expr> =
            positions.iter().map(|position| unqualified_column(seen[*position].name())).collect();
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
        Expr::Column(column) => Ok(Transformed::yes(unqualified_column(&column.name))),
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
        let support = |filter: &&Expr| match cannot_fail(filter, &|column| self.type_of(column)) {
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

#[derive(Debug)]
struct SecurityBarrierExec {
    table: Arc<str>,
    inner: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl SecurityBarrierExec {
    fn new(table: &str, inner: Arc<dyn ExecutionPlan>, schema: SchemaRef, parts: usize) -> Result<Self> {
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
        Ok(Self { table: table.into(), inner: bound_batches(inner)?, schema, properties: Arc::new(properties) })
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

/// Approximate number of bytes at which a batch is complete, even with fewer rows than the maximum.
const BATCH_BYTES: u64 = 2 << 20;

/// Forms new batches from its input, separately in each partition.
#[derive(Debug)]
struct RebatchExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl RebatchExec {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            input.equivalence_properties().clone(),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

tidegate_pgsql::display_as_name!(RebatchExec);

impl ExecutionPlan for RebatchExec {
    fn name(&self) -> &str {
        "RebatchExec"
    }

    tidegate_pgsql::operator_methods!(input, |_, input| Self::new(input));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(reset_plan_states(self.input.clone())?)))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let rebatcher = Rebatcher::new(self.schema(), context.session_config().batch_size());
        let batches = futures::stream::try_unfold((input, rebatcher), |(mut input, mut rebatcher)| async move {
            let batch = loop {
                if let Some(batch) = rebatcher.next() {
                    break Some(batch);
                }
                match input.next().await.transpose()? {
                    Some(batch) => rebatcher.push(&batch)?,
                    None if rebatcher.finish()? => {}
                    None => break None,
                }
            };
            Ok(batch.map(|batch| (batch, (input, rebatcher))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

struct Rebatcher {
    rows: BatchCoalescer,
    /// Approximate number of bytes of the rows that are not in a batch yet.
    bytes: u64,
    rows_max: usize,
}

impl Rebatcher {
    fn new(schema: SchemaRef, rows_max: usize) -> Self {
        let rows_max = rows_max.max(1);
        Self { rows: BatchCoalescer::new(schema, rows_max), bytes: 0, rows_max }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut begun = 0;
        for (row, width) in measure_rows(batch).into_iter().enumerate() {
            self.bytes = self.bytes.saturating_add(width);
            let is_full = self.rows.get_buffered_rows() + (row + 1 - begun) >= self.rows_max;
            if is_full || self.bytes >= BATCH_BYTES {
                self.rows.push_batch(batch.slice(begun, row + 1 - begun))?;
                self.rows.finish_buffered_batch()?;
                self.bytes = 0;
                begun = row + 1;
            }
        }
        if begun < batch.num_rows() {
            self.rows.push_batch(batch.slice(begun, batch.num_rows() - begun))?;
        }
        Ok(())
    }

    fn next(&mut self) -> Option<RecordBatch> {
        self.rows.next_completed_batch()
    }

    /// Ends the last batch. Returns whether there is one.
    fn finish(&mut self) -> Result<bool> {
        self.rows.finish_buffered_batch()?;
        Ok(self.rows.has_completed_batch())
    }
}

fn build_policy_filter(filter: &RowFilter, schema: &Schema) -> Expr {
    let column = |position: &usize| unqualified_column(schema.field(*position).name());
    let joined = |filters: &[RowFilter], operator: Operator, of_none: bool| {
        let parts = filters.iter().map(|one| build_policy_filter(one, schema));
        parts.reduce(|all, one| binary_expr(all, operator, one)).unwrap_or_else(|| lit(of_none))
    };
    let negated = |expr: Expr, is_negated: bool| if is_negated { Expr::Not(Box::new(expr)) } else { expr };
    match filter {
        RowFilter::All(filters) => joined(filters, Operator::And, true),
        RowFilter::Any(filters) => joined(filters, Operator::Or, false),
        RowFilter::Not(filter) => negated(build_policy_filter(filter, schema), true),
        RowFilter::Compare { column: position, comparator, value } => {
            let value = comparison_literal(value, schema.field(*position).data_type());
            binary_expr(column(position), comparison_operator(*comparator), value)
        }
        RowFilter::CompareColumns { left, comparator, right } => {
            binary_expr(column(left), comparison_operator(*comparator), column(right))
        }
        RowFilter::In { column: position, values, is_negated } => {
            let data_type = schema.field(*position).data_type();
            let values = values.iter().map(|value| comparison_literal(value, data_type)).collect();
            Expr::InList(InList::new(Box::new(column(position)), values, *is_negated))
        }
        RowFilter::IsNull { column: position, is_negated: true } => Expr::IsNotNull(Box::new(column(position))),
        RowFilter::IsNull { column: position, is_negated: false } => Expr::IsNull(Box::new(column(position))),
        RowFilter::Like { column: position, pattern, is_negated } => {
            Expr::Like(Like::new(*is_negated, Box::new(column(position)), Box::new(lit(pattern.as_str())), None, false))
        }
        RowFilter::IsTrue(position) => match schema.field(*position).data_type() {
            DataType::Boolean => column(position),
            _ => cast(column(position), DataType::Boolean),
        },
        RowFilter::Constant(value) => lit(*value),
    }
}

fn unqualified_column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn comparison_literal(value: &RowValue, data_type: &DataType) -> Expr {
    let micros = |moment: &chrono::NaiveDateTime| Some(moment.and_utc().timestamp_micros());
    lit(match (value, data_type) {
        (RowValue::Boolean(value), _) => ScalarValue::Boolean(Some(*value)),
        (RowValue::Integer(value), _) => ScalarValue::Int64(Some(*value)),
        (RowValue::Number(value), _) => ScalarValue::Float64(Some(*value)),
        (RowValue::Text(text), _) => ScalarValue::Utf8(Some(text.clone())),
        (RowValue::Date(day), _) => {
            let days = day.signed_duration_since(chrono::NaiveDate::default()).num_days();
            // Every calendar date fits.
            ScalarValue::Date32(i32::try_from(days).ok())
        }
        (RowValue::Timestamp(moment), DataType::Timestamp(_, zone)) => {
            ScalarValue::TimestampMicrosecond(micros(moment), zone.clone())
        }
        (RowValue::Timestamp(moment), _) => ScalarValue::TimestampMicrosecond(micros(moment), None),
    })
}

/// Whether the caller's `condition` only compares columns with literals of the same type, so that it cannot fail for
/// any row. `type_of` returns the types of the columns.
fn cannot_fail<'a>(condition: &Expr, type_of: &dyn Fn(&Column) -> Option<&'a DataType>) -> bool {
    let type_of_column = |expr: &Expr| if let Expr::Column(column) = expr { type_of(column) } else { None };
    let is_column = |expr: &Expr| type_of_column(expr).is_some();
    // With different types, one side would be cast, which may fail.
    let compares = |column: &Expr, literal: &Expr| match (type_of_column(column), literal) {
        (Some(data_type), Expr::Literal(value, _)) => value.data_type() == *data_type,
        _ => false,
    };
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            cannot_fail(left, type_of) && cannot_fail(right, type_of)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
            let is_comparison = matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
            is_comparison && (compares(left, right) || compares(right, left))
        }
        Expr::InList(InList { expr, list, .. }) => list.iter().all(|value| compares(expr, value)),
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => is_column(inner),
        _ => false,
    }
}

pub(super) fn comparison_operator(comparator: Comparator) -> Operator {
    match comparator {
        Comparator::Equal => Operator::Eq,
        Comparator::NotEqual => Operator::NotEq,
        Comparator::Less => Operator::Lt,
        Comparator::LessOrEqual => Operator::LtEq,
        Comparator::Greater => Operator::Gt,
        Comparator::GreaterOrEqual => Operator::GtEq,
    }
}

fn build_masked_column(mask: Option<Mask>, position: usize, schema: &Schema, key: &HashKey) -> Result<Expr> {
    let field = schema.field(position);
    Ok(match mask {
        None => unqualified_column(field.name()),
        Some(Mask::Deny | Mask::Null) => lit(ScalarValue::try_new_null(field.data_type())?).alias(field.name()),
        Some(mask) => {
            let (key, text) = (key.clone(), text_type(schema));
            let masking = MaskFunction { mask, key, text, signature: Signature::any(1, Volatility::Immutable) };
            let function = Arc::new(ScalarUDF::new_from_impl(masking));
            Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![unqualified_column(field.name())]))
                .alias(field.name())
        }
    })
}

/// The text type for masked columns: that of the other text columns of the table.
fn text_type(schema: &Schema) -> DataType {
    let is_view = schema.fields().iter().any(|field| *field.data_type() == DataType::Utf8View);
    if is_view { DataType::Utf8View } else { DataType::Utf8 }
}

/// A mask that returns text, as a function. No statement can call it by name.
#[derive(Debug)]
struct MaskFunction {
    mask: Mask,
    key: HashKey,
    text: DataType,
    signature: Signature,
}

// A plan has only one key.
tidegate_pgsql::compare_by!(MaskFunction { mask });

impl ScalarUDFImpl for MaskFunction {
    tidegate_pgsql::name_and_signature!("mask");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.text.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = match arrays.first() {
            Some(values) => cast_array(values, &DataType::Utf8)?,
            None => return Ok(ColumnarValue::Scalar(ScalarValue::try_new_null(&self.text)?)),
        };
        let mut masked = StringBuilder::with_capacity(texts.len(), texts.len() * 16);
        for text in texts.as_string::<i32>() {
            masked.append_option(text.and_then(|text| self.mask.mask_text(text, &self.key)));
        }
        let masked: ArrayRef = Arc::new(masked.finish());
        Ok(ColumnarValue::Array(cast_array(&masked, &self.text)?))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;

    fn rows(lengths: &[usize], is_view: bool) -> RecordBatch {
        let texts = lengths.iter().map(|length| (*length > 0).then(|| "x".repeat(*length)));
        let texts: ArrayRef = match is_view {
            true => Arc::new(StringViewArray::from_iter(texts)),
            false => Arc::new(StringArray::from_iter(texts)),
        };
        let ids: ArrayRef = Arc::new((0_i64..).take(lengths.len()).collect::<Int64Array>());
        RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("text", texts, true)]).unwrap()
    }

    fn rebatch_all(pieces: &[RecordBatch], rows_max: usize) -> Vec<RecordBatch> {
        let mut rebatcher = Rebatcher::new(pieces[0].schema(), rows_max);
        let mut batches = Vec::new();
        for piece in pieces {
            rebatcher.push(piece).unwrap();
            batches.extend(std::iter::from_fn(|| rebatcher.next()));
        }
        rebatcher.finish().unwrap();
        batches.extend(std::iter::from_fn(|| rebatcher.next()));
        batches
    }

    proptest! {
        #[test]
        fn batches_do_not_depend_on_input_batches(
            lengths in prop::collection::vec(prop_oneof![9 => 0_usize..20, 1 => Just(900_000_usize)], 1..40),
            mut borders in prop::collection::vec(0_usize..40, 0..8),
            rows_max in 1_usize..12,
            is_view in any::<bool>(),
        ) {
            let whole = rows(&lengths, is_view);
            borders.iter_mut().for_each(|border| *border = (*border).min(lengths.len()));
            borders.extend([0, lengths.len()]);
            borders.sort_unstable();
            let pieces: Vec<RecordBatch> =
                borders.windows(2).map(|ends| whole.slice(ends[0], ends[1] - ends[0])).collect();
            let batches = rebatch_all(&pieces, rows_max);
            prop_assert_eq!(&batches, &rebatch_all(std::slice::from_ref(&whole), rows_max));
            prop_assert_eq!(datafusion::arrow::compute::concat_batches(&whole.schema(), &batches).unwrap(), whole);
            for (index, batch) in batches.iter().enumerate() {
                let wide = lengths.iter().any(|length| *length > 20);
                let is_whole = batch.num_rows() == rows_max || index + 1 == batches.len() || wide;
                prop_assert!(batch.num_rows() <= rows_max && is_whole);
            }
        }
    }
}
