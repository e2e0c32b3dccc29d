//! The writer of a write: a short channel to a task that sends the rows.

use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{RowWriter, WriteReceipt};
use tokio::sync::{mpsc, oneshot};

use super::write::Write;
use crate::pool::Pool;

/// The number of batches that wait for the connection.
const BATCHES_MAX: usize = 2;
/// How long a write waits for its next rows. It holds locks and a connection.
pub(super) const ROWS_TIMEOUT: Duration = Duration::from_secs(300);

enum Step {
    Rows(usize, RecordBatch),
    Commit,
}

/// A write that runs in a task. Dropping it ends the task, and rolls back.
#[derive(Debug)]
pub(super) struct PostgresWriter {
    steps: mpsc::Sender<Step>,
    outcome: oneshot::Receiver<Result<WriteReceipt, Error>>,
    /// Whether an error was returned.
    is_over: bool,
}

/// Starts the task of `write`.
pub(super) fn spawn(write: Write, pool: &Pool) -> PostgresWriter {
    let (steps, received) = mpsc::channel(BATCHES_MAX);
    let (mut sender, outcome) = oneshot::channel();
    let background_tasks = pool.background_tasks();
    let closing = background_tasks.closing.clone();
    background_tasks.spawn(async move {
        let mut write = write;
        let outcome = tokio::select! {
            biased;
            () = sender.closed() => Ok(None),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = run(&mut write, received) => outcome.map(Some),
        };
        // The connection returns before the outcome.
        match outcome {
            Ok(Some(_)) => drop(write),
            _ => write.roll_back().await,
        }
        if let Some(outcome) = outcome.transpose() {
            // Nobody waits if the writer was dropped.
            let _ = sender.send(outcome);
        }
    });
    PostgresWriter { steps, outcome, is_over: false }
}

/// Writes until the commit.
async fn run(write: &mut Write, mut steps: mpsc::Receiver<Step>) -> Result<WriteReceipt, Error> {
    loop {
        match tokio::time::timeout(ROWS_TIMEOUT, steps.recv()).await {
            Ok(Some(Step::Rows(table, batch))) => write.copy(table, &batch).await?,
            Ok(Some(Step::Commit)) => return write.commit().await,
            Ok(None) => return Err(Error::new(ErrorKind::Cancelled, "the write was abandoned")),
            Err(_) => {
                let seconds = ROWS_TIMEOUT.as_secs();
                let message = format!("no rows came for {seconds} s, so the write was abandoned");
                return Err(Error::new(ErrorKind::TimedOut, message).with_hint("Send the rows faster."));
            }
        }
    }
}

impl PostgresWriter {
    async fn send(&mut self, step: Step) -> Result<(), Error> {
        if !self.is_over && self.steps.send(step).await.is_ok() {
            return Ok(());
        }
        if self.is_over {
            return Err(Error::internal("the write is over"));
        }
        self.is_over = true;
        match (&mut self.outcome).await {
            Ok(Err(error)) => Err(error),
            _ => Err(Error::internal("the task of a write has ended")),
        }
    }
}

#[async_trait]
impl RowWriter for PostgresWriter {
    async fn write(&mut self, table: usize, rows: RecordBatch) -> Result<(), Error> {
        self.send(Step::Rows(table, rows)).await
    }

    async fn commit(mut self: Box<Self>) -> Result<WriteReceipt, Error> {
        self.send(Step::Commit).await?;
        self.outcome.await.unwrap_or_else(|_| Err(Error::internal("the task of a write has ended")))
    }
}
