//! A SELECT that computes each row of a table from one row that arrives.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::datasource::MemTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;
use datafusion::sql::sqlparser::ast::{GroupByExpr, Query, SetExpr, Statement as Ast, TableFactor};
use object_store::memory::InMemory;
use tidegate_core::{Error, ErrorKind, Principal};
use tidegate_query::RowTransform;
use tidegate_sql::{SqlDialect, Statement};

use super::engine::Engine;
use super::plan::{
    SessionFactory, StatementScope, SystemCatalogs, optimize_statement, to_core_error, with_cancellation,
};
use super::query_cancellation::QueryCancellation;

/// The table that has the rows that arrive.
const INCOMING: &str = "incoming";
const SHAPE: &str = "write SELECT … FROM incoming, with WHERE if some rows are left out: each row is computed from one row, \
                     without joins, groups, aggregates, order and limit";

/// A SELECT over the table `incoming`. Its names and functions are those of statements over files.
#[derive(Debug)]
pub struct RowSelect {
    statement: Statement,
    sessions: Arc<SessionFactory>,
    engine: Engine,
}

impl RowSelect {
    /// Parses `sql`.
    ///
    /// # Errors
    /// `InvalidArguments` when it is no SELECT over `incoming`, or when a row of its result depends on several rows.
    pub fn parse(sql: &str, engine: &Engine) -> Result<Self, Error> {
        let statement = Statement::parse(sql, SqlDialect::DataFusion)?;
        if !statement.ast().is_some_and(is_row_by_row) {
            return Err(refused());
        }
        let sessions = SessionFactory::new(&Arc::from(INCOMING), engine);
        let sessions = sessions.map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self { statement, sessions: Arc::new(sessions), engine: engine.clone() })
    }
}

#[async_trait]
impl RowTransform for RowSelect {
    /// Fails with `InvalidArguments` when a column is missing or a value cannot be computed.
    async fn transform(&self, rows: RecordBatch) -> Result<Vec<RecordBatch>, Error> {
        let (statement, sessions) = (self.statement.clone(), self.sessions.clone());
        let cancellation = QueryCancellation::new(self.engine.shutdown_token());
        let guard = cancellation.token().clone().drop_guard();
        let computed = async move {
            let scope = Arc::new(IncomingRows::new(rows)?);
            let store = Arc::new(InMemory::new());
            let session = sessions.create_session_for(&Principal::anonymous(), scope.clone(), store);
            let session = with_cancellation(session, &cancellation);
            let logical = optimize_statement(&statement, &session, scope.as_ref()).await?;
            check_row_by_row(&logical)?;
            let failed = |error: DataFusionError| to_core_error(&error, INCOMING);
            let physical = session.query_planner().create_physical_plan(&logical, &*session).await.map_err(failed)?;
            collect(physical, session.task_context()).await.map_err(failed)
        };
        let computed = self.engine.worker_pool(&Principal::anonymous())?.run(computed).await;
        guard.disarm();
        computed
    }
}

fn refused() -> Error {
    Error::new(
        ErrorKind::InvalidArguments,
        format!("it computes a row from several rows, or reads another table; {SHAPE}"),
    )
}

fn is_row_by_row(ast: &Ast) -> bool {
    let Ast::Query(query) = ast else { return false };
    let Query { with: None, body, order_by: None, limit_clause: None, fetch: None, .. } = query.as_ref() else {
        return false;
    };
    let SetExpr::Select(select) = body.as_ref() else { return false };
    let [from] = select.from.as_slice() else { return false };
    let is_incoming =
        matches!(&from.relation, TableFactor::Table { name, args: None, .. } if name.to_string() == INCOMING);
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(columns, _) if columns.is_empty());
    is_incoming && from.joins.is_empty() && !is_grouped && select.having.is_none() && select.distinct.is_none()
}

/// Aggregates and subqueries are recognised in the plan.
fn check_row_by_row(plan: &LogicalPlan) -> Result<(), Error> {
    let mut is_row_by_row = true;
    let visited = plan.apply_with_subqueries(|node| {
        is_row_by_row &= matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::TableScan(_)
                | LogicalPlan::EmptyRelation(_)
        );
        Ok(TreeNodeRecursion::Continue)
    });
    visited.map_err(|error| to_core_error(&error, INCOMING))?;
    if is_row_by_row { Ok(()) } else { Err(refused()) }
}

/// The scope with the only table.
#[derive(Debug)]
struct IncomingRows {
    database: Arc<str>,
    table: Arc<MemTable>,
    catalogs: SystemCatalogs,
}

impl IncomingRows {
    fn new(rows: RecordBatch) -> Result<Self, Error> {
        let table = MemTable::try_new(rows.schema(), vec![vec![rows]]);
        let table = Arc::new(table.map_err(|error| Error::internal(error.to_string()))?);
        Ok(Self { database: INCOMING.into(), table, catalogs: SystemCatalogs::default() })
    }
}

impl StatementScope for IncomingRows {
    fn database(&self) -> &Arc<str> {
        &self.database
    }

    fn catalogs(&self) -> &SystemCatalogs {
        &self.catalogs
    }

    fn has_no_table(&self, reference: &TableReference) -> bool {
        reference.table() != INCOMING
    }

    fn columns(&self, reference: &TableReference) -> Result<SchemaRef, Error> {
        match reference.table() {
            INCOMING => Ok(self.table.schema()),
            other => Err(Error::new(ErrorKind::NotFound, format!("there is no table {other:?}; {SHAPE}"))),
        }
    }

    fn provider(&self, _: &str, _: &str, table: &str) -> Option<Arc<dyn TableProvider>> {
        (table == INCOMING).then(|| self.table.clone() as Arc<dyn TableProvider>)
    }
}
