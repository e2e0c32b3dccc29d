//! A statement that runs in its own transaction, and its rows as batches. The first batches are small. A batch is complete when
//! it is full, or when no more rows arrive for a moment.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::Stream;
use futures::future::{BoxFuture, FutureExt, MaybeDone, maybe_done};
use futures::stream::BoxStream;
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, batch_channel};
use tidegate_runtime::BackgroundTasks;
use tidegate_sql::{Author, CommitRule, Parameter, Transaction};
use tokio::time::{Instant, Sleep};
use tokio_postgres::RowStream;
use tokio_util::sync::CancellationToken;

use crate::connect::OpenConnection;
use crate::error;
use crate::pool::Lease;
use crate::prepared::{CompositeTypes, PreparedStatement};
use crate::session::ROLLBACK;
use crate::values::{BatchBuilder, BoundParameter};

/// A running statement. Dropping it before its end cancels it: the lease is dropped first.
pub(crate) struct RunningStatement {
    lease: Lease,
    batches: BatchStream,
    prepared: Arc<PreparedStatement>,
    /// Whether its composite types, if any, were still the same after its rows were sent: nothing locks them.
    are_types_current: Option<PendingQuery<bool>>,
    end: EndCommand,
}

/// How the transaction ends.
enum EndCommand {
    /// By itself, with the statement.
    Implicit,
    /// The SQL was sent behind the statement, so that the end costs no further round trip.
    Sent(PendingQuery<()>),
    /// This SQL is sent when all rows have been read.
    Unsent(&'static str),
}

/// A query whose result is stored until it is needed.
type PendingQuery<T> = Pin<Box<MaybeDone<BoxFuture<'static, Result<T, tokio_postgres::Error>>>>>;

/// The transaction around a statement.
#[derive(Debug)]
pub(crate) enum TransactionCommands {
    /// None: the statement is a transaction of its own.
    Implicit,
    /// SQL before and after the statement.
    Explicit {
        /// Begins the transaction, if it has not begun. The statement is sent without waiting for the result, so it must
        /// be one that the connection may also run outside of a transaction.
        begin_sql: Option<String>,
        end_sql: &'static str,
        /// Whether `end_sql` is sent right behind the statement.
        is_end_pipelined: bool,
    },
}

impl RunningStatement {
    pub(crate) async fn start(
        mut lease: Lease,
        prepared: Arc<PreparedStatement>,
        parameters: &[Parameter],
        bounds: TransactionCommands,
        context: ErrorContext,
    ) -> Result<Self, (RowError, Option<Lease>)> {
        let invalid = |error| (RowError::Value(error), None);
        check_parameter_count(prepared.statement.params().len(), parameters.len()).map_err(invalid)?;
        let builder = BatchBuilder::new(&prepared.columns);
        let bound = BoundParameter::bind_all(parameters).map_err(invalid)?;
        lease.mark_busy();
        let connection = lease.connection().map_err(invalid)?;
        let (begin_sql, end_sql, is_end_pipelined) = match bounds {
            TransactionCommands::Implicit => (None, None, false),
            TransactionCommands::Explicit { begin_sql, end_sql, is_end_pipelined } => {
                (begin_sql, Some(end_sql), is_end_pipelined)
            }
        };
        let mut begun = begin_sql.map(|sql| pending_command(&connection, sql));
        let mut are_types_current =
            (!prepared.composites.is_empty()).then(|| pending_type_check(&connection, prepared.composites.clone()));
        let mut ended = end_sql.filter(|_| is_end_pipelined).map(|sql| pending_command(&connection, sql.to_owned()));
        let rows = {
            let mut query = std::pin::pin!(connection.client().query_raw(&prepared.statement, bound));
            // Messages are sent in the order in which their futures are first polled.
            let mut is_sent = false;
            std::future::poll_fn(|context| {
                if is_sent {
                    return query.as_mut().poll(context);
                }
                is_sent = true;
                let _ = begun.as_mut().map(|begun| begun.as_mut().poll(context));
                let rows = query.as_mut().poll(context);
                let _ = are_types_current.as_mut().map(|current| current.as_mut().poll(context));
                let _ = ended.as_mut().map(|ended| ended.as_mut().poll(context));
                rows
            })
            .await
        };
        let end = match (ended, end_sql) {
            (Some(ended), _) => EndCommand::Sent(ended),
            (None, Some(sql)) => EndCommand::Unsent(sql),
            (None, None) => EndCommand::Implicit,
        };
        if let Some(begun) = begun {
            finish(begun).await.map_err(|error| (RowError::Server(error), None))?;
        }
        match rows {
            Ok(rows) => {
                let batches = BatchStream::new(rows, builder, context);
                Ok(Self { lease, batches, prepared, are_types_current, end })
            }
            Err(error) => {
                drop(prepared);
                let lease = end_failed_transaction(lease, end, &error).await;
                Err((RowError::Server(error), lease))
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, RowError> {
        match self.batches.next().await {
            // A malformed value means that its type changed after the driver loaded it.
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

    pub(crate) fn prepared(&self) -> &PreparedStatement {
        &self.prepared
    }

    /// The number of rows that the statement changed or returned, known when all rows have been read.
    pub(crate) fn rows_affected(&self) -> Option<u64> {
        self.batches.rows_affected()
    }

    /// Ends the transaction after the last row, and returns the connection. If the statement did not change the number
    /// of rows that `rule` requires, the transaction is rolled back.
    pub(crate) async fn finish(self, rule: CommitRule) -> Result<(), RowError> {
        let (agreed, changed) = (rule.required_rows(), self.rows_affected());
        let Self { mut lease, batches, prepared, are_types_current, end } = self;
        if let Some(agreed) = agreed.filter(|agreed| changed != Some(*agreed)) {
            drop((batches, prepared));
            lease.end(ROLLBACK).await.map_err(RowError::Server)?;
            return Err(RowError::Value(changed_rows_error(agreed, changed.unwrap_or_default())));
        }
        // Behind a pooler, a statement that is not cached must be closed within its transaction.
        drop((batches, prepared));
        if let Some(current) = are_types_current
            && finish(current).await.map_err(RowError::Server)? == Some(false)
        {
            return Err(RowError::Value(types_changed_error()));
        }
        match end {
            EndCommand::Implicit => {
                lease.mark_idle();
                Ok(())
            }
            EndCommand::Unsent(sql) => lease.end(sql).await.map_err(RowError::Server),
            EndCommand::Sent(ended) => {
                finish(ended).await.map_err(RowError::Server)?;
                lease.mark_idle();
                Ok(())
            }
        }
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        self.batches.context()
    }

    /// The connection after `error`, if the server ended the statement with it and the connection can be used again.
    pub(crate) async fn recover_lease(self, error: &RowError) -> Option<Lease> {
        let RowError::Server(error) = error else { return None };
        let Self { lease, batches, prepared, end, .. } = self;
        drop((batches, prepared));
        end_failed_transaction(lease, end, error).await
    }
}

/// The connection after `error`, with its transaction ended; `None` if it cannot be used again.
async fn end_failed_transaction(mut lease: Lease, end: EndCommand, error: &tokio_postgres::Error) -> Option<Lease> {
    match end {
        // The error may arrive before the end of the connection, and a later call would fail with it.
        EndCommand::Implicit if error::ends_session(error) => return None,
        EndCommand::Implicit => {}
        EndCommand::Unsent(_) => lease.end(ROLLBACK).await.ok()?,
        EndCommand::Sent(ended) => {
            finish(ended).await.ok()?;
        }
    }
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

fn changed_rows_error(agreed: u64, changed: u64) -> Error {
    let message = format!(
        "nothing was done: the person agreed to change {agreed} rows, and the statement would now change {changed}"
    );
    Error::new(ErrorKind::Failed, message).with_hint("Call again, so that the person can agree to the new number.")
}

fn types_changed_error() -> Error {
    Error::new(ErrorKind::Unavailable, "a composite type changed while its values were read").with_hint("Ask again.")
}

fn pending_command(connection: &Arc<OpenConnection>, sql: String) -> PendingQuery<()> {
    let connection = connection.clone();
    Box::pin(maybe_done(async move { connection.client().batch_execute(&sql).await }.boxed()))
}

fn pending_type_check(connection: &Arc<OpenConnection>, composites: CompositeTypes) -> PendingQuery<bool> {
    let connection = connection.clone();
    Box::pin(maybe_done(async move { composites.are_current(connection.client()).await }.boxed()))
}

async fn finish<T>(mut query: PendingQuery<T>) -> Result<Option<T>, tokio_postgres::Error> {
    query.as_mut().await;
    query.as_mut().take_output().transpose()
}

/// Forwards the remaining rows through a short channel, in a task that ends early if `cancellation` fires or the stream
/// is dropped.
///
/// If the client stops reading, the channel is full, the socket is not read, and the server stops. If the client stops
/// for longer than the `stall_timeout` of `transaction`, the statement is cancelled. A stopped client therefore cannot hold a connection or a
/// snapshot of the server.
pub(crate) fn spawn_forwarder(
    running: RunningStatement,
    background_tasks: Arc<BackgroundTasks>,
    cancellation: CancellationToken,
    transaction: &Transaction,
) -> BoxStream<'static, Result<RecordBatch, Error>> {
    let (sender, batches) = batch_channel(cancellation.clone(), ());
    let closing = background_tasks.closing().clone();
    let (stall_timeout, commit) = (transaction.stall_timeout, transaction.commit);
    background_tasks.spawn(async move {
        let outcome = tokio::select! {
            biased;
            () = sender.closed() => return,
            () = cancellation.cancelled() => Err(Error::new(ErrorKind::Cancelled, "the query was cancelled")),
            () = closing.cancelled() => Err(Error::new(ErrorKind::Unavailable, "the database is being closed")),
            outcome = forward_batches(running, &sender, stall_timeout, commit) => outcome,
        };
        match outcome {
            Ok(()) => sender.complete(),
            // Waits for the client without holding a batch.
            Err(error) => tokio::select! {
                () = closing.cancelled() => {}
                () = cancellation.cancelled() => {}
                () = sender.fail(error) => {}
            },
        }
    });
    batches
}

async fn forward_batches(
    mut running: RunningStatement,
    batches: &BatchSender,
    stall_timeout: Duration,
    commit: CommitRule,
) -> Result<(), Error> {
    let context = running.context().clone();
    loop {
        let batch = match running.next().await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            Err(error) => {
                running.recover_lease(&error).await;
                return Err(error.into_error(&context));
            }
        };
        if !batches.send(batch, stall_timeout).await? {
            return Ok(());
        }
    }
    running.finish(commit).await.map_err(|error| error.into_error(&context))
}

const BATCH_ROWS_MAX: usize = 8_192;
/// The maximum number of rows of the first batch, so that the first rows arrive early.
const FIRST_BATCH_ROWS_MAX: usize = 256;
/// The maximum size of the values of a batch, in bytes; the last row may exceed it.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long an incomplete batch waits for more rows while the server sends none.
const LINGER: Duration = Duration::from_millis(5);

struct BatchStream {
    rows: Pin<Box<RowStream>>,
    builder: BatchBuilder,
    rows_max: usize,
    /// When the incomplete batch is emitted.
    linger_deadline: Option<Pin<Box<Sleep>>>,
    has_ended: bool,
    context: ErrorContext,
}

#[derive(Clone)]
pub(crate) struct ErrorContext {
    pub(crate) database: std::sync::Arc<str>,
    pub(crate) text: std::sync::Arc<str>,
    pub(crate) author: Author,
}

pub(crate) enum RowError {
    Server(tokio_postgres::Error),
    /// A value could not be read.
    Value(Error),
}

impl RowError {
    pub(crate) fn into_error(self, context: &ErrorContext) -> Error {
        match self {
            Self::Server(error) if context.author == Author::Handler => {
                error::handler_rows_error(&error, &context.database)
            }
            Self::Server(error) => error::statement_error(&error, &context.database, &context.text),
            Self::Value(error) => error,
        }
    }
}

impl BatchStream {
    pub(crate) fn new(rows: RowStream, builder: BatchBuilder, context: ErrorContext) -> Self {
        let rows_max = FIRST_BATCH_ROWS_MAX;
        Self { rows: Box::pin(rows), builder, rows_max, linger_deadline: None, has_ended: false, context }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The number of rows that the statement changed or returned, known when it has ended.
    pub(crate) fn rows_affected(&self) -> Option<u64> {
        self.rows.rows_affected()
    }

    pub(crate) fn context(&self) -> &ErrorContext {
        &self.context
    }

    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, RowError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>, RowError>> {
        while !self.has_ended {
            match self.rows.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(row))) => {
                    self.builder.push(&row).map_err(RowError::Value)?;
                    if self.builder.rows() >= self.rows_max || self.builder.bytes() >= BATCH_BYTES_MAX {
                        return Poll::Ready(self.finish_batch());
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(RowError::Server(error))),
                Poll::Ready(None) => self.has_ended = true,
                Poll::Pending if self.builder.rows() == 0 => return Poll::Pending,
                Poll::Pending => {
                    let linger = self
                        .linger_deadline
                        .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + LINGER)));
                    return match linger.as_mut().poll(context) {
                        Poll::Ready(()) => Poll::Ready(self.finish_batch()),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
        match self.builder.rows() {
            0 => Poll::Ready(Ok(None)),
            _ => Poll::Ready(self.finish_batch()),
        }
    }

    fn finish_batch(&mut self) -> Result<Option<RecordBatch>, RowError> {
        self.linger_deadline = None;
        self.rows_max = BATCH_ROWS_MAX;
        self.builder.finish().map(Some).map_err(RowError::Value)
    }
}
