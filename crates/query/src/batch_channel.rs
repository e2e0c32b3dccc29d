//! A channel of batches from a producing task to a reader.
//!
//! The channel is short, so that a slow reader stops the task. The end must be declared: a task that was dropped or
//! cancelled must not look like one that sent its last row.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::mpsc::{self, Permit};
use tokio_util::sync::CancellationToken;

/// The capacity of the channel, in batches.
const BATCHES_WAITING_MAX: usize = 2;

/// The sending half of a batch channel. Cheap to clone.
#[derive(Clone)]
pub struct BatchSender {
    batches: mpsc::Sender<Result<RecordBatch, Error>>,
    is_complete: Arc<AtomicBool>,
}

/// Creates a channel whose reader receives an error when `cancellation` fires. `kept` is dropped with the stream.
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
    /// Waits for capacity; `None` when the reader is dropped.
    pub async fn reserve(&self) -> Option<Permit<'_, Result<RecordBatch, Error>>> {
        self.batches.reserve().await.ok()
    }

    /// Sends an error when there is capacity; ignored when the reader is dropped.
    pub async fn fail(&self, error: Error) {
        let _ = self.batches.send(Err(error)).await;
    }

    /// Declares that the last batch was sent.
    pub fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Resolves when the reader is dropped.
    pub async fn closed(&self) {
        self.batches.closed().await;
    }
}

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
            // The task ended before it declared the end.
            None if !self.is_complete.load(Ordering::Acquire) => {
                Some(Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")))
            }
            received => received,
        }
    }
}
