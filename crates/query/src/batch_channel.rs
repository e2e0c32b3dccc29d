//! The way of batches from the task that makes them to whoever reads them.
//!
//! A short channel, so that a reader that stops stops the task. An end that nobody declared is no end: a task that was
//! dropped or cancelled must not look like one that came to its last row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::mpsc::{self, Permit};
use tokio_util::sync::CancellationToken;

/// Batches that wait for the reader.
const BATCHES_WAITING_MAX: usize = 2;

/// The task's end. Cheap to clone.
#[derive(Clone)]
pub struct BatchSender {
    batches: mpsc::Sender<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
}

/// A handover whose reader is told when `cancellation` fires. `kept` is dropped with the stream.
pub fn batch_channel<K: Send + 'static>(
    cancellation: CancellationToken,
    kept: K,
) -> (BatchSender, BoxStream<'static, Result<RecordBatch, Error>>) {
    let (sender, batches) = mpsc::channel(BATCHES_WAITING_MAX);
    let is_complete = Arc::new(AtomicBool::new(false));
    let reader = BatchReceiver { batches, is_complete: is_complete.clone(), cancellation, ended: false };
    let stream = futures::stream::unfold((reader, kept), |(mut reader, kept)| async move {
        let batch = reader.next().await?;
        Some((batch, (reader, kept)))
    });
    (BatchSender { batches: sender, is_complete }, Box::pin(stream))
}

impl BatchSender {
    /// Waits until the reader has room for a batch; none when it is gone.
    pub async fn reserve(&self) -> Option<Permit<'_, Result<RecordBatch, Error>>> {
        self.batches.reserve().await.ok()
    }

    /// Hands over an error, when there is room; nobody needs it when nobody reads.
    pub async fn fail(&self, error: Error) {
        let _ = self.batches.send(Err(error)).await;
    }

    /// Says that the last batch was handed over.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Resolves when the reader is gone.
    pub async fn closed(&self) {
        self.batches.closed().await;
    }
}

/// The reader's end.
struct BatchReceiver {
    batches: mpsc::Receiver<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
    cancellation: CancellationToken,
    ended: bool,
}

impl BatchReceiver {
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
                Some(Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")))
            }
            received => received,
        }
    }
}
