//! An operator above or below another one that checks each batch.

use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use futures::StreamExt;
use tidegate_query::batch_bytes;

use super::super::query_cancellation::QueryCancellation;
use super::super::repeated_rows::RepeatedRows;
use super::super::windows::{WindowMemory, WindowRows};

#[derive(Debug, Clone)]
pub(super) enum BatchCheck {
    CancellationOnly,
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
pub(super) struct CancellationExec {
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) cancellation: QueryCancellation,
    pub(super) batch_check: BatchCheck,
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
}

impl CancellableBatches {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.cancellation.check_cancelled()?;
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
        match &self.batch_check {
            BatchCheck::CancellationOnly => Ok(batch),
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
                if !is_streaming {
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

    fn take_first_rows(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        if batch.num_rows() <= rows {
            return batch;
        }
        self.remaining = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }
}
