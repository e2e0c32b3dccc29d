//! Cancels a query within the time of one batch, at any point of its plan.
//!
//! DataFusion's operators yield only when they emit a batch, and only every 128 batches. A join whose filter rejects
//! all rows emits nothing for minutes. So the leaves and the joins of a plan are wrapped, and the filters of joins as
//! well: each batch and each evaluation first checks for cancellation. This is DataFusion's issue 19358; see
//! `docs/decisions/upstream`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, JoinType, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions};
use futures::StreamExt;
use tidegate_query::batch_bytes;

use super::batch_bounds::distributes_in_turns;
use super::windows::{WindowMemory, WindowRows};
use crate::embedded::query_cancellation::QueryCancellation;
use crate::embedded::row_bytes::{COLLECTED_BYTES_MAX, CollectedRows, RepeatedRows, RowsTooWide, compact, cut_rows};

/// Rows that an aggregate with grouping sets groups at once: each row of its input counts once for each set. It takes memory
/// for the groups of a batch before it asks for it, and cannot be interrupted.
const GROUPED_ROWS_MAX: usize = 131_072;

/// Wraps operators of `plan`, so that it stops with its next batch after cancellation, and when rows that are repeated or
/// collected are too wide for batches of `batch_rows`. The batches of scans are cut where they have many bytes.
pub(crate) fn add_cancellation(
    plan: Arc<dyn ExecutionPlan>,
    query_cancellation: &QueryCancellation,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let node = wrap_join_filter(node, query_cancellation)?;
        if node.children().is_empty() {
            return Ok(Transformed::yes(wrap_operator(node, BatchCheck::Scanned, query_cancellation)));
        }
        let (below, above) = batch_checks(&node, batch_rows);
        if below.is_none() && above.is_none() {
            return Ok(Transformed::no(node));
        }
        // The first input of a scalar subquery operator is the plan that contains it; its rows are not repeated.
        let first = usize::from(node.is::<ScalarSubqueryExec>());
        let wrap_child = |(position, child): (usize, &Arc<dyn ExecutionPlan>)| match &below {
            Some(check) if position >= first => wrap_operator(child.clone(), check.clone(), query_cancellation),
            _ => child.clone(),
        };
        let children = node.children().into_iter().enumerate().map(wrap_child).collect();
        let node = node.replace_children(children, ReplaceChildrenOptions::new(Recompute))?;
        Ok(Transformed::yes(match above {
            Some(batch_check) => wrap_operator(node, batch_check, query_cancellation),
            None => node,
        }))
    })
    .data()
}

fn wrap_operator(
    input: Arc<dyn ExecutionPlan>,
    batch_check: BatchCheck,
    query_cancellation: &QueryCancellation,
) -> Arc<dyn ExecutionPlan> {
    // An existing wrapper that only checks for cancellation is replaced.
    let input = match input.downcast_ref::<CancellationExec>() {
        Some(existing) if matches!(existing.batch_check, BatchCheck::CancellationOnly) => existing.input.clone(),
        _ => input,
    };
    Arc::new(CancellationExec { input, cancellation: query_cancellation.clone(), batch_check })
}

fn batch_checks(node: &Arc<dyn ExecutionPlan>, batch_rows: usize) -> (Option<BatchCheck>, Option<BatchCheck>) {
    let is_streaming = node.is::<BoundedWindowAggExec>();
    if is_streaming || node.is::<WindowAggExec>() {
        let rows = WindowRows::default();
        let below = BatchCheck::BelowWindow { rows: rows.clone(), is_streaming };
        return (Some(below), Some(BatchCheck::AboveWindow { rows, is_streaming }));
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        let rows = (GROUPED_ROWS_MAX / groups.groups().len().max(1)).max(1);
        return (groups.has_grouping_set().then_some(BatchCheck::BelowGroupingSets { rows }), None);
    }
    let collected = BatchCheck::Collected(CollectedRows::new(batch_rows));
    if node.is::<RepartitionExec>() {
        return ((!distributes_in_turns(node)).then_some(collected), None);
    }
    let is_unnested = node.is::<UnnestExec>();
    let repeated = BatchCheck::Repeated(RepeatedRows { batch_rows, is_unnested });
    if node.is::<ScalarSubqueryExec>() {
        return (Some(repeated), None);
    }
    let joins = is_unnested
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<CrossJoinExec>();
    if !joins {
        return (None, None);
    }
    let below = if emits_each_row_once(node) { collected } else { repeated };
    (Some(below), Some(BatchCheck::CancellationOnly))
}

