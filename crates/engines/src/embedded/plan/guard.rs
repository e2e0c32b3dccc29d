//! Stopping a query within a batch's time, wherever it is.
//!
//! DataFusion's operators give way to others only when they hand on a batch, and only each 128
//! batches. A join whose filter lets nothing pass hands on nothing for minutes. So the leaves and
//! the joins of a plan are wrapped, and the filters of joins as well: each batch and each
//! evaluation asks first whether the query is still wanted.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};
use tidegate_core::Job;
use tokio_util::sync::CancellationToken;

use super::width;

/// How the error of a query that is no longer wanted begins.
pub(crate) const NO_LONGER_WANTED: &str = "the query was cancelled";

/// Whether a query is still wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Fires when the query's rows are dropped, when it has ended, and when the engine shuts down.
    own: CancellationToken,
    /// The job that it runs for, once it runs. Asked directly: no task that would have to pass it on
    /// gets its turn while all threads compute.
    job: Arc<OnceLock<Arc<Job>>>,
}

impl Wanted {
    /// Wanted until the engine shuts down.
    pub(crate) fn until(closing: &CancellationToken) -> Self {
        Self { own: closing.child_token(), job: Arc::default() }
    }

    /// Wanted no longer than `job`.
    pub(crate) fn no_longer_than(&self, job: Arc<Job>) {
        // A plan runs once.
        let _ = self.job.set(job);
    }

    /// The job that it runs for, once it runs.
    pub(crate) fn job(&self) -> Option<&Arc<Job>> {
        self.job.get()
    }

    /// The token that ends the query.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.own
    }

    /// # Errors
    /// When it is not.
    pub(super) fn check(&self) -> Result<()> {
        if self.own.is_cancelled() || self.job.get().is_some_and(|job| job.is_cancelled()) {
            return Err(DataFusionError::Execution(NO_LONGER_WANTED.to_owned()));
        }
        Ok(())
    }
}

/// `plan`, which ends at the latest with its next batch once it is no longer wanted, and where a row is repeated that is
/// too wide for batches of `batch_rows`.
pub(crate) fn guarded(
    plan: Arc<dyn ExecutionPlan>,
    wanted: &Wanted,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let guard = |input, row_bytes_max| -> Arc<dyn ExecutionPlan> {
        Arc::new(GuardExec { input, wanted: wanted.clone(), row_bytes_max })
    };
    let row_bytes_max = width::row_bytes_max(batch_rows);
    plan.transform_up(|node| {
        let node = with_guarded_filter(node, wanted)?;
        if node.children().is_empty() {
            return Ok(Transformed::yes(guard(node, None)));
        }
        if !repeats(&node) {
            return Ok(Transformed::no(node));
        }
        let children = node.children().into_iter().map(|child| guard(child.clone(), row_bytes_max)).collect();
        let node = node.replace_children(children, ReplaceChildrenOptions::new(Recompute))?;
        Ok(Transformed::yes(if node.is::<ScalarSubqueryExec>() { node } else { guard(node, None) }))
    })
    .data()
}

/// Whether `node` may repeat the rows of what is below it.
fn repeats(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<UnnestExec>()
        || node.is::<ScalarSubqueryExec>()
}

fn with_guarded_filter(node: Arc<dyn ExecutionPlan>, wanted: &Wanted) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = guarded_filter(filter, wanted);
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        let filter = guarded_filter(filter, wanted);
        return HashJoinExecBuilder::from(join).with_filter(Some(filter)).build_exec();
    }
    Ok(node)
}

fn guarded_filter(filter: &JoinFilter, wanted: &Wanted) -> JoinFilter {
    let expression = GuardedExpr { inner: filter.expression().clone(), wanted: wanted.clone() };
    JoinFilter::new(Arc::new(expression), filter.column_indices().to_vec(), filter.schema().clone())
}

/// An operator whose batches are only handed on while the query is wanted.
#[derive(Debug)]
struct GuardExec {
    input: Arc<dyn ExecutionPlan>,
    wanted: Wanted,
    /// Of what is handed on to an operator that repeats it.
    row_bytes_max: Option<usize>,
}

impl DisplayAs for GuardExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for GuardExec {
    fn name(&self) -> &str {
        "GuardExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Self { input, wanted: self.wanted.clone(), row_bytes_max: self.row_bytes_max }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.wanted.check()?;
        let input = make_cooperative(self.input.execute(partition, context)?);
        Ok(Box::pin(GuardedStream { input, wanted: self.wanted.clone(), row_bytes_max: self.row_bytes_max }))
    }
}

struct GuardedStream {
    input: SendableRecordBatchStream,
    wanted: Wanted,
    row_bytes_max: Option<usize>,
}

impl Stream for GuardedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.wanted.check()?;
        let polled = self.input.poll_next_unpin(context);
        if let (Poll::Ready(Some(Ok(batch))), Some(row_bytes_max)) = (&polled, self.row_bytes_max) {
            width::check(batch, row_bytes_max)?;
        }
        polled
    }
}

impl RecordBatchStream for GuardedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// An expression that is only evaluated while the query is wanted.
#[derive(Debug)]
struct GuardedExpr {
    inner: Arc<dyn PhysicalExpr>,
    wanted: Wanted,
}

impl PartialEq for GuardedExpr {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for GuardedExpr {}

impl Hash for GuardedExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for GuardedExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for GuardedExpr {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.inner.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.inner.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.wanted.check()?;
        self.inner.evaluate(batch)
    }

    fn evaluate_selection(&self, batch: &RecordBatch, selection: &BooleanArray) -> Result<ColumnarValue> {
        self.wanted.check()?;
        self.inner.evaluate_selection(batch, selection)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let inner = children.pop().unwrap_or_else(|| self.inner.clone());
        Ok(Arc::new(Self { inner, wanted: self.wanted.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
