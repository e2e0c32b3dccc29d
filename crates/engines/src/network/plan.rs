//! Plans a statement of a network, and parts of it. All nodes receive their statements at once, before any of its
//! operators runs. Nodes whose declared rows cannot match the conditions of a statement receive none.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Subquery, Union};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use futures::future::{BoxFuture, join_all};
use tidegate_core::{Error, ErrorKind};
use tidegate_pgsql::{for_each_part, rewrite_named};
use tidegate_query::{MissingNode, MissingNodes, Plan, QueryRows, batch_bytes, is_node_failure};
use tidegate_runtime::Job;
use tidegate_sql::Statement;

use super::branches::{aggregate_branches, limit_branches};
use super::key_joins::{KEY_ROWS_MAX, KEYS_MAX, KeyJoin, ROW_BYTES_MAX, empty_of, has_member_table, is_empty};
use super::options::{NetworkNode, PartialAnswers, may_match};
use super::tables::{NetworkTables, node_queries, nodes_failed_error};
use crate::embedded::{
    EmbeddedPlan, Engine, QueryCancellation, SessionFactory, StatementScope, StatementSession, WorkerPool, build_plan,
    optimize_statement, to_core_error, with_cancellation,
};
use crate::federated::{MemberExec, MemberQueryContext, MemberTable, StartOutcome, push_down};

/// Maximum number of statements that one statement of a caller sends to nodes at the same time.
const NODE_STATEMENTS_MAX: usize = 1_024;

pub(super) struct NetworkPlan {
    pub(super) plan: EmbeddedPlan,
    pub(super) cancellation: QueryCancellation,
    pub(super) starter: NodeStarter,
    /// The parts that are read first.
    pub(super) part_reader: Option<PartReader>,
}

/// The nodes of a plan, or of several parts of a statement.
#[derive(Debug, Default)]
struct StartedNodes {
    /// The nodes whose rows are missing.
    missing: Vec<MissingNode>,
    /// The number of statements for nodes.
    statements: usize,
    /// The number of those that are answered.
    answering: usize,
}

impl StartedNodes {
    fn add(&mut self, other: Self) {
        self.missing.extend(other.missing);
        self.statements += other.statements;
        self.answering += other.answering;
    }
}

/// Starts the statements of a plan on the nodes.
pub(super) struct NodeStarter {
    pub(super) network: Arc<str>,
    pub(super) partial: PartialAnswers,
    /// The nodes that failed before the statement: their tables were never known, or they cannot read one of it.
    pub(super) failed: Vec<MissingNode>,
    /// The rows of the tables of the statement by node, as last known.
    pub(super) rows: BTreeMap<String, Option<u64>>,
}

impl NodeStarter {
    /// Starts the statements of all nodes, and waits until each has its first rows or has failed.
    ///
    /// # Errors
    /// The error of a statement; the failure of nodes if answers must be whole; `TooLarge` beyond a limit.
    async fn start(&self, plan: &EmbeddedPlan, job: &Arc<Job>) -> Result<StartedNodes, Error> {
        let leaves = node_queries(plan.operators());
        let leaves: Vec<&MemberExec> = leaves.iter().filter_map(|leaf| leaf.downcast_ref::<MemberExec>()).collect();
        if leaves.len() > NODE_STATEMENTS_MAX {
            let message = format!(
                "the statement would send {} statements to the nodes of {}; the limit is {NODE_STATEMENTS_MAX}",
                leaves.len(),
                self.network
            );
            return Err(Error::new(ErrorKind::TooLarge, message)
                .with_hint("Name fewer tables, or fewer nodes by a condition on the column _node."));
        }
        let starting: Vec<_> = leaves.iter().map(|leaf| leaf.start(job)).collect();
        let mut failures = BTreeMap::new();
        for missing in &self.failed {
            failures.insert(missing.name.clone(), missing.reason.clone());
        }
        let mut missing = Vec::new();
        for (leaf, outcome) in leaves.iter().zip(join_all(starting).await) {
            let outcome: StartOutcome =
                outcome.unwrap_or_else(|_| Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")));
            match outcome {
                Ok(None) => {}
                Ok(Some(inner)) => missing.extend(
                    inner
                        .nodes
                        .iter()
                        .map(|node| MissingNode { name: format!("{}.{}", leaf.member(), node.name), ..node.clone() }),
                ),
                Err(error) if is_node_failure(&error) && !job.is_cancelled() => {
                    failures.entry(leaf.member().to_owned()).or_insert_with(|| error.message().to_owned());
                }
                Err(error) => return Err(error),
            }
        }
        let rows = |name: &str| self.rows.get(name).copied().flatten();
        missing.extend(failures.into_iter().map(|(name, reason)| MissingNode { rows: rows(&name), name, reason }));
        missing.sort_by(|left, right| left.name.cmp(&right.name));
        missing.dedup_by(|left, right| left.name == right.name);
        let is_missing = |leaf: &&MemberExec| missing.iter().any(|node| node.name == leaf.member());
        if self.partial == PartialAnswers::Forbid && !missing.is_empty() {
            return Err(nodes_failed_error(&self.network, &missing)
                .with_hint("Ask again when it is back, or exclude it by a condition on the column _node."));
        }
        for leaf in leaves.iter().filter(|leaf| is_missing(leaf)) {
            leaf.leave_out();
        }
        let answering = leaves.iter().filter(|leaf| !is_missing(leaf)).count();
        Ok(StartedNodes { statements: leaves.len(), answering, missing })
    }
}

#[async_trait]
impl Plan for NetworkPlan {
    tidegate_pgsql::delegate_to! { plan =>
        fn schema(&self) -> SchemaRef;
        fn estimated_rows(&self) -> Option<u64>;
        fn is_pipeline_breaking(&self) -> Option<bool>;
    }

