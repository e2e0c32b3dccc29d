//! How a plan runs: the number of partitions, the batch size, and sorts with a limit.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigNonZeroUsize;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use tidegate_pgsql::for_each_part;

use super::session::StatementSession;
use crate::embedded::query_load::LoadShare;

/// Maximum number of bytes that one literal, repeated for each row of a batch, may take.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// The share of each partition in the memory limit of a query.
const PARTITION_BYTES_MIN: usize = 16 << 20;

/// The number of rows of a batch that is not shortened for other queries.
const BATCH_ROWS_MIN: usize = 2_048;

/// The parts of a plan that determine its settings.
#[derive(Default)]
struct PlanTraits {
    /// Whether the plan sorts, aggregates, joins or combines rows, so that their order in the files is irrelevant.
    reorders_rows: bool,
    /// Whether rows are numbered in input order.
    numbers_rows: bool,
    joins_arrays: bool,
    literal_bytes: usize,
}

/// Sets the number of partitions and the batch size.
///
/// - If the plan only selects rows, the result has the row order of the file. Then the plan has one partition and reads
///   the files one after the other, and the first row is available after the first batch.
/// - `SELECT 'a long text' FROM t` repeats the text for each row of a batch. This memory is not accounted for, so the
///   batch must be short.
/// - With little memory, the plan has fewer partitions, so that each has enough to sort and to aggregate.
/// - While many queries run, the plan has fewer partitions and shorter batches.
/// - Dynamic filters, which skip rows of one side of a join based on the values of the other, do not support arrays.
pub(super) fn configure_session(
    session: &mut StatementSession,
    logical: &LogicalPlan,
    load_share: LoadShare,
) -> Result<()> {
    let traits = PlanTraits::find(logical)?;
    let rows_max = load_share.of(session.config().batch_size(), BATCH_ROWS_MIN);
    let batch_rows = (REPEATED_BYTES_MAX / traits.literal_bytes.max(1)).clamp(1, rows_max);
    let memory_limit = session.memory_limit();
    let options = session.config_mut().options_mut();
    options.execution.batch_size = ConfigNonZeroUsize::try_new(batch_rows)?;
    let partitions = load_share.of(options.execution.target_partitions, 1);
    options.execution.target_partitions = match memory_limit {
        _ if !traits.reorders_rows || traits.numbers_rows => 1,
        MemoryLimit::Finite(bytes) => partitions.min(bytes / PARTITION_BYTES_MIN).max(1),
        _ => partitions,
    };
    if traits.joins_arrays {
        options.optimizer.enable_join_dynamic_filter_pushdown = false;
    }
    Ok(())
}

impl PlanTraits {
    fn find(plan: &LogicalPlan) -> Result<Self> {
        let mut traits = Self::default();
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Aggregate(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::RecursiveQuery(_)
                | LogicalPlan::Union(_) => traits.reorders_rows = true,
                LogicalPlan::Join(join) => {
                    traits.reorders_rows = true;
                    traits.joins_arrays |= compares_arrays(join);
                }
                LogicalPlan::Window(window) => {
                    traits.reorders_rows |= !window.window_expr.iter().all(depends_on_row_order);
                    traits.numbers_rows |= window.window_expr.iter().any(depends_on_row_order);
                }
                _ => {}
            }
            for_each_part(node, |part| {
                if let Expr::Literal(value, _) = part {
                    traits.literal_bytes = traits.literal_bytes.max(value.size());
                }
                Ok(())
            })
        })?;
        Ok(traits)
    }
}

fn compares_arrays(join: &Join) -> bool {
    let schema = join.left.schema();
    join.on.iter().any(|(left, _)| left.get_type(schema).is_ok_and(|data_type| data_type.is_nested()))
}

/// Whether a window function depends on input order, like `row_number() OVER ()`.
fn depends_on_row_order(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => depends_on_row_order(&alias.expr),
        Expr::WindowFunction(function) => {
            function.params.partition_by.is_empty() && function.params.order_by.is_empty()
        }
        _ => false,
    }
}

/// Maximum number of rows that a sort with a limit may keep in memory.
const KEPT_ROWS_MAX: usize = 100_000;
/// The same while many queries run.
const KEPT_ROWS_MIN: usize = 1_000;

/// Replaces sorts with a large limit in `plan` by sorts that can spill, followed by a limit.
///
/// A sort with a limit keeps its best rows in memory and cannot spill, which suits the usual small limits.
pub(super) fn replace_large_top_k(
    plan: Arc<dyn ExecutionPlan>,
    load_share: LoadShare,
) -> Result<Arc<dyn ExecutionPlan>> {
    let kept_rows_max = load_share.of(KEPT_ROWS_MAX, KEPT_ROWS_MIN);
    plan.transform_up(|node| {
        if let Some(sort) = node.downcast_ref::<SortExec>()
            && let Some(rows) = sort.fetch().filter(|rows| *rows > kept_rows_max)
        {
            let sorted = Arc::new(sort.with_fetch(None));
            return Ok(Transformed::yes(Arc::new(LocalLimitExec::new(sorted, rows)) as Arc<dyn ExecutionPlan>));
        }
        Ok(Transformed::no(node))
    })
    .data()
}
