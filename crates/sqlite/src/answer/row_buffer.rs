//! The row buffer between the thread that reads rows and the task that consumes them.
//!
//! This is not a channel: after a short wait, the consumer takes an incomplete batch while SQLite still computes the
//! next row. The first row of a slow query must not wait for the sixty-fourth.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::Row;
use tidegate_core::{Error, ErrorKind};
use tokio::sync::Notify;

use super::batch::SqliteBatchBuilder;
use super::columns::ResultColumn;
use crate::options::SqliteOptions;
use crate::session::WorkCancellation;
use crate::work_error::WorkError;

const BUFFERED_BATCHES_MAX: usize = 2;
/// The number of rows of the first batch. Each later batch has twice as many rows as the one before.
const FIRST_BATCH_ROWS: usize = 64;
const LINGER: Duration = Duration::from_millis(50);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A row may have the size of this many values of the maximum size.
const ROW_VALUES_MAX: usize = 4;

pub(crate) struct RowBuffer {
    state: Mutex<BufferState>,
    room_available: Condvar,
    rows_available: Notify,
    batch_rows: usize,
    batch_bytes: usize,
    row_bytes_max: usize,
    stall_timeout: Duration,
}

struct BufferState {
    pending_batch: SqliteBatchBuilder,
    first_row_at: Option<Instant>,
    target_rows: usize,
    ready: VecDeque<RecordBatch>,
    /// How the rows ended, until the consumer takes it.
    end: Option<Result<(), Error>>,
    is_abandoned: bool,
}

impl RowBuffer {
    pub(crate) fn new(columns: &[ResultColumn], schema: SchemaRef, options: &SqliteOptions) -> Arc<Self> {
        let batch_rows = options.batch_rows.max(1);
        let state = BufferState {
            pending_batch: SqliteBatchBuilder::new(columns, schema),
            first_row_at: None,
            target_rows: FIRST_BATCH_ROWS.min(batch_rows),
            ready: VecDeque::new(),
            end: None,
            is_abandoned: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            room_available: Condvar::new(),
            rows_available: Notify::new(),
            batch_rows,
            batch_bytes: options.batch_bytes,
            row_bytes_max: options.value_bytes_max.saturating_mul(ROW_VALUES_MAX),
            stall_timeout: options.stall_timeout,
        })
    }

    fn wait_for_room(
        &self,
        state: &mut MutexGuard<'_, BufferState>,
        cancellation: &WorkCancellation,
    ) -> Result<(), WorkError> {
        let since = Instant::now();
        while state.ready.len() >= BUFFERED_BATCHES_MAX {
            if state.is_abandoned {
                return Err(WorkError::Cancelled);
            }
            if cancellation.must_stop() {
                return Err(cancellation.stop_error());
            }
            if since.elapsed() >= self.stall_timeout {
                return Err(WorkError::Stalled);
            }
            self.room_available.wait_for(state, POLL_INTERVAL);
        }
        Ok(())
    }

    /// Finishes the pending batch; the next one may have more rows.
    fn finish_batch(&self, state: &mut BufferState) -> Result<RecordBatch, WorkError> {
        state.first_row_at = None;
        state.target_rows = (state.target_rows * 2).min(self.batch_rows);
        state
            .pending_batch
            .take()
            .map_err(|error| WorkError::ClientError(Error::internal(format!("a batch is malformed: {error}"))))
    }

    fn end(&self, end: Result<(), Error>) {
        self.state.lock().end.get_or_insert(end);
        self.rows_available.notify_one();
    }

    /// The next batch, the end, or the time of the next attempt.
    fn poll_next(&self) -> PollOutcome {
        let mut state = self.state.lock();
        if let Some(batch) = state.ready.pop_front() {
            self.room_available.notify_one();
            return PollOutcome::Batch(Ok(batch));
        }
        let has_ended = state.end.is_some();
        match state.first_row_at {
            Some(since) if has_ended || since.elapsed() >= LINGER => {
                PollOutcome::Batch(self.finish_batch(&mut state).map_err(|failure| failure.into_error("")))
            }
            Some(since) => PollOutcome::Wait(Some(since + LINGER)),
            None => match state.end.take() {
                None => PollOutcome::Wait(None),
                Some(end) => PollOutcome::End(end),
            },
        }
    }
}

enum PollOutcome {
    Batch(Result<RecordBatch, Error>),
    End(Result<(), Error>),
    /// Nothing is available before that time, unless the consumer is notified.
    Wait(Option<Instant>),
}

/// The producing end, held by the reading thread.
pub(crate) struct RowSender {
    pub(crate) buffer: Arc<RowBuffer>,
}

impl RowSender {
    /// Appends a row. Blocks while the buffer is full.
    pub(crate) fn push_row(&self, row: &Row<'_>, cancellation: &WorkCancellation) -> Result<(), WorkError> {
        let buffer = &*self.buffer;
        let mut state = buffer.state.lock();
        state.pending_batch.push(row, buffer.row_bytes_max)?;
        if state.first_row_at.is_none() {
            state.first_row_at = Some(Instant::now());
            buffer.rows_available.notify_one();
        }
        if state.pending_batch.rows() >= state.target_rows || state.pending_batch.bytes() >= buffer.batch_bytes {
            buffer.wait_for_room(&mut state, cancellation)?;
            // The consumer may have taken the rows in the meantime.
            if state.pending_batch.rows() > 0 {
                let batch = buffer.finish_batch(&mut state)?;
                state.ready.push_back(batch);
                buffer.rows_available.notify_one();
            }
        }
        Ok(())
    }

    pub(crate) fn end(self, end: Result<(), Error>) {
        self.buffer.end(end);
    }
}

impl Drop for RowSender {
    /// Without a recorded end, the work did not run, or it panicked; after one, the consumer reads no other.
    fn drop(&mut self) {
        self.buffer.end(Err(Error::internal("a SQLite query ended without a result")));
    }
}

/// The consuming end. Dropping it stops the query.
pub(crate) struct BatchReader {
    buffer: Arc<RowBuffer>,
    work: Arc<WorkCancellation>,
    has_ended: bool,
}

impl BatchReader {
    /// Creates the consuming end of `buffer`; `work` is the work that reads the rows.
    pub(crate) fn new(buffer: Arc<RowBuffer>, work: Arc<WorkCancellation>) -> Self {
        Self { buffer, work, has_ended: false }
    }

    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, Error>> {
        if self.has_ended {
            return None;
        }
        let cancellation = self.work.token().clone();
        loop {
            if cancellation.is_cancelled() {
                self.has_ended = true;
                self.work.stop();
                return Some(Err(Error::new(ErrorKind::Cancelled, "the call was cancelled")));
            }
            let next_attempt = match self.buffer.poll_next() {
                PollOutcome::Batch(batch) => {
                    self.has_ended = batch.is_err();
                    return Some(batch);
                }
                PollOutcome::End(end) => {
                    self.has_ended = true;
                    return end.err().map(Err);
                }
                PollOutcome::Wait(next_attempt) => next_attempt,
            };
            let next_attempt = async {
                match next_attempt {
                    Some(moment) => tokio::time::sleep_until(moment.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = self.buffer.rows_available.notified() => {}
                () = next_attempt => {}
            }
        }
    }
}

impl Drop for BatchReader {
    fn drop(&mut self) {
        self.buffer.state.lock().is_abandoned = true;
        self.buffer.room_available.notify_one();
        self.work.stop();
    }
}
