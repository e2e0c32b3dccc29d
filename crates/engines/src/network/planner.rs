//! Plans a statement of a network, and parts of it.

use std::sync::Arc;

use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::LogicalPlan;
use tidegate_core::Error;
use tidegate_sql::Statement;

use super::options::NetworkNode;
use super::partial_aggregates::aggregate_branches;
use super::pruned_nodes::remove_pruned_nodes;
use super::tables::NetworkTables;
use super::top_rows::limit_branches;
use crate::embedded::{
    EmbeddedPlan, Engine, QueryCancellation, SessionFactory, StatementScope, StatementSession, WorkerPool, build_plan,
    optimize_statement, to_core_error, with_cancellation,
};
use crate::federated::{MemberQueryContext, push_down};

/// Plans for one statement of one principal.
#[derive(Clone)]
pub(super) struct NetworkPlanner {
    pub(super) tables: NetworkTables,
    pub(super) nodes: Arc<[NetworkNode]>,
    pub(super) context: MemberQueryContext,
    pub(super) sessions: Arc<SessionFactory>,
    pub(super) engine: Engine,
    pub(super) worker_pool: WorkerPool,
}

impl NetworkPlanner {
    /// The optimized plan of `statement`, without nodes that have no matching rows.
    pub(super) async fn optimize_statement(self, statement: Statement) -> Result<LogicalPlan, Error> {
        let session = self.create_session(&self.context.cancellation);
        let logical = optimize_statement(&statement, &session, &self.tables).await?;
        remove_pruned_nodes(logical, &self.nodes).map_err(|error| to_core_error(&error, self.tables.database()))
    }

    /// The optimized plan of `part`, which is of an optimized plan.
    pub(super) fn optimize_part(&self, part: &LogicalPlan) -> DataFusionResult<LogicalPlan> {
        let session = self.create_session(&self.context.cancellation);
        remove_pruned_nodes(session.optimize(part)?, &self.nodes)
    }

    /// The executable plan of `logical`, which is optimized. `cancellation` stops it.
    pub(super) async fn build(
        self,
        logical: LogicalPlan,
        cancellation: QueryCancellation,
    ) -> Result<EmbeddedPlan, Error> {
        let rewritten = aggregate_branches(logical).and_then(limit_branches).and_then(with_own_schemas);
        let pushed = rewritten.and_then(|logical| push_down(logical, &self.context));
        let logical = pushed.map_err(|error| to_core_error(&error, self.tables.database()))?;
        let session = self.create_session(&cancellation);
        build_plan(logical, session, &self.tables, self.worker_pool.clone(), cancellation).await
    }

    fn create_session(&self, cancellation: &QueryCancellation) -> StatementSession {
        let scope = Arc::new(self.tables.clone());
        let session = self.sessions.create_session_without_files(&self.context.principal, scope);
        with_cancellation(session, cancellation)
    }

    /// A cancellation of a part, which ends before the statement.
    pub(super) fn part_cancellation(&self) -> QueryCancellation {
        QueryCancellation::new(self.engine.shutdown_token())
    }
}

/// `plan`, after its inputs were rewritten: a merged count may be null by its type, although it never is.
fn with_own_schemas(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    plan.transform_up(|node| node.recompute_schema().map(Transformed::yes)).map(|transformed| transformed.data)
}
