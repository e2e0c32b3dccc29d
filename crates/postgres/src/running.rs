//! A statement that runs in a transaction of its own.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::{BoxFuture, FutureExt, MaybeDone, maybe_done};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::Parameter;

use crate::composites::Composites;
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
    /// Whether its composite types were the same when its rows had been sent, where it has any: nothing locks them.
    are_types_current: Option<Pin<Box<MaybeDone<AreCurrent>>>>,
    end: End,
}

/// How its transaction ends.
enum End {
    /// The words were sent behind the statement, so that the end costs no wait.
    Sent(Pin<Box<MaybeDone<Said>>>),
    /// The words are sent when all rows were read.
    Later(&'static str),
}

/// Whether words that begin or end a transaction were understood.
type Said = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

type AreCurrent = BoxFuture<'static, Result<bool, tokio_postgres::Error>>;

/// When a transaction is ended with which words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// Sent right behind the statement.
    Behind(&'static str),
    /// Sent when all rows were read.
    Later(&'static str),
}

/// What is sent before and after a statement.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// The words that begin its transaction, where it has not begun. Everything that may only follow their success
    /// waits for it elsewhere; this is for what the connection would do outside of a transaction too.
    pub(crate) opening: Option<String>,
    /// How the transaction ends.
    pub(crate) ending: Ending,
}

impl Running {
    /// Sends the statement on `lease`.
    pub(crate) async fn start(
        mut lease: Lease,
        prepared: Arc<Prepared>,
        parameters: &[Parameter],
        bounds: Bounds,
        context: ErrorContext,
    ) -> Result<Self, (Failure, Option<Lease>)> {
        if let Err(error) = check_count(prepared.statement.params().len(), parameters.len()) {
            return Err((Failure::Value(error), None));
        }
        let builder = BatchBuilder::new(&prepared.columns);
        let bound = Bound::all(parameters).map_err(|error| (Failure::Value(error), None))?;
        lease.sends();
        let connected = lease.session().map_err(|error| (Failure::Value(error), None))?.connected().clone();
        let mut begun = bounds.opening.map(|words| Box::pin(maybe_done(said(connected.clone(), words))));
        let (mut sent, later) = match bounds.ending {
            Ending::Behind(words) => (Some(Box::pin(maybe_done(said(connected.clone(), words.to_owned())))), None),
            Ending::Later(words) => (None, Some(words)),
        };
        let mut are_types_current = (!prepared.composites.is_empty())
            .then(|| Box::pin(maybe_done(are_current(connected.clone(), prepared.composites.clone()))));
        let rows = {
            let mut query = std::pin::pin!(connected.client().query_raw(&prepared.statement, bound));
            // Messages leave in the order in which they are first asked for.
            let mut is_sent = false;
            std::future::poll_fn(|context| {
                if is_sent {
                    return query.as_mut().poll(context);
                }
                is_sent = true;
                if let Some(begun) = &mut begun {
                    let _ = begun.as_mut().poll(context);
                }
                let rows = query.as_mut().poll(context);
                if let Some(current) = &mut are_types_current {
                    let _ = current.as_mut().poll(context);
                }
                if let Some(end) = &mut sent {
                    let _ = end.as_mut().poll(context);
                }
                rows
            })
            .await
        };
        let end = match (sent, later) {
            (Some(sent), _) => End::Sent(sent),
            (None, later) => End::Later(later.unwrap_or(ROLLBACK)),
        };
        if let Some(mut begun) = begun {
            begun.as_mut().await;
            if let Some(Err(error)) = begun.as_mut().take_output() {
                return Err((Failure::Server(error), None));
            }
        }
        match rows {
            Ok(rows) => {
                let batches = BatchStream::new(rows, builder, context);
                Ok(Self { lease, batches, prepared, are_types_current, end })
            }
            Err(error) => {
                drop(prepared);
                Err((Failure::Server(error), free(lease, end).await))
            }
        }
    }

    /// The next batch; none when there are no more rows.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        match self.batches.next().await {
            // Values that do not have the form of their type are those of a type that has changed since it was read.
            Err(Failure::Value(error))
                if error.kind() == ErrorKind::Internal && !self.prepared.composites.is_empty() =>
            {
                Err(Failure::Value(types_changed().with_detail(error.detail().unwrap_or_default())))
            }
            next => next,
        }
    }

    /// Whether all rows have been read.
    pub(crate) fn has_ended(&self) -> bool {
        self.batches.has_ended()
    }

    /// Ends the transaction after the last row, and gives the connection back.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { mut lease, batches, prepared, mut are_types_current, end } = self;
        // A statement that nobody keeps is closed within its transaction, as a pooler wants it.
        drop((batches, prepared));
        if let Some(current) = &mut are_types_current {
            current.as_mut().await;
            if !current.as_mut().take_output().unwrap_or(Ok(true)).map_err(Failure::Server)? {
                return Err(Failure::Value(types_changed()));
            }
        }
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
        let Self { lease, batches, prepared, end, .. } = self;
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

/// Asks whether `composites` are the same still.
fn are_current(connected: Arc<Connected>, composites: Composites) -> AreCurrent {
    async move { composites.are_current(connected.client()).await }.boxed()
}

fn types_changed() -> Error {
    Error::new(ErrorKind::Unavailable, "a composite type changed while its values were read").with_hint("Ask again.")
}

/// Sends `words`, and hears whether they were understood.
fn said(connected: Arc<Connected>, words: String) -> Said {
    async move { connected.client().batch_execute(&words).await }.boxed()
}
