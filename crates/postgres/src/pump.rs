//! The rows after the first ones, handed over through a short channel by a task that watches its reader.
//!
//! A reader that stops stops the server: the channel is full, the socket is not read. One that stops for too long loses
//! its connection, so that neither that nor the server's snapshot is held by somebody who has gone to sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::Stream;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::pool::House;
use crate::running::Running;

/// Batches that wait for the reader.
const BATCHES_WAITING_MAX: usize = 2;

type Batches = mpsc::Sender<Result<RecordBatch, Error>>;

/// Hands over what is left of `running`; ends early when `cancellation` fires or the stream is dropped.
pub(crate) fn start(
    running: Running,
    house: Arc<House>,
    cancellation: CancellationToken,
    stall: Duration,
) -> impl Stream<Item = Result<RecordBatch, Error>> + Send + use<> {
    let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
    let is_complete = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        batches: receiver,
        is_complete: is_complete.clone(),
        cancellation: cancellation.clone(),
        ended: false,
    };
    let closing = house.closing.clone();
    house.spawn(async move {
        let outcome = tokio::select! {
            biased;
            () = sender.closed() => return,
            () = cancellation.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = pump(running, &sender, stall) => outcome,
        };
        match outcome {
            Ok(()) => is_complete.store(true, Ordering::Release),
            // Waits for the reader without holding anything.
            Err(error) => tokio::select! {
                () = closing.cancelled() => {}
                () = cancellation.cancelled() => {}
                _ = sender.send(Err(error)) => {}
            },
        }
    });
    futures::stream::unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) })
}

/// The reader's end.
struct Reader {
    batches: mpsc::Receiver<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
    cancellation: CancellationToken,
    ended: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.ended {
            return None;
        }
        let received = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Some(Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))),
            received = self.batches.recv() => received,
        };
        self.ended = !matches!(received, Some(Ok(_)));
        match received {
            // The task ended without having come to the last row.
            None if !self.is_complete.load(Ordering::Acquire) => {
                Some(Err(Error::new(ErrorKind::Unavailable, "the database is being closed")))
            }
            received => received,
        }
    }
}

async fn pump(mut running: Running, batches: &Batches, stall: Duration) -> Result<(), Error> {
    let context = running.context().clone();
    loop {
        let batch = match running.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(failure) => {
                running.fail(&failure).await;
                return Err(failure.told(&context));
            }
        };
        let place = match tokio::time::timeout(stall, batches.reserve()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(stalled(stall)),
        };
        place.send(Ok(batch));
    }
    running.finish().await.map_err(|failure| failure.told(&context))
}

fn stalled(stall: Duration) -> Error {
    let seconds = stall.as_secs_f64();
    let message = format!("nobody read the rows for {seconds} s, so the query was ended");
    Error::new(ErrorKind::TimedOut, message).with_hint("Read faster, or ask for less.")
}
