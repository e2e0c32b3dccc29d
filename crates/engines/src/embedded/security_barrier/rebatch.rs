//! Forms batches whose boundaries depend only on visible rows.
//!
//! The plan below forms its batches from all rows that it reads. The plan above can reveal the end of a batch: by the
//! row whose error is reported first, or by the order of groups.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{EmissionType, reset_plan_states};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

use crate::embedded::row_bytes::measure_rows;

/// Approximate number of bytes at which a batch is complete, even with fewer rows than the maximum.
const BATCH_BYTES: u64 = 2 << 20;

/// Forms new batches from its input, separately in each partition.
#[derive(Debug)]
pub(super) struct RebatchExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl RebatchExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            input.equivalence_properties().clone(),
            input.output_partitioning().clone(),
            EmissionType::Incremental,
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

tidegate_pgsql::display_as_name!(RebatchExec);

impl ExecutionPlan for RebatchExec {
    fn name(&self) -> &str {
        "RebatchExec"
    }

    tidegate_pgsql::operator_methods!(input, |_, input| Self::new(input));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(reset_plan_states(self.input.clone())?)))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let rebatcher = Rebatcher::new(self.schema(), context.session_config().batch_size());
        let batches = futures::stream::try_unfold((input, rebatcher), |(mut input, mut rebatcher)| async move {
            let batch = loop {
                if let Some(batch) = rebatcher.next() {
                    break Some(batch);
                }
                match input.next().await.transpose()? {
                    Some(batch) => rebatcher.push(&batch)?,
                    None if rebatcher.finish()? => {}
                    None => break None,
                }
            };
            Ok(batch.map(|batch| (batch, (input, rebatcher))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

struct Rebatcher {
    rows: BatchCoalescer,
    /// Approximate number of bytes of the rows that are not in a batch yet.
    bytes: u64,
    rows_max: usize,
}

impl Rebatcher {
    fn new(schema: SchemaRef, rows_max: usize) -> Self {
        let rows_max = rows_max.max(1);
        Self { rows: BatchCoalescer::new(schema, rows_max), bytes: 0, rows_max }
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut begun = 0;
        for (row, width) in measure_rows(batch).into_iter().enumerate() {
            self.bytes = self.bytes.saturating_add(width);
            let is_full = self.rows.get_buffered_rows() + (row + 1 - begun) >= self.rows_max;
            if is_full || self.bytes >= BATCH_BYTES {
                self.rows.push_batch(batch.slice(begun, row + 1 - begun))?;
                self.rows.finish_buffered_batch()?;
                self.bytes = 0;
                begun = row + 1;
            }
        }
        if begun < batch.num_rows() {
            self.rows.push_batch(batch.slice(begun, batch.num_rows() - begun))?;
        }
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, StringViewArray};
    use proptest::prelude::*;

    use super::*;

    fn rows(lengths: &[usize], is_view: bool) -> RecordBatch {
        let texts = lengths.iter().map(|length| (*length > 0).then(|| "x".repeat(*length)));
        let texts: ArrayRef = match is_view {
            true => Arc::new(StringViewArray::from_iter(texts)),
            false => Arc::new(StringArray::from_iter(texts)),
        };
        let ids: ArrayRef = Arc::new((0_i64..).take(lengths.len()).collect::<Int64Array>());
        RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("text", texts, true)]).unwrap()
    }

    fn rebatch_all(pieces: &[RecordBatch], rows_max: usize) -> Vec<RecordBatch> {
        let mut rebatcher = Rebatcher::new(pieces[0].schema(), rows_max);
        let mut batches = Vec::new();
        for piece in pieces {
            rebatcher.push(piece).unwrap();
            batches.extend(std::iter::from_fn(|| rebatcher.next()));
        }
        rebatcher.finish().unwrap();
        batches.extend(std::iter::from_fn(|| rebatcher.next()));
        batches
    }

    proptest! {
        #[test]
        fn batches_do_not_depend_on_input_batches(
            lengths in prop::collection::vec(prop_oneof![9 => 0_usize..20, 1 => Just(900_000_usize)], 1..40),
            mut borders in prop::collection::vec(0_usize..40, 0..8),
            rows_max in 1_usize..12,
            is_view in any::<bool>(),
        ) {
            let whole = rows(&lengths, is_view);
            borders.iter_mut().for_each(|border| *border = (*border).min(lengths.len()));
            borders.extend([0, lengths.len()]);
            borders.sort_unstable();
            let pieces: Vec<RecordBatch> =
                borders.windows(2).map(|ends| whole.slice(ends[0], ends[1] - ends[0])).collect();
            let batches = rebatch_all(&pieces, rows_max);
            prop_assert_eq!(&batches, &rebatch_all(std::slice::from_ref(&whole), rows_max));
            prop_assert_eq!(datafusion::arrow::compute::concat_batches(&whole.schema(), &batches).unwrap(), whole);
            for (index, batch) in batches.iter().enumerate() {
                let wide = lengths.iter().any(|length| *length > 20);
                let is_whole = batch.num_rows() == rows_max || index + 1 == batches.len() || wide;
                prop_assert!(batch.num_rows() <= rows_max && is_whole);
            }
        }
    }
}
