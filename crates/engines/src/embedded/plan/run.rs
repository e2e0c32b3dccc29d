//! Runs a plan on the principal's worker pool and sends its batches through a short channel.
//!
//! If the reader pauses, the query pauses: the channel is full and the operators wait. If the reader is dropped, the
//! job is cancelled or the engine shuts down, the stream is dropped, and with it every task that DataFusion started for
//! it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, QueryRows, batch_bytes, batch_channel};
use tidegate_runtime::Job;
use tidegate_runtime::event::QueryStep;
use tokio::sync::oneshot;

use super::repeated_rows::RowsTooWide;
use super::{EmbeddedPlan, errors};
use crate::embedded::decode_budget::PAUSE_MAX;
use crate::embedded::files::CHANGED_WHILE_READ;
use crate::embedded::scan::{find_cause, is_retryable};

/// Maximum number of bytes of a batch that is sent. Larger batches are split.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of times that a statement restarts because of changed files.
const REPLANS_MAX: usize = 8;
/// Maximum number of times that it restarts because of column corrections, each of which is new.
const CORRECTIONS_MAX: usize = 64;

/// Starts `plan`. It ends early when `job` is cancelled or the rows are dropped. Returns with the first rows, because
/// the columns are final only then.
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
        // Stops expressions that are being evaluated on other threads.
        token.cancel();
        let error = match outcome {
            None => return,
            Some(Ok(Ok(()))) => return sender.complete(),
            Some(Ok(Err(error))) => error,
            Some(Err(panic)) => Error::internal(format!("a query panicked: {}", panic_message(&*panic))),
        };
        sender.fail(error).await;
    });
    // Without a first batch, an error follows, or the reader is gone.
    let schema = beginning.await.unwrap_or(planned_schema);
    QueryRows::new(schema, batches)
}

/// Runs the plan until it ends or the reader is gone. Before the first batch is sent, it restarts with shorter batches
/// if rows are too wide, and with a new plan if files changed or a column was corrected.
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
        let is_corrected = is_retryable(&error);
        let is_outdated = is_corrected || error.to_string().contains(CHANGED_WHILE_READ);
        let replans_max = if is_corrected { CORRECTIONS_MAX } else { REPLANS_MAX };
        let may_plan_again = plan.source.is_some() && planned_again < replans_max;
        if is_outdated && may_plan_again && !plan.cancellation.has_sent_rows() {
            planned_again += 1;
            report_step(&plan, QueryStep::Retried { reason: "its files changed, or a column was corrected" });
            plan.replan().await?;
            continue;
        }
        let batch_rows = plan.session.config().batch_size();
        match find_cause::<RowsTooWide>(&error) {
            Some(too_wide) if batch_rows > 1 && !plan.cancellation.has_sent_rows() => {
                plan.shorten_batches(too_wide.batch_rows(batch_rows)).await.map_err(failed)?;
            }
            _ => return Err(failed(error)),
        }
    }
}

/// Runs the plan once, until it ends or the reader is gone.
async fn run_once(
    plan: &EmbeddedPlan,
    batches: &BatchSender,
    begun: &mut Option<oneshot::Sender<SchemaRef>>,
) -> Result<(), DataFusionError> {
    // The receiver may be gone.
    let mut begin = || {
        if let Some(begun) = begun.take() {
            let _ = begun.send(plan.schema.clone());
        }
    };
    let mut stream = execute_stream(plan.physical.clone(), plan.session.task_context())?;
    while let Some(batch) = stream.next().await {
        if !plan.cancellation.has_sent_rows() {
            report_spills(plan);
        }
        for piece in split_batch(&with_output_schema(plan, &batch?)?) {
            begin();
            let reader = plan.cancellation.reader();
            reader.begin();
            let slot = tokio::select! {
                biased;
                slot = batches.reserve() => slot,
                () = reader.stopped() => return Err(unread_answer_error()),
            };
            reader.end();
            let Some(slot) = slot else { return Ok(()) };
            plan.cancellation.mark_rows_sent();
            slot.send(Ok(piece));
        }
    }
    begin();
    Ok(())
}

fn unread_answer_error() -> DataFusionError {
    let seconds = PAUSE_MAX.as_secs();
    let message = format!("the answer was not read for {seconds} s while other queries waited for its memory");
    let error = Error::new(ErrorKind::Unavailable, message);
    DataFusionError::External(Box::new(error.with_hint("Read the answer without pauses, or request fewer rows.")))
}

fn report_step(plan: &EmbeddedPlan, step: QueryStep<'_>) {
    if let Some(job) = plan.cancellation.job() {
        job.report_step(step);
    }
}

/// Reports what operators wrote to disk before the first row; sorts and aggregations have read all their input then.
fn report_spills(plan: &EmbeddedPlan) {
    let (mut files, mut bytes) = (0, 0);
    let mut operators = vec![&plan.physical];
    while let Some(operator) = operators.pop() {
        if let Some(metrics) = operator.metrics() {
            files += metrics.spill_count().unwrap_or_default();
            bytes += metrics.spilled_bytes().unwrap_or_default();
        }
        operators.extend(operator.children());
    }
    if files > 0 {
        report_step(plan, QueryStep::Spilled { files, bytes });
    }
}

fn with_output_schema(plan: &EmbeddedPlan, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(plan.schema.clone(), columns, &options)?)
}

fn split_batch(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<'_> {
    let rows = batch.num_rows();
    let count = batch_bytes(batch).div_ceil(PIECE_BYTES_MAX).clamp(1, rows.max(1));
    let piece_rows = rows.div_ceil(count).max(1);
    (0..rows).step_by(piece_rows).map(move |start| batch.slice(start, piece_rows.min(rows - start)))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
