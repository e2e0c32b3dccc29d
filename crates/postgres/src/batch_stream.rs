//! The rows of a running statement as batches. The first batches are small. A batch is complete when it is full, or
//! when no more rows arrive for a moment.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use futures::Stream;
use tidegate_core::Error;
use tidegate_sql::Author;
use tokio::time::{Instant, Sleep};
use tokio_postgres::RowStream;

use crate::error;
use crate::values::BatchBuilder;

const BATCH_ROWS_MAX: usize = 8_192;
/// The maximum number of rows of the first batch, so that the first rows arrive early.
const FIRST_BATCH_ROWS_MAX: usize = 256;
/// The maximum size of the values of a batch, in bytes; the last row may exceed it.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// How long an incomplete batch waits for more rows while the server sends none.
const LINGER: Duration = Duration::from_millis(5);

pub(crate) struct BatchStream {
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
