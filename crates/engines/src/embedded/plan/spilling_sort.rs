//! Sorts that spill instead of failing when memory is short.
//!
//! DataFusion's `SortExec` runs unchanged, with a memory pool for each of its partitions ([`SorterPool`]). Its input
//! and its output are copied where they refer to much more memory than their rows need: a Parquet text refers to the
//! whole page that it was read from, and a merged text to the batches of all its neighbours. The sort would count that
//! memory, and the merge above it would count it once more for each batch.
//!
//! DataFusion's sorter fails, instead of spilling, when memory is short at certain moments: with its first batch, and
//! while it merges. In a pool that it shares with other partitions and operators, these take the memory that it needs
//! then. So each partition has a pool of its own. The pool has a part that no other operator can take, and grows
//! beyond it while the query's pool permits, and while the sorts of all queries together are within their share.
//!
//! DataFusion's issues 12136, 17334 and 24739; `docs/decisions/upstream` says when the module can go.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::{fmt, mem};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use crate::embedded::memory::{PlanSorts, QueryMemoryPool, SortShare};
use crate::embedded::row_bytes::compact;

/// A sort of at most this size does not reserve memory in advance.
const SMALL_SORT_BYTES: usize = 1 << 20;
/// Maximum number of bytes of a batch in a sort, unless one row is larger.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// Number of batches that must fit into the memory of a sort, so that it can merge some spilled runs at once.
const BATCHES_MIN: usize = 16;

/// Replaces the sorts in `plan` that may spill. They share memory with the sorts of other queries.
pub(super) fn bound_sorts(plan: Arc<dyn ExecutionPlan>, share: &Arc<SortShare>) -> Result<Arc<dyn ExecutionPlan>> {
    // A sort with a limit keeps few rows, and cannot spill.
    let spilling =
        |node: &Arc<dyn ExecutionPlan>| node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()).cloned();
    let mut sorters = 0;
    plan.apply(|node| {
        sorters += spilling(node).map_or(0, |sort| sort.input().output_partitioning().partition_count());
        Ok(TreeNodeRecursion::Continue)
    })?;
    let sorts = Arc::new(PlanSorts::new(sorters, share.clone()));
    plan.transform_up(|node| {
        Ok(match spilling(&node) {
            Some(sort) => {
                let (input, expr, properties) = (sort.input().clone(), sort.expr().clone(), sort.properties().clone());
                Transformed::yes(Arc::new(SpillingSortExec {
                    input,
                    expr,
                    properties,
                    sorts: sorts.clone(),
                    started: Arc::default(),
                }))
            }
            None => Transformed::no(node),
        })
    })
    .data()
}

#[derive(Debug)]
struct SpillingSortExec {
    input: Arc<dyn ExecutionPlan>,
    expr: LexOrdering,
    properties: Arc<PlanProperties>,
    /// All sorts of the plan.
    sorts: Arc<PlanSorts>,
    /// DataFusion's sorts of the partitions, for their metrics.
    started: Arc<Mutex<Vec<SortExec>>>,
}

tidegate_pgsql::display_as_name!(SpillingSortExec);

impl ExecutionPlan for SpillingSortExec {
    fn name(&self) -> &str {
        "SpillingSortExec"
    }

    tidegate_pgsql::operator_methods!(input, |sort, input| Self {
        input,
        expr: sort.expr.clone(),
        properties: sort.properties.clone(),
        sorts: sort.sorts.clone(),
        started: Arc::default()
    });

    fn metrics(&self) -> Option<MetricsSet> {
        let mut metrics = MetricsSet::new();
        let started = self.started.lock();
        let sets = started.iter().filter_map(|sort| sort.metrics());
        sets.for_each(|set| set.iter().for_each(|metric| metrics.push(metric.clone())));
        Some(metrics)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let pool = Arc::new(SorterPool::new(context.memory_pool().clone(), self.sorts.clone()));
        let input = SorterInput {
            rows: self.input.execute(partition, context.clone())?,
            pieces: VecDeque::new(),
            batch_bytes: batch_bytes(pool.sort_bytes_max()?),
            pool,
            expr: self.expr.clone(),
            sorts: self.sorts.clone(),
            started: self.started.clone(),
            batch_rows: context.session_config().batch_size(),
        };
        let sorted = futures::stream::once(input.sort(context)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), sorted)))
    }
}

