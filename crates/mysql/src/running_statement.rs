//! A statement that runs in a task of its own, and its rows as batches. The first batch is small. A batch is complete when
//! it is full, or when no more rows arrive for a moment.
//!
//! The task goes on when the call leaves: it ends the statement with `KILL QUERY`, reads the error that comes of it, and
//! returns a connection that can be used again. A command that is dropped before its answer would cost the connection.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use mysql_async::prelude::Queryable;
use mysql_async::{BinaryProtocol, Column, Error as MySqlError, Params, QueryResult, Row, Value};
use tidegate_core::{Error, ErrorKind};
use tidegate_query::{BatchSender, QueryRows, batch_channel};
use tidegate_runtime::Job;
use tidegate_sql::Transaction;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connect::KillTarget;
use crate::error;
use crate::pool::{CANCEL_DELAY, END_TIMEOUT, Lease};
use crate::server::MySqlServer;
use crate::values::BatchBuilder;

const BATCH_ROWS_MAX: usize = 8_192;
/// The maximum number of rows of the first batch, so that the first rows arrive early.
const FIRST_BATCH_ROWS_MAX: usize = 256;
/// The maximum size of the values of a batch, in bytes; the last row may exceed it.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long an incomplete batch waits for more rows while the server sends none.
const LINGER: Duration = Duration::from_millis(5);

/// A statement that is ready to run.
pub(crate) struct StatementRun {
    pub(crate) server: Arc<MySqlServer>,
    pub(crate) lease: Lease,
    pub(crate) request: StatementRequest,
}

pub(crate) struct StatementRequest {
    /// The text, with `?` for each placeholder.
    pub(crate) text: String,
    /// The value of each placeholder.
    pub(crate) parameters: Vec<Value>,
    pub(crate) transaction: Arc<Transaction>,
    /// Whether the transaction has a command of its own. Otherwise the statement is a transaction by itself.
    pub(crate) needs_transaction: bool,
}

/// How the rows ended.
enum StreamEnd {
    Complete,
    /// The reader left, and the server may have more rows.
    ReaderLeft,
}

enum StreamError {
    Server(MySqlError),
    Other(Error),
}

impl From<MySqlError> for StreamError {
    fn from(error: MySqlError) -> Self {
        Self::Server(error)
    }
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl StatementRun {
    /// Runs the statement up to its first rows.
    pub(crate) async fn start(self, job: &Arc<Job>) -> Result<QueryRows, Error> {
        let (sender, batches) = batch_channel(job.cancellation(), ());
        let (start, started) = oneshot::channel();
        let transaction = self.request.transaction.clone();
        let output = Output { start: Some(start), sender, stall_timeout: transaction.stall_timeout };
        let server = self.server.clone();
        server.pool.background_tasks().spawn(self.run(output, job.cancellation()));
        let limit = transaction.first_row_timeout;
        let limit_reached = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = job.cancelled() => Err(cancelled_error()),
            error = server.pool.closed() => Err(error),
            started = started => match started {
                Ok(schema) => Ok(QueryRows::new(schema?, batches)),
                Err(_) => Err(Error::new(ErrorKind::Unavailable, "the server is shutting down")),
            },
            () = limit_reached => {
                let limit = limit.unwrap_or_default().as_millis();
                Err(Error::new(ErrorKind::TimedOut, format!("no row came within {limit} ms")))
            }
        }
    }

    /// Runs the statement to its end, also if its reader leaves.
    async fn run(self, mut output: Output, cancellation: CancellationToken) {
        let Self { server, mut lease, request } = self;
        let closing = server.pool.background_tasks().closing().clone();
        let (reader, connector) = (output.sender.clone(), lease.connector().clone());
        let id = AtomicU32::new(lease.connection_id());
        let outcome = {
            let mut work = pin!(stream(&server, &mut lease, &request, &mut output, &id));
            tokio::select! {
                biased;
                outcome = &mut work => Some(outcome),
                () = ended(&reader, &cancellation, &closing) => match timeout(CANCEL_DELAY, &mut work).await {
                    Ok(outcome) => Some(outcome),
                    Err(_) => {
                        connector.kill(KillTarget::Query, id.load(Ordering::Relaxed)).await;
                        timeout(END_TIMEOUT, &mut work).await.ok()
                    }
                }
            }
        };
        let has_rows_left = match &outcome {
            Some(Ok(StreamEnd::Complete) | Err(StreamError::Server(_))) => false,
            Some(Ok(StreamEnd::ReaderLeft) | Err(StreamError::Other(_))) => true,
            // The work was dropped, with its connection.
            None => false,
        };
        drop(reader);
        if matches!(&outcome, Some(Ok(StreamEnd::Complete))) {
            // The reader waits for the end of the rows, not for that of the transaction.
            output.sender.complete();
            drop(output);
            match request.needs_transaction {
                true => lease.end().await,
                false => lease.mark_idle(),
            }
            return;
        }
        if has_rows_left {
            connector.kill(KillTarget::Query, lease.connection_id()).await;
        }
        if outcome.is_some() {
            lease.end().await;
        }
        drop(lease);
        let error = match outcome {
            Some(Err(StreamError::Server(error))) if !cancellation.is_cancelled() => {
                error::statement_error(&error, &server.database)
            }
            Some(Err(StreamError::Other(error))) => error,
            _ if closing.is_cancelled() => Error::new(ErrorKind::Unavailable, "the database is being closed"),
            _ => cancelled_error(),
        };
        // Waits for the client without holding a batch.
        tokio::select! {
            () = closing.cancelled() => {}
            () = cancellation.cancelled() => {}
            () = output.fail(error) => {}
        }
    }
}