    async fn explain(&self) -> Result<String, Error> {
        let first = match &self.part_reader {
            Some(reader) => reader.explain().await?,
            None => String::new(),
        };
        Ok(first + &self.plan.explain().await?)
    }

    async fn run(self: Box<Self>, job: &Arc<Job>) -> Result<QueryRows, Error> {
        self.cancellation.set_job(job.clone());
        let Self { plan, starter, part_reader, .. } = *self;
        let reduced = match part_reader {
            Some(reader) => reader.read(&starter, job).await?,
            None => None,
        };
        let (plan, mut started) = match reduced {
            Some(ReducedPlan { plan, started }) => (plan, started),
            None => (plan, StartedNodes::default()),
        };
        started.add(starter.start(&plan, job).await?);
        let StartedNodes { mut missing, statements, answering } = started;
        if statements > 0 && answering == 0 {
            return Err(nodes_failed_error(&starter.network, &missing));
        }
        missing.sort_by(|left, right| left.name.cmp(&right.name));
        missing.dedup_by(|left, right| left.name == right.name);
        let answer = Box::new(plan).run(job).await?;
        if missing.is_empty() {
            return Ok(answer);
        }
        let rows_total = starter.rows.into_values().sum();
        Ok(QueryRows { missing: Some(Arc::new(MissingNodes { nodes: missing, rows_total })), ..answer })
    }
}

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
    fn optimize_part(&self, part: &LogicalPlan) -> Result<LogicalPlan> {
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
    fn part_cancellation(&self) -> QueryCancellation {
        QueryCancellation::new(self.engine.shutdown_token())
    }
}

/// `plan`, after its inputs were rewritten: a merged count may be null by its type, although it never is.
fn with_own_schemas(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up(|node| node.recompute_schema().map(Transformed::yes)).map(|transformed| transformed.data)
}

/// Maximum number of joins of a statement whose small side is read first: each adds the time of a node's answer.
const KEY_JOINS_MAX: usize = 4;
/// The same for subqueries with a single value.
const VALUES_MAX: usize = 4;

/// The parts of a statement that are read first: subqueries with a single value, and joins whose one side may be small.
pub(super) struct PartReader {
    planner: NetworkPlanner,
    /// The statement, optimized.
    logical: LogicalPlan,
}

/// A plan whose joins use the rows that were read.
struct ReducedPlan {
    plan: EmbeddedPlan,
    /// The nodes that answered the parts, or did not.
    started: StartedNodes,
}

/// What [`PartReader::reduce`] has read so far.
struct Progress<'a> {
    starter: &'a NodeStarter,
    job: &'a Arc<Job>,
    started: StartedNodes,
    joins_left: usize,
    is_reduced: bool,
}

impl PartReader {
    /// `None` if `logical` has no such part.
    pub(super) fn new(planner: NetworkPlanner, logical: LogicalPlan) -> Option<Self> {
        let has_join = logical.exists(|node| Ok(KeyJoin::of_plan(node).is_some())).unwrap_or(false);
        let has_value = find_scalar_subqueries(&logical).is_ok_and(|subqueries| !subqueries.is_empty());
        (has_join || has_value).then_some(Self { planner, logical })
    }

    /// Reads the values and the small sides. `None` if there is no value, and no side is small.
    ///
    /// # Errors
    /// The failure of a node, if answers must be whole; the error of a statement.
    async fn read(&self, starter: &NodeStarter, job: &Arc<Job>) -> Result<Option<ReducedPlan>, Error> {
        let mut progress =
            Progress { starter, job, started: StartedNodes::default(), joins_left: KEY_JOINS_MAX, is_reduced: false };
        let logical = self.with_values(&mut progress).await?;
        let logical = self.reduce(logical, &mut progress).await?;
        if !progress.is_reduced {
            return Ok(None);
        }
        let planner = self.planner.clone();
        let cancellation = planner.context.cancellation.clone();
        let plan = self.planner.worker_pool.run(planner.build(logical, cancellation)).await?;
        Ok(Some(ReducedPlan { plan, started: progress.started }))
    }

