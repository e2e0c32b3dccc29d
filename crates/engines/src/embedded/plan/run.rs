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
use tidegate_query::{BatchSender, QueryRows, batch_channel};
use tokio::sync::oneshot;

use super::bytes::array_bytes;
use super::repeated_rows::RowsTooWide;
use super::{EmbeddedPlan, errors};
use crate::embedded::scan::is_retryable;
use crate::embedded::snapshot_store::CHANGED_WHILE_READ;

/// Bytes of a batch that is handed over; larger ones are handed over in pieces.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// Times that a statement begins anew because of what it found in files.
const REPLANS_MAX: usize = 8;

/// Starts `plan`; it ends early when `job` is cancelled or the rows are dropped. Returns with the first rows, since the
/// columns are certain only then.
pub(super) async fn start_query(plan: EmbeddedPlan, job: &Arc<Job>) -> QueryRows {
    let cancellation = job.cancellation();
    let planned_schema = plan.schema.clone();
    let (begun, beginning) = oneshot::channel();
    let stops_the_query = plan.cancellation.token().clone().drop_guard();
    let (sender, batches) = batch_channel(cancellation.clone(), stops_the_query);
    plan.cancellation.set_job(job.clone());
    let worker_pool = plan.pool.clone();
    worker_pool.spawn(async move {
        let token = plan.cancellation.token().clone();
        let work = AssertUnwindSafe(run_with_retries(plan, sender.clone(), begun)).catch_unwind();
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
            Some(Err(panic)) => Error::internal(format!("a query panicked: {}", panic_message(&*panic))),
        };
        sender.fail(error).await;
    });
    // Without a beginning there is an error to come, or nobody who waits.
    let schema = beginning.await.unwrap_or(planned_schema);
    QueryRows { schema, batches }
}

/// Runs the plan to its end, or until nobody reads. As long as nothing of it is handed over, rows that are too wide for
/// its batches make it begin anew with shorter ones, and files that are others than those it was made for, or whose
/// rows taught something about their columns, make it begin anew with another plan.
async fn run_with_retries(
    mut plan: EmbeddedPlan,
    batches: BatchSender,
    begun: oneshot::Sender<SchemaRef>,
) -> Result<(), Error> {
    let database = plan.database.clone();
    let failed = |error: DataFusionError| errors::to_core_error(&error, &database);
    let mut begun = Some(begun);
    let mut planned_again = 0;
    loop {
        let Err(error) = run_once(&plan, &batches, &mut begun).await else { return Ok(()) };
        let is_outdated = is_retryable(&error) || error.to_string().contains(CHANGED_WHILE_READ);
        let may_plan_again = plan.source.is_some() && planned_again < REPLANS_MAX;
        if is_outdated && may_plan_again && !plan.cancellation.has_sent_rows() {
            planned_again += 1;
            plan.replan().await?;
            continue;
        }
        let batch_rows = plan.session.config().batch_size();
        match RowsTooWide::find_in(&error) {
            Some(too_wide) if batch_rows > 1 && !plan.cancellation.has_sent_rows() => {
                plan.shorten_batches(too_wide.batch_rows(batch_rows)).await.map_err(failed)?;
            }
            _ => return Err(failed(error)),
        }
    }
}

/// Runs the plan to its end, or until nobody reads.
async fn run_once(
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
        for piece in split_batch(&with_output_schema(plan, &batch?)?) {
            begin();
            let Some(place) = batches.reserve().await else { return Ok(()) };
            plan.cancellation.mark_rows_sent();
            place.send(Ok(piece));
        }
    }
    begin();
    Ok(())
}

/// `convert_batch` with the names of columns that an answer shows.
fn with_output_schema(plan: &EmbeddedPlan, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(plan.schema.clone(), columns, &options)?)
}

/// `convert_batch` in slices of a bounded size, but at least one row each.
fn split_batch(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<'_> {
    let rows = batch.num_rows();
    let bytes: usize = batch.columns().iter().map(|column| array_bytes(column.as_ref())).sum();
    let count = bytes.div_ceil(PIECE_BYTES_MAX).clamp(1, rows.max(1));
    let piece_rows = rows.div_ceil(count).max(1);
    (0..rows).step_by(piece_rows).map(move |start| batch.slice(start, piece_rows.min(rows - start)))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
