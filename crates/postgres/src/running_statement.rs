//! A statement that runs in a transaction of its own.

use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::{BoxFuture, FutureExt, MaybeDone, maybe_done};
use tidegate_core::{Error, ErrorKind};
use tidegate_sql::Parameter;

use crate::batch_stream::{BatchStream, ErrorContext, RowError};
use crate::composite_types::CompositeTypes;
use crate::connect::OpenConnection;
use crate::lease::Lease;
use crate::prepared::PreparedStatement;
use crate::transaction::ROLLBACK;
use crate::values::{BatchBuilder, BoundParameter};

/// A statement that runs. Dropping it before its end cancels it: the lease goes first.
pub(crate) struct RunningStatement {
    lease: Lease,
    batches: BatchStream,
    prepared: Arc<PreparedStatement>,
    /// Whether its composite types were the same when its rows had been sent, where it has any: nothing locks them.
    are_types_current: Option<Pin<Box<MaybeDone<TypeCheckFuture>>>>,
    end: PendingEnd,
}

/// How its transaction ends.
enum PendingEnd {
    /// The words were sent behind the statement, so that the end costs no wait.
    Sent(Pin<Box<MaybeDone<CommandFuture>>>),
    /// The words are sent when all rows were read.
    AfterRows(&'static str),
}

/// Whether words that begin or end a transaction were understood.
type CommandFuture = BoxFuture<'static, Result<(), tokio_postgres::Error>>;

type TypeCheckFuture = BoxFuture<'static, Result<bool, tokio_postgres::Error>>;

/// When a transaction is ended with which words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TransactionEnd {
    /// Sent right behind the statement.
    Pipelined(&'static str),
    /// Sent when all rows were read.
    AfterRows(&'static str),
}

/// What is sent before and after a statement.
#[derive(Debug)]
pub(crate) struct TransactionBounds {
    /// The words that begin its transaction, where it has not begun. Everything that may only follow their success
    /// waits for it elsewhere; this is for what the connection would do outside of a transaction too.
    pub(crate) begin_sql: Option<String>,
    /// How the transaction ends.
    pub(crate) transaction_end: TransactionEnd,
}

impl RunningStatement {
    /// Sends the statement on `lease`.
    pub(crate) async fn start(
        mut lease: Lease,
        prepared: Arc<PreparedStatement>,
        parameters: &[Parameter],
        bounds: TransactionBounds,
        context: ErrorContext,
    ) -> Result<Self, (RowError, Option<Lease>)> {
        if let Err(error) = check_parameter_count(prepared.statement.params().len(), parameters.len()) {
            return Err((RowError::Value(error), None));
        }
        let builder = BatchBuilder::new(&prepared.columns);
        let bound = BoundParameter::bind_all(parameters).map_err(|error| (RowError::Value(error), None))?;
        lease.mark_busy();
        let connected = lease.session().map_err(|error| (RowError::Value(error), None))?.connection().clone();
        let mut begun = bounds.begin_sql.map(|words| Box::pin(maybe_done(send_command(connected.clone(), words))));
        let (mut sent, later) = match bounds.transaction_end {
            TransactionEnd::Pipelined(words) => {
                (Some(Box::pin(maybe_done(send_command(connected.clone(), words.to_owned())))), None)
            }
            TransactionEnd::AfterRows(words) => (None, Some(words)),
        };
        let mut are_types_current = (!prepared.composites.is_empty())
            .then(|| Box::pin(maybe_done(check_types_current(connected.clone(), prepared.composites.clone()))));
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
            (Some(sent), _) => PendingEnd::Sent(sent),
            (None, later) => PendingEnd::AfterRows(later.unwrap_or(ROLLBACK)),
        };
        if let Some(mut begun) = begun {
            begun.as_mut().await;
            if let Some(Err(error)) = begun.as_mut().take_output() {
                return Err((RowError::Server(error), None));
            }
        }
        match rows {
            Ok(rows) => {
                let batches = BatchStream::new(rows, builder, context);
                Ok(Self { lease, batches, prepared, are_types_current, end })
            }
            Err(error) => {
                drop(prepared);
                Err((RowError::Server(error), await_end(lease, end).await))
            }
        }
    }

    /// The next batch; none when there are no more rows.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, RowError> {
        match self.batches.next().await {
            // Values that do not have the form of their type are those of a type that has changed since it was read.
            Err(RowError::Value(error))
                if error.kind() == ErrorKind::Internal && !self.prepared.composites.is_empty() =>
            {
                Err(RowError::Value(types_changed_error().with_detail(error.detail().unwrap_or_default())))
            }
            next => next,
        }
    }

    /// Whether all rows have been read.
    pub(crate) fn has_ended(&self) -> bool {
        self.batches.has_ended()
    }

    /// Ends the transaction after the last row, and gives the connection back.
    pub(crate) async fn finish(self) -> Result<(), RowError> {
        let Self { mut lease, batches, prepared, mut are_types_current, end } = self;
        // A statement that nobody keeps is closed within its transaction, as a pooler wants it.
        drop((batches, prepared));
        if let Some(current) = &mut are_types_current {
            current.as_mut().await;
            if !current.as_mut().take_output().unwrap_or(Ok(true)).map_err(RowError::Server)? {
                return Err(RowError::Value(types_changed_error()));
            }
        }
        match end {
            PendingEnd::AfterRows(words) => lease.end(words).await.map_err(RowError::Server),
            PendingEnd::Sent(mut end) => {
                end.as_mut().await;
                if let Some(outcome) = end.as_mut().take_output() {
                    outcome.map_err(RowError::Server)?;
                }
                lease.mark_idle();
                Ok(())
            }
        }
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        self.batches.context()
    }

    /// The connection after `failure`, if it can be used again: if it was the server that ended the statement.
    pub(crate) async fn recover_lease(self, failure: &RowError) -> Option<Lease> {
        if !matches!(failure, RowError::Server(_)) {
            return None;
        }
        let Self { lease, batches, prepared, end, .. } = self;
        drop((batches, prepared));
        await_end(lease, end).await
    }
}

/// Waits for the end of a transaction whose statement failed.
async fn await_end(mut lease: Lease, end: PendingEnd) -> Option<Lease> {
    let ended = match end {
        PendingEnd::AfterRows(_) => lease.end(ROLLBACK).await,
        PendingEnd::Sent(mut end) => {
            end.as_mut().await;
            end.as_mut().take_output().unwrap_or(Ok(()))
        }
    };
    ended.ok()?;
    lease.mark_idle();
    Some(lease)
}

fn check_parameter_count(expected: usize, actual: usize) -> Result<(), Error> {
    if expected == actual {
        return Ok(());
    }
    let message = format!("the statement has {expected} placeholders, but {actual} values came");
    Err(Error::new(ErrorKind::InvalidArguments, message))
}

/// Asks whether `composite_types` are the same still.
fn check_types_current(connected: Arc<OpenConnection>, composites: CompositeTypes) -> TypeCheckFuture {
    async move { composites.are_current(connected.client()).await }.boxed()
}

fn types_changed_error() -> Error {
    Error::new(ErrorKind::Unavailable, "a composite type changed while its values were read").with_hint("Ask again.")
}

/// Sends `words`, and hears whether they were understood.
fn send_command(connected: Arc<OpenConnection>, words: String) -> CommandFuture {
    async move { connected.client().batch_execute(&words).await }.boxed()
}
