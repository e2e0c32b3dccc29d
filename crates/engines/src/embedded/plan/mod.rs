//! From a statement to a plan that is ready to run.

mod bytes;
mod catalogs;
mod errors;
mod explain;
mod functions;
mod guard;
mod identifiers;
mod limits;
mod literals;
mod names;
mod order;
mod parameters;
mod run;
mod session;
mod size;
mod tables;
mod width;
mod windows;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, ScalarValue, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast;
use tidegate_core::{Error, Job};
use tidegate_query::{Plan, Rows, Statement};

use crate::embedded::lanes::Lane;

pub(crate) use catalogs::SystemCatalogs;
pub(crate) use errors::error_of;
pub(crate) use functions::watched;
pub(crate) use guard::Wanted;
pub(crate) use session::Sessions;
pub(crate) use tables::{CATALOG, Tables};

/// A statement that is planned and checked.
pub(crate) struct EmbeddedPlan {
    lane: Lane,
    database: Arc<str>,
    session: SessionState,
    logical: LogicalPlan,
    physical: Arc<dyn ExecutionPlan>,
    wanted: Wanted,
    /// What it was made of, if it can be planned again over other files.
    origin: Option<Box<Origin>>,
    schema: SchemaRef,
    estimated_rows: Option<u64>,
    estimated_bytes: Option<u64>,
    is_blocking: bool,
    explain: String,
}

/// What a plan over files was made of.
struct Origin {
    statement: Statement,
    tables: Tables,
    sessions: Arc<Sessions>,
}

/// Where the names of a statement are looked up, beside being DataFusion's catalog.
pub(crate) trait Scope: Send + Sync {
    /// The database that is asked.
    fn database(&self) -> &Arc<str>;

    /// Whether there is no table for `reference`, which is a bare name.
    fn lacks(&self, reference: &TableReference) -> bool;

    /// The columns of the table that `reference` means.
    ///
    /// # Errors
    /// `NotFound` with the nearest names; why it cannot be read.
    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error>;

    /// What `plan` asks other databases, a line each.
    fn asked(&self, _plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        Vec::new()
    }
}

/// Plans `statement` on `tables`, as long as it is `wanted`. Runs on a lane.
pub(crate) async fn plan(
    statement: Statement,
    tables: Tables,
    sessions: Arc<Sessions>,
    lane: Lane,
    wanted: Wanted,
) -> Result<EmbeddedPlan, Error> {
    let tables = tables.with_catalogs(&statement)?;
    let session = watched(sessions.session(&tables), &wanted);
    let logical = optimized(&statement, &session, &tables).await?;
    let mut plan = ready(logical, session, &tables, lane, wanted).await?;
    plan.origin = Some(Box::new(Origin { statement, tables, sessions }));
    Ok(plan)
}

/// The statement as an optimized plan.
pub(crate) async fn optimized(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn Scope,
) -> Result<LogicalPlan, Error> {
    let logical = logical_plan(statement, session, scope).await?;
    session.optimize(&logical).map_err(|error| error_of(&error, scope.database()))
}

/// The plan of `logical`, which is optimized, ready to run as long as it is `wanted`.
pub(crate) async fn ready(
    logical: LogicalPlan,
    mut session: SessionState,
    scope: &dyn Scope,
    lane: Lane,
    wanted: Wanted,
) -> Result<EmbeddedPlan, Error> {
    let database = scope.database().clone();
    let failed = |error: DataFusionError| error_of(&error, &database);
    suit(&mut session, &logical).map_err(failed)?;
    let physical = physical_plan(&session, &logical).await.map_err(failed)?;
    let explain = explain::text(&logical, physical.as_ref(), &scope.asked(&physical));
    Ok(EmbeddedPlan {
        schema: tidegate_pgsql::shown_schema(&physical.schema()),
        estimated_rows: explain::estimated_rows(physical.as_ref()),
        estimated_bytes: explain::estimated_bytes(&physical),
        is_blocking: physical.pipeline_behavior() == EmissionType::Final,
        physical: executable(physical, &session, &wanted).map_err(failed)?,
        logical,
        explain,
        wanted,
        origin: None,
        lane,
        session,
        database,
    })
}

/// The columns of the answer to `statement`: as planned, but for the way to the rows. Runs on a lane.
pub(crate) async fn describe(
    statement: &Statement,
    session: &SessionState,
    scope: &dyn Scope,
) -> Result<SchemaRef, Error> {
    let logical = logical_plan(statement, session, scope).await?;
    let failed = |error: DataFusionError| error_of(&error, scope.database());
    let analyzer = session.analyzer();
    let logical = analyzer.execute_and_check(logical, session.config_options(), |_, _| {}).map_err(failed)?;
    Ok(tidegate_pgsql::shown_schema(&Arc::new(logical.schema().as_arrow().clone())))
}

