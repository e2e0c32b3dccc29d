//! Running a plan on the engine's threads, its batches handed over through a short channel.
//!
//! A reader that stops stops the query: the channel is full and the operators wait. A reader that
//! goes away, a job that is cancelled and an engine that shuts down end it: the stream is dropped,
//! and with it every task that DataFusion started for it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures::{FutureExt, StreamExt};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::Rows;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::guard::NO_LONGER_WANTED;
use super::{EmbeddedPlan, errors};

/// Batches that wait for the reader.
const BATCHES_WAITING_MAX: usize = 2;
/// Bytes of a batch that is handed over; larger ones are handed over in pieces.
const PIECE_BYTES_MAX: usize = 4 << 20;

type Batches = mpsc::Sender<Result<RecordBatch, Error>>;

/// Starts `plan`; it ends early when `cancellation` fires or the rows are dropped.
pub(super) fn start(plan: EmbeddedPlan, cancellation: CancellationToken) -> Rows {
    let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
    let schema = plan.schema.clone();
    let is_complete = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        batches: receiver,
        is_complete: is_complete.clone(),
        cancellation: cancellation.clone(),
        stops_the_query: plan.wanted.token().clone().drop_guard(),
        ended: false,
    };
    plan.wanted.no_longer_than(cancellation.clone());
    let engine = plan.engine.clone();
    engine.spawn(async move {
        let token = plan.wanted.token().clone();
        let work = AssertUnwindSafe(pump(plan, sender.clone())).catch_unwind();
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
            Some(Ok(Ok(()))) => return is_complete.store(true, Ordering::Release),
            Some(Ok(Err(error))) => error,
            Some(Err(panic)) => Error::internal(format!("a query panicked: {}", text_of(&*panic))),
        };
        // Nobody needs the error when nobody reads.
        let _ = sender.send(Err(error)).await;
    });
    let batches = futures::stream::unfold(reader, |mut reader| async move {
        let batch = reader.next().await?;
        Some((batch, reader))
    });
    Rows { schema, batches: Box::pin(batches) }
}

/// Runs the plan to its end, or until nobody reads.
async fn pump(plan: EmbeddedPlan, batches: Batches) -> Result<(), Error> {
    let failed = |error: DataFusionError| errors::error_of(&error, &plan.database);
    let mut stream = execute_stream(plan.physical.clone(), plan.session.task_ctx()).map_err(failed)?;
    while let Some(batch) = stream.next().await {
        for piece in pieces(&batch.map_err(failed)?) {
            if batches.send(Ok(piece)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// `batch` in slices of a bounded size, but at least one row each.
fn pieces(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> + use<'_> {
    let rows = batch.num_rows();
    let bytes: usize = batch.columns().iter().map(|column| bytes_of(column.as_ref())).sum();
    let count = bytes.div_ceil(PIECE_BYTES_MAX).clamp(1, rows.max(1));
    let piece_rows = rows.div_ceil(count).max(1);
    (0..rows).step_by(piece_rows).map(move |start| batch.slice(start, piece_rows.min(rows - start)))
}

/// Bytes of the values that an array shows, not of all that it holds on to.
fn bytes_of(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.len() * 16 + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => array.len() * 16 + array.as_binary_view().total_buffer_bytes_used(),
        _ => array.to_data().get_slice_memory_size().unwrap_or(0),
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// The reader's end.
struct Reader {
    batches: mpsc::Receiver<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
    cancellation: CancellationToken,
    #[expect(dead_code, reason = "it works when it is dropped")]
    stops_the_query: DropGuard,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.ended {
            return None;
        }
        let received = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Some(Err(Error::new(ErrorKind::Cancelled, NO_LONGER_WANTED))),
            received = self.batches.recv() => received,
        };
        self.ended = !matches!(received, Some(Ok(_)));
        match received {
            // The query's task ended without having come to its end.
            None if !self.is_complete.load(Ordering::Acquire) => {
                Some(Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")))
            }
            received => received,
        }
    }
}