/// Whether `node` is a semi, anti or mark join, which emits each row at most once.
fn emits_each_row_once(node: &Arc<dyn ExecutionPlan>) -> bool {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    let of_hash = node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let of_merge = node.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type);
    let of_loop = node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let join = of_hash.or(of_merge).or(of_loop);
    matches!(join, Some(LeftAnti | LeftMark | LeftSemi | RightAnti | RightMark | RightSemi))
}

fn wrap_join_filter(
    node: Arc<dyn ExecutionPlan>,
    query_cancellation: &QueryCancellation,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = cancellable_filter(filter, query_cancellation);
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = cancellable_filter(filter, query_cancellation);
        return HashJoinExecBuilder::from(join).with_filter(Some(filter)).build_exec();
    }
    Ok(node)
}

fn cancellable_filter(filter: &JoinFilter, query_cancellation: &QueryCancellation) -> JoinFilter {
    let expression = CancellableExpr { inner: filter.expression().clone(), cancellation: query_cancellation.clone() };
    JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), filter.schema().clone())
}

#[derive(Debug, Clone)]
enum BatchCheck {
    CancellationOnly,
    /// The batches come from a scan: many of their rows may share a few bytes.
    Scanned,
    /// The batches go to an operator that collects their rows.
    Collected(CollectedRows),
    /// The batches go to an aggregate with grouping sets, which takes so many rows at once.
    BelowGroupingSets {
        rows: usize,
    },
    /// The batches go to an operator that repeats their rows.
    Repeated(RepeatedRows),
    /// The batches go to a window operator, which buffers all of them unless `is_streaming`.
    BelowWindow {
        rows: WindowRows,
        is_streaming: bool,
    },
    /// The batches come from a window operator.
    AboveWindow {
        rows: WindowRows,
        is_streaming: bool,
    },
}

/// An operator that passes on batches until the query is cancelled.
#[derive(Debug)]
struct CancellationExec {
    input: Arc<dyn ExecutionPlan>,
    cancellation: QueryCancellation,
    batch_check: BatchCheck,
}

tidegate_pgsql::display_as_name!(CancellationExec);

impl ExecutionPlan for CancellationExec {
    fn name(&self) -> &str {
        "CancellationExec"
    }

    tidegate_pgsql::operator_methods!(input, |operator, input| Self {
        input,
        cancellation: operator.cancellation.clone(),
        batch_check: operator.batch_check.clone()
    });

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.cancellation.check_cancelled()?;
        let reservation = MemoryConsumer::new("rows that are held or repeated").register(context.memory_pool());
        let account = match &self.batch_check {
            BatchCheck::AboveWindow { rows, .. } => {
                Some(Arc::new(WindowMemory::new(rows.clone(), context.memory_pool())))
            }
            _ => None,
        };
        let mut batches = CancellableBatches {
            input: self.input.execute(partition, context)?,
            cancellation: self.cancellation.clone(),
            batch_check: self.batch_check.clone(),
            account,
            reservation,
            remaining: None,
            parts: VecDeque::new(),
        };
        let batches = futures::stream::poll_fn(move |context| batches.poll_next(context));
        // Parts of one batch come from here, and not from the input.
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches))))
    }
}

struct CancellableBatches {
    input: SendableRecordBatchStream,
    cancellation: QueryCancellation,
    batch_check: BatchCheck,
    account: Option<Arc<WindowMemory>>,
    reservation: MemoryReservation,
    /// The rest of a batch that is longer than the batch size of the plan.
    remaining: Option<RecordBatch>,
    /// The other parts of a batch of a scan that has many bytes.
    parts: VecDeque<RecordBatch>,
}