    /// The statement with values in place of its subqueries, optimized again.
    async fn with_values(&self, progress: &mut Progress<'_>) -> Result<LogicalPlan, Error> {
        let failed = |error: DataFusionError| to_core_error(&error, &self.planner.tables.network);
        let mut logical = self.logical.clone();
        for subquery in find_scalar_subqueries(&logical).map_err(failed)?.iter().take(VALUES_MAX) {
            let plan = self.plan_part(limited(subquery).map_err(failed)?).await?;
            let Some((batches, started)) = self.read_rows(plan, VALUE_ROWS_MAX, progress).await? else { continue };
            let Some(value) = single_value(subquery, &batches).map_err(failed)? else { continue };
            logical = replace_subquery(logical, subquery, &value).map_err(failed)?;
            progress.started.add(started);
            progress.is_reduced = true;
        }
        if !progress.is_reduced {
            return Ok(logical);
        }
        let (planner, network) = (self.planner.clone(), self.planner.tables.network.clone());
        let optimizing =
            async move { planner.optimize_part(&logical).map_err(|error| to_core_error(&error, &network)) };
        self.planner.worker_pool.run(optimizing).await
    }

    /// `plan`, with conditions for the keys of its joins. Inputs come first: a join may make another one small.
    fn reduce<'a>(
        &'a self,
        plan: LogicalPlan,
        progress: &'a mut Progress<'_>,
    ) -> BoxFuture<'a, Result<LogicalPlan, Error>> {
        Box::pin(async move {
            let failed = |error: DataFusionError| to_core_error(&error, &self.planner.tables.network);
            let mut inputs = Vec::new();
            let mut has_changed = false;
            for input in plan.inputs() {
                let is_reduced = std::mem::take(&mut progress.is_reduced);
                inputs.push(self.reduce(input.clone(), progress).await?);
                has_changed |= progress.is_reduced;
                progress.is_reduced |= is_reduced;
            }
            let plan = match has_changed {
                true => plan.with_new_exprs(plan.expressions(), inputs).map_err(failed)?,
                false => plan,
            };
            let Some(join) = KeyJoin::of_plan(&plan).filter(|_| progress.joins_left > 0) else { return Ok(plan) };
            progress.joins_left -= 1;
            let small_side = self.plan_part(join.small_rows().map_err(failed)?).await?;
            let rows = self.read_rows(small_side, KEY_ROWS_MAX, progress).await?;
            let Some((batches, started)) = rows else { return Ok(plan) };
            let Some(restricted) = join.restrict(&batches).map_err(failed)? else { return Ok(plan) };
            progress.started.add(started);
            progress.is_reduced = true;
            Ok(restricted)
        })
    }

    /// The rows of a part, and its nodes; `None` if it is not small.
    async fn read_rows(
        &self,
        plan: EmbeddedPlan,
        rows_max: usize,
        progress: &Progress<'_>,
    ) -> Result<Option<(Vec<RecordBatch>, StartedNodes)>, Error> {
        let started = progress.starter.start(&plan, progress.job).await?;
        let QueryRows { batches: mut stream, .. } = Box::new(plan).run(progress.job).await?;
        let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0);
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            rows += batch.num_rows();
            bytes += batch_bytes(&batch);
            if rows > rows_max || bytes > ROW_BYTES_MAX {
                // Dropping the stream ends the statements of the nodes.
                return Ok(None);
            }
            batches.push(batch);
        }
        Ok(Some((batches, started)))
    }

    async fn plan_part(&self, rows: LogicalPlan) -> Result<EmbeddedPlan, Error> {
        let planner = self.planner.clone();
        let cancellation = planner.part_cancellation();
        let network = self.planner.tables.network.clone();
        let planning = async move {
            let rows = planner.optimize_part(&rows).map_err(|error| to_core_error(&error, &network))?;
            planner.build(rows, cancellation).await
        };
        self.planner.worker_pool.run(planning).await
    }

    /// The statements of the parts that are read first, for `explain`.
    async fn explain(&self) -> Result<String, Error> {
        let failed = |error: DataFusionError| to_core_error(&error, &self.planner.tables.network);
        let mut text = String::new();
        for subquery in find_scalar_subqueries(&self.logical).map_err(failed)?.iter().take(VALUES_MAX) {
            let plan = self.plan_part(limited(subquery).map_err(failed)?).await?;
            let queries = plan.member_queries().join("\n  ");
            text.push_str(&format!(
                "Queries sent first. Their value replaces a subquery, and the queries below become others:\n  \
                 {queries}\n\n"
            ));
        }
        let mut joins = Vec::new();
        // The visitor never fails.
        let _ = self.logical.apply(|node| {
            joins.extend(KeyJoin::of_plan(node));
            Ok(TreeNodeRecursion::Continue)
        });
        for join in joins.iter().take(KEY_JOINS_MAX) {
            let plan = self.plan_part(join.small_rows().map_err(failed)?).await?;
            let queries = plan.member_queries().join("\n  ");
            let keys = join.restricted_keys().join(", ");
            text.push_str(&format!(
                "Queries sent first. With at most {KEY_ROWS_MAX} rows and {KEYS_MAX} keys, their keys become a condition \
                 on {keys} in the queries below:\n  {queries}\n\n"
            ));
        }
        Ok(text)
    }
}