/// The number of bytes of a batch in a sort that has `sort_bytes`.
fn batch_bytes(sort_bytes: usize) -> usize {
    (sort_bytes / BATCHES_MIN).min(BATCH_BYTES_MAX)
}

/// The rows of one partition, on their way to DataFusion's sorter.
struct SorterInput {
    rows: SendableRecordBatchStream,
    pieces: VecDeque<RecordBatch>,
    pool: Arc<SorterPool>,
    expr: LexOrdering,
    sorts: Arc<PlanSorts>,
    started: Arc<Mutex<Vec<SortExec>>>,
    batch_bytes: usize,
    batch_rows: usize,
}

impl SorterInput {
    async fn sort(mut self, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (schema, expr, pool) = (self.rows.schema(), self.expr.clone(), self.pool.clone());
        let started = self.started.clone();
        self.read_first_rows(&context).await?;
        let context = Arc::new(self.sorter_context(&context));
        let rows = futures::stream::try_unfold(self, |mut input| async move {
            Ok(input.next().await?.map(|batch| (batch, input)))
        });
        let rows: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), rows));
        let source: Arc<dyn PartitionStream> =
            Arc::new(SorterStream { schema: schema.clone(), rows: Mutex::new(Some(rows)) });
        let input = StreamingTableExec::try_new(schema.clone(), vec![source], None, [], false, None)?;
        let sort = SortExec::new(expr, Arc::new(input));
        let sorted = sort.execute(0, context)?;
        started.lock().push(sort);
        let compacted = sorted.map(move |batch| {
            pool.release_excess();
            compact(&batch?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, compacted)))
    }

    /// Reads rows until they are too many for a small sort, and then reserves memory. Their size determines how many make a
    /// batch.
    async fn read_first_rows(&mut self, context: &TaskContext) -> Result<()> {
        let (mut first, mut bytes, mut row_bytes) = (Vec::new(), 0, 1);
        while bytes <= SMALL_SORT_BYTES
            && let Some(batch) = self.rows.next().await.transpose()?
        {
            let batch = compact(&batch)?;
            let (batch_bytes, merge_bytes) = self.sorting_bytes(&batch)?;
            bytes += batch_bytes + merge_bytes;
            row_bytes = row_bytes.max(row_bytes_of(&batch));
            first.push(batch);
        }
        if bytes > SMALL_SORT_BYTES || !self.pool.try_enlarge(2 * bytes) {
            self.batch_bytes = batch_bytes(self.pool.reserve(BATCHES_MIN * row_bytes).await?);
            let merged_files_max = self.sorts.merged_files_max();
            context.runtime_env().disk_manager.set_max_spill_merge_fan_in(merged_files_max);
        }
        self.batch_rows = (self.batch_bytes / row_bytes).clamp(1, self.batch_rows);
        for batch in first {
            let pieces = self.split(batch)?;
            self.pieces.extend(pieces);
        }
        Ok(())
    }

    fn sorter_context(&self, context: &TaskContext) -> TaskContext {
        let environment = context.runtime_env();
        let environment = RuntimeEnv {
            memory_pool: self.pool.clone(),
            disk_manager: environment.disk_manager.clone(),
            cache_manager: environment.cache_manager.clone(),
            object_store_registry: environment.object_store_registry.clone(),
        };
        let mut config = context.session_config().clone().with_batch_size(self.batch_rows);
        let execution = &mut config.options_mut().execution;
        // The pool keeps memory for merging.
        execution.sort_spill_reservation_bytes = 0;
        // A concatenated batch becomes several sorted ones, each of which counts the texts of all.
        execution.sort_in_place_threshold_bytes = execution.sort_in_place_threshold_bytes.min(2 * self.batch_bytes);
        let (session, task) = (context.session_id(), context.task_id());
        let none = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        TaskContext::new(task, session, config, none.0, none.1, none.2, none.3, Arc::new(environment))
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        // The sorter is idle now: it has spilled, or holds unsorted batches.
        self.pool.release_excess();
        loop {
            if let Some(piece) = self.pieces.pop_front() {
                let (bytes, merge_bytes) = self.sorting_bytes(&piece)?;
                self.pool.announce_batch(bytes, merge_bytes);
                return Ok(Some(piece));
            }
            let Some(batch) = self.rows.next().await.transpose()? else { return Ok(None) };
            let pieces = self.split(compact(&batch)?)?;
            self.pieces.extend(pieces);
        }
    }

    /// What the sorter reserves for `batch`, and what merging it needs in addition.
    fn sorting_bytes(&self, batch: &RecordBatch) -> Result<(usize, usize)> {
        let bytes = get_record_batch_memory_size(batch);
        Ok((2 * bytes, key_bytes(&self.expr, batch)?.saturating_sub(bytes)))
    }

    fn split(&self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        let rows = batch.num_rows();
        let count = get_record_batch_memory_size(&batch).div_ceil(2 * self.batch_bytes.max(1)).max(1);
        let piece_rows = rows.div_ceil(count).min(self.batch_rows).max(1);
        if rows <= piece_rows {
            return Ok(vec![batch]);
        }
        let starts = (0..rows).step_by(piece_rows);
        starts.map(|start| compact(&batch.slice(start, piece_rows.min(rows - start)))).collect()
    }
}

