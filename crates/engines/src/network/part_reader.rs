//! Reads parts of a statement before the nodes receive the rest: values of subqueries, and small sides of joins.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use futures::future::BoxFuture;
use tidegate_core::Error;
use tidegate_query::{Plan, QueryRows, batch_bytes};
use tidegate_runtime::Job;

use super::key_joins::{KEY_ROWS_MAX, KEYS_MAX, KeyJoin, ROW_BYTES_MAX};
use super::plan::{NodeStarter, StartedNodes};
use super::planner::NetworkPlanner;
use super::scalar_values::{VALUE_ROWS_MAX, find_scalar_subqueries, limited, replace_subquery, single_value};
use crate::embedded::{EmbeddedPlan, to_core_error};

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
pub(super) struct ReducedPlan {
    pub(super) plan: EmbeddedPlan,
    /// The nodes that answered the parts, or did not.
    pub(super) started: StartedNodes,
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
    pub(super) async fn read(&self, starter: &NodeStarter, job: &Arc<Job>) -> Result<Option<ReducedPlan>, Error> {
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
    pub(super) async fn explain(&self) -> Result<String, Error> {
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
