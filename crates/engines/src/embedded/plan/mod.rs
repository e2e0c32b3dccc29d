//! From a statement to a plan that is ready to run.

mod errors;
mod explain;
mod functions;
mod guard;
mod identifiers;
mod limits;
mod literals;
mod order;
mod parameters;
mod run;
mod session;
mod tables;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement as DataFusionStatement;
use tidegate_core::{Error, Job};
use tidegate_query::{Plan, Rows, Statement};

use guard::Wanted;

use crate::embedded::engine::Engine;

pub(crate) use session::Sessions;
pub(crate) use tables::Tables;

/// A statement that is planned and checked.
pub(crate) struct EmbeddedPlan {
    engine: Engine,
    database: Arc<str>,
    session: SessionState,
    physical: Arc<dyn ExecutionPlan>,
    wanted: Wanted,
    schema: SchemaRef,
    estimated_rows: Option<u64>,
    estimated_bytes: Option<u64>,
    is_blocking: bool,
    explain: String,
}

/// Plans `statement` on `tables`. Runs on the engine's threads.
pub(crate) async fn plan(
    statement: Statement,
    tables: Tables,
    sessions: Arc<Sessions>,
    engine: Engine,
) -> Result<EmbeddedPlan, Error> {
    let mut session = sessions.session(&tables);
    let database = tables.database.clone();
    let failed = |error: DataFusionError| errors::error_of(&error, &database);
    let logical = logical_plan(&statement, &session, &tables).await?;
    let logical = session.optimize(&logical).map_err(failed)?;

    suit(&mut session, &logical).map_err(failed)?;
    let physical = physical_plan(&session, &logical).await.map_err(failed)?;
    let wanted = Wanted::until(engine.closing());
    let explain = explain::text(&logical, physical.as_ref());
    Ok(EmbeddedPlan {
        schema: physical.schema(),
        estimated_rows: explain::estimated_rows(physical.as_ref()),
        estimated_bytes: explain::estimated_bytes(&physical),
        is_blocking: physical.pipeline_behavior() == EmissionType::Final,
        physical: limits::sorted_on_disk(physical).and_then(|plan| guard::guarded(plan, &wanted)).map_err(failed)?,
        explain,
        wanted,
        engine,
        session,
        database,
    })
}

/// The columns of the answer to `statement`: as planned, but for the way to the rows. Runs on the engine's threads.
pub(crate) async fn describe(
    statement: Statement,
    tables: Tables,
    sessions: Arc<Sessions>,
) -> Result<SchemaRef, Error> {
    let session = sessions.session(&tables);
    let logical = logical_plan(&statement, &session, &tables).await?;
    let failed = |error: DataFusionError| errors::error_of(&error, &tables.database);
    let analyzer = session.analyzer();
    let logical = analyzer.execute_and_check(logical, session.config_options(), |_, _| {}).map_err(failed)?;
    Ok(Arc::new(logical.schema().as_arrow().clone()))
}

/// The statement as a plan that is checked and whose parameters are bound, but neither analyzed nor optimized.
async fn logical_plan(statement: &Statement, session: &SessionState, tables: &Tables) -> Result<LogicalPlan, Error> {
    let failed = |error: DataFusionError| errors::error_of(&error, &tables.database);
    let ast = named_as_they_are(statement, session, tables)?;
    let logical = session.statement_to_plan(ast).await.map_err(failed)?;
    // The statement's own policy is the first wall; this is the second.
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&logical)
        .map_err(failed)?;
    let values: Vec<ScalarValue> = statement.parameters().iter().map(parameters::value_of).collect();
    logical.with_param_values(values).map_err(failed)
}

/// The statement with its names as they exist; refused when it names a table that does not.
fn named_as_they_are(
    statement: &Statement,
    session: &SessionState,
    tables: &Tables,
) -> Result<DataFusionStatement, Error> {
    let ast = statement.ast().ok_or_else(|| Error::internal("a statement for files was never parsed"))?;
    let mut ast = ast.clone();
    let given = DataFusionStatement::Statement(Box::new(ast.clone()));
    let references =
        session.resolve_table_references(&given).map_err(|error| errors::error_of(&error, &tables.database))?;
    let mut columns = Vec::new();
    for reference in &references {
        // Functions in FROM are among the references.
        if session.table_functions().contains_key(reference.table()) && tables.lacks(reference) {
            continue;
        }
        columns.push(tables.check(reference)?.columns().clone());
    }
    let names = columns.iter().flat_map(|schema| schema.fields().iter().map(|field| field.name().as_str()));
    identifiers::resolve_case(&mut ast, names);
    Ok(DataFusionStatement::Statement(Box::new(ast)))
}

/// Sets how the plan is split and how long its batches are.
fn suit(session: &mut SessionState, logical: &LogicalPlan) -> Result<(), DataFusionError> {
    let mut config = session.config().clone();
    config = config.with_batch_size(literals::batch_rows(logical, session.config().batch_size())?);
    if order::is_seen(logical)? {
        config = config.with_target_partitions(1);
    }
    *session.config_mut() = config;
    Ok(())
}

async fn physical_plan(
    session: &SessionState,
    optimized: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    session.query_planner().create_physical_plan(optimized, session).await
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

    fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(self.explain.clone())
    }

    async fn run(self: Box<Self>, job: &Job) -> Result<Rows, Error> {
        Ok(run::start(*self, job.cancellation()))
    }
}
