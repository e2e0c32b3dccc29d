//! The task of a write, which sends the rows.

use std::time::Duration;

use tidegate_core::{Error, ErrorKind};
use tidegate_query::{RowWriter, StepWriter, WriteReceipt, WriteStep, WriteSteps};

use super::write::Write;
use crate::pool::Pool;

/// How long a write waits for its next rows. It holds locks and a connection.
pub(super) const ROWS_TIMEOUT: Duration = Duration::from_secs(300);

/// Starts the task of `write`. Dropping the writer ends the task, and rolls back.
pub(super) fn spawn(write: Write, pool: &Pool) -> Box<dyn RowWriter> {
    let (writer, steps, mut finished) = StepWriter::new(ROWS_TIMEOUT, ());
    let background_tasks = pool.background_tasks();
    let closing = background_tasks.closing.clone();
    background_tasks.spawn(async move {
        let mut write = write;
        let outcome = tokio::select! {
            biased;
            () = finished.closed() => Ok(None),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = run(&mut write, steps) => outcome.map(Some),
        };
        // The connection returns before the outcome.
        match outcome {
            Ok(Some(_)) => drop(write),
            _ => write.roll_back().await,
        }
        if let Some(outcome) = outcome.transpose() {
            // Nobody waits if the writer was dropped.
            let _ = finished.send(outcome);
        }
    });
    Box::new(writer)
}

/// Writes until the commit.
async fn run(write: &mut Write, mut steps: WriteSteps) -> Result<WriteReceipt, Error> {
    loop {
        match steps.next().await? {
            Some(WriteStep::Rows(table, batch)) => write.copy(table, &batch).await?,
            Some(WriteStep::Commit) => return write.commit().await,
            None => return Err(Error::new(ErrorKind::Cancelled, "the write was abandoned")),
        }
    }
}