/// Waits until the rows have no reader any more.
async fn ended(reader: &BatchSender, cancellation: &CancellationToken, closing: &CancellationToken) {
    tokio::select! {
        () = reader.closed() => {}
        () = cancellation.cancelled() => {}
        () = closing.cancelled() => {}
    }
}

fn cancelled_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the query was cancelled")
}

/// Where the rows go.
struct Output {
    /// Receives the columns before the first row, or the error in place of them.
    start: Option<oneshot::Sender<Result<SchemaRef, Error>>>,
    sender: BatchSender,
    /// How long a reader may leave rows unread.
    stall_timeout: Duration,
}

impl Output {
    /// Sends the columns, if they were not sent. Returns false when the reader is dropped.
    fn begin(&mut self, schema: &SchemaRef) -> bool {
        self.start.take().is_none_or(|start| start.send(Ok(schema.clone())).is_ok())
    }

    /// Sends rows. Returns false when the reader is dropped.
    async fn send(&mut self, batch: RecordBatch) -> Result<bool, Error> {
        if !self.begin(&batch.schema()) {
            return Ok(false);
        }
        self.sender.send(batch, self.stall_timeout).await
    }

    async fn fail(&mut self, error: Error) {
        match self.start.take() {
            // The call may have left.
            Some(start) => drop(start.send(Err(error))),
            None => self.sender.fail(error).await,
        }
    }
}

/// Sends the rows of `request`. A connection that was lost while it was idle is replaced, once; `id` is that of the
/// connection in use.
async fn stream(
    server: &Arc<MySqlServer>,
    lease: &mut Lease,
    request: &StatementRequest,
    output: &mut Output,
    id: &AtomicU32,
) -> Result<StreamEnd, StreamError> {
    match stream_once(server, lease, request, output).await {
        // Nothing of the answer was sent, and the statement only reads.
        Err(StreamError::Server(error)) if error.is_fatal() && output.start.is_some() => {
            tracing::debug!(database = %server.database, "a connection is replaced: {error}");
            lease.replace().await?;
            id.store(lease.connection_id(), Ordering::Relaxed);
            stream_once(server, lease, request, output).await
        }
        outcome => outcome,
    }
}

async fn stream_once(
    server: &Arc<MySqlServer>,
    lease: &mut Lease,
    request: &StatementRequest,
    output: &mut Output,
) -> Result<StreamEnd, StreamError> {
    lease.mark_busy();
    let role = lease.role().map(str::to_owned);
    let session = lease.session()?;
    if request.needs_transaction {
        session.begin(&request.transaction).await?;
    }
    let connection = &mut session.connection;
    // Prepared already, unless the connection was replaced.
    let statement = connection.prep(request.text.as_str()).await?;
    check_parameter_count(usize::from(statement.num_params()), request.parameters.len())?;
    let parameters = Params::Positional(request.parameters.clone());
    let mut rows = connection.exec_iter(&statement, parameters).await?;
    let columns: Vec<Column> = rows.columns_ref().to_vec();
    let mut builder = BatchBuilder::new(&server.decoders(&columns, role.as_deref()));
    let mut rows_max = FIRST_BATCH_ROWS_MAX;
    while let Some(row) = next_row(&mut rows, &mut builder, output, &mut rows_max).await? {
        let Some(row) = row else { return Ok(StreamEnd::ReaderLeft) };
        builder.push(&row)?;
        if builder.rows() >= rows_max || builder.bytes() >= BATCH_BYTES_MAX {
            rows_max = BATCH_ROWS_MAX;
            if !output.send(builder.finish()?).await? {
                return Ok(StreamEnd::ReaderLeft);
            }
        }
    }
    // A procedure may have further results.
    rows.drop_result().await?;
    let is_read = match builder.rows() {
        0 => output.begin(builder.schema()),
        _ => output.send(builder.finish()?).await?,
    };
    Ok(if is_read { StreamEnd::Complete } else { StreamEnd::ReaderLeft })
}

/// The next row: `None` after the last one, `Some(None)` when the reader is dropped. Rows that are complete are sent while
/// the server sends none.
async fn next_row(
    rows: &mut QueryResult<'_, 'static, BinaryProtocol>,
    builder: &mut BatchBuilder,
    output: &mut Output,
    rows_max: &mut usize,
) -> Result<Option<Option<Row>>, StreamError> {
    let mut next = pin!(rows.next());
    loop {
        // Rows that have arrived need no timer.
        if let Poll::Ready(row) = futures::poll!(next.as_mut()) {
            return Ok(row?.map(Some));
        }
        if builder.rows() == 0 {
            return Ok(next.await?.map(Some));
        }
        if let Ok(row) = timeout(LINGER, next.as_mut()).await {
            return Ok(row?.map(Some));
        }
        *rows_max = BATCH_ROWS_MAX;
        if !output.send(builder.finish()?).await? {
            return Ok(Some(None));
        }
    }
}

/// Checks the number of values, because the driver closes the connection if it is wrong.
pub(crate) fn check_parameter_count(expected: usize, actual: usize) -> Result<(), Error> {
    if expected == actual {
        return Ok(());
    }
    let message = format!("the statement has {expected} placeholders, but {actual} values came");
    Err(Error::new(ErrorKind::InvalidArguments, message))
}
