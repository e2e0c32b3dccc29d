//! Planning: from a statement to a plan that is ready to run, with its text and its estimates before execution.
//!
//! A plan runs on the principal's worker pool and sends its batches through a short channel. If the reader pauses, the
//! query pauses: the channel is full and the operators wait. If the reader is dropped, the job is cancelled or the
//! engine shuts down, the stream is dropped, and with it every task that DataFusion started for it.

mod batch_bounds;
mod cancellation;
mod errors;
mod function_costs;
mod functions;
mod identifiers;
mod parameters;
mod plan_size;
mod scope;
mod session;
mod spilling_sort;
mod text_comparisons;
mod union_constants;
mod windows;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, ScalarValue, TableReference};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable, execute_stream};
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, Plan, QueryRows, batch_bytes, batch_channel};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tidegate_sql::{Parameter, Statement};
use tokio::sync::oneshot;

use super::decode_budget::PAUSE_MAX;
use super::engine::{LoadShare, WorkerPool};
use super::files::CHANGED_WHILE_READ;
use super::query_cancellation::QueryCancellation;
use super::row_bytes::RowsTooWide;
use super::scan::{find_cause, is_retryable};

pub use session::{EngineFunction, FunctionKind};

pub(crate) use batch_bounds::bound_batches;
pub(crate) use errors::{advise_catalog, to_core_error};
pub(crate) use scope::{CATALOG, SnapshotTables, StatementScope, SystemCatalogs};
pub(crate) use session::{SessionFactory, StatementSession, with_cancellation};

pub(crate) struct EmbeddedPlan {
    pool: WorkerPool,
    database: Arc<str>,
    session: StatementSession,
    logical: LogicalPlan,
    physical: Arc<dyn ExecutionPlan>,
    cancellation: QueryCancellation,
    load_share: LoadShare,
    /// The input of planning, if the statement can be planned again over other files.
    source: Option<Box<PlanInput>>,
    schema: SchemaRef,
    estimated_rows: Option<u64>,
    estimated_bytes: Option<u64>,
    is_pipeline_breaking: bool,
    explained: ExplainedPlan,
}

/// The plan as it is explained, without the operators that only protect the server.
struct ExplainedPlan {
    physical: Arc<dyn ExecutionPlan>,
    member_queries: Vec<String>,
}

struct PlanInput {
    statement: Statement,
    tables: SnapshotTables,
    sessions: Arc<SessionFactory>,
}

/// Plans `statement` on `tables`. `cancellation` stops the query. Runs on a worker pool.
pub(crate) async fn plan_statement(
    statement: Statement,
    tables: SnapshotTables,
    sessions: Arc<SessionFactory>,
    worker_pool: WorkerPool,
    query_cancellation: QueryCancellation,
) -> Result<EmbeddedPlan, Error> {
    let tables = tables.with_catalogs(&statement)?;
    let session = with_cancellation(sessions.create_session(&tables), &query_cancellation);
    let logical = optimize_statement(&statement, &session, &tables).await?;
    let mut plan = build_plan(logical, session, &tables, worker_pool, query_cancellation).await?;
    plan.source = Some(Box::new(PlanInput { statement, tables, sessions }));
    Ok(plan)
}

pub(crate) async fn optimize_statement(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn StatementScope,
) -> Result<LogicalPlan, Error> {
    let logical = create_logical_plan(statement, session, scope).await?;
    session.optimize(&logical).map_err(|error| to_core_error(&error, scope.database()))
}

