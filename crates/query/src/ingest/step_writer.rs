//! A writer of rows whose write runs elsewhere, in a task or on a thread, behind a short channel.

use std::fmt::Debug;
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::{RowWriter, WriteReceipt};

/// The number of batches that wait for the write.
const BATCHES_MAX: usize = 2;

/// What a write does next.
#[derive(Debug)]
pub enum WriteStep {
    /// It stores rows in the table at this position.
    Rows(usize, RecordBatch),
    /// It commits.
    Commit,
}

/// The steps of a write, for the task or thread that runs it.
#[derive(Debug)]
pub struct WriteSteps {
    steps: mpsc::Receiver<WriteStep>,
    /// How long the write waits for its next rows. It holds locks and a connection.
    timeout: Duration,
}

impl WriteSteps {
    /// The next step. `None` if the writer was dropped.
    ///
    /// # Errors
    /// `TimedOut` when no rows came for too long.
    pub async fn next(&mut self) -> Result<Option<WriteStep>, Error> {
        tokio::time::timeout(self.timeout, self.steps.recv()).await.map_err(|_| {
            let seconds = self.timeout.as_secs();
            let message = format!("no rows came for {seconds} s, so the write was abandoned");
            Error::new(ErrorKind::TimedOut, message).with_hint("Send the rows faster.")
        })
    }
}

/// The writer of a write that runs elsewhere. Dropping it drops `G`, which may interrupt a statement, and ends the steps.
#[derive(Debug)]
pub struct StepWriter<G> {
    steps: mpsc::Sender<WriteStep>,
    outcome: oneshot::Receiver<Result<WriteReceipt, Error>>,
    /// Whether an error was returned.
    is_over: bool,
    _guard: G,
}

impl<G> StepWriter<G> {
    /// A writer, the steps that it takes, and the sender of the outcome. A write waits `timeout` for its next rows.
    pub fn new(timeout: Duration, guard: G) -> (Self, WriteSteps, oneshot::Sender<Result<WriteReceipt, Error>>) {
        let (steps, received) = mpsc::channel(BATCHES_MAX);
        let (finished, outcome) = oneshot::channel();
        let writer = Self { steps, outcome, is_over: false, _guard: guard };
        (writer, WriteSteps { steps: received, timeout }, finished)
    }

    async fn send(&mut self, step: WriteStep) -> Result<(), Error> {
        if !self.is_over && self.steps.send(step).await.is_ok() {
            return Ok(());
        }
        if self.is_over {
            return Err(Error::internal("the write is over"));
        }
        self.is_over = true;
        match (&mut self.outcome).await {
            Ok(Err(error)) => Err(error),
            _ => Err(ended_error()),
        }
    }
}

#[async_trait]
impl<G: Debug + Send> RowWriter for StepWriter<G> {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        self.send(WriteStep::Rows(table, rows)).await
    }

    async fn commit(mut self: Box<Self>) -> Result<WriteReceipt, Error> {
        self.send(WriteStep::Commit).await?;
        let outcome = (&mut self.outcome).await;
        outcome.unwrap_or_else(|_| Err(ended_error()))
    }
}

fn ended_error() -> Error {
    Error::internal("the task of a write has ended")
}
