//! Forwards the remaining rows of a statement through a short channel, in a task that watches the client.
//!
//! Back-pressure: if the client stops reading, the channel is full, the socket is not read, and the server stops. If
//! the client stops for too long, the statement is cancelled. A stopped client therefore cannot hold a connection or a
//! snapshot of the server.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, batch_channel};
use tokio_util::sync::CancellationToken;

use crate::pool::BackgroundTasks;
use crate::running_statement::RunningStatement;

/// Forwards the remaining rows of `running_statement`. Ends early if `cancellation` fires or if the stream is dropped.
pub(crate) fn spawn_forwarder(
    running: RunningStatement,
    background_tasks: Arc<BackgroundTasks>,
    cancellation: CancellationToken,
    stall: Duration,
) -> BoxStream<'static, Result<RecordBatch, Error>> {
    let (sender, batches) = batch_channel(cancellation.clone(), ());
    let closing = background_tasks.closing.clone();
    background_tasks.spawn(async move {
        let outcome = tokio::select! {
            biased;
            () = sender.closed() => return,
            () = cancellation.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = forward_batches(running, &sender, stall) => outcome,
        };
        match outcome {
            Ok(()) => sender.complete(),
            // Waits for the client without holding a batch.
            Err(error) => tokio::select! {
                () = closing.cancelled() => {}
                () = cancellation.cancelled() => {}
                () = sender.fail(error) => {}
            },
        }
    });
    batches
}

async fn forward_batches(mut running: RunningStatement, batches: &BatchSender, stall: Duration) -> Result<(), Error> {
    let context = running.context().clone();
    loop {
        let batch = match running.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(failure) => {
                running.recover_lease(&failure).await;
                return Err(failure.into_error(&context));
            }
        };
        let place = match tokio::time::timeout(stall, batches.reserve()).await {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(_) => return Err(stall_error(stall)),
        };
        place.send(Ok(batch));
    }
    running.finish().await.map_err(|failure| failure.into_error(&context))
}

fn stall_error(stall: Duration) -> Error {
    let seconds = stall.as_secs_f64();
    let message = format!("the client read no rows for {seconds} s, so the query was cancelled");
    Error::new(ErrorKind::TimedOut, message).with_hint("Read the rows faster, or request fewer rows.")
}