/// Builds an executable plan from the optimized plan `logical`. `cancellation` stops the query.
pub(crate) async fn build_plan(
    logical: LogicalPlan,
    mut session: StatementSession,
    scope: &dyn StatementScope,
    worker_pool: WorkerPool,
    query_cancellation: QueryCancellation,
) -> Result<EmbeddedPlan, Error> {
    let database = scope.database().clone();
    let failed = |error: DataFusionError| to_core_error(&error, &database);
    let load_share = session.engine().query_load().add(query_cancellation.reader());
    session::configure_session(&mut session, &logical, load_share).map_err(failed)?;
    let physical = create_physical_plan(&logical, &session).await.map_err(failed)?;
    let explained = ExplainedPlan { physical: physical.clone(), member_queries: scope.member_queries(&physical) };
    Ok(EmbeddedPlan {
        schema: tidegate_pgsql::output_schema(&physical.schema()),
        estimated_rows: estimated_rows(physical.as_ref()),
        estimated_bytes: estimated_bytes(&physical),
        is_pipeline_breaking: physical.pipeline_behavior() == EmissionType::Final,
        physical: prepare_execution(physical, &session, &query_cancellation, load_share).map_err(failed)?,
        logical,
        explained,
        cancellation: query_cancellation,
        load_share,
        source: None,
        pool: worker_pool,
        session,
        database,
    })
}

async fn create_physical_plan(
    logical: &LogicalPlan,
    session: &StatementSession,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let logical = union_constants::hide_union_constants(logical)?;
    session.query_planner().create_physical_plan(&logical, &**session).await
}

/// The columns of the result of `statement`, without a physical plan. Runs on a worker pool.
pub(crate) async fn describe_statement(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn StatementScope,
) -> Result<SchemaRef, Error> {
    let logical = create_logical_plan(statement, session, scope).await?;
    let failed = |error: DataFusionError| to_core_error(&error, scope.database());
    let analyzer = session.analyzer();
    let logical = analyzer.execute_and_check(logical, session.config_options(), |_, _| {}).map_err(failed)?;
    Ok(tidegate_pgsql::output_schema(&Arc::new(logical.schema().as_arrow().clone())))
}

/// The logical plan of the statement, checked and with bound parameters, but neither analyzed nor optimized.
async fn create_logical_plan(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn StatementScope,
) -> Result<LogicalPlan, Error> {
    let failed = |error: DataFusionError| to_core_error(&error, scope.database());
    let ast = resolve_names(statement, session, scope)?;
    let planned = session.statement_to_plan(ast).await;
    let logical = planned.map_err(|error| errors::planning_error(&error, scope.database(), session))?;
    // Before any step walks over the whole plan.
    plan_size::check_plan_size(&logical).map_err(failed)?;
    let logical = functions::limit_plan(logical, session).map_err(failed)?;
    // The policy of the statement is the first defence layer; this is the second.
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&logical)
        .map_err(failed)?;
    let values: Vec<ScalarValue> = statement.parameters().iter().map(to_scalar).collect();
    let logical = parameters::bind_numbers(logical, &values).map_err(failed)?;
    let logical = logical.with_param_values(values).map_err(failed)?;
    text_comparisons::check_text_comparisons(&logical).map_err(failed)?;
    Ok(logical)
}

/// Converts a parameter. DataFusion casts it to the type that the context requires, as it does with literals.
fn to_scalar(parameter: &Parameter) -> ScalarValue {
    match parameter {
        Parameter::Null => ScalarValue::Null,
        Parameter::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Parameter::Integer(value) => ScalarValue::Int64(Some(*value)),
        Parameter::Float(value) => ScalarValue::Float64(Some(*value)),
        Parameter::Text(value) => ScalarValue::Utf8(Some(value.clone())),
    }
}

/// Resolves the names of the statement. Fails if it names a table that does not exist.
fn resolve_names(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn StatementScope,
) -> Result<DataFusionStatement, Error> {
    let mut ast = parsed_statement(statement)?.clone();
    plan_size::check_table_count(&ast)?;
    parameters::bind_texts(&mut ast, statement.parameters());
    let mut columns = Vec::new();
    for reference in find_tables(statement, session, |reference| scope.has_no_table(reference), scope.database())? {
        let schema = scope.columns(&reference).map_err(|error| advise_catalog(&reference, error))?;
        columns.push((reference, schema));
    }
    let names = columns.iter().flat_map(|(_, schema)| schema.fields().iter().map(|field| field.name().as_str()));
    identifiers::resolve_case(&mut ast, names);
    let columns_of = |name: &ast::ObjectName| {
        let parts: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
        let (_, schema) = columns.iter().find(|(reference, _)| match (reference, parts.as_slice()) {
            (TableReference::Bare { table }, [name]) => **table == **name,
            (TableReference::Partial { schema, table }, [of, name]) => **schema == **of && **table == **name,
            (TableReference::Full { schema, table, .. }, [_, of, name]) => **schema == **of && **table == **name,
            _ => false,
        })?;
        Some(schema.fields().iter().map(|field| field.name().clone()).collect())
    };
    tidegate_pgsql::rewrite(&mut ast, &columns_of).map_err(|error| to_core_error(&error, scope.database()))?;
    Ok(DataFusionStatement::Statement(Box::new(ast)))
}

