//! Batches that are bounded in bytes.
//!
//! DataFusion's filter collects the rows that it selects until they are a whole batch, and copies them. This memory is
//! not accounted for: thousands of rows with a megabyte each are gigabytes. So the filter passes on the rows of each
//! batch, and an operator above it collects them until they have enough rows or bytes.
//!
//! The operator that distributes batches among partitions collects their rows, too. It does not if its input has no end:
//! there, its last rows would wait for others. Those that distribute whole batches in turns need no other ones, so
//! their inputs say that they have none. What distributes rows by their keys collects them: `cancellation.rs` checks
//! these.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::execution_plan::Boundedness;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions};
use futures::StreamExt;

use crate::embedded::row_bytes::{COLLECTED_BYTES_MAX, value_bytes};

/// With this batch size, a filter passes on the rows of each batch as they are.
const UNCOLLECTED_ROWS: usize = 1;

/// Limits the bytes of the batches that filters in `plan` make, and those that are distributed in turns.
pub(crate) fn bound_batches(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            let (input, batch_rows) = (Arc::new(filter.with_batch_size(UNCOLLECTED_ROWS)?), filter.batch_size());
            return Ok(Transformed::yes(Arc::new(SelectedRowsExec { input, batch_rows }) as Arc<dyn ExecutionPlan>));
        }
        if !distributes_in_turns(&node) {
            return Ok(Transformed::no(node));
        }
        let properties = node.properties().clone();
        let inputs = node.children().into_iter().map(without_end).collect();
        let input = node.replace_children(inputs, ReplaceChildrenOptions::new(Recompute))?;
        // The operators above it must know that there is an end.
        Ok(Transformed::yes(Arc::new(PassedBatchesExec { input, properties }) as Arc<dyn ExecutionPlan>))
    })
    .data()
}

/// Whether `node` distributes whole batches among partitions.
pub(super) fn distributes_in_turns(node: &Arc<dyn ExecutionPlan>) -> bool {
    let of_node = node.downcast_ref::<RepartitionExec>();
    of_node
        .is_some_and(|node| matches!(node.partitioning(), Partitioning::RoundRobinBatch(_)) && !node.preserve_order())
}

fn without_end(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let properties = PlanProperties::clone(input.properties());
    let properties = properties.with_boundedness(Boundedness::Unbounded { requires_infinite_memory: false });
    Arc::new(PassedBatchesExec { input: input.clone(), properties: Arc::new(properties) })
}

/// Passes on batches, with other properties than those of its input.
#[derive(Debug)]
struct PassedBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

tidegate_pgsql::display_as_name!(PassedBatchesExec);

impl ExecutionPlan for PassedBatchesExec {
    fn name(&self) -> &str {
        "PassedBatchesExec"
    }

    tidegate_pgsql::operator_methods!(input, |operator, input| Self { input, properties: operator.properties.clone() });

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}

/// Collects the rows that a filter selects.
#[derive(Debug)]
struct SelectedRowsExec {
    input: Arc<dyn ExecutionPlan>,
    batch_rows: usize,
}

tidegate_pgsql::display_as_name!(SelectedRowsExec);

impl ExecutionPlan for SelectedRowsExec {
    fn name(&self) -> &str {
        "SelectedRowsExec"
    }

    tidegate_pgsql::operator_methods!(input, |operator, input| Self { input, batch_rows: operator.batch_rows });

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let selected = SelectedRows::new(self.schema(), self.batch_rows);
        let batches = futures::stream::try_unfold((input, selected), |(mut input, mut selected)| async move {
            let batch = loop {
                if let Some(batch) = selected.next() {
                    break Some(batch);
                }
                match input.next().await.transpose()? {
                    Some(batch) => selected.push(batch)?,
                    None if selected.finish()? => {}
                    None => break None,
                }
            };
            Ok(batch.map(|batch| (batch, (input, selected))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

struct SelectedRows {
    rows: BatchCoalescer,
    /// The bytes of the rows that are not in a batch yet.
    bytes: u64,
}

impl SelectedRows {
    fn new(schema: SchemaRef, batch_rows: usize) -> Self {
        let rows = BatchCoalescer::new(schema, batch_rows.max(1));
        // As DataFusion's filter: a batch that is almost whole is not copied.
        Self { rows: rows.with_biggest_coalesce_batch_size(Some(batch_rows / 2)), bytes: 0 }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = value_bytes(&batch);
        if self.bytes.saturating_add(bytes) > COLLECTED_BYTES_MAX as u64 {
            self.rows.finish_buffered_batch()?;
        }
        self.rows.push_batch(batch)?;
        self.bytes = match self.rows.get_buffered_rows() {
            0 => 0,
            _ if self.rows.has_completed_batch() => bytes,
            _ => self.bytes + bytes,
        };
        Ok(())
    }

    fn next(&mut self) -> Option<RecordBatch> {
        self.rows.next_completed_batch()
    }

    /// Ends the last batch. Returns whether there is one.
    fn finish(&mut self) -> Result<bool> {
        self.rows.finish_buffered_batch()?;
        Ok(self.rows.has_completed_batch())
    }
}
