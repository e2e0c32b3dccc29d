//! A statement that runs in a transaction of its own.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::{FutureExt, MaybeDone, maybe_done};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::Parameter;
use tokio_postgres::Client;

use crate::lease::Lease;
use crate::prepared::Prepared;
use crate::rows::{BatchStream, ErrorContext, Failure};
use crate::transaction::{COMMIT, ROLLBACK};
use crate::values::{BatchBuilder, Bound};

/// A statement that runs. Dropping it before its end cancels it: the lease goes first.
pub(crate) struct Running {
    lease: Lease,
    batches: BatchStream,
    end: End,
}

/// How its transaction ends.
enum End {
    /// The words were sent behind the statement, so that the end costs no wait.
    Sent(Pin<Box<MaybeDone<EndOfTransaction>>>),
    /// It is committed when all rows were read.
    Commit,
}

type EndOfTransaction = futures::future::BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// How a transaction that only reads is ended; one that writes is committed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// With these words, sent at once.
    Words(&'static str),
    /// By a commit after the last row.
    Commit,
}

impl Running {
    /// Sends the statement on `lease`, whose transaction has begun.
    pub(crate) async fn start(
        mut lease: Lease,
        prepared: &Prepared,
        parameters: &[Parameter],
        ending: Ending,
        context: ErrorContext,
    ) -> Result<Self, (Failure, Option<Lease>)> {
        if let Err(error) = check_count(prepared.statement.params().len(), parameters.len()) {
            return Err((Failure::Value(error), None));
        }
        let builder = BatchBuilder::new(&prepared.columns);
        let bound = Bound::all(parameters).map_err(|error| (Failure::Value(error), None))?;
        lease.sends();
        let client = lease.session().map_err(|error| (Failure::Value(error), None))?.client().clone();
        let query = client.query_raw(&prepared.statement, bound);
        let (rows, end) = match ending {
            Ending::Commit => (query.await, End::Commit),
            Ending::Words(words) => {
                let mut end = Box::pin(maybe_done(end_of(client.clone(), words)));
                let mut query = std::pin::pin!(query);
                // Messages leave in the order in which they are first asked for.
                let mut is_sent = false;
                let rows = std::future::poll_fn(|context| {
                    let rows = query.as_mut().poll(context);
                    if !std::mem::replace(&mut is_sent, true) {
                        let _ = end.as_mut().poll(context);
                    }
                    rows
                });
                (rows.await, End::Sent(end))
            }
        };
        match rows {
            Ok(rows) => Ok(Self { lease, batches: BatchStream::new(rows, builder, context), end }),
            Err(error) => Err((Failure::Server(error), free(lease, end).await)),
        }
    }

    /// The next batch; none when there are no more rows.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        self.batches.next().await
    }

    /// Whether all rows have been read.
    pub(crate) fn has_ended(&self) -> bool {
        self.batches.has_ended()
    }

    /// Ends the transaction after the last row, and gives the connection back.
    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        match self.end {
            End::Commit => self.lease.end(COMMIT).await.map_err(Failure::Server),
            End::Sent(mut end) => {
                end.as_mut().await;
                if let Some(outcome) = end.as_mut().take_output() {
                    outcome.map_err(Failure::Server)?;
                }
                self.lease.has_ended();
                Ok(())
            }
        }
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        self.batches.context()
    }

    /// The connection after the server refused the statement, if it can be used again.
    pub(crate) async fn after_failure(self) -> Option<Lease> {
        let Self { lease, batches, end } = self;
        drop(batches);
        free(lease, end).await
    }
}

/// Waits for the end of a transaction whose statement failed.
async fn free(mut lease: Lease, end: End) -> Option<Lease> {
    let ended = match end {
        End::Commit => lease.end(ROLLBACK).await,
        End::Sent(mut end) => {
            end.as_mut().await;
            end.as_mut().take_output().unwrap_or(Ok(()))
        }
    };
    ended.ok()?;
    lease.has_ended();
    Some(lease)
}

fn check_count(wanted: usize, came: usize) -> Result<(), Error> {
    if wanted == came {
        return Ok(());
    }
    let message = format!("the statement has {wanted} placeholders, but {came} values came");
    Err(Error::new(ErrorKind::InvalidArguments, message))
}

fn end_of(client: Arc<Client>, words: &'static str) -> EndOfTransaction {
    async move { client.batch_execute(words).await }.boxed()
}