/// The tables that `statement` names. DataFusion's references also contain the functions in FROM; those without a table
/// of that name, according to `has_no_table`, are removed.
pub(crate) fn find_tables(
    statement: &Statement,
    session: &SessionState,
    lacks: impl Fn(&TableReference) -> bool,
    database: &str,
) -> Result<Vec<TableReference>, Error> {
    let ast = DataFusionStatement::Statement(Box::new(parsed_statement(statement)?.clone()));
    let references = session.resolve_table_references(&ast).map_err(|error| to_core_error(&error, database))?;
    let (rows, scalars) = (session.table_functions(), session.scalar_functions());
    let is_known = |name: &str| {
        name == tidegate_pgsql::ROWS_FROM || rows.contains_key(name) || scalars.contains_key(&name.to_lowercase())
    };
    let is_function = |reference: &TableReference| is_known(reference.table()) && lacks(reference);
    Ok(references.into_iter().filter(|reference| !is_function(reference)).collect())
}

fn parsed_statement(statement: &Statement) -> Result<&ast::Statement, Error> {
    statement.ast().ok_or_else(|| Error::internal("the embedded engine received a statement that is not parsed"))
}

fn prepare_execution(
    physical: Arc<dyn ExecutionPlan>,
    session: &StatementSession,
    query_cancellation: &QueryCancellation,
    load_share: LoadShare,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    let plan = session::replace_large_top_k(physical, load_share)?;
    let plan = spilling_sort::bound_sorts(plan, session.engine().sort_share())?;
    let plan = bound_batches(plan)?;
    cancellation::add_cancellation(plan, query_cancellation, session.config().batch_size())
}

impl EmbeddedPlan {
    /// The operators, without those that only protect the server.
    pub(crate) fn operators(&self) -> &Arc<dyn ExecutionPlan> {
        &self.explained.physical
    }

    /// The queries that are sent to other databases.
    pub(crate) fn member_queries(&self) -> &[String] {
        &self.explained.member_queries
    }

    /// Plans the statement again over the current files. The columns may change.
    async fn replan(&mut self) -> Result<(), Error> {
        let Some(PlanInput { statement, tables, sessions }) = self.source.take().map(|origin| *origin) else {
            return Err(Error::internal("a plan cannot be rebuilt, because its statement is unknown"));
        };
        let snapshot = tables.files.rescan().await?;
        let tables = SnapshotTables { snapshot, ..tables };
        *self = plan_statement(statement, tables, sessions, self.pool.clone(), self.cancellation.clone()).await?;
        Ok(())
    }

    async fn shorten_batches(&mut self, rows: usize) -> Result<(), DataFusionError> {
        self.session.config_mut().options_mut().execution.batch_size = ConfigNonZeroUsize::try_new(rows)?;
        let physical = create_physical_plan(&self.logical, &self.session).await?;
        self.physical = prepare_execution(physical, &self.session, &self.cancellation, self.load_share)?;
        Ok(())
    }
}

#[async_trait]
impl Plan for EmbeddedPlan {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.estimated_rows
    }

    fn estimated_bytes(&self) -> Option<u64> {
        self.estimated_bytes
    }

    fn is_pipeline_breaking(&self) -> Option<bool> {
        Some(self.is_pipeline_breaking)
    }

    async fn explain(&self) -> Result<String, Error> {
        let ExplainedPlan { physical, member_queries } = &self.explained;
        Ok(format_plan(&self.logical, physical.as_ref(), member_queries))
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(start_query(*self, job).await)
    }
}