/// The rows that are read of a subquery: one more than it may have.
const VALUE_ROWS_MAX: usize = 2;

/// The different subqueries in `plan` that have a single value, the same for all rows, and read tables of nodes.
fn find_scalar_subqueries(plan: &LogicalPlan) -> Result<Vec<LogicalPlan>> {
    let mut found: Vec<LogicalPlan> = Vec::new();
    plan.apply(|node| {
        for_each_part(node, |part| {
            if let Some(subquery) = scalar_subquery(part)
                && !found.contains(subquery)
                && has_member_table(subquery)
            {
                found.push(subquery.clone());
            }
            Ok(())
        })
    })?;
    Ok(found)
}

/// `subquery`, limited to the rows that are read.
fn limited(subquery: &LogicalPlan) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(subquery.clone()).limit(0, Some(VALUE_ROWS_MAX))?.build()
}

/// The value of `subquery`, whose rows are `batches`. `None` if it has several rows, which is an error of the statement.
fn single_value(subquery: &LogicalPlan, batches: &[RecordBatch]) -> Result<Option<ScalarValue>> {
    let data_type = subquery.schema().field(0).data_type();
    let mut filled = batches.iter().filter(|batch| batch.num_rows() > 0);
    match (filled.next(), filled.next()) {
        (None, _) => ScalarValue::try_from(data_type).map(Some),
        (Some(batch), None) if batch.num_rows() == 1 => {
            ScalarValue::try_from_array(batch.column(0), 0)?.cast_to(data_type).map(Some)
        }
        _ => Ok(None),
    }
}

/// `plan` with `value` in place of `subquery`.
fn replace_subquery(plan: LogicalPlan, subquery: &LogicalPlan, value: &ScalarValue) -> Result<LogicalPlan> {
    let with_value = |part: Expr| match scalar_subquery(&part) {
        Some(known) if known == subquery => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
        _ => Ok(Transformed::no(part)),
    };
    let replaced = plan.transform_down(|node| {
        // The nodes above refer to expressions by their names, which a subquery is a part of.
        rewrite_named(node, |expression| expression.transform_down(with_value))
    });
    replaced.map(|transformed| transformed.data)
}

fn scalar_subquery(expression: &Expr) -> Option<&LogicalPlan> {
    match expression {
        Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, .. }) if outer_ref_columns.is_empty() => {
            Some(subquery)
        }
        _ => None,
    }
}

/// Removes the scans of nodes whose declared rows cannot pass the filters, and with them their branches of unions.
fn remove_pruned_nodes(plan: LogicalPlan, nodes: &[NetworkNode]) -> Result<LogicalPlan> {
    if nodes.iter().all(|node| node.holds.is_none()) {
        return Ok(plan);
    }
    let pruned = plan.transform_up(|node| match &node {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source)?;
            let Some(table) = provider.downcast_ref::<MemberTable>() else { return Ok(Transformed::no(node)) };
            let holds = nodes.iter().find(|node| node.database.name() == table.member_name());
            let Some(holds) = holds.and_then(|node| node.holds.as_ref()) else { return Ok(Transformed::no(node)) };
            if may_match(holds, table.table_schema(), &scan.filters) {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(empty_of(&node)))
        }
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            let is_empty = node.inputs().first().is_some_and(|input| is_empty(input));
            Ok(if is_empty { Transformed::yes(empty_of(&node)) } else { Transformed::no(node) })
        }
        LogicalPlan::Union(union) => {
            let kept: Vec<Arc<LogicalPlan>> = union.inputs.iter().filter(|input| !is_empty(input)).cloned().collect();
            if kept.len() == union.inputs.len() {
                return Ok(Transformed::no(node));
            }
            if kept.is_empty() {
                return Ok(Transformed::yes(empty_of(&node)));
            }
            // The union keeps its names, even with one input.
            let union = Union { inputs: kept, schema: union.schema.clone() };
            Ok(Transformed::yes(LogicalPlan::Union(union)))
        }
        _ => Ok(Transformed::no(node)),
    });
    Ok(pruned?.data)
}
