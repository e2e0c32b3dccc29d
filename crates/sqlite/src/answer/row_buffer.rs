//! The way of the rows from the thread that reads them to whoever wants them.
//!
//! No channel, because a reader that has waited long enough takes what there is, while SQLite still looks for the next
//! row: the first row of a slow query must not wait for the sixty-fourth.

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

/// Batches that wait for the reader.
const BUFFERED_BATCHES_MAX: usize = 2;
/// Rows of the first batch; each later one has twice those of the one before.
const FIRST_BATCH_ROWS: usize = 64;
/// How long a row waits for others.
const LINGER: Duration = Duration::from_millis(50);
/// Between two looks at whether the work must end, while the reader takes nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Values that one row may have the bytes of, each as long as one may be.
const ROW_VALUES_MAX: usize = 4;

/// Where rows are put and batches are taken.
pub(crate) struct RowBuffer {
    state: Mutex<BufferState>,
    /// Tells the thread that there is room.
    room_available: Condvar,
    /// Tells the reader that there is something.
    rows_available: Notify,
    batch_rows: usize,
    batch_bytes: usize,
    row_bytes_max: usize,
    stall_timeout: Duration,
}

struct BufferState {
    pending_batch: SqliteBatchBuilder,
    /// When the first row of the growing batch came.
    first_row_at: Option<Instant>,
    target_rows: usize,
    ready: VecDeque<RecordBatch>,
    /// How the rows ended, until the reader knows.
    end: Option<Result<(), Error>>,
    has_end: bool,
    /// Whether the reader is gone.
    is_abandoned: bool,
}

impl RowBuffer {
    /// A handover of rows of `columns`, whose schema is `schema`.
    pub(crate) fn new(columns: &[ResultColumn], schema: SchemaRef, options: &SqliteOptions) -> Arc<Self> {
        let batch_rows = options.batch_rows.max(1);
        let state = BufferState {
            pending_batch: SqliteBatchBuilder::new(columns, schema),
            first_row_at: None,
            target_rows: FIRST_BATCH_ROWS.min(batch_rows),
            ready: VecDeque::new(),
            end: None,
            has_end: false,
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

    fn push_row(&self, row: &Row<'_>, running: &WorkCancellation) -> Result<(), WorkError> {
        let mut state = self.state.lock();
        state.pending_batch.push(row, self.row_bytes_max)?;
        if state.first_row_at.is_none() {
            state.first_row_at = Some(Instant::now());
            self.rows_available.notify_one();
        }
        if state.pending_batch.rows() >= state.target_rows || state.pending_batch.bytes() >= self.batch_bytes {
            self.wait_for_room(&mut state, running)?;
            // The reader may have taken the rows in the meantime.
            if state.pending_batch.rows() > 0 {
                let batch = self.finish_batch(&mut state)?;
                state.ready.push_back(batch);
                self.rows_available.notify_one();
            }
        }
        Ok(())
    }

    fn wait_for_room(
        &self,
        state: &mut MutexGuard<'_, BufferState>,
        running: &WorkCancellation,
    ) -> Result<(), WorkError> {
        let since = Instant::now();
        while state.ready.len() >= BUFFERED_BATCHES_MAX {
            if state.is_abandoned || running.must_stop() {
                return Err(WorkError::Cancelled);
            }
            if since.elapsed() >= self.stall_timeout {
                return Err(WorkError::Stalled);
            }
            self.room_available.wait_for(state, POLL_INTERVAL);
        }
        Ok(())
    }

    /// Makes a batch of the rows so far; the next is to have more of them.
    fn finish_batch(&self, state: &mut BufferState) -> Result<RecordBatch, WorkError> {
        state.first_row_at = None;
        state.target_rows = (state.target_rows * 2).min(self.batch_rows);
        state
            .pending_batch
            .take()
            .map_err(|error| WorkError::ClientError(Error::internal(format!("a batch is malformed: {error}"))))
    }

    fn end(&self, end: Result<(), Error>) {
        let mut state = self.state.lock();
        (state.end, state.has_end) = (Some(end), true);
        drop(state);
        self.rows_available.notify_one();
    }

    /// What there is to take now: a batch, the end, or when to look again.
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

/// What the reader found.
enum PollOutcome {
    Batch(Result<RecordBatch, Error>),
    End(Result<(), Error>),
    /// Nothing before that moment, unless it is told.
    Wait(Option<Instant>),
}

/// The thread's side.
pub(crate) struct RowSender {
    buffer: Arc<RowBuffer>,
}

impl RowSender {
    /// The thread's side of `handover`.
    pub(crate) fn new(buffer: Arc<RowBuffer>) -> Self {
        Self { buffer }
    }

    /// Puts a row, and waits while the reader has enough.
    ///
    /// # Errors
    /// When the row cannot be put, or `running` must end, or the reader takes nothing for too long.
    pub(crate) fn push_row(&self, row: &Row<'_>, running: &WorkCancellation) -> Result<(), WorkError> {
        self.buffer.push_row(row, running)
    }

    /// Says how the rows ended.
    pub(crate) fn end(self, end: Result<(), Error>) {
        self.buffer.end(end);
    }
}

impl Drop for RowSender {
    /// Rows whose end nobody told of have not ended well: the work was never done, or it panicked.
    fn drop(&mut self) {
        if !self.buffer.state.lock().has_end {
            self.buffer.end(Err(Error::internal("a query of SQLite ended without a word")));
        }
    }
}

/// The reader's side; dropping it stops the query.
pub(crate) struct BatchReader {
    buffer: Arc<RowBuffer>,
    work: Arc<WorkCancellation>,
    has_ended: bool,
}

impl BatchReader {
    /// The reader of `handover`, whose rows `running` reads.
    pub(crate) fn new(buffer: Arc<RowBuffer>, work: Arc<WorkCancellation>) -> Self {
        Self { buffer, work, has_ended: false }
    }

    /// The next batch, or nothing at the end.
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
            let look_again = match self.buffer.poll_next() {
                PollOutcome::Batch(batch) => {
                    self.has_ended = batch.is_err();
                    return Some(batch);
                }
                PollOutcome::End(end) => {
                    self.has_ended = true;
                    return end.err().map(Err);
                }
                PollOutcome::Wait(look_again) => look_again,
            };
            let look_again = async {
                match look_again {
                    Some(moment) => tokio::time::sleep_until(moment.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = self.buffer.rows_available.notified() => {}
                () = look_again => {}
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