/// Bytes of a row of `batch`, on average.
fn row_bytes_of(batch: &RecordBatch) -> usize {
    let bytes = get_record_batch_memory_size(batch).saturating_sub(256 * batch.num_columns());
    (bytes / batch.num_rows().max(1)).max(1)
}

/// Bytes of the encoded keys of `batch`, which the merge of several batches needs. A single key of a simple type is not
/// encoded.
fn key_bytes(expr: &LexOrdering, batch: &RecordBatch) -> Result<usize> {
    let schema = batch.schema();
    let mut bytes = batch.num_rows() * size_of::<usize>();
    for key in expr.iter() {
        let data_type = key.expr.data_type(&schema)?;
        let is_text_or_bytes = data_type.is_string() || matches!(data_type, DataType::Binary | DataType::LargeBinary);
        if expr.len() == 1 && (data_type.is_primitive() || is_text_or_bytes) {
            return Ok(0);
        }
        // A text of n bytes is encoded in up to 9/8 of n, and some more.
        bytes += match data_type.primitive_width() {
            Some(width) => (width + 1) * batch.num_rows(),
            None if data_type == DataType::Boolean => 2 * batch.num_rows(),
            None => {
                let values = key.expr.evaluate(batch)?.into_array(batch.num_rows())?;
                values.get_buffer_memory_size() / 8 * 9 + 16 * batch.num_rows()
            }
        };
    }
    Ok(bytes)
}

/// Passes on one stream of rows.
struct SorterStream {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

tidegate_core::impl_debug!(SorterStream, "SorterStream");

impl PartitionStream for SorterStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let executed_once = || {
            let error = futures::stream::once(async { Err(internal_datafusion_err!("a sort was executed twice")) });
            Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), error)) as SendableRecordBatchStream
        };
        self.rows.lock().take().unwrap_or_else(executed_once)
    }
}

/// The pool grows in steps of this size.
const STEP_BYTES: usize = 256 << 10;

#[derive(Debug)]
struct SorterPool {
    query: Arc<dyn MemoryPool>,
    /// What the pool reserved from the query's pool, beyond the part of the sort.
    more: MemoryReservation,
    sorts: Arc<PlanSorts>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The part of the sort, which is reserved for it.
    own_bytes: usize,
    /// Batches that wait to be sorted. The sorter spills them when this cannot grow.
    spillable_bytes: usize,
    unspillable_bytes: usize,
    /// What merging the waiting batches needs in addition to what the sorter reserves for them.
    merge_bytes: usize,
    /// Whether the sorter spills its batches before it receives the next one.
    must_spill: bool,
}

impl State {
    fn used_bytes(&self) -> usize {
        self.spillable_bytes + self.unspillable_bytes
    }

    /// What the pool must have when the sorter reserves `additional` bytes for batches.
    fn needed_for_batches(&self, additional: usize) -> usize {
        let used = self.used_bytes().saturating_add(additional);
        // An eighth in reserve: sizes before sorting are estimates.
        used.saturating_add(used / 8).saturating_add(self.merge_bytes)
    }

    fn reservation_mut(&mut self, reservation: &MemoryReservation) -> &mut usize {
        if reservation.consumer().can_spill() { &mut self.spillable_bytes } else { &mut self.unspillable_bytes }
    }
}