/// Maximum number of bytes of a batch that is sent. Larger batches are split.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of times that a statement restarts because of changed files.
const REPLANS_MAX: usize = 8;
/// Maximum number of times that it restarts because of column corrections, each of which is new.
const CORRECTIONS_MAX: usize = 64;

/// Starts `plan`. It ends early when `job` is cancelled or the rows are dropped. Returns with the first rows, because
/// the columns are final only then.
async fn start_query(plan: EmbeddedPlan, job: &Arc<Job>) -> QueryRows {
    let cancellation = job.cancellation();
    let planned_schema = plan.schema.clone();
    let (begun, beginning) = oneshot::channel();
    let stops_the_query = plan.cancellation.token().clone().drop_guard();
    let (sender, batches) = batch_channel(cancellation.clone(), stops_the_query);
    plan.cancellation.set_job(job.clone());
    let worker_pool = plan.pool.clone();
    worker_pool.spawn(async move {
        let token = plan.cancellation.token().clone();
        let work = AssertUnwindSafe(run_with_retries(plan, sender.clone(), begun)).catch_unwind();
        let outcome = tokio::select! {
            biased;
            () = token.cancelled() => None,
            () = cancellation.cancelled() => None,
            outcome = work => Some(outcome),
        };
        // Stops expressions that are being evaluated on other threads.
        token.cancel();
        let error = match outcome {
            None => return,
            Some(Ok(Ok(()))) => return sender.complete(),
            Some(Ok(Err(error))) => error,
            Some(Err(panic)) => Error::internal(format!("a query panicked: {}", panic_message(&*panic))),
        };
        sender.fail(error).await;
    });
    // Without a first batch, an error follows, or the reader is gone.
    let schema = beginning.await.unwrap_or(planned_schema);
    QueryRows::new(schema, batches)
}

/// Runs the plan until it ends or the reader is gone. Before the first batch is sent, it restarts with shorter batches
/// if rows are too wide, and with a new plan if files changed or a column was corrected.
async fn run_with_retries(
    mut plan: EmbeddedPlan,
    batches: BatchSender,
    begun: oneshot::Sender<SchemaRef>,
) -> Result<(), Error> {
    let database = plan.database.clone();
    let failed = |error: DataFusionError| errors::to_core_error(&error, &database);
    let mut begun = Some(begun);
    let mut planned_again = 0;
    loop {
        let Err(error) = run_once(&plan, &batches, &mut begun).await else { return Ok(()) };
        let is_corrected = is_retryable(&error);
        let is_outdated = is_corrected || error.to_string().contains(CHANGED_WHILE_READ);
        let replans_max = if is_corrected { CORRECTIONS_MAX } else { REPLANS_MAX };
        let may_plan_again = plan.source.is_some() && planned_again < replans_max;
        if is_outdated && may_plan_again && !plan.cancellation.has_sent_rows() {
            planned_again += 1;
            report_step(&plan, QueryStep::Retried { reason: "its files changed, or a column was corrected" });
            plan.replan().await?;
            continue;
        }
        let batch_rows = plan.session.config().batch_size();
        match find_cause::<RowsTooWide>(&error) {
            Some(too_wide) if batch_rows > 1 && !plan.cancellation.has_sent_rows() => {
                plan.shorten_batches(too_wide.batch_rows(batch_rows)).await.map_err(failed)?;
            }
            _ => return Err(failed(error)),
        }
    }
}