impl CancellableBatches {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.cancellation.check_cancelled()?;
        if let Some(part) = self.parts.pop_front() {
            return Poll::Ready(Some(compact(&part)));
        }
        let polled = self.poll_input(context);
        polled.map(|batch| batch.map(|batch| self.check_batch(batch?)))
    }

    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if let Some(rest) = self.remaining.take() {
            return Poll::Ready(Some(Ok(rest)));
        }
        match &self.account {
            Some(account) => account.run_counted(|| self.input.poll_next_unpin(context)),
            None => self.input.poll_next_unpin(context),
        }
    }

    fn check_batch(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        match &mut self.batch_check {
            BatchCheck::CancellationOnly => Ok(batch),
            BatchCheck::Scanned => {
                let mut parts = VecDeque::from(cut_rows(&batch, COLLECTED_BYTES_MAX as u64));
                match parts.pop_front() {
                    Some(first) if !parts.is_empty() => {
                        self.parts = parts;
                        compact(&first)
                    }
                    _ => Ok(batch),
                }
            }
            BatchCheck::Collected(rows) => {
                let too_many = rows.add(&batch);
                self.check_collected(too_many)?;
                Ok(batch)
            }
            BatchCheck::BelowGroupingSets { rows } => {
                let rows = *rows;
                Ok(self.take_first_rows(batch, rows))
            }
            BatchCheck::Repeated(repeated) => {
                let repeated = *repeated;
                self.check_row_width(&batch, repeated)?;
                Ok(self.take_first_rows(batch, repeated.batch_rows))
            }
            BatchCheck::BelowWindow { rows, is_streaming } => {
                rows.add(batch.num_rows());
                if !*is_streaming {
                    self.reservation.try_grow(batch_bytes(&batch))?;
                }
                Ok(batch)
            }
            BatchCheck::AboveWindow { is_streaming, .. } => {
                if let Some(account) = self.account.as_ref().filter(|_| *is_streaming) {
                    account.release();
                }
                Ok(batch)
            }
        }
    }

    /// Rows that are too wide restart the plan, as long as none of its rows were sent. After that, the repeated rows
    /// count against the memory of the query.
    fn check_row_width(&mut self, batch: &RecordBatch, repeated: RepeatedRows) -> Result<()> {
        let Some(too_wide) = repeated.check_batch(batch) else { return Ok(()) };
        if self.cancellation.has_sent_rows() && repeated.batch_rows > 1 {
            let bytes = too_wide.bytes.saturating_mul(repeated.batch_rows);
            if self.reservation.try_resize(bytes.max(self.reservation.size())).is_ok() {
                return Ok(());
            }
        }
        Err(DataFusionError::External(Box::new(too_wide)))
    }

    /// As [`Self::check_row_width`], for the bytes of collected rows and the width of one of them.
    fn check_collected(&mut self, too_many: Option<(usize, RowsTooWide)>) -> Result<()> {
        let Some((bytes, too_wide)) = too_many else { return Ok(()) };
        if !self.cancellation.has_sent_rows() {
            return Err(DataFusionError::External(Box::new(too_wide)));
        }
        self.reservation.try_resize(bytes.max(self.reservation.size()))
    }

    fn take_first_rows(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        if batch.num_rows() <= rows {
            return batch;
        }
        self.remaining = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }
}

#[derive(Debug)]
struct CancellableExpr {
    inner: Arc<dyn PhysicalExpr>,
    cancellation: QueryCancellation,
}

tidegate_pgsql::compare_by!(CancellableExpr { inner });

impl fmt::Display for CancellableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for CancellableExpr {
    tidegate_pgsql::delegate_to! { inner =>
        fn data_type(&self, schema: &Schema) -> Result<DataType>;
        fn nullable(&self, schema: &Schema) -> Result<bool>;
        fn return_field(&self, schema: &Schema) -> Result<FieldRef>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancellation.check_cancelled()?;
        self.inner.evaluate(batch)
    }

    fn evaluate_selection(&self, batch: &RecordBatch, selection: &BooleanArray) -> Result<ColumnarValue> {
        self.cancellation.check_cancelled()?;
        self.inner.evaluate_selection(batch, selection)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| self.inner.clone());
        Ok(Arc::new(Self { inner, cancellation: self.cancellation.clone() }))
    }
}
