//! Running a plan on the lane of who asks, its batches handed over through a short channel.
//!
//! A reader that stops stops the query: the channel is full and the operators wait. A reader that
//! goes away, a job that is cancelled and an engine that shuts down end it: the stream is dropped,
//! and with it every task that DataFusion started for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, Job};
use tidegate_query::{BatchSender, Rows, handover};
use tokio::sync::oneshot;

use super::bytes::bytes_of;
use super::width::TooWide;
use super::{EmbeddedPlan, errors};
use crate::embedded::scan::teaches;
use crate::embedded::store::CHANGED;

/// Bytes of a batch that is handed over; larger ones are handed over in pieces.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// Times that a statement begins anew because of what it found in files.
const PLANNED_AGAIN_MAX: usize = 8;

/// Starts `plan`; it ends early when `job` is cancelled or the rows are dropped. Returns with the first rows, since the
/// columns are certain only then.
pub(super) async fn start(plan: EmbeddedPlan, job: &Arc<Job>) -> Rows {
    let cancellation = job.cancellation();
    let planned_schema = plan.schema.clone();
    let (begun, beginning) = oneshot::channel();
    let stops_the_query = plan.wanted.token().clone().drop_guard();
    let (sender, batches) = handover(cancellation.clone(), stops_the_query);
    plan.wanted.no_longer_than(job.clone());
    let lane = plan.lane.clone();
    lane.spawn(async move {
        let token = plan.wanted.token().clone();
        let work = AssertUnwindSafe(pump(plan, sender.clone(), begun)).catch_unwind();
        let outcome = tokio::select! {
            biased;
            () = token.cancelled() => None,
            () = cancellation.cancelled() => None,
            outcome = work => Some(outcome),
        };
        // Tells the expressions that are being evaluated on other threads.
        token.cancel();
        let error = match outcome {
            None => return,
            Some(Ok(Ok(()))) => return sender.complete(),
            Some(Ok(Err(error))) => error,
            Some(Err(panic)) => Error::internal(format!("a query panicked: {}", text_of(&*panic))),
        };
        sender.fail(error).await;
    });
    // Without a beginning there is an error to come, or nobody who waits.
    let schema = beginning.await.unwrap_or(planned_schema);
    Rows { schema, batches }
}

/// Runs the plan to its end, or until nobody reads. As long as nothing of it is handed over, rows that are too wide for
/// its batches make it begin anew with shorter ones, and files that are others than those it was made for, or whose
/// rows taught something about their columns, make it begin anew with another plan.
async fn pump(mut plan: EmbeddedPlan, batches: BatchSender, begun: oneshot::Sender<SchemaRef>) -> Result<(), Error> {
    let database = plan.database.clone();
    let failed = |error: DataFusionError| errors::error_of(&error, &database);
    let mut begun = Some(begun);
    let mut planned_again = 0;
    loop {
        let Err(error) = attempt(&plan, &batches, &mut begun).await else { return Ok(()) };
        let is_outdated = teaches(&error) || error.to_string().contains(CHANGED);
        let may_plan_again = plan.origin.is_some() && planned_again < PLANNED_AGAIN_MAX;
        if is_outdated && may_plan_again && !plan.wanted.has_handed_over() {
            planned_again += 1;
            plan.plan_again().await?;
            continue;
        }
        let batch_rows = plan.session.config().batch_size();
        match TooWide::told_by(&error) {
            Some(too_wide) if batch_rows > 1 && !plan.wanted.has_handed_over() => {
                plan.shorten_batches(too_wide.batch_rows(batch_rows)).await.map_err(failed)?;
            }
            _ => return Err(failed(error)),
        }
    }
}

/// Runs the plan to its end, or until nobody reads.
async fn attempt(
    plan: &EmbeddedPlan,
    batches: &BatchSender,
    begun: &mut Option<oneshot::Sender<SchemaRef>>,
) -> Result<(), DataFusionError> {
    // Whoever waits for it may be gone.
    let mut begin = || {
        if let Some(begun) = begun.take() {
            let _ = begun.send(plan.schema.clone());
        }
    };
    let mut stream = execute_stream(plan.physical.clone(), plan.session.task_ctx())?;
    while let Some(batch) = stream.next().await {
        for piece in pieces(&shown(plan, &batch?)?) {
            begin();
            let Some(place) = batches.reserve().await else { return Ok(()) };
            plan.wanted.hands_over();
            place.send(Ok(piece));
        }
    }
    begin();
    Ok(())
}

/// `batch` with the names of columns that an answer shows.
fn shown(plan: &EmbeddedPlan, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(plan.schema.clone(), columns, &options)?)
}

/// `batch` in slices of a bounded size, but at least one row each.
fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<'_> {
    let rows = batch.num_rows();
    let bytes: usize = batch.columns().iter().map(|column| bytes_of(column.as_ref())).sum();
    let count = bytes.div_ceil(PIECE_BYTES_MAX).clamp(1, rows.max(1));
    let piece_rows = rows.div_ceil(count).max(1);
    (0..rows).step_by(piece_rows).map(move |start| batch.slice(start, piece_rows.min(rows - start)))
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