/// Runs the plan once, until it ends or the reader is gone.
async fn run_once(
    plan: &EmbeddedPlan,
    batches: &BatchSender,
    begun: &mut Option<oneshot::Sender<SchemaRef>>,
) -> Result<(), DataFusionError> {
    // The receiver may be gone.
    let mut begin = || {
        if let Some(begun) = begun.take() {
            let _ = begun.send(plan.schema.clone());
        }
    };
    let context = plan.session.task_context();
    let long_row = MemoryConsumer::new("a row of the answer").register(context.memory_pool());
    let mut stream = execute_stream(plan.physical.clone(), context)?;
    while let Some(batch) = stream.next().await {
        if !plan.cancellation.has_sent_rows() {
            report_spills(plan);
        }
        for piece in split_batch(&with_output_schema(plan, &batch?)?) {
            // A row cannot be split. The values of a list may have had less memory, if many of them share it.
            let bytes = batch_bytes(&piece);
            long_row.try_resize(if piece.num_rows() == 1 && bytes > PIECE_BYTES_MAX { bytes } else { 0 })?;
            begin();
            let reader = plan.cancellation.reader();
            reader.begin();
            let slot = tokio::select! {
                biased;
                slot = batches.reserve() => slot,
                () = reader.stopped() => return Err(unread_answer_error()),
            };
            reader.end();
            let Some(slot) = slot else { return Ok(()) };
            plan.cancellation.mark_rows_sent();
            slot.send(Ok(piece));
        }
    }
    begin();
    Ok(())
}

fn unread_answer_error() -> DataFusionError {
    let seconds = PAUSE_MAX.as_secs();
    let message = format!("the answer was not read for {seconds} s while other queries waited for its memory");
    let error = Error::new(ErrorKind::Unavailable, message);
    DataFusionError::External(Box::new(error.with_hint("Read the answer without pauses, or request fewer rows.")))
}

fn report_step(plan: &EmbeddedPlan, step: QueryStep<'_>) {
    if let Some(job) = plan.cancellation.job() {
        job.report_step(step);
    }
}

/// Reports what operators wrote to disk before the first row; sorts and aggregations have read all their input then.
fn report_spills(plan: &EmbeddedPlan) {
    let (mut files, mut bytes) = (0, 0);
    let mut operators = vec![&plan.physical];
    while let Some(operator) = operators.pop() {
        if let Some(metrics) = operator.metrics() {
            files += metrics.spill_count().unwrap_or_default();
            bytes += metrics.spilled_bytes().unwrap_or_default();
        }
        operators.extend(operator.children());
    }
    if files > 0 {
        report_step(plan, QueryStep::Spilled { files, bytes });
    }
}

fn with_output_schema(plan: &EmbeddedPlan, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(plan.schema.clone(), columns, &options)?)
}

fn split_batch(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<'_> {
    let rows = batch.num_rows();
    let count = batch_bytes(batch).div_ceil(PIECE_BYTES_MAX).clamp(1, rows.max(1));
    let piece_rows = rows.div_ceil(count).max(1);
    (0..rows).step_by(piece_rows).map(move |start| batch.slice(start, piece_rows.min(rows - start)))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// Maximum number of characters of a plan's text. Plans over many files are long.
const EXPLAIN_CHARACTERS_MAX: usize = 20_000;

/// The queries sent to other databases, then the logical and the physical plan, indented. Files appear with their
/// location in the database.
fn format_plan(logical: &LogicalPlan, physical: &dyn ExecutionPlan, member_queries: &[String]) -> String {
    let member_queries = match member_queries {
        [] => String::new(),
        queries => format!("Queries sent to the databases:\n  {}\n\n", queries.join("\n  ")),
    };
    let text = format!(
        "{member_queries}Logical plan:\n{}\n\nPhysical plan:\n{}",
        logical.display_indent(),
        displayable(physical).indent(false)
    );
    match text.char_indices().nth(EXPLAIN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}\n… (cut off)", &text[..end]),
        None => text.trim_end().to_owned(),
    }
}

pub(crate) fn estimated_rows(physical: &dyn ExecutionPlan) -> Option<u64> {
    let statistics = StatisticsContext::new().compute(physical, &StatisticsArgs::new()).ok()?;
    statistics.num_rows.get_value().and_then(|rows| u64::try_from(*rows).ok())
}

pub(crate) fn estimated_bytes(physical: &std::sync::Arc<dyn ExecutionPlan>) -> Option<u64> {
    let mut bytes = None;
    let walked = physical.apply(|node| {
        if let Some(scan) = node.downcast_ref::<DataSourceExec>()
            && let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>()
        {
            let files = config.file_groups.iter().flat_map(FileGroup::iter);
            *bytes.get_or_insert(0) += files.map(|file| file.effective_size()).sum::<u64>();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.ok()?;
    bytes
}
