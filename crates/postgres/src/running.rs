//! A statement that runs in a transaction of its own.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::{FutureExt, MaybeDone, maybe_done};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::Parameter;

use crate::connect::Connected;
use crate::lease::Lease;
use crate::prepared::Prepared;
use crate::rows::{BatchStream, ErrorContext, Failure};
use crate::transaction::ROLLBACK;
use crate::values::{BatchBuilder, Bound};

/// A statement that runs. Dropping it before its end cancels it: the lease goes first.
pub(crate) struct Running {
    lease: Lease,
    batches: BatchStream,
    prepared: Arc<Prepared>,
    end: End,
}

/// How its transaction ends.
enum End {
    /// The words were sent behind the statement, so that the end costs no wait.
    Sent(Pin<Box<MaybeDone<EndOfTransaction>>>),
    /// The words are sent when all rows were read.
    Later(&'static str),
}

type EndOfTransaction = futures::future::BoxFuture<'static, Result<(), tokio_postgres::Error>>;

/// When a transaction is ended with which words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// Sent right behind the statement.
    Behind(&'static str),
    /// Sent when all rows were read.
    Later(&'static str),
}

impl Running {
    /// Sends the statement on `lease`, whose transaction has begun.
    pub(crate) async fn start(
        mut lease: Lease,
        prepared: Arc<Prepared>,
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
        let connected = lease.session().map_err(|error| (Failure::Value(error), None))?.connected().clone();
        let query = connected.client().query_raw(&prepared.statement, bound);
        let (rows, end) = match ending {
            Ending::Later(words) => (query.await, End::Later(words)),
            Ending::Behind(words) => {
                let mut end = Box::pin(maybe_done(end_of(connected.clone(), words)));
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
            Ok(rows) => Ok(Self { lease, batches: BatchStream::new(rows, builder, context), prepared, end }),
            Err(error) => {
                drop(prepared);
                Err((Failure::Server(error), free(lease, end).await))
            }
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
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { mut lease, batches, prepared, end } = self;
        // A statement that nobody keeps is closed within its transaction, as a pooler wants it.
        drop((batches, prepared));
        match end {
            End::Later(words) => lease.end(words).await.map_err(Failure::Server),
            End::Sent(mut end) => {
                end.as_mut().await;
                if let Some(outcome) = end.as_mut().take_output() {
                    outcome.map_err(Failure::Server)?;
                }
                lease.has_ended();
                Ok(())
            }
        }
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        self.batches.context()
    }

    /// The connection after `failure`, if it can be used again: if it was the server that ended the statement.
    pub(crate) async fn fail(self, failure: &Failure) -> Option<Lease> {
        if !matches!(failure, Failure::Server(_)) {
            return None;
        }
        let Self { lease, batches, prepared, end } = self;
        drop((batches, prepared));
        free(lease, end).await
    }
}

/// Waits for the end of a transaction whose statement failed.
async fn free(mut lease: Lease, end: End) -> Option<Lease> {
    let ended = match end {
        End::Later(_) => lease.end(ROLLBACK).await,
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

fn end_of(connected: Arc<Connected>, words: &'static str) -> EndOfTransaction {
    async move { connected.client().batch_execute(words).await }.boxed()
}