/// The statement as a plan that is checked and whose parameters are bound, but neither analyzed nor optimized.
async fn logical_plan(statement: &Statement, session: &SessionState, scope: &dyn Scope) -> Result<LogicalPlan, Error> {
    let failed = |error: DataFusionError| error_of(&error, scope.database());
    let ast = named_as_they_are(statement, session, scope)?;
    let logical = session.statement_to_plan(ast).await.map_err(failed)?;
    // Before anything goes through all of it.
    size::check(&logical).map_err(failed)?;
    let logical = functions::with_bounds(logical, session).map_err(failed)?;
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
    scope: &dyn Scope,
) -> Result<DataFusionStatement, Error> {
    let mut ast = parsed(statement)?.clone();
    names::check(&ast)?;
    let mut columns = Vec::new();
    for reference in tables_of(statement, session, |reference| scope.lacks(reference), scope.database())? {
        let schema = scope.columns(&reference)?;
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
    tidegate_pgsql::rewrite(&mut ast, &columns_of).map_err(|error| error_of(&error, scope.database()))?;
    Ok(DataFusionStatement::Statement(Box::new(ast)))
}

/// The tables that `statement` mentions. Functions in FROM are among DataFusion's references; of those that there is
/// no table for, which `lacks` says of a bare name, none is among these.
///
/// # Errors
/// `Internal` for a statement that was never parsed; names that are too long.
pub(crate) fn tables_of(
    statement: &Statement,
    session: &SessionState,
    lacks: impl Fn(&TableReference) -> bool,
    database: &str,
) -> Result<Vec<TableReference>, Error> {
    let given = DataFusionStatement::Statement(Box::new(parsed(statement)?.clone()));
    let references = session.resolve_table_references(&given).map_err(|error| error_of(&error, database))?;
    let (rows, scalars) = (session.table_functions(), session.scalar_functions());
    let is_known = |name: &str| {
        name == tidegate_pgsql::ROWS_FROM || rows.contains_key(name) || scalars.contains_key(&name.to_lowercase())
    };
    let is_function = |reference: &TableReference| match reference.schema() {
        // The functions of PostgreSQL are in this schema, too.
        Some("pg_catalog") => is_known(reference.table()) || reference.table() == "unnest",
        _ => is_known(reference.table()) && lacks(reference),
    };
    Ok(references.into_iter().filter(|reference| !is_function(reference)).collect())
}

fn parsed(statement: &Statement) -> Result<&ast::Statement, Error> {
    statement.ast().ok_or_else(|| Error::internal("a statement for the embedded engine was never parsed"))
}

/// Sets how the plan is split and how long its batches are.
fn suit(session: &mut SessionState, logical: &LogicalPlan) -> Result<(), DataFusionError> {
    let mut config = session.config().clone();
    config = config.with_batch_size(literals::batch_rows(logical, session.config().batch_size())?);
    if order::is_seen(logical)? || order::is_counted(logical)? {
        config = config.with_target_partitions(1);
    }
    if order::joins_arrays(logical)? {
        // What it would find out of the values of one side to leave out rows of the other does not fit arrays.
        config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = false;
    }
    *session.config_mut() = config;
    Ok(())
}

/// `physical` as it is run.
fn executable(
    physical: Arc<dyn ExecutionPlan>,
    session: &SessionState,
    wanted: &Wanted,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    guard::guarded(limits::sorted_on_disk(physical)?, wanted, session.config().batch_size())
}

async fn physical_plan(
    session: &SessionState,
    optimized: &LogicalPlan,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    session.query_planner().create_physical_plan(optimized, session).await
}

impl EmbeddedPlan {
    /// Plans the statement again over the files as they are now. Its columns may be others then.
    async fn plan_again(&mut self) -> Result<(), Error> {
        let Some(Origin { statement, tables, sessions }) = self.origin.take().map(|origin| *origin) else {
            return Err(Error::internal("a plan was to be made again whose statement is not known"));
        };
        let snapshot = tables.files.looked_at_again().await?;
        let tables = Tables { snapshot, ..tables };
        *self = plan(statement, tables, sessions, self.lane.clone(), self.wanted.clone()).await?;
        Ok(())
    }

    /// Plans it again with batches of `rows`.
    async fn shorten_batches(&mut self, rows: usize) -> Result<(), DataFusionError> {
        let config = self.session.config().clone().with_batch_size(rows);
        *self.session.config_mut() = config;
        let physical = physical_plan(&self.session, &self.logical).await?;
        self.physical = executable(physical, &self.session, &self.wanted)?;
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

    fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    async fn explain(&self) -> Result<String, Error> {
        Ok(self.explain.clone())
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<Rows, Error> {
        Ok(run::start(*self, job).await)
    }
}
