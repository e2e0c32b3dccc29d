//! An operator that stands above or below another one and looks at each batch.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ChildrenPropertiesMode::Recompute;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};

use super::super::bytes::bytes_of;
use super::super::width::Repeated;
use super::super::windows::{Account, WindowRows};
use super::Wanted;

/// What is done with the batches of an operator, beside asking whether they are wanted.
#[derive(Debug, Clone)]
pub(super) enum Look {
    /// Nothing.
    Only,
    /// They go to an operator that repeats their rows.
    Repeated(Repeated),
    /// They go to an operator of windows, which holds all of them if it is not `is_streaming`.
    BelowWindow { rows: WindowRows, is_streaming: bool },
    /// They come from an operator of windows.
    AboveWindow { rows: WindowRows, is_streaming: bool },
}

/// An operator whose batches are only handed on while the query is wanted.
#[derive(Debug)]
pub(super) struct GuardExec {
    pub(super) input: Arc<dyn ExecutionPlan>,
    pub(super) wanted: Wanted,
    pub(super) look: Look,
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
        Ok(Arc::new(Self { input, wanted: self.wanted.clone(), look: self.look.clone() }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.wanted.check()?;
        let held = MemoryConsumer::new("rows that are held or repeated").register(context.memory_pool());
        let account = match &self.look {
            Look::AboveWindow { rows, .. } => Some(Arc::new(Account::new(rows.clone(), context.memory_pool()))),
            _ => None,
        };
        let input = make_cooperative(self.input.execute(partition, context)?);
        let (wanted, look) = (self.wanted.clone(), self.look.clone());
        Ok(Box::pin(GuardedStream { input, wanted, look, account, held, rest: None }))
    }
}

struct GuardedStream {
    input: SendableRecordBatchStream,
    wanted: Wanted,
    look: Look,
    /// Of what a window makes while it is asked for a batch.
    account: Option<Arc<Account>>,
    held: MemoryReservation,
    /// What is left of a batch that is longer than those of the plan.
    rest: Option<RecordBatch>,
}

impl GuardedStream {
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(Ok(rest)));
        }
        match &self.account {
            Some(account) => account.of_all_within(|| self.input.poll_next_unpin(context)),
            None => self.input.poll_next_unpin(context),
        }
    }

    fn look_at(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        match &self.look {
            Look::Only => Ok(batch),
            Look::Repeated(repeated) => {
                let repeated = *repeated;
                self.admit(&batch, repeated)?;
                Ok(self.first_of(batch, repeated.batch_rows))
            }
            Look::BelowWindow { rows, is_streaming } => {
                rows.add(batch.num_rows());
                if !is_streaming {
                    let bytes = batch.columns().iter().map(|column| bytes_of(column)).sum();
                    self.held.try_grow(bytes)?;
                }
                Ok(batch)
            }
            Look::AboveWindow { is_streaming, .. } => {
                if let Some(account) = self.account.as_ref().filter(|_| *is_streaming) {
                    account.settle();
                }
                Ok(batch)
            }
        }
    }

    /// Rows that are too wide make the plan begin anew, as long as nothing of it was handed over; then what they become
    /// is part of the query's memory.
    fn admit(&mut self, batch: &RecordBatch, repeated: Repeated) -> Result<()> {
        let Some(too_wide) = repeated.excess(batch) else { return Ok(()) };
        if self.wanted.has_handed_over() && repeated.batch_rows > 1 {
            let bytes = too_wide.bytes.saturating_mul(repeated.batch_rows);
            if self.held.try_resize(bytes.max(self.held.size())).is_ok() {
                return Ok(());
            }
        }
        Err(DataFusionError::External(Box::new(too_wide)))
    }

    fn first_of(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        if batch.num_rows() <= rows {
            return batch;
        }
        self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        batch.slice(0, rows)
    }
}

impl Stream for GuardedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.wanted.check()?;
        let polled = self.poll_input(context);
        polled.map(|batch| batch.map(|batch| self.look_at(batch?)))
    }
}

impl RecordBatchStream for GuardedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