impl SorterPool {
    fn new(query: Arc<dyn MemoryPool>, sorts: Arc<PlanSorts>) -> Self {
        let more = MemoryConsumer::new("sort").register(&query);
        Self { query, more, sorts, state: Mutex::default() }
    }

    fn query_pool(&self) -> Result<&QueryMemoryPool> {
        self.query.downcast_ref().ok_or_else(|| internal_datafusion_err!("a sort runs outside of a query"))
    }

    /// What the sort reserves if no other query sorts.
    fn sort_bytes_max(&self) -> Result<usize> {
        Ok(self.query_pool()?.sort_bytes_max(self.sorts.sorters()))
    }

    /// Gives the pool its part of the memory that all sorts of the query reserve, at least `bytes_min` if the limits
    /// permit, and returns its size. Waits for a limited time while other queries hold the memory.
    async fn reserve(&self, bytes_min: usize) -> Result<usize> {
        let query = self.query_pool()?;
        query.limit_sorters(self.sorts.sorter_bytes(self.sort_bytes_max()?, bytes_min));
        let bytes = query.reserve_for_sorts(self.sorts.sorters()).await?;
        self.state.lock().own_bytes = bytes;
        Ok(bytes)
    }

    /// Enlarges the pool of a small sort to `bytes`, without waiting, even while others wait. Returns whether it succeeded.
    fn try_enlarge(&self, bytes: usize) -> bool {
        let state = self.state.lock();
        let capacity = state.own_bytes + self.more.size();
        bytes <= capacity || self.try_grow_more((bytes - capacity).next_multiple_of(STEP_BYTES)).is_ok()
    }

    fn try_grow_by(&self, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(STEP_BYTES);
        self.query_pool()?.check_more_for_sort(bytes)?;
        self.try_grow_more(bytes)
    }

    fn try_grow_more(&self, bytes: usize) -> Result<()> {
        self.more.try_grow(bytes)?;
        self.sorts.share().grow(bytes);
        Ok(())
    }

    /// Counts a batch that the sorter receives next: `bytes`, and what merging it needs in addition. If that is more than
    /// the sorts of all queries may have together, the sorter spills first.
    fn announce_batch(&self, bytes: usize, merge_bytes: usize) {
        let mut state = self.state.lock();
        state.merge_bytes += merge_bytes;
        let lacking = state.needed_for_batches(bytes).saturating_sub(state.own_bytes + self.more.size());
        state.must_spill = lacking > 0 && !self.sorts.share().has_room(lacking);
    }

    /// Returns memory to the query. Call it only while the sorter neither sorts nor begins to merge: a sorted batch
    /// is not counted while it is passed to the merge.
    fn release_excess(&self) {
        let state = self.state.lock();
        let needed = 2 * (state.used_bytes() + state.merge_bytes) + STEP_BYTES;
        let excess = (state.own_bytes + self.more.size()).saturating_sub(needed).min(self.more.size());
        if excess >= 4 * STEP_BYTES {
            self.more.shrink(excess);
            self.sorts.share().shrink(excess);
        }
    }
}

impl Drop for SorterPool {
    fn drop(&mut self) {
        self.sorts.share().shrink(self.more.size());
    }
}

impl MemoryPool for SorterPool {
    fn name(&self) -> &str {
        "sorter"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.state.lock().reservation_mut(reservation) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state.lock();
        *state.reservation_mut(reservation) -= shrink;
        if state.spillable_bytes == 0 {
            // The batches were spilled, or are being merged.
            state.merge_bytes = 0;
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state.lock();
        let can_spill = reservation.consumer().can_spill();
        if can_spill && mem::take(&mut state.must_spill) && state.spillable_bytes > 0 {
            let reason = "the sorter spills, because other queries sort".to_owned();
            return Err(DataFusionError::ResourcesExhausted(reason));
        }
        let needed = match can_spill {
            true => state.needed_for_batches(additional),
            false => state.used_bytes().saturating_add(additional),
        };
        let capacity = state.own_bytes + self.more.size();
        if needed > capacity {
            self.try_grow_by(needed - capacity)?;
        }
        *state.reservation_mut(reservation) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state.lock().used_bytes()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.query.memory_limit()
    }
}

impl fmt::Display for SorterPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
