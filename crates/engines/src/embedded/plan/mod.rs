//! Planning: from a statement to a plan that is ready to run.

mod absent_catalogs;
mod cancellation;
mod errors;
mod explain;
mod functions;
mod identifiers;
mod number_parameters;
mod plan_size;
mod query_cancellation;
mod repeated_rows;
mod run;
mod scope;
mod session;
mod settings;
mod spilling_sort;
mod system_catalogs;
mod table_count;
mod tables;
mod text_comparisons;
mod text_parameters;
mod union_constants;
mod windows;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, ScalarValue, TableReference};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast;
use tidegate_core::Error;
use tidegate_query::{Plan, QueryRows};
use tidegate_runtime::Job;
use tidegate_sql::{Parameter, Statement};

use crate::embedded::query_load::LoadShare;
use crate::embedded::worker_pools::WorkerPool;

pub use session::{EngineFunction, FunctionKind};

pub(crate) use absent_catalogs::advise_catalog;
pub(crate) use errors::to_core_error;
pub(crate) use query_cancellation::{QueryCancellation, session_reader, with_cancellation};
pub(crate) use scope::{CATALOG, StatementScope};
pub(crate) use session::{SessionFactory, StatementSession};
pub(crate) use system_catalogs::SystemCatalogs;
pub(crate) use tables::SnapshotTables;

pub(crate) struct EmbeddedPlan {
    pool: WorkerPool,
    database: Arc<str>,
    session: StatementSession,
    logical: LogicalPlan,
    physical: Arc<dyn ExecutionPlan>,
    cancellation: QueryCancellation,
    load_share: LoadShare,
    /// The input of planning, if the statement can be planned again over other files.
    source: Option<Box<PlanSource>>,
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

struct PlanSource {
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
    plan.source = Some(Box::new(PlanSource { statement, tables, sessions }));
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
    settings::configure_session(&mut session, &logical, load_share).map_err(failed)?;
    let sorted = union_constants::hide_union_constants(&logical).map_err(failed)?;
    let physical = session.query_planner().create_physical_plan(&sorted, &*session).await.map_err(failed)?;
    let explained = ExplainedPlan { physical: physical.clone(), member_queries: scope.member_queries(&physical) };
    Ok(EmbeddedPlan {
        schema: tidegate_pgsql::output_schema(&physical.schema()),
        estimated_rows: explain::estimated_rows(physical.as_ref()),
        estimated_bytes: explain::estimated_bytes(&physical),
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
    let logical = number_parameters::bind_numbers(logical, &values).map_err(failed)?;
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
    table_count::check_table_count(&ast)?;
    text_parameters::bind_texts(&mut ast, statement.parameters());
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
    let plan = settings::replace_large_top_k(physical, load_share)?;
    let plan = spilling_sort::bound_sorts(plan, session.engine().sort_share())?;
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
        let Some(PlanSource { statement, tables, sessions }) = self.source.take().map(|origin| *origin) else {
            return Err(Error::internal("a plan cannot be rebuilt, because its statement is unknown"));
        };
        let snapshot = tables.files.rescan().await?;
        let tables = SnapshotTables { snapshot, ..tables };
        *self = plan_statement(statement, tables, sessions, self.pool.clone(), self.cancellation.clone()).await?;
        Ok(())
    }

    async fn shorten_batches(&mut self, rows: usize) -> Result<(), DataFusionError> {
        self.session.config_mut().options_mut().execution.batch_size = ConfigNonZeroUsize::try_new(rows)?;
        let physical = self.session.query_planner().create_physical_plan(&self.logical, &*self.session).await?;
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
        Ok(explain::format_plan(&self.logical, physical.as_ref(), member_queries))
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        Ok(run::start_query(*self, job).await)
    }
}
